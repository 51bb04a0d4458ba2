//! One redis-server process: a port and a folder for it, its start, and the wait until it serves.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::{Connection, IntoConnectionInfo, RedisResult, Value};

use super::replies::{call, info};

/// How long anything may take that a test waits for.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The folder of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// Starts the process and waits until it serves; `Err` is what it logged if it ended instead.
pub(super) fn launch(command: &[OsString], port: u16, dir: &Path) -> Result<Child, String> {
    let already_logged = read_log(dir).len();
    let log = OpenOptions::new().create(true).append(true).open(log_file(dir)).expect("a log file");
    let mut launch = Command::new(&command[0]);
    launch.args(&command[1..]).arg("--port").arg(port.to_string());
    launch.stdin(Stdio::null()).stdout(log.try_clone().expect("a second handle")).stderr(log);
    // SAFETY: between fork and exec only prctl is called, which is a bare system call.
    unsafe {
        launch.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    let mut child =
        launch.spawn().unwrap_or_else(|error| panic!("cannot run {}: {error}", command[0].display()));

    let deadline = Instant::now() + PATIENCE;
    loop {
        if child.try_wait().expect("our own child").is_some() {
            return Err(read_log(dir)[already_logged..].to_string());
        }
        if serves(port, child.id()) {
            return Ok(child);
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            panic!("not ready after {PATIENCE:?}; log:\n{}", read_log(dir));
        }
        sleep(Duration::from_millis(5));
    }
}

/// Whether the server on this port has loaded its data, and is the one we started: if two programs were told of the
/// same free port, the loser would find the winner's server here.
fn serves(port: u16, pid: u32) -> bool {
    let Ok(mut con) = connect(port) else { return false };
    let ready = matches!(call(&mut con, &["PING"]), Ok(Value::SimpleString(pong)) if pong == "PONG");
    ready && info(&mut con, "server", "process_id") == Some(pid.to_string())
}

pub fn connect(port: u16) -> RedisResult<Connection> {
    // RESP2, and no `CLIENT SETINFO`: 7.0 does not know it and would count two errors per connection.
    let settings = redis::RedisConnectionInfo::default()
        .set_protocol(redis::ProtocolVersion::RESP2)
        .set_skip_set_lib_name();
    let address = redis::ConnectionAddr::Tcp("127.0.0.1".to_string(), port);
    let con = redis::Client::open(address.into_connection_info()?.set_redis_settings(settings))?
        .get_connection()?;
    con.set_read_timeout(Some(PATIENCE))?;
    Ok(con)
}

pub(super) fn port_was_taken(log: &str) -> bool {
    log.contains("Address already in use")
}

pub(super) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

pub fn fresh_dir() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let dir = root().join(format!("target/tmp/server-{}-{number}", std::process::id()));
    // A test that was killed leaves its folder, and process ids come round again.
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a folder for the server");
    dir
}

fn log_file(dir: &Path) -> PathBuf {
    dir.join("log")
}

pub(super) fn read_log(dir: &Path) -> String {
    let log = fs::read(log_file(dir)).unwrap_or_default();
    String::from_utf8_lossy(&log).into_owned()
}
