//! Real servers for tests and benches: started on a port and in a folder of their own, and gone when dropped.
//!
//! A server dies with the thread that started it, so keep it in the test that started it. Everything
//! talks to 127.0.0.1 only, and whatever goes wrong here panics: it is the test that failed.

mod process;
mod product;
mod replies;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::{Connection, ConnectionLike, Value};

pub use process::{PATIENCE, connect, fresh_dir};
use process::{free_port, launch, port_was_taken, read_log, root};
pub use product::{older, skipped};
pub use replies::{
    call, call_bytes, clock, command_names, dump, dump_bytes, error, error_line, info, integers, ints, multi,
    refused, shortest, simple, sorted_elements, text,
};

/// How often another port is tried, when another process took the one that was free a moment ago.
pub const ATTEMPTS: u32 = 20;

/// The start of an hour in 2023, in microseconds.
pub const T0: u64 = 1_700_002_800_000_000;
/// In microseconds.
pub const SECOND: u64 = 1_000_000;
/// The last instant of the year 9999, the latest that `AT` takes, in microseconds.
pub const LATEST: i64 = 253_402_300_799_999_999;
/// What a command replies to a key of another type, limiter or mode.
pub const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// The error, or [`WRONG_TYPE`] for one of this module that says what the key holds.
pub fn kind_of_error(error: String) -> String {
    if error.starts_with("WRONGTYPE the key holds ") { WRONG_TYPE.into() } else { error }
}

/// An AOF that a call is in before it is answered, so that its size can be looked at.
pub const AOF_AT_ONCE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// The module as `make build` leaves it, or as the environment names it.
pub fn module() -> PathBuf {
    built("RATELIMIT_MODULE", "target/release/libredis_ratelimit.so")
}

/// The same module with faults that a test can set off.
pub fn faulty_module() -> PathBuf {
    built("RATELIMIT_FAULTY_MODULE", "target/debug/libredis_ratelimit_faulty.so")
}

fn built(variable: &str, path: &str) -> PathBuf {
    let path = root().join(std::env::var_os(variable).unwrap_or_else(|| path.into()));
    assert!(path.exists(), "{} is missing: run `make test`, which builds it", path.display());
    path
}

pub struct Server {
    pub port: u16,
    /// The program and its arguments, all but the port.
    command: Vec<OsString>,
    child: Child,
    dir: PathBuf,
}

impl Server {
    /// A server with the module. `args` are redis-server's (`&["--appendonly", "yes"]`) and win over the defaults.
    pub fn start(args: &[&str]) -> Server {
        Server::start_with(Some(&module()), args)
    }

    pub fn start_with(module: Option<&Path>, args: &[&str]) -> Server {
        Server::try_start_with(module, &[], args)
            .unwrap_or_else(|log| panic!("the server did not start:\n{log}"))
    }

    /// `Err` is the log of a server that ended before it was ready.
    pub fn try_start_with(
        module: Option<&Path>,
        module_args: &[&str],
        args: &[&str],
    ) -> Result<Server, String> {
        Server::try_start_under(&[], module, module_args, args)
    }

    /// As above, with `launcher` in front of redis-server: a program that becomes the server, as valgrind does.
    pub fn try_start_under(
        launcher: &[&str],
        module: Option<&Path>,
        module_args: &[&str],
        args: &[&str],
    ) -> Result<Server, String> {
        let dir = fresh_dir();
        let mut command: Vec<OsString> = launcher.iter().map(OsString::from).collect();
        command.extend(
            ["redis-server", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"].map(OsString::from),
        );
        command.extend(["--daemonize", "no", "--enable-debug-command", "yes"].map(OsString::from));
        // Else a replica waits five seconds for its first copy.
        command.extend(["--repl-diskless-sync-delay", "0"].map(OsString::from));
        command.extend([OsStr::new("--dir"), dir.as_os_str()].map(OsString::from));
        if let Some(module) = module {
            command.extend([OsStr::new("--loadmodule"), module.as_os_str()].map(OsString::from));
            command.extend(module_args.iter().map(OsString::from));
        }
        command.extend(args.iter().map(OsString::from));
        Server::try_launch(command, dir)
    }

    /// Any program that becomes a server once it has its port, in a folder that is removed with it.
    pub fn try_launch(command: Vec<OsString>, dir: PathBuf) -> Result<Server, String> {
        let mut attempt = 1;
        loop {
            let port = free_port();
            match launch(&command, port, &dir) {
                Ok(child) => return Ok(Server { port, command, child, dir }),
                Err(log) if port_was_taken(&log) && attempt < ATTEMPTS => attempt += 1,
                Err(log) => {
                    let _ = fs::remove_dir_all(&dir);
                    return Err(log);
                }
            }
        }
    }

    /// Starts a replica of this server and waits until it has its first copy.
    #[must_use]
    pub fn replica(&self, args: &[&str]) -> Server {
        let port = self.port.to_string();
        let replica = Server::start(&[&["--replicaof", "127.0.0.1", &port], args].concat());
        let mut con = replica.connection();
        wait_for("the replica's link", || {
            info(&mut con, "replication", "master_link_status").as_deref() == Some("up")
        });
        replica
    }

    /// Ends the server in good order and starts it again.
    pub fn restart(&mut self) {
        self.stop();
        self.start_again();
    }

    /// With the same arguments, folder and port.
    pub fn start_again(&mut self) {
        let mut attempt = 1;
        self.child = loop {
            match launch(&self.command, self.port, &self.dir) {
                Ok(child) => break child,
                Err(log) if port_was_taken(&log) && attempt < ATTEMPTS => sleep(Duration::from_millis(100)),
                Err(log) => panic!("the server did not start again:\n{log}"),
            }
            attempt += 1;
        };
    }

    /// Ends the server in good order: it saves if it has save points, and flushes its AOF if it has one.
    pub fn stop(&mut self) {
        // No answer comes: a server that obeys closes the connection. One that writes its first AOF refuses, and goes on.
        wait_for("the server to obey", || match self.connection().req_command(&redis::cmd("SHUTDOWN")) {
            Ok(reply) => !matches!(reply, Value::ServerError(_)),
            Err(error) => {
                assert!(error.is_connection_dropped(), "SHUTDOWN: {error}");
                true
            }
        });
        wait_for("the server's end", || self.child.try_wait().unwrap().is_some());
    }

    /// With SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn connection(&self) -> Connection {
        connect(self.port).unwrap_or_else(|error| panic!("no connection: {error}; log:\n{}", self.log()))
    }

    /// What the server has written so far, over all its restarts.
    pub fn log(&self) -> String {
        read_log(&self.dir)
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("log of the server on port {}:\n{}", self.port, self.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// The payload of the effect of the last call on a key called `key`, from the AOF.
pub fn last_payload(server: &Server) -> Vec<u8> {
    let dir = server.dir().join("appendonlydir");
    let name = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().ends_with(".incr.aof"))
        .unwrap();
    let log = std::fs::read(name).unwrap();
    let at = log.windows(8).rposition(|window| window == b"RL.APPLY").unwrap();
    // RL.APPLY CRLF $3 CRLF key CRLF $n CRLF payload CRLF
    let rest = &log[at + 10..];
    let mut lines = rest.splitn(4, |byte| *byte == b'\n');
    let (_, _, length) = (lines.next().unwrap(), lines.next().unwrap(), lines.next().unwrap());
    let length: usize = std::str::from_utf8(&length[1..]).unwrap().trim().parse().unwrap();
    lines.next().unwrap()[..length].to_vec()
}

/// Waits until the replica has applied all that the primary has sent so far.
pub fn sync(primary: &Server, replica: &Server) {
    let offset = |server: &Server, field| -> u64 {
        let offset = info(&mut server.connection(), "replication", field);
        offset.unwrap_or_else(|| panic!("no {field}")).parse().unwrap()
    };
    let sent = offset(primary, "master_repl_offset");
    wait_for("the replica's offset", || offset(replica, "slave_repl_offset") >= sent);
}

/// Has the AOF rewritten, and waits until it is.
pub fn rewrite_aof(con: &mut Connection) {
    text(con, "BGREWRITEAOF");
    wait_for("the rewrite", || !rewrites_aof(con));
    assert_eq!(info(con, "persistence", "aof_last_bgrewrite_status").as_deref(), Some("ok"));
}

/// Whether the AOF is being rewritten; or is to be, as soon as another child of the server's has ended, such as the one
/// that made a replica's copy.
pub fn rewrites_aof(con: &mut Connection) -> bool {
    let mut is = |field| info(con, "persistence", field).as_deref() == Some("1");
    // In the order in which it happens, so that it is not missed between the two looks.
    is("aof_rewrite_scheduled") || is("aof_rewrite_in_progress")
}

/// What the server has taken from its allocator.
pub fn used_memory(con: &mut Connection) -> i64 {
    info(con, "memory", "used_memory").expect("INFO memory tells it").parse().unwrap()
}

/// Seconds that the server's main thread has worked.
pub fn main_thread_seconds(con: &mut Connection) -> f64 {
    let mut part = |field| info(con, "cpu", field).expect("INFO cpu tells it").parse::<f64>().unwrap();
    part("used_cpu_user_main_thread") + part("used_cpu_sys_main_thread")
}

/// Polls until `reached`; a minute is long enough on any machine.
pub fn wait_for(what: &str, mut reached: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !reached() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} in vain for {what}");
        sleep(Duration::from_millis(5));
    }
}
