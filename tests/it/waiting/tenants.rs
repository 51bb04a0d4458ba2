//! Tenants on a real server: which are shown of many, and what ends their hungers.

use redis::Connection;

use super::{Waiting, pipeline};
use crate::support::{Server, ints, text};

/// A hunger that does not end within a test.
const LASTING: [&str; 4] = ["--ratelimit.hunger", "1d", "--ratelimit.max-block", "86400000"];

/// The tenants that `RL.INFO` shows, in order, and how many there are by it.
fn shown(con: &mut Connection) -> (Vec<String>, u64) {
    let shown = text(con, "RL.INFO pool");
    let names = shown.split("[name, ").skip(1).map(|tenant| tenant.split(',').next().unwrap().to_string());
    (names.collect(), super::figure(&shown, "tenants_count"))
}

#[test]
fn info_counts_all_tenants_and_shows_those_in_the_line_first_if_they_are_many() {
    let server = Server::start(&LASTING);
    let con = &mut server.connection();
    let take = |con: &mut Connection, tenants: std::ops::RangeInclusive<u64>, most: u64| {
        let last = *tenants.end();
        let lines = tenants.map(|i| {
            let cost = if i == last { most } else { 1 };
            format!("RL.CONCURRENT pool 3000 1h {i} COST {cost} TENANT tenant-{i:04}")
        });
        pipeline(con, &lines.collect::<Vec<_>>());
    };
    take(con, 1..=999, 3);
    ints(con, "RL.CONCURRENT pool 3000 1h unnamed COST 2");
    // Of up to 1,000, those that hold most come first.
    let (names, count) = shown(con);
    assert_eq!((names.len(), count), (100, 1000));
    assert_eq!(names[..3], ["tenant-0999", "", "tenant-0001"]);
    // Of more, those in the line do, and after them the first holders by name.
    take(con, 1000..=1100, 9);
    ints(con, "RL.CONCURRENT pool 1 1h refused TENANT hungry");
    let waits = Waiting::enter(&server, "RL.CONCURRENT pool 1 1h waits TENANT tenant-0500 BLOCK 1d");
    let (names, count) = shown(con);
    assert_eq!((names.len(), count), (100, 1102));
    assert_eq!(names[..4], ["tenant-0500", "hungry", "", "tenant-0001"]);
    // If more than 1,000 are in the line, those shown are its first by name.
    let more: Vec<String> =
        (0..1001).map(|i| format!("RL.CONCURRENT pool 1 1h more-{i} TENANT in-line-{i:04}")).collect();
    pipeline(con, &more);
    let (names, count) = shown(con);
    assert_eq!((names.len(), count), (100, 2103));
    assert!(names.iter().all(|name| name == "hungry" || name.starts_with("in-line-00")), "{names:?}");
    drop(waits);
}

#[test]
fn hungers_end_with_the_setting_and_with_what_others_do_to_the_key() {
    let server = Server::start(&LASTING);
    let con = &mut server.connection();
    for (ends, is_hungry) in [
        ("CONFIG SET ratelimit.hunger 0", false),
        ("CONFIG SET ratelimit.max-tenants 0", false),
        ("CONFIG SET ratelimit.hunger 2h", true),
        ("UNLINK k", false),
        ("SET k text", false),
        ("PEXPIRE k -1", false),
        ("FLUSHALL", false),
        ("FLUSHDB", false),
        ("SWAPDB 0 1", false),
        // The module deletes the key.
        ("RL.RELEASE k a1", true),
    ] {
        text(con, "FLUSHALL");
        text(con, "CONFIG SET ratelimit.max-tenants 100 ratelimit.hunger 1d");
        ints(con, "RL.CONCURRENT k 1 1h a1 TENANT ann");
        assert_eq!(ints(con, "RL.CONCURRENT k 1 1h b1 TENANT bob")[0], 1);
        text(con, ends);
        // However the key was left, the pool is empty.
        let is_text = text(con, "TYPE k") == "string";
        text(con, if is_text { "DEL k" } else { "RL.RELEASE k a1" });
        assert_eq!(ints(con, "RL.CONCURRENT k 1 1h a2 TENANT ann")[0] == 1, is_hungry, "{ends}");
    }
}
