//! Who receives the effects of a measured server's calls.
//!
//! A server sends effects only while something can receive them, and for a second or two after its start. A load begins
//! after that. Otherwise one row would mix calls that send with calls that do not.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Result;
use ratelimit_testing::{Server, call, info, wait_for};

#[derive(Clone, Copy)]
pub enum Audience<'a> {
    Nobody,
    /// A replication backlog, as after a restart: loaded from the [`history`] in this folder.
    Backlog(&'a Path),
    /// A replica, and an AOF that is synced every second. A rewrite would be measured with whatever it falls on.
    ReplicaAndAof,
}

/// Each look at a server costs it instructions, and under callgrind they are counted.
const BETWEEN_LOOKS: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(30);

impl Audience<'_> {
    /// The server's arguments. `IO_THREADS=2` in the environment is a setting of each measured server.
    pub fn args(self) -> Vec<String> {
        let threads = std::env::var("IO_THREADS").unwrap_or_else(|_| "1".into());
        let args: &[&str] = match self {
            Audience::Nobody => &[],
            Audience::Backlog(dir) => &["--dir", &dir.to_string_lossy()],
            Audience::ReplicaAndAof => {
                &["--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0"]
            }
        };
        ["--io-threads", &threads].iter().chain(args).map(ToString::to_string).collect()
    }

    /// A server with this audience, and its replica.
    pub fn start(self) -> Result<(Server, Option<Server>)> {
        let args = self.args();
        let server = Server::start(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let replica = self.join(&server)?;
        Ok((server, replica))
    }

    /// Attaches the replica, if there is one, and waits until the server sends what this audience receives.
    pub fn join(self, server: &Server) -> Result<Option<Server>> {
        let replica = matches!(self, Audience::ReplicaAndAof).then(|| server.replica(&[]));
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = self.check(server) {
            if Instant::now() > deadline {
                return Err(error);
            }
            sleep(BETWEEN_LOOKS);
        }
        Ok(replica)
    }

    /// Whether the server has this audience, and sends effects if something receives them.
    pub fn check(self, server: &Server) -> Result<()> {
        let mut con = server.connection();
        let (propagates, backlog, replicas) = match self {
            Audience::Nobody => ("0", "0", "0"),
            Audience::Backlog(_) => ("1", "1", "0"),
            Audience::ReplicaAndAof => ("1", "1", "1"),
        };
        for (section, field, expected) in [
            ("ratelimit", "ratelimit_propagates", propagates),
            ("replication", "repl_backlog_active", backlog),
            ("replication", "connected_slaves", replicas),
        ] {
            let found = info(&mut con, section, field).unwrap_or_default();
            if found != expected {
                return Err(format!("{field}:{found} instead of {expected}").into());
            }
        }
        Ok(())
    }
}

/// A server whose folder holds an RDB with a replication id: it was saved by a primary that has had a replica.
pub fn history() -> Result<Server> {
    let server = Server::start_with(None, &[]);
    drop(server.replica(&[]));
    let mut con = server.connection();
    wait_for("the end of the replica's copy", || {
        info(&mut con, "persistence", "rdb_bgsave_in_progress").as_deref() == Some("0")
    });
    call(&mut con, &["SAVE"])?;
    Ok(server)
}
