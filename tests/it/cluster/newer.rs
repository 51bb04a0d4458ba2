//! What servers newer than Redis 7.0 add: categories of modules, one instant for a whole transaction, slots that move
//! at once. On a server that lacks one of them its test prints a line that says so.

use std::time::{Duration, Instant};

use redis::{Connection, Value};

use crate::support::cluster::{self, Cluster};
use crate::support::{Server, call, dump, error, ints, product, skipped, sync, text};

/// Charges that are made once and then left alone: every form of state.
const LEFT_ALONE: [&str; 16] = [
    "RL.TOKENBUCKET {t}:kept:bucket 9 1 3600000 COST 4",
    "RL.TOKENBUCKET {t}:kept:batch 9 1 3600000 BATCH COST 4",
    "RL.LEAKYBUCKET {t}:kept:water 9 1 3600000 COST 4",
    "RL.GCRA {t}:kept:gcra 9 1 3600000 COST 4",
    "RL.FIXEDWINDOW {t}:kept:window 9 3600000 COST 4",
    "RL.SLIDINGWINDOW {t}:kept:sliding 9 86400000000 COST 4",
    "RL.SLIDINGWINDOW {t}:kept:precise 9 3600000 PRECISION 60000 COST 4",
    "RL.SLIDINGLOG {t}:kept:log 9 3600000 COST 4",
    "RL.SLIDINGLOG {t}:kept:log 9 3600000 COST 3",
    "RL.SLIDINGLOG {t}:kept:hammered 9 3600000 COUNTREFUSED COST 4",
    "RL.UNIFORM {t}:kept:gate 3600000",
    "RL.SMOOTH {t}:kept:warm 9 3600000 WARMUP 3600000",
    "RL.CONCURRENT {t}:kept:lease 9 3600000 one",
    "RL.CONCURRENT {t}:kept:lease 9 7200000 two COST 3",
    "RL.MULTI 1 {t}:kept:both LIMIT GCRA 9 1 3600000 LIMIT SLIDINGLOG 9 3600000 LIMIT CONCURRENT 9 3600000 one",
    "RL.SHED {t}:kept:shed 0.95",
];

/// What is called until it is refused, which is after a thousand calls; where that is stored, and how it is told.
const CALLED: [(&str, (&str, &str)); 7] = [
    ("RL.TOKENBUCKET {t}:bucket 1000 1 3600000", ("RL.INFO {t}:bucket", "tokens, 0")),
    ("RL.FIXEDWINDOW {t}:window 1000 3600000", ("RL.INFO {t}:window", "count, 1000")),
    ("RL.SLIDINGWINDOW {t}:precise 1000 3600000 PRECISION 60000", ("RL.INFO {t}:precise", "count, 1000")),
    ("RL.SLIDINGLOG {t}:log 1000 3600000", ("RL.INFO {t}:log", "stored_cost, 1000")),
    ("RL.CONCURRENT {t}:lease 1000 3600000 id#", ("RL.INFO {t}:lease", "stored_cost, 1000")),
    (
        "RL.MULTI 1 {t}:both LIMIT SLIDINGLOG 1200 3600000 LIMIT CONCURRENT 1000 3600000 id#",
        ("RL.INFO {t}:both", "stored_cost, 1000"),
    ),
    ("RL.XADD {t}:stream 1000 1-# call id#", ("XLEN {t}:stream", "1000")),
];

/// Keys that make the migration long enough for calls in its midst.
const BALLAST: usize = 20_000;

#[test]
fn the_category_ratelimit_is_all_of_our_commands_and_grants_them() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    if older(con, [7, 4], "categories that modules add") {
        return;
    }
    assert_eq!(in_category(con, "ratelimit"), ours(con));

    // As the README has it.
    text(con, "ACL SETUSER app on nopass +@ratelimit -@dangerous ~limit:*");
    let app = &mut server.connection();
    text(app, "AUTH app any");
    assert_eq!(ints(app, "RL.GCRA limit:a 9 1 3600000"), [0, 10, 9, 0, 3_600_000]);
    assert_eq!(ints(app, "RL.PEEK limit:a GCRA 9 1 3600000")[..3], [0, 10, 9]);
    for line in ["GET limit:a", "RL.GCRA other 9 1 3600000", "RL.APPLY limit:a payload"] {
        assert!(error(app, line).starts_with("NOPERM"), "{line}");
    }
}

#[test]
fn acl_cat_lists_our_commands() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    if older(con, [7, 4], "categories that modules add") {
        return;
    }
    let (ours, listed) = (ours(con), text(con, "ACL CAT ratelimit"));
    // Valkey 8.0 leaves all modules out of this list, though their commands are in the category.
    if listed == "[]" && in_category(con, "ratelimit") == ours {
        return skipped(con, "modules' commands in ACL CAT");
    }
    assert_eq!(names(&listed), ours);
}

#[test]
fn commands_are_in_the_categories_of_what_they_do() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    if older(con, [7, 2], "categories for modules' commands") {
        return;
    }
    for (category, flag) in [("read", "readonly"), ("write", "write"), ("fast", "fast")] {
        let mut flagged = ours(con);
        flagged.retain(|name| {
            let described = text(con, &format!("COMMAND INFO {name}"));
            let flags = described.split(['[', ']']).nth(3).unwrap();
            flags.split(", ").any(|word| word == flag)
        });
        assert!(flagged.len() > 3, "{flagged:?}");
        assert_eq!(in_category(con, category), flagged, "@{category}");
    }
    assert_eq!(in_category(con, "dangerous"), ["rl.apply"]);

    text(con, "ACL SETUSER reader on nopass +@read ~*");
    text(con, "ACL SETUSER writer on nopass +@write -@dangerous ~*");
    let (reader, writer) = (&mut server.connection(), &mut server.connection());
    text(reader, "AUTH reader any");
    text(writer, "AUTH writer any");
    assert_eq!(ints(writer, "RL.GCRA key 9 1 3600000")[0], 0);
    assert_eq!(ints(reader, "RL.PEEK key GCRA 9 1 3600000")[0], 0);
    for line in ["RL.GCRA key 9 1 3600000", "RL.RELEASE key id", "RL.APPLY key payload"] {
        assert!(error(reader, line).starts_with("NOPERM"), "{line}");
    }
    for line in ["RL.PEEK key GCRA 9 1 3600000", "RL.INFO key", "RL.APPLY key payload"] {
        assert!(error(writer, line).starts_with("NOPERM"), "{line}");
    }
}

#[test]
fn all_calls_of_a_transaction_or_a_script_see_one_instant() {
    const PAUSE: Duration = Duration::from_millis(20);
    const SCRIPT: &str = "redis.call('RL.GCRA', KEYS[1], 9, 1, 3600000) \
                          for i = 1, 1000000 do end \
                          return redis.call('RL.GCRA', KEYS[2], 9, 1, 3600000)";
    let server = Server::start(&[]);
    let con = &mut server.connection();
    if older(con, [7, 2], "RM_CachedMicroseconds") {
        return;
    }
    let pause = format!("DEBUG SLEEP {}", PAUSE.as_secs_f64());
    let lines = ["RL.GCRA a 9 1 3600000", &pause, "RL.GCRA b 9 1 3600000"];

    // By themselves, each has its own.
    for line in lines {
        text(con, line);
    }
    assert!(charged(con, "b") >= charged(con, "a") + PAUSE.as_micros());

    let (before, started) = (charged(con, "b"), Instant::now());
    text(con, "MULTI");
    for line in lines {
        text(con, line);
    }
    text(con, "EXEC");
    assert!(started.elapsed() >= PAUSE);
    assert_eq!(charged(con, "b"), charged(con, "a"));
    assert!(charged(con, "a") > before);

    let before = charged(con, "b");
    call(con, &["EVAL", SCRIPT, "2", "a", "b"]).unwrap();
    assert_eq!(charged(con, "b"), charged(con, "a"));
    assert!(charged(con, "a") > before);
}

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
    let fill = "for i = 1, ARGV[1] do redis.call('RL.GCRA', KEYS[1] .. i, 9, 1, 3600000) end";
    call(from, &["EVAL", fill, "1", "{t}", &BALLAST.to_string()]).unwrap();
    for line in LEFT_ALONE {
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
    // Nobody has touched the others on their way.
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
    assert_eq!(ints(to, "RL.GCRA {t}:kept:gcra 9 1 3600000")[..3], [0, 10, 5], "it goes on");
}

/// The keys left alone, with their dumps and expiry times.
fn kept(con: &mut Connection) -> Vec<(String, Value, i64)> {
    let mut keys: Vec<&str> = LEFT_ALONE.iter().map(|line| key_of(line)).collect();
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

/// The instant of the last charge, in microseconds.
fn charged(con: &mut Connection, key: &str) -> u128 {
    let told = text(con, &format!("RL.INFO {key}"));
    told.split("last_charge_us, ").nth(1).unwrap().split(',').next().unwrap().parse().unwrap()
}

/// All our commands, in order.
fn ours(con: &mut Connection) -> Vec<String> {
    names(&text(con, "COMMAND LIST FILTERBY MODULE ratelimit"))
}

/// Those of our commands that are in the category, in order.
fn in_category(con: &mut Connection, category: &str) -> Vec<String> {
    let ours = ours(con);
    let mut all = names(&text(con, &format!("COMMAND LIST FILTERBY ACLCAT {category}")));
    all.retain(|name| ours.contains(name));
    all
}

fn names(list: &str) -> Vec<String> {
    let mut names: Vec<String> = list.trim_matches(['[', ']']).split(", ").map(str::to_string).collect();
    names.sort_unstable();
    names
}

/// Whether the server is of before the release that brought this, and then says so. Valkey has counted on from Redis' 7.2.
fn older(con: &mut Connection, release: [u32; 2], what: &str) -> bool {
    let (_, version) = product(con);
    let numbers: Vec<u32> = version.split('.').map(|number| number.parse().unwrap()).collect();
    let older = numbers[..2] < release[..];
    if older {
        skipped(con, what);
    }
    older
}
