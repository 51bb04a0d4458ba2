//! Primary, replica, chained replica and append-only file agree, and a refusal reaches none of them.

use std::time::{SystemTime, UNIX_EPOCH};

use redis::Connection;

use crate::support::contents::{Contents, contents};
use crate::support::dice::Dice;
use crate::support::{AOF_AT_ONCE, Server, error, info, ints, multi, rewrite_aof, sync, text};

/// All that a server holds, of which every key expires.
fn expiring(server: &Server) -> Contents {
    let contents = contents(server);
    for (key, (_, expires)) in &contents {
        assert!(expires.parse::<i64>().unwrap() > 0, "{key:?} has no expiry");
    }
    contents
}

/// Calls of every command in every mode, many of them refused, in a fixed random order; the clock (by `AT`) steps
/// back now and then, sometimes by more than a reset. Returns how many were admitted and how many refused.
fn drive(con: &mut Connection, calls: u64) -> (u64, u64) {
    let mut dice = Dice::new(12_345);
    let mut random = |below| dice.below(below);
    // A little ahead, so that no key of the test expires on a slow machine.
    let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() * 1_000_000 + 3_600_000_000;
    let (mut admitted, mut refused) = (0, 0);
    for step in 0..calls {
        let at = match random(20) {
            0 => start - random(600_000_000),
            _ => start + step * 4_000,
        };
        let (cost, id) = (1 + random(3), random(40));
        let key = random(4);
        let line = match random(30) {
            0 => format!("RL.TOKENBUCKET tb:{key} 7 3 1s COST {cost} AT {at}"),
            1 => format!("RL.TOKENBUCKET batch:{key} 7 5 1s BATCH COST {cost} AT {at}"),
            2 => format!("RL.GCRA gcra:{key} 6 7 1100ms COST {cost} AT {at}"),
            3 => format!("RL.SLIDINGWINDOW sw:{key} 9 1s COST {cost} AT {at}"),
            4 => format!("RL.SLIDINGWINDOW swp:{key} 9 1s PRECISION 100ms COST {cost} AT {at}"),
            5 => {
                format!("RL.SLIDINGWINDOW swq:{key} 9 {0}ms PRECISION 100ms AT {at}", 1000 * (1 + random(2)))
            }
            6 => format!("RL.CONCURRENT lease:{key} 30 2s id{id} COST {cost} AT {at}"),
            8 => format!("RL.LEAKYBUCKET water:{key} 8 7 1100ms COST {cost} AT {at}"),
            9 => format!("RL.FIXEDWINDOW window:{key} 9 1s COST {cost} AT {at}"),
            10 => format!("RL.FIXEDWINDOW aligned:{key} 9 1s ALIGNED COST {cost} AT {at}"),
            11 => format!("RL.UNIFORM gate:{key} 90ms AT {at}"),
            12 => format!("RL.UNIFORM gate:{key} 90ms RESERVE MAXWAIT 500ms AT {at}"),
            13 => format!("RL.TOKENBUCKET tb:{key} 7 3 1s FORCE COST {cost} AT {at}"),
            14 => format!("RL.GCRA gcra:{key} 6 7 1100ms PARTIAL COST 4 AT {at}"),
            15 => format!("RL.REFUND swp:{key} SLIDINGWINDOW 9 1s PRECISION 100ms COST {cost} AT {at}"),
            16 => format!("RL.REFUND tb:{key} TOKENBUCKET 7 3 1s COST {cost} AT {at}"),
            18 => format!("RL.SMOOTH burst:{key} 90 1s MAXWAIT 300ms AT {at}"),
            19 => format!("RL.SMOOTH warm:{key} 90 1s WARMUP 700ms MAXWAIT 300ms AT {at}"),
            17 => format!("RL.REFUND window:{key} FIXEDWINDOW 9 1s COST {cost} AT {at}"),
            21 => format!("RL.SLIDINGLOG log:{key} 9 1s COST {cost} AT {at}"),
            22 => format!("RL.SLIDINGLOG hammered:{key} 5 1s GAP 3ms COUNTREFUSED AT {at}"),
            20 => match cost {
                1 => format!("RL.REFUND log:{key} SLIDINGLOG 9 1s COST 2 AT {at}"),
                _ => format!("RL.SLIDINGLOG log:{key} 9 1s FORCE COST 2 AT {at}"),
            },
            7 => format!("RL.RELEASE lease:{key} id{id} AT {at}"),
            24 => format!("RL.TOKENBUCKET tb:{key} 7 3 1s COST {cost} HOLD id{id} 5s AT {at}"),
            25 => format!("RL.SETTLE tb:{key} id{id} TOKENBUCKET 7 3 1s COST {} AT {at}", cost - 1),
            26 => format!("RL.SLIDINGLOG log:{key} 9 1s PARTIAL COST 3 HOLD id{id} 900ms AT {at}"),
            27 => format!("RL.SETTLE log:{key} id{id} SLIDINGLOG 9 1s COST {cost} AT {at}"),
            28 => format!(
                "RL.MULTI 2 swp:{key} window:{key} COST {cost} HOLD id{id} 2s AT {at} \
                 LIMIT SLIDINGWINDOW 9 1s PRECISION 100ms ON 1 LIMIT FIXEDWINDOW 9 1s ON 2"
            ),
            29 => format!(
                "RL.SETTLE swp:{key} id{id} SLIDINGWINDOW 9 1s PRECISION 100ms COST {} AT {at}",
                2 * cost - 2
            ),
            _ => format!("RL.RENEW lease:{key} 900ms id{id} AT {at}"),
        };
        if line.starts_with("RL.MULTI") {
            multi(con, &line);
            continue;
        }
        match ints(con, &line).as_slice() {
            [0, _, _, _, _] | [0, _, _, _, _, _] => admitted += 1,
            [1, _, _, _, _] | [1, _, _, _, _, _] => refused += 1,
            _ => {}
        }
    }
    assert!(admitted > calls / 8 && refused > calls / 16, "{admitted} admitted, {refused} refused");
    (admitted, refused)
}

#[test]
fn replicas_and_a_chained_one_with_its_own_aof_hold_the_same_bytes_and_expiries() {
    let primary = Server::start(&[]);
    let strict = ["--propagation-error-behavior", "panic"];
    let replica = primary.replica(&strict);
    let mut chained = replica.replica(&[&strict[..], &["--appendonly", "yes"]].concat());
    drive(&mut primary.connection(), 4000);
    sync(&primary, &replica);
    sync(&replica, &chained);

    let expected = expiring(&primary);
    assert!(expected.len() > 20);
    assert_eq!(expiring(&replica), expected);
    assert_eq!(expiring(&chained), expected);
    let digest = text(&mut primary.connection(), "DEBUG DIGEST");
    assert_eq!(text(&mut replica.connection(), "DEBUG DIGEST"), digest);

    // The chained replica alone, from what it wrote down itself.
    text(&mut chained.connection(), "REPLICAOF NO ONE");
    drop((primary, replica));
    chained.restart();
    text(&mut chained.connection(), "REPLICAOF NO ONE");
    assert_eq!(expiring(&chained), expected);
}

#[test]
fn an_aof_without_preamble_brings_back_the_same_bytes_and_expiries_before_and_after_a_rewrite() {
    let mut server = Server::start(&["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
    drive(&mut server.connection(), 3000);
    let expected = expiring(&server);
    server.restart();
    assert_eq!(expiring(&server), expected);

    let con = &mut server.connection();
    rewrite_aof(con);
    server.restart();
    assert_eq!(expiring(&server), expected);
    // And they go on from there.
    drive(&mut server.connection(), 500);
}

#[test]
fn an_rdb_brings_back_the_same_bytes_and_expiries() {
    let mut server = Server::start(&["--save", "3600 1"]);
    drive(&mut server.connection(), 3000);
    let expected = expiring(&server);
    server.restart();
    assert_eq!(expiring(&server), expected);
    text(&mut server.connection(), "DEBUG RELOAD");
    assert_eq!(expiring(&server), expected);
}

#[test]
fn one_apply_for_each_admitted_call_and_nothing_for_a_refused_one() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    let changes = |con: &mut Connection| -> u64 {
        info(con, "persistence", "rdb_changes_since_last_save").unwrap().parse().unwrap()
    };
    let written = |con: &mut Connection| info(con, "persistence", "aof_current_size").unwrap();

    assert_eq!(ints(con, "RL.GCRA key 0 1 1h")[0], 0);
    assert_eq!(ints(con, "RL.CONCURRENT lease 1 1h a")[0], 0);
    // An RM_Replicate counts as one change, whatever the payload.
    assert_eq!(changes(con), 2);
    let (size, key) = (written(con), text(con, "DEBUG DIGEST"));
    let refused = [
        "RL.GCRA key 0 1 1h",
        "RL.GCRA key 0 1 1h COST 0",
        "RL.GCRA key 0 1 1h COST 2",
        "RL.PEEK key GCRA 0 1 1h",
        "RL.CONCURRENT lease 1 1h b",
        "RL.CONCURRENT lease 1 1h a COST 0",
        "RL.RELEASE lease b",
        "RL.RENEW lease 1s b",
        "RL.RELEASE missing a",
        "RL.TOKENBUCKET missing 1 1 1s COST 2",
    ];
    for line in refused {
        ints(con, line);
        assert_eq!(changes(con), 2, "{line}");
        assert_eq!(written(con), size, "{line}");
        assert_eq!(text(con, "DEBUG DIGEST"), key, "{line}");
    }
    assert_eq!(text(con, "EXISTS missing"), "0");
}

#[test]
fn what_is_shipped_for_a_large_table_is_what_changed() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    for id in 0..2000 {
        ints(con, &format!("RL.CONCURRENT lease 5000 1h id{id}"));
    }
    let size = |con: &mut Connection| -> u64 {
        info(con, "persistence", "aof_current_size").unwrap().parse().unwrap()
    };
    let before = size(con);
    ints(con, "RL.CONCURRENT lease 5000 1h another");
    ints(con, "RL.RENEW lease 1h another");
    ints(con, "RL.RELEASE lease another");
    assert!(size(con) - before < 600, "three changes of a table of 2000 leases");
}

#[test]
fn a_release_of_the_last_lease_deletes_the_key_everywhere() {
    let primary = Server::start(&[]);
    let replica = primary.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut primary.connection();
    ints(con, "RL.CONCURRENT lease 2 1m a");
    ints(con, "RL.CONCURRENT lease 2 1m b");
    assert_eq!(ints(con, "RL.RELEASE lease a"), [1]);
    assert_eq!(text(con, "EXISTS lease"), "1");
    assert_eq!(ints(con, "RL.RELEASE lease b"), [1]);
    assert_eq!(text(con, "EXISTS lease"), "0");
    sync(&primary, &replica);
    assert_eq!(text(&mut replica.connection(), "EXISTS lease"), "0");
}

#[test]
fn a_replica_answers_probes_and_refuses_calls() {
    let primary = Server::start(&[]);
    let replica = primary.replica(&[]);
    ints(&mut primary.connection(), "RL.GCRA key 4 1 1h");
    sync(&primary, &replica);
    let con = &mut replica.connection();
    assert_eq!(ints(con, "RL.PEEK key GCRA 4 1 1h")[..4], [0, 5, 4, 0]);
    let refusal = error(con, "RL.GCRA key 4 1 1h");
    assert!(refusal.starts_with("READONLY"), "{refusal}");
}
