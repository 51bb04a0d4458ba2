//! A slot that moves as a whole with `CLUSTER MIGRATESLOTS`, while clients call.

use redis::{Connection, Value};

use crate::support::cluster::{self, Cluster};
use crate::support::one_slot::LEFT_ALONE;
use crate::support::{Server, call, dump, ints, skipped, sync, text};

/// One more charge that is made once: several limits under one key.
const LEFT_ALONE_TOO: &str =
    "RL.MULTI 1 {t}:kept:both LIMIT GCRA 9 1 1h LIMIT SLIDINGLOG 9 1h LIMIT CONCURRENT 9 1h one";

/// Calls that are refused after a thousand; for each, the command that shows the state, and the field that then appears.
const CALLED: [(&str, (&str, &str)); 7] = [
    ("RL.TOKENBUCKET {t}:bucket 1000 1 1h", ("RL.INFO {t}:bucket", "tokens, 0")),
    ("RL.FIXEDWINDOW {t}:window 1000 1h", ("RL.INFO {t}:window", "count, 1000")),
    ("RL.SLIDINGWINDOW {t}:precise 1000 1h PRECISION 1m", ("RL.INFO {t}:precise", "count, 1000")),
    ("RL.SLIDINGLOG {t}:log 1000 1h", ("RL.INFO {t}:log", "stored_cost, 1000")),
    ("RL.CONCURRENT {t}:lease 1000 1h id#", ("RL.INFO {t}:lease", "stored_cost, 1000")),
    (
        "RL.MULTI 1 {t}:both LIMIT SLIDINGLOG 1200 1h LIMIT CONCURRENT 1000 1h id#",
        ("RL.INFO {t}:both", "stored_cost, 1000"),
    ),
    ("RL.XADD {t}:stream 1000 1-# call id#", ("XLEN {t}:stream", "1000")),
];

/// Keys that make the migration long enough for calls in its midst.
const BALLAST: usize = 20_000;

#[test]
fn a_slot_migrates_at_once_amid_calls_and_every_admitted_one_is_there() {
    let single = Server::start(&[]);
    let con = &mut single.connection();
    if text(con, "COMMAND INFO cluster|migrateslots") == "[(nil)]" {
        return skipped(con, "CLUSTER MIGRATESLOTS");
    }
    let cluster = Cluster::start();
    let (slot, place) = (cluster.slot("{t}"), cluster.place("{t}"));
    let (source, target) = (&cluster.primaries[place], &cluster.primaries[(place + 1) % 3]);
    let (from, to) = (&mut source.connection(), &mut target.connection());
    let fill = "for i = 1, ARGV[1] do redis.call('RL.GCRA', KEYS[1] .. i, 9, 1, '1h') end";
    call(from, &["EVAL", fill, "1", "{t}", &BALLAST.to_string()]).unwrap();
    for line in LEFT_ALONE.into_iter().chain([LEFT_ALONE_TOO]) {
        text(from, line);
    }
    let kept = kept(from);
    let load = cluster::load(&cluster, &CALLED);
    load.all_go_on(10);

    let id = text(to, "CLUSTER MYID");
    assert_eq!(text(from, &format!("CLUSTER MIGRATESLOTS SLOTSRANGE {slot} {slot} NODE {id}")), "OK");
    let mut amid = 0;
    loop {
        let told = text(from, "CLUSTER GETSLOTMIGRATIONS");
        if told.contains("state, success") {
            break;
        }
        assert!(!told.contains("state, failed") && !told.contains("state, cancelled"), "{told}");
        load.goes_on(1);
        amid += 1;
    }
    assert!(amid > 0, "not called amid the migration");
    load.all_go_on(2);

    let tallies = load.finish();
    for ((line, (look, stored)), tally) in CALLED.into_iter().zip(tallies) {
        assert_eq!((tally.admitted.len(), tally.unknown, tally.lost), (1000, 0, 0), "{line}");
        assert_eq!(tally.asked, 0, "{line}: sent on for one call, as if keys moved one by one");
        let told = text(to, look);
        assert!(told == stored || told.contains(&format!("{stored}, ")), "{line}: {told}");
    }
    // The other keys arrive unchanged.
    assert_eq!(self::kept(to), kept);
    let count = format!("CLUSTER COUNTKEYSINSLOT {slot}");
    assert_eq!(text(to, &count), (kept.len() + CALLED.len() + BALLAST).to_string());
    assert_eq!(text(from, &count), "0");
    sync(target, &cluster.replicas[(place + 1) % 3]);
    let read = &mut cluster.replicas[(place + 1) % 3].connection();
    text(read, "READONLY");
    assert_eq!(self::kept(read), kept);
    for (_, (look, _)) in CALLED {
        assert_eq!(text(read, look), text(to, look), "{look}");
    }
    assert_eq!(ints(to, "RL.GCRA {t}:kept:gcra 9 1 1h")[..3], [0, 10, 5], "it goes on");
}

/// The keys left alone, with their dumps and expiry times.
fn kept(con: &mut Connection) -> Vec<(String, Value, i64)> {
    let mut keys: Vec<&str> = LEFT_ALONE.into_iter().chain([LEFT_ALONE_TOO]).map(key_of).collect();
    keys.dedup();
    keys.into_iter()
        .map(|key| (key.to_string(), dump(con, key), ints(con, &format!("PEXPIRETIME {key}"))[0]))
        .inspect(|(key, dump, expires)| {
            assert!(*dump != Value::Nil && *expires > 0, "{key}");
        })
        .collect()
}

fn key_of(line: &str) -> &str {
    line.split(' ').find(|word| word.starts_with("{t}")).unwrap()
}
