//! Policies belong to a node: replicas, AOF and RDB have what calls did, and no policy.

use std::fs;
use std::path::Path;

use redis::Connection;

use super::random::RandomPolicy;
use super::{digest, policies, set, stats};
use crate::support::contents::{contents, expect_same};
use crate::support::dice::Dice;
use crate::support::replicas::{NOWHERE, STRICT, follow, is_up};
use crate::support::{
    AOF_AT_ONCE, SECOND, Server, T0, call, dump, error, info, ints, rewrite_aof, sync, text, wait_for,
};

/// Of a policy, and not of any other word in a file of the server.
const NAME: &str = "policy-that-no-file-has";

fn offset(con: &mut Connection) -> String {
    info(con, "replication", "master_repl_offset").unwrap()
}

#[test]
fn rl_policy_works_on_a_replica_and_is_not_replicated() {
    let primary = Server::start(&AOF_AT_ONCE);
    let replica = primary.replica(&STRICT);
    let (con, copy) = (&mut primary.connection(), &mut replica.connection());
    let unchanged = |con: &mut Connection| {
        ["aof_current_size", "rdb_changes_since_last_save"].map(|field| info(con, "persistence", field))
    };
    let before = (offset(con), unchanged(con));
    set(con, "api LIMIT GCRA 9 10 1h");
    set(con, "api VERSION 9 LIMIT GCRA 9 10 1h");
    text(con, "RL.POLICY DEL api");
    set(con, "api LIMIT GCRA 9 10 1h");
    assert_eq!((offset(con), unchanged(con)), before);
    sync(&primary, &replica);
    assert_eq!(text(copy, "RL.POLICY LIST"), "[]");
    set(copy, "other LIMIT UNIFORM 1s");
    assert_eq!(text(copy, "RL.POLICY LIST"), "[other, 1]");
    assert_eq!(text(con, "RL.POLICY LIST"), "[api, 1]");
    assert_eq!(text(copy, "RL.POLICY DEL other"), "1");
    // The same policy has the same digest on both.
    set(copy, "api LIMIT GCRA 9 10 1h");
    assert_eq!(digest(copy), digest(con));
}

#[test]
fn a_replica_peeks_with_its_own_policy_and_charges_nothing() {
    let primary = Server::start(&[]);
    let replica = primary.replica(&STRICT);
    let (con, copy) = (&mut primary.connection(), &mut replica.connection());
    set(con, "api LIMIT GCRA 9 10 1h LIMIT FIXEDWINDOW 20 1h ON 2");
    ints(con, &format!("RL.ASK a api COST 4 HOLD r1 1h AT {T0} KEYS b"));
    sync(&primary, &replica);
    let peek = format!("RL.ASKPEEK a api AT {T0} KEYS b");
    assert_eq!(error(copy, &peek), "ERR no such policy 'api'");
    set(copy, "api LIMIT GCRA 9 10 1h LIMIT FIXEDWINDOW 20 1h ON 2");
    assert_eq!(ints(copy, &peek), ints(con, &peek));
    let full = format!("RL.ASKPEEK a api FULL AT {T0} KEYS b");
    assert_eq!(text(copy, &full), text(con, &full));
    for line in [
        "RL.ASK a api KEYS b",
        "RL.ASK a api COST 0 KEYS b",
        "RL.ASK a missing",
        "RL.ASKREFUND a api KEYS b",
        "RL.ASKSETTLE a api r1 COST 1 KEYS b",
    ] {
        assert!(error(copy, line).starts_with("READONLY "), "{line}");
    }
    // What the server refuses is no error of the policy.
    assert_eq!(stats(copy, "api"), [0; 4]);
}

#[test]
fn random_calls_have_the_same_effects_on_a_replica_that_has_no_policies() {
    let primary = Server::start(&AOF_AT_ONCE);
    let replica = primary.replica(&STRICT);
    let con = &mut primary.connection();
    let mut dice = Dice::new(51);
    let mut now = 4_102_444_800 * SECOND;
    let mut admitted = 0;
    for number in 0..100 {
        let policy = RandomPolicy::new(&mut dice);
        let line = format!("RL.POLICY SET policy{number} {}", policy.words());
        if call(con, &line.split_whitespace().collect::<Vec<_>>()).is_err() {
            continue;
        }
        for _ in 0..10 {
            now += dice.below(100_000);
            let (first, id, hold) = (dice.below(3), dice.below(5), dice.below(3));
            let options = dice.pick(&["", "FULL", "COST 2", "FORCE", "HOLD held 1m"]);
            let options = options.replace("held", &format!("held{hold}"));
            let call_of = match dice.below(5) {
                0 => format!("RL.ASKREFUND k{first} policy{number}"),
                1 => format!("RL.ASKSETTLE k{first} policy{number} held{hold} COST 1"),
                _ => format!("RL.ASK k{first} policy{number} {options}"),
            };
            let others = format!("KEYS k{} k{}", (first + 1) % 3, (first + 2) % 3);
            let line = format!("{call_of} ID id{id} AT {now} {others}");
            admitted += usize::from(call(con, &line.split_whitespace().collect::<Vec<_>>()).is_ok());
        }
    }
    assert!(admitted > 300, "{admitted}");
    let before = contents(&primary);
    assert_eq!(before.len(), 3);
    sync(&primary, &replica);
    expect_same(&contents(&replica), &before, "the replica");
    assert_eq!(text(&mut replica.connection(), "RL.POLICY LIST"), "[]");
    assert!(info(&mut replica.connection(), "commandstats", "cmdstat_rl.ask").is_none());
}

#[test]
fn one_call_is_one_effect_and_a_refusal_is_none() {
    let primary = Server::start(&[]);
    let replica = primary.replica(&STRICT);
    let con = &mut primary.connection();
    set(con, "one LIMIT GCRA 0 1 1h");
    set(con, "several LIMIT GCRA 0 1 1h LIMIT FIXEDWINDOW 9 1h ON 2");
    let applied = || {
        sync(&primary, &replica);
        let stats = info(&mut replica.connection(), "commandstats", "cmdstat_rl.apply").unwrap_or_default();
        stats.trim_start_matches("calls=").split(',').next().unwrap().parse().unwrap_or(0)
    };
    for (line, effects) in [
        ("RL.ASK a one", 1),
        ("RL.ASK a one", 1),
        ("RL.ASK b several KEYS c", 2),
        ("RL.ASK b several KEYS c", 2),
        ("RL.ASK new several COST 0 KEYS c", 2),
        ("RL.ASKPEEK b several KEYS c", 2),
        ("RL.ASKREFUND new several KEYS other", 2),
        ("RL.ASKREFUND b several KEYS c", 3),
        ("RL.ASK d one HOLD r1 1h", 4),
        ("RL.ASK d one HOLD r1 1h", 4),
        ("RL.ASKSETTLE d one r2 COST 0", 4),
        ("RL.ASKSETTLE d one r1 COST 0", 5),
    ] {
        ints(con, line);
        assert_eq!(applied(), effects, "{line}");
    }
}

#[test]
fn an_aof_and_an_rdb_have_the_keys_and_no_policy() {
    let mut server =
        Server::start(&[&AOF_AT_ONCE[..], &["--save", "3600 1000", "--rdbcompression", "no"]].concat());
    let con = &mut server.connection();
    for name in [NAME, "other"] {
        set(con, &format!("{name} LIMIT GCRA 9 10 1h LIMIT SLIDINGLOG 9 1h LIMIT CONCURRENT 5 1h"));
    }
    let ask = |cost| format!("RL.ASK k {NAME} ID a COST {cost} KEYS l");
    ints(con, &ask(2));
    rewrite_aof(con);
    ints(con, &ask(1));
    text(con, "SAVE");
    let before = (dump(con, "k"), dump(con, "l"), text(con, "DEBUG DIGEST"));
    assert!(!mentions(server.dir(), NAME), "a file of the server has the policy");
    assert!(mentions(server.dir(), "RL.APPLY"));

    // From the RDB, and then from the AOF.
    let rdb = Server::start(&["--rdbcompression", "no", "--dir", server.dir().to_str().unwrap()]);
    let con = &mut rdb.connection();
    assert_eq!((dump(con, "k"), dump(con, "l"), text(con, "DEBUG DIGEST")), before);
    assert_eq!(text(con, "RL.POLICY LIST"), "[]");
    drop(rdb);
    let con = &mut server.connection();
    ints(con, &ask(3));
    let before = (dump(con, "k"), dump(con, "l"), text(con, "DEBUG DIGEST"));
    server.restart();
    let con = &mut server.connection();
    assert_eq!((dump(con, "k"), dump(con, "l"), text(con, "DEBUG DIGEST")), before);
    assert_eq!(text(con, "RL.POLICY LIST"), "[]");
    // The same policy goes on with them.
    assert_eq!(error(con, &ask(1)), format!("ERR no such policy '{NAME}'"));
    set(con, "another-name LIMIT GCRA 9 10 1h LIMIT SLIDINGLOG 9 1h LIMIT CONCURRENT 5 1h");
    assert_eq!(ints(con, "RL.ASKPEEK k another-name ID a KEYS l")[2], 3);
}

#[test]
fn a_replica_that_lost_its_primary_still_shows_its_policies() {
    let server = Server::start(&["--replica-serve-stale-data", "no"]);
    follow(&server, NOWHERE);
    let con = &mut server.connection();
    assert_eq!(set(con, "api LIMIT GCRA 9 10 1h"), 1);
    assert_eq!(text(con, "RL.POLICY LIST"), "[api, 1]");
    assert!(error(con, "RL.ASKPEEK k api").starts_with("MASTERDOWN "));
}

#[test]
fn policies_are_no_data_of_the_server() {
    let primary = Server::start(&["--save", "3600 1000"]);
    let server = Server::start(&["--save", "3600 1000"]);
    let con = &mut server.connection();
    set(con, "api LIMIT GCRA 9 10 1h");
    ints(con, "RL.ASK k api");
    let stored = (policies(con), stats(con, "api"));
    for line in
        ["DEBUG RELOAD", "SWAPDB 0 1", "FLUSHDB", "FLUSHALL", "SELECT 1", "CONFIG RESETSTAT", "SCRIPT FLUSH"]
    {
        text(con, line);
        assert_eq!((policies(con), stats(con, "api")), stored, "{line}");
    }
    assert_eq!(ints(con, &format!("RL.ASK k api COST 0 AT {T0}"))[0], 0);
    // A full copy of a primary's data replaces no policy.
    follow(&server, primary.port);
    wait_for("the copy", || is_up(&server));
    let con = &mut server.connection();
    assert_eq!((policies(con), stats(con, "api")), stored);
    text(con, "REPLICAOF NO ONE");
    assert_eq!(ints(con, "RL.ASK k api")[0], 0);
}

/// Whether a file of the server has these bytes, apart from its log.
fn mentions(dir: &Path, bytes: &str) -> bool {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        if path.is_dir() {
            return mentions(&path, bytes);
        }
        let file = fs::read(&path).unwrap();
        !path.ends_with("log") && file.windows(bytes.len()).any(|window| window == bytes.as_bytes())
    })
}
