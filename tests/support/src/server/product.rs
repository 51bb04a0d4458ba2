//! What the server is, and what it lacks that a test is about.

use std::io::Write;

use redis::Connection;

use super::info;

/// Its name and release.
fn product(con: &mut Connection) -> (&'static str, String) {
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

/// Whether the server is of before the release that brought this, and then says so. Valkey has counted on from Redis' 7.2.
pub fn older(con: &mut Connection, release: [u32; 2], what: &str) -> bool {
    let (_, version) = product(con);
    let numbers: Vec<u32> = version.split('.').map(|number| number.parse().unwrap()).collect();
    let older = numbers[..2] < release[..];
    if older {
        skipped(con, what);
    }
    older
}
