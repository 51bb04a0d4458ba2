//! Several limits under one key: replicas, append-only files and copies agree on them.

use redis::Value;

use crate::support::contents::{contents, held};
use crate::support::dice::Dice;
use crate::support::{
    AOF_AT_ONCE, SECOND, Server, T0, call_bytes, clock, dump, ints, last_payload, multi, rewrite_aof, sync,
    text,
};

#[test]
fn copies_agree_whatever_joins_fades_and_parts() {
    let mut server = Server::start(&["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut server.connection();
    let mut dice = Dice::new(99);
    let mut random = |below| dice.below(below);
    // Ahead, so that no key expires meanwhile.
    let now = clock(con);
    let start = (now + 3600) * SECOND;
    let (mut admitted, mut refused) = (0, 0);
    for step in 0..4000 {
        let at = if random(40) == 0 { start - random(900 * SECOND) } else { start + step * 10_000 };
        let key = random(3);
        let named: Vec<String> = [
            "LIMIT GCRA 5 1 300ms".to_string(),
            "LIMIT GCRA 20 10 4s".to_string(),
            "LIMIT TOKENBUCKET 9 3 1s COST 2".to_string(),
            "LIMIT SLIDINGWINDOW 12 2s".to_string(),
            "LIMIT SLIDINGWINDOW 30 9s PRECISION 1s".to_string(),
            format!("LIMIT CONCURRENT 4 1500ms id{}", random(6)),
            "LIMIT SLIDINGLOG 9 1s GAP 10ms".to_string(),
            "LIMIT UNIFORM 30ms ON 1".to_string(),
            "LIMIT FIXEDWINDOW 14 1500ms ALIGNED".to_string(),
        ]
        .into_iter()
        .filter(|_| random(4) == 0)
        .collect();
        let named = if named.is_empty() { "LIMIT GCRA 5 1 300ms".into() } else { named.join(" ") };
        let (other_period, id) = (300 + 400 * random(3), random(4));
        let line = match random(24) {
            0 => format!("RL.RELEASE key:{key} id{} AT {at}", random(6)),
            1 => format!("RL.RENEW key:{key} 900ms id{} AT {at}", random(6)),
            2 | 3 if !named.contains("CONCURRENT") => {
                format!("RL.MULTIREFUND 2 key:{key} other:{key} COST 2 AT {at} {named}")
            }
            4 if !named.contains("CONCURRENT") => format!("RL.MULTI 1 key:{key} FORCE AT {at} {named}"),
            5 => format!("RL.MULTI 1 key:{key} AT {at} LIMIT GCRA 5 1 300ms"),
            6 | 7 => format!("RL.GCRA key:{key} 5 1 {other_period}ms AT {at}"),
            8 => format!("RL.REFUND key:{key} GCRA 5 1 {other_period}ms AT {at}"),
            9 => format!("RL.PENALTY key:{key} 2 1s 500ms AT {at}"),
            10 => format!("RL.TOKENBUCKET key:{key} 9 3 1s HOLD {id} 2s AT {at}"),
            11 => format!("RL.FIXEDWINDOW key:{key} 14 1500ms COST 2 HOLD {id} 2s AT {at}"),
            12 => format!("RL.SETTLE key:{key} {id} FIXEDWINDOW 14 900ms COST {} AT {at}", random(4)),
            13 => format!("RL.SETTLE key:{key} {id} TOKENBUCKET 9 3 2s COST {} AT {at}", random(3)),
            14 => format!("RL.UNIFORM key:{key} 30ms AT {at}"),
            _ => format!("RL.MULTI 2 key:{key} other:{key} AT {at} {named}"),
        };
        if line.starts_with("RL.MULTI ") {
            if multi(con, &line).0[0] == 0 { admitted += 1 } else { refused += 1 }
        } else if line.starts_with("RL.MULTIREFUND") {
            multi(con, &line);
        } else {
            // Whatever else the key holds, none is an error.
            ints(con, &line);
        }
        if step % 500 == 0 {
            sync(&server, &replica);
            assert_eq!(contents(&replica), contents(&server), "after {step}: {line}");
        }
    }
    assert!(admitted > 300 && refused > 300, "{admitted} admitted, {refused} refused");
    sync(&server, &replica);
    let expected = contents(&server);
    assert_eq!(expected.len(), 6);
    assert_eq!(contents(&replica), expected);
    drop(replica);
    server.restart();
    assert_eq!(contents(&server), expected);
    let con = &mut server.connection();
    rewrite_aof(con);
    server.restart();
    let con = &mut server.connection();
    // A rewrite keeps the expiries, which are the server's own.
    assert_eq!(contents(&server), expected);
    for ((_, key), (dumped, _)) in &expected {
        assert_eq!(text(con, &format!("COPY {key} {key}:copy")), "1");
        assert_eq!(&held(con, &format!("{key}:copy")).0, dumped);
    }
}

#[test]
fn a_key_whose_expiry_somebody_else_set_joins_and_can_be_restored() {
    let mut server = Server::start(&["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut server.connection();
    for (key, expiry) in
        [("far", "PEXPIREAT far 300000000000000"), ("never", "PERSIST never"), ("near", "PTTL near")]
    {
        ints(con, &format!("RL.GCRA {key} 5 1 1h"));
        text(con, expiry);
        multi(con, &format!("RL.MULTI 1 {key} LIMIT FIXEDWINDOW 5 1h"));
        let Value::BulkString(bytes) = dump(con, key) else { panic!("no dump") };
        call_bytes(con, &[b"RESTORE", b"again", b"0", &bytes, b"REPLACE"]).unwrap();
    }
    // Nor can a debt that a call leaves behind be too far away to be written down.
    multi(
        con,
        "RL.MULTI 1 owed FORCE COST 1099511627776 LIMIT TOKENBUCKET 10 1125899906842624 3650d LIMIT FIXEDWINDOW 10 1h",
    );
    multi(con, "RL.MULTIREFUND 1 owed LIMIT TOKENBUCKET 10 1 3650d");
    sync(&server, &replica);
    let expected = text(con, "DEBUG DIGEST");
    assert_eq!(text(&mut replica.connection(), "DEBUG DIGEST"), expected);
    server.restart();
    assert_eq!(text(&mut server.connection(), "DEBUG DIGEST"), expected);
}

#[test]
fn an_effect_that_parts_a_key_can_be_applied_twice() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    for id in ["a", "b"] {
        multi(con, &format!("RL.MULTI 1 key AT {T0} LIMIT CONCURRENT 9 10m {id} LIMIT FIXEDWINDOW 5 1s"));
    }
    // The window has faded: the leases stand alone.
    multi(con, &format!("RL.MULTI 1 key AT {} LIMIT CONCURRENT 9 10m c", T0 + 5 * SECOND));
    let stands_alone = "limiter, CONCURRENT, mode, leases, stored_leases, 3";
    assert!(text(con, "RL.INFO key").contains(stands_alone));
    let before = dump(con, "key");
    let payload = last_payload(&server);
    call_bytes(con, &[b"RL.APPLY", b"key", &payload]).unwrap();
    assert_eq!(dump(con, "key"), before);
    assert!(text(con, "RL.INFO key").contains(stands_alone));
}
