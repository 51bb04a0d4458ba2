//! What the server is, and what it lacks that a test is about.

use std::io::Write;

use redis::Connection;

use super::info;

/// Its name and release.
pub fn product(con: &mut Connection) -> (&'static str, String) {
    match info(con, "server", "valkey_version") {
        Some(version) => ("valkey", version),
        None => ("redis", info(con, "server", "redis_version").unwrap()),
    }
}

/// Says so past the test harness, which keeps to itself what a passing test prints.
pub fn skipped(con: &mut Connection, what: &str) {
    let (name, version) = product(con);
    std::io::stderr().write_all(format!("skipped: {name} {version} has no {what}\n").as_bytes()).unwrap();
}
