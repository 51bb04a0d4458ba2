//! Who holds leases: `RL.INFO key LEASES`.

use redis::{Connection, Value};

use crate::support::{Server, call, error, simple, text, wait_for};

/// The id, the cost and the milliseconds left of each lease, and whether it is a shadow's.
fn holders(con: &mut Connection, words: &[&str]) -> Vec<(Vec<u8>, i64, i64, bool)> {
    let words = [&["RL.INFO"], words].concat();
    let Value::Array(info) = call(con, &words).unwrap() else { panic!("no map") };
    let leases = info.chunks(2).find(|field| simple(&field[0]) == "leases").expect("leases");
    let Value::Array(leases) = &leases[1] else { panic!("no array") };
    let lease = |lease: &Value| {
        let Value::Array(fields) = lease else { panic!("no map: {lease:?}") };
        let field = |name: &str| {
            let mut pairs = fields.chunks(2);
            pairs.find(|pair| simple(&pair[0]) == name).map(|pair| pair[1].clone())
        };
        let Some(Value::BulkString(id)) = field("id") else { panic!("no id: {fields:?}") };
        let int = |name| field(name).map(|value| simple(&value).parse::<i64>().unwrap());
        (id, int("cost").unwrap(), int("left_ms").unwrap(), int("shadow") == Some(1))
    };
    leases.iter().map(lease).collect()
}

#[test]
fn leases_are_listed_with_those_that_end_first_first() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (id, cost, ttl) in [("late", 1, "3h"), ("soon", 2, "1h"), ("\u{ff}\n", 3, "2h")] {
        let cost = format!("{cost}");
        call(con, &["RL.CONCURRENT", "pool", "20", ttl, id, "COST", &cost]).unwrap();
    }
    text(con, "RL.MULTI 1 pool LIMIT CONCURRENT 9 90m tried SHADOW");
    let all = holders(con, &["pool", "LEASES"]);
    let expected: [(&[u8], i64, i64, bool); 4] = [
        (b"soon", 2, 60, false),
        (b"tried", 1, 90, true),
        ("\u{ff}\n".as_bytes(), 3, 120, false),
        (b"late", 1, 180, false),
    ];
    assert_eq!(all.len(), expected.len());
    for ((id, cost, left, shadow), expected) in all.iter().zip(expected) {
        assert_eq!((&id[..], *cost, *shadow), (expected.0, expected.1, expected.3));
        let most = expected.2 * 60_000;
        assert!((most - 50_000..=most).contains(left), "{left} of {most}");
    }
    assert_eq!(holders(con, &["pool", "leases", "2"]).len(), 2);
    assert_eq!(holders(con, &["pool", "LEASES", "2"])[1].0, b"tried");
    text(con, "RL.RELEASE pool soon");
    assert_eq!(holders(con, &["pool", "LEASES", "1"])[0].0, b"tried");
}

#[test]
fn of_many_leases_the_first_hundred_are_listed_and_expired_ones_are_not() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for id in 0..500 {
        let ttl = if id % 5 == 0 { "1ms".to_string() } else { format!("{}s", 3600 - id) };
        text(con, &format!("RL.CONCURRENT pool 1000 {ttl} id:{id}"));
    }
    wait_for("leases that expire", || holders(con, &["pool", "LEASES", "10000"]).len() == 400);
    let first = holders(con, &["pool", "LEASES"]);
    assert_eq!(first.len(), 100);
    assert_eq!(first[0].0, b"id:499");
    assert!(first.is_sorted_by_key(|lease| lease.2));
}

#[test]
fn a_key_without_leases_has_no_holders() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, "RL.GCRA gcra 9 10 1h");
    text(con, "SET page text");
    assert_eq!(text(con, "RL.INFO missing LEASES"), "(nil)");
    text(con, "RL.SKETCH sketch item 9 10 1h");
    assert_eq!(holders(con, &["sketch", "LEASES"]), []);
    assert_eq!(holders(con, &["gcra", "LEASES"]), []);
    assert!(error(con, "RL.INFO page LEASES").starts_with("WRONGTYPE"));
    for (words, told) in [
        ("page", "ERR syntax error near 'page'"),
        ("LEASE", "ERR syntax error near 'LEASE'; did you mean LEASES?"),
        ("LEASES 0", "ERR count must be an integer from 1 to 10000; got '0'"),
        ("LEASES x", "ERR count must be an integer from 1 to 10000; got 'x'"),
        ("LEASES 1 2", "ERR wrong number of arguments for 'rl.info' command"),
    ] {
        assert_eq!(error(con, &format!("RL.INFO gcra {words}")), told);
    }
}
