//! A cluster of three primaries and three replicas: slots, redirections, a slot that moves, a primary that is killed.

use redis::{Connection, Value};

use crate::support::cluster::{self, Cluster, serves};
use crate::support::{T0, call, error, info, ints, sync, text, wait_for};

const OTHER_SLOTS: &str = "CROSSSLOT Keys in request don't hash to the same slot";

/// Charges that are made once and then left alone; all keys have the tag of those in `CALLED`.
const LEFT_ALONE: [&str; 21] = [
    "RL.TOKENBUCKET {t}:kept:bucket 9 1 3600000 COST 4",
    "RL.TOKENBUCKET {t}:kept:batch 9 1 3600000 BATCH COST 4",
    "RL.LEAKYBUCKET {t}:kept:water 9 1 3600000 COST 4",
    "RL.GCRA {t}:kept:gcra 9 1 3600000 COST 4",
    "RL.FIXEDWINDOW {t}:kept:window 9 3600000 COST 4",
    "RL.FIXEDWINDOW {t}:kept:aligned 9 86400000000 ALIGNED COST 4",
    "RL.SLIDINGWINDOW {t}:kept:sliding 9 86400000000 COST 4",
    "RL.SLIDINGWINDOW {t}:kept:precise 9 3600000 PRECISION 60000 COST 4",
    "RL.SLIDINGLOG {t}:kept:log 9 3600000 COST 4",
    "RL.SLIDINGLOG {t}:kept:log 9 3600000 COST 3",
    "RL.SLIDINGLOG {t}:kept:hammered 9 3600000 COUNTREFUSED COST 4",
    "RL.UNIFORM {t}:kept:gate 3600000",
    "RL.SMOOTH {t}:kept:smooth 9 3600000",
    "RL.SMOOTH {t}:kept:warm 9 3600000 WARMUP 3600000",
    "RL.CONCURRENT {t}:kept:lease 9 3600000 one",
    "RL.CONCURRENT {t}:kept:lease 9 7200000 two COST 3",
    "RL.MULTI 2 {t}:kept:both {t}:kept:one LIMIT GCRA 9 1 3600000 LIMIT SLIDINGLOG 9 3600000 ON 1 \
     LIMIT CONCURRENT 9 3600000 one ON 1",
    "RL.XADD {t}:kept:stream 9 * field value",
    "RL.RPUSH {t}:kept:list 9 one two three",
    "CL.THROTTLE {t}:kept:cell 9 1 3600 4",
    "RL.SHED {t}:kept:shed 0.95",
];

/// What is called without end, each line by a thread of its own; `#` is the number of the call. None of it refills
/// within the test.
const CALLED: [(&str, usize); 11] = [
    ("RL.TOKENBUCKET {t}:bucket 1000 1 3600000", 1000),
    ("RL.LEAKYBUCKET {t}:water 1000 1 3600000", 1000),
    ("RL.GCRA {t}:gcra 999 1 3600000", 1000),
    ("RL.FIXEDWINDOW {t}:window 1000 3600000", 1000),
    ("RL.SLIDINGWINDOW {t}:precise 1000 3600000 PRECISION 60000", 1000),
    ("RL.SLIDINGLOG {t}:log 1000 3600000", 1000),
    ("RL.UNIFORM {t}:gate 3600000", 1),
    ("RL.CONCURRENT {t}:lease 1000 3600000 id#", 1000),
    (
        "RL.MULTI 2 {t}:both {t}:one LIMIT SLIDINGLOG 1200 3600000 LIMIT GCRA 999 1 3600000 ON 2 \
         LIMIT CONCURRENT 1100 3600000 id# ON 1",
        1000,
    ),
    ("RL.XADD {t}:stream 1000 1-# call id#", 1000),
    ("RL.RPUSH {t}:list 1000 id#", 1000),
];

#[test]
fn keys_with_one_tag_are_asked_together_and_the_others_are_refused_or_sent_on() {
    let cluster = Cluster::start();
    let home = &cluster.primaries[cluster.place("{user}")];
    let con = &mut home.connection();
    let limits = "LIMIT GCRA 9 1 3600000 LIMIT CONCURRENT 9 3600000 id ON 2";
    let reply = text(con, &format!("RL.MULTI 2 {{user}}:a {{user}}:b AT {T0} {limits}"));
    assert_eq!(
        reply,
        "[[0, 9, 8, 0, 3600000], [[0, 10, 9, 0, 3600000], [0, 10, 9, 0, 3600000], [0, 9, 8, 0, 3600000]]]"
    );
    let script =
        "return{redis.call('RL.GCRA',KEYS[1],9,1,3600000),redis.call('RL.XADD',KEYS[2],1,'*','f','v')}";
    assert!(text(con, &format!("EVAL {script} 2 {{user}}:c {{user}}:d")).starts_with("[[0, 10, 9"));

    let keys = text(con, "DBSIZE");
    for name in ["RL.MULTI", "RL.MULTIPEEK"] {
        assert_eq!(error(con, &format!("{name} 2 {{user}}:a other {limits}")), OTHER_SLOTS, "{name}");
    }
    assert_eq!(error(con, "RL.MULTIREFUND 2 {user}:a other LIMIT GCRA 9 1 3600000"), OTHER_SLOTS);
    assert_eq!(error(con, "RL.APPLY {user}:a payload other payload"), OTHER_SLOTS);
    // A number of keys that cannot be right is told as such: nothing behind it is taken for a key.
    let arity = error(con, "RL.MULTI 9 {user}:a other LIMIT GCRA 9 1");
    assert_eq!(arity, "ERR wrong number of arguments for 'rl.multi' command");
    assert_eq!(text(con, "DBSIZE"), keys);

    // Every command tells its keys, whatever else it is called with.
    let elsewhere = &cluster.primaries[(cluster.place("{user}") + 1) % 3];
    let moved = format!("MOVED {} 127.0.0.1:{}", cluster.slot("{user}"), home.port);
    let names = text(con, "COMMAND LIST FILTERBY MODULE ratelimit");
    let names: Vec<&str> =
        names.trim_matches(['[', ']']).split(", ").filter(|name| *name != "rl.help").collect();
    assert!(names.len() >= 24, "{names:?}");
    for name in names {
        let described = text(con, &format!("COMMAND INFO {name}"));
        let words: i32 = described.split(", ").nth(1).unwrap().parse().unwrap();
        let first = if name.starts_with("rl.multi") {
            format!("{name} 1 {{user}}")
        } else {
            format!("{name} {{user}}")
        };
        let rest = usize::try_from(words.abs()).unwrap() - first.split(' ').count();
        let line = first + &" 1".repeat(rest);
        assert_eq!(error(&mut elsewhere.connection(), &line), moved, "{line}");
        assert_eq!(text(con, &format!("COMMAND GETKEYS {line}")), "[{user}]", "{line}");
    }
}

#[test]
fn a_replica_answers_probes_of_those_who_said_readonly_and_sends_the_others_on() {
    let cluster = Cluster::start();
    let place = cluster.place("{user}");
    let (primary, replica) = (&cluster.primaries[place], &cluster.replicas[place]);
    let (con, read) = (&mut primary.connection(), &mut replica.connection());
    let limits = "LIMIT GCRA 9 1 3600000 LIMIT SLIDINGLOG 9 3600000 ON 1 LIMIT CONCURRENT 9 3600000 id ON 2";
    text(con, &format!("RL.MULTI 2 {{user}}:a {{user}}:b COST 3 {limits}"));
    text(con, "RL.GCRA {user} 9 1 3600000 COST 4");
    sync(primary, replica);

    let at: u64 = info(con, "server", "server_time_usec").unwrap().parse().unwrap();
    let looks = [
        format!("RL.PEEK {{user}} GCRA 9 1 3600000 AT {at}"),
        format!("RL.PEEK {{user}} GCRA 9 1 3600000 COST 7 AT {at}"),
        format!("RL.PEEK {{user}}:missing CONCURRENT 9 1000 id AT {at}"),
        format!("RL.MULTIPEEK 2 {{user}}:a {{user}}:b COST 7 AT {at} {limits}"),
        "RL.INFO {user}:a".to_string(),
    ];
    let moved = format!("MOVED {} 127.0.0.1:{}", cluster.slot("{user}"), primary.port);
    for look in &looks {
        assert_eq!(error(read, look), moved, "{look}");
    }
    text(read, "READONLY");
    for look in &looks {
        assert_eq!(text(read, look), text(con, look), "{look}");
    }
    for line in [
        format!("RL.MULTI 2 {{user}}:a {{user}}:b COST 0 {limits}"),
        "RL.GCRA {user} 9 1 3600000".to_string(),
        "RL.REFUND {user} GCRA 9 1 3600000".to_string(),
        "RL.RELEASE {user}:b id".to_string(),
    ] {
        assert_eq!(error(read, &line), moved, "{line}");
    }
    assert!(error(read, "RL.PEEK other GCRA 9 1 3600000").starts_with("MOVED"));
    assert_eq!(error(read, &format!("RL.MULTIPEEK 2 {{user}}:a other {limits}")), OTHER_SLOTS);
    text(read, "READWRITE");
    assert_eq!(error(read, &looks[0]), moved);
}

#[test]
fn a_slot_moves_amid_calls_and_not_one_more_is_admitted() {
    let cluster = Cluster::start();
    let (slot, place) = (cluster.slot("{t}"), cluster.place("{t}"));
    let (source, target) = (&cluster.primaries[place], &cluster.primaries[(place + 1) % 3]);
    let (from, to) = (&mut source.connection(), &mut target.connection());
    for line in LEFT_ALONE {
        text(from, line);
    }
    let kept = contents(from, slot);
    assert_eq!(kept.len(), 20);
    let load = cluster::load(&cluster, &CALLED);
    load.all_go_on(10);

    let id = |con: &mut Connection| text(con, "CLUSTER MYID");
    let (source_id, target_id) = (id(from), id(to));
    text(to, &format!("CLUSTER SETSLOT {slot} IMPORTING {source_id}"));
    text(from, &format!("CLUSTER SETSLOT {slot} MIGRATING {target_id}"));
    loop {
        // One at a time, and calls between them.
        let key = text(from, &format!("CLUSTER GETKEYSINSLOT {slot} 1"));
        let key = key.trim_matches(['[', ']']);
        if key.is_empty() {
            break;
        }
        assert_eq!(text(from, &format!("MIGRATE 127.0.0.1 {} {key} 0 60000", target.port)), "OK", "{key}");
        load.goes_on(50);
    }
    // Two: the one that is under way may have begun before.
    load.all_go_on(2);
    for node in [target, source].into_iter().chain(&cluster.primaries) {
        text(&mut node.connection(), &format!("CLUSTER SETSLOT {slot} NODE {target_id}"));
    }
    load.all_go_on(2);

    for ((line, limit), tally) in CALLED.into_iter().zip(load.finish()) {
        assert_eq!((tally.admitted.len(), tally.unknown), (limit, 0), "{line}");
        assert!(tally.asked > 0, "{line}: not called amid the move");
    }
    let now = contents(to, slot);
    for (key, dumped, expires) in &kept {
        let (_, same, later) = now.iter().find(|moved| moved.0 == *key).expect(key);
        assert_eq!(same, dumped, "{key}");
        // MIGRATE sends the time that is left, so that it becomes later by the time that took.
        assert!((*expires == -1 && *later == -1) || (*expires..*expires + 60_000).contains(later), "{key}");
    }
    let replica = &cluster.replicas[(place + 1) % 3];
    sync(target, replica);
    assert_eq!(contents(&mut replica.connection(), slot), now);
    sync(source, &cluster.replicas[place]);
    assert!(contents(&mut cluster.replicas[place].connection(), slot).is_empty());
}

#[test]
fn a_promoted_replica_goes_on_where_the_killed_primary_was() {
    let mut cluster = Cluster::start();
    let (slot, place) = (cluster.slot("{t}"), cluster.place("{t}"));
    let con = &mut cluster.primaries[place].connection();
    for line in LEFT_ALONE {
        text(con, line);
    }
    let kept = contents(con, slot);
    let load = cluster::load(&cluster, &CALLED);
    load.all_go_on(100);

    // A server that is dropped is killed, with SIGKILL. The other nodes notice and elect its replica, by themselves.
    drop(cluster.primaries.remove(place));
    let con = &mut cluster.replicas[place].connection();
    wait_for("the promotion", || info(con, "replication", "role").as_deref() == Some("master"));
    wait_for("the cluster", || cluster.nodes().all(|node| serves(&mut node.connection())));
    load.all_go_on(2);

    for ((line, limit), tally) in CALLED.into_iter().zip(load.finish()) {
        // At most the one call that was under way when the primary died is in doubt, and all of the rest counts.
        let admitted = tally.admitted.len();
        assert!(tally.unknown <= 1 && tally.lost == 1, "{line}: {} {}", tally.unknown, tally.lost);
        assert!((limit - tally.unknown..=limit).contains(&admitted), "{line}: {admitted} admitted");
        for call in tally.admitted {
            let (look, absent) = match line.split(' ').next().unwrap() {
                "RL.CONCURRENT" => (format!("RL.RENEW {{t}}:lease 3600000 id{call}"), "0"),
                "RL.MULTI" => (format!("RL.RENEW {{t}}:both 3600000 id{call}"), "0"),
                "RL.XADD" => (format!("XRANGE {{t}}:stream 1-{call} 1-{call}"), "[]"),
                "RL.RPUSH" => (format!("LPOS {{t}}:list id{call}"), "(nil)"),
                // What is only counted has no names.
                _ => break,
            };
            assert_ne!(text(con, &look), absent, "{line}: call {call} was forgotten");
        }
    }
    let now = contents(con, slot);
    for key in &kept {
        assert!(now.contains(key), "{key:?} is not in {now:?}");
    }
}

/// The keys of a slot in order, with their dumps and expiry times.
fn contents(con: &mut Connection, slot: usize) -> Vec<(String, Value, i64)> {
    text(con, "READONLY");
    let keys = text(con, &format!("CLUSTER GETKEYSINSLOT {slot} 1000"));
    let mut keys: Vec<&str> =
        keys.trim_matches(['[', ']']).split(", ").filter(|key| !key.is_empty()).collect();
    keys.sort_unstable();
    keys.into_iter()
        .map(|key| {
            (key.to_string(), call(con, &["DUMP", key]).unwrap(), ints(con, &format!("PEXPIRETIME {key}"))[0])
        })
        .collect()
}
