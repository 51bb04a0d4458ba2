//! Replicas that attach, leave and agree with their primary.

use redis::Connection;

use crate::support::contents::{contents, expect_same};
use crate::support::{Server, info, sync, text, wait_for};

pub const STRICT: [&str; 2] = ["--propagation-error-behavior", "panic"];
/// Makes the server write each key so slowly, in microseconds, that calls go on meanwhile.
pub const SLOWLY: [&str; 2] = ["--rdb-key-save-delay", "3000"];
/// Room for all effects that a replica misses while it is away.
pub const LARGE_BACKLOG: [&str; 2] = ["--repl-backlog-size", "64mb"];
/// A port on which no server listens.
pub const NOWHERE: u16 = 1;

/// Makes the server a replica of the one on this port, at once.
pub fn follow(server: &Server, port: u16) {
    text(&mut server.connection(), &format!("REPLICAOF 127.0.0.1 {port}"));
}

/// Makes a server a replica of another one, and waits for the link.
pub fn attach(replica: &Server, primary: &Server) {
    follow(replica, primary.port);
    wait_for("the link", || is_up(replica));
}

/// Waits until a replica has its primary's policies, which are sent soon after the first copy. For tests that count what is sent.
pub fn wait_for_policies(replica: &Server) {
    let con = &mut replica.connection();
    wait_for("the policies", || info(con, "commandstats", "cmdstat_rl.policy|apply").is_some());
}

/// How much was written until now: changes, and bytes of the append-only file.
pub fn written(con: &mut Connection) -> [Option<String>; 2] {
    ["rdb_changes_since_last_save", "aof_current_size"].map(|field| info(con, "persistence", field))
}

pub fn is_up(replica: &Server) -> bool {
    replication(&mut replica.connection(), "master_link_status") == "up"
}

/// Compares each copy with the server, whose traffic has ended.
pub fn agree(server: &Server, copies: &[&Server]) {
    let expected = contents(server);
    assert!(expected.len() > 100, "{} keys", expected.len());
    for (number, copy) in copies.iter().enumerate() {
        sync(server, copy);
        expect_same(&contents(copy), &expected, &format!("copy {number}"));
    }
}

pub fn replicas(con: &mut Connection) -> u64 {
    replication(con, "connected_slaves").parse().unwrap()
}

pub fn replication(con: &mut Connection, field: &str) -> String {
    info(con, "replication", field).unwrap_or_else(|| panic!("no {field}"))
}

/// A number of the server's that only grows.
pub fn counter(con: &mut Connection, field: &str) -> u64 {
    info(con, "stats", field).unwrap_or_else(|| panic!("no {field}")).parse().unwrap()
}
