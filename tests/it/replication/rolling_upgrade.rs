//! A rolling upgrade while calls go on: the replica gets the new file and takes over, then the other one gets it. Every
//! call is answered, and those that were admitted are exactly what the limits have counted.
//!
//! (`failover.rs` is about a primary that is killed.)

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use crate::support::called::{CALLED, LIMIT, remaining, set_policy, words};
use crate::support::contents::contents;
use crate::support::load::{Course, Load};
use crate::support::{
    Server, call, connect, faulty_module, info, module, refused, simple, sync, text, wait_for,
};

/// Between two calls of a client: a fast machine needs more than three minutes to reach a limit.
const PAUSE: Duration = Duration::from_micros(200);
/// With a save point a server keeps its state over a restart, and its place in the replication stream; the backlog is
/// long enough for what it misses.
const KEPT: [&str; 4] = ["--save", "3600 1", "--repl-backlog-size", "64mb"];

#[test]
fn an_upgrade_of_one_after_the_other_loses_no_call() {
    let installed = Installed::new(&module());
    let mut first = Server::start_with(Some(&installed.file), &KEPT);
    let port = first.port.to_string();
    let args = [&KEPT[..], &["--replicaof", "127.0.0.1", &port]].concat();
    let mut second = Server::start_with(Some(&installed.file), &args);
    wait_for("the replica", || follows(&second, &first));
    set_policy(&first);
    let load = begin([first.port, second.port]);
    load.all_go_on(50);

    // Another build of the module stands for a new version. Both servers still run the one that was there.
    installed.install(&faulty_module());
    load.all_go_on(50);
    second.restart();
    wait_for("the replica", || follows(&second, &first));
    assert_eq!(info(&mut first.connection(), "stats", "sync_partial_ok").as_deref(), Some("1"));
    load.all_go_on(50);

    take_over(&first, &second);
    load.all_go_on(50);
    first.restart();
    follow(&first, &second);
    load.all_go_on(50);

    // And back, by the server's own command.
    let con = &mut second.connection();
    let port = first.port.to_string();
    // Not before the replica has told that it is up to date, which it does once a second.
    wait_for("a replica to hand over to", || call(con, &["FAILOVER", "TO", "127.0.0.1", &port]).is_ok());
    wait_for("the failover", || follows(&second, &first));
    load.all_go_on(50);

    let admitted = load.finish();
    let con = &mut first.connection();
    for (line, admitted) in CALLED.iter().zip(admitted) {
        println!("{line}: admitted {admitted}");
        assert_eq!(LIMIT - remaining(con, line), i64::try_from(admitted).unwrap(), "{line}");
    }
    sync(&first, &second);
    let kept = contents(&first);
    assert_eq!(kept.len(), CALLED.len());
    assert_eq!(contents(&second), kept);
}

/// Makes the replica the primary and the primary its replica. Calls wait meanwhile.
fn take_over(primary: &Server, replica: &Server) {
    let con = &mut primary.connection();
    text(con, "CLIENT PAUSE 60000 WRITE");
    sync(primary, replica);
    assert_eq!(contents(primary), contents(replica));
    text(&mut replica.connection(), "REPLICAOF NO ONE");
    follow(primary, replica);
    // What waited is refused as READONLY now, and goes over.
    text(con, "CLIENT UNPAUSE");
}

fn follow(replica: &Server, primary: &Server) {
    text(&mut replica.connection(), &format!("REPLICAOF 127.0.0.1 {}", primary.port));
    wait_for("the replica", || follows(replica, primary));
}

fn follows(replica: &Server, primary: &Server) -> bool {
    let con = &mut replica.connection();
    info(con, "replication", "master_port") == Some(primary.port.to_string())
        && info(con, "replication", "master_link_status").as_deref() == Some("up")
}

/// Where the module is installed; gone when dropped.
struct Installed {
    folder: PathBuf,
    file: PathBuf,
}

impl Installed {
    fn new(module: &Path) -> Installed {
        let folder = format!("upgrade-{}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        fs::create_dir_all(&folder).unwrap();
        let installed = Installed { file: folder.join("libredis_ratelimit.so"), folder };
        installed.install(module);
        installed
    }

    /// As `install` and `dpkg` do: a server that has the old file loaded keeps it. To write into it would be the end
    /// of that server.
    fn install(&self, module: &Path) {
        let new = self.file.with_extension("new");
        fs::copy(module, &new).unwrap();
        fs::rename(&new, &self.file).unwrap();
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A client for each line, which goes to the other server when the one it has says that it is a replica. Each counts
/// what was admitted.
fn begin(ports: [u16; 2]) -> Load<usize> {
    Load::start(CALLED.iter().map(|line| move |course: &Course| call_on(line, ports, course)))
}

fn call_on(line: &str, mut ports: [u16; 2], course: &Course) -> usize {
    let mut con = connect(ports[0]).unwrap();
    for number in 0.. {
        let line = line.replace('#', &number.to_string());
        loop {
            match call(&mut con, &words(&line)) {
                Ok(reply) if !refused(&reply) => break,
                Ok(reply) => panic!("{line}: {}", simple(&reply)),
                // It has carried out nothing.
                Err(error) if error.code() == Some("READONLY") => {
                    ports.reverse();
                    con = connect(ports[0]).unwrap();
                }
                Err(error) => panic!("{line}: {error}"),
            }
        }
        course.goes_on();
        if course.is_enough() {
            return number + 1;
        }
        sleep(PAUSE);
    }
    unreachable!("numbers have no end")
}
