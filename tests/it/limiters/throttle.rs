//! `RL.THROTTLE` and `CL.THROTTLE`: what redis-cell's callers expect, without what crashes it.

use crate::support::dice::Dice;
use crate::support::{Server, T0, WRONG_TYPE, call_bytes, error, faulty_module, info, ints, simple, text};

#[test]
fn the_published_example_replies_what_is_published() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for command in ["CL.THROTTLE", "RL.THROTTLE", "cl.throttle"] {
        text(con, "FLUSHALL");
        assert_eq!(ints(con, &format!("{command} user123 15 30 60 1")), [0, 16, 15, -1, 2]);
        // The quantity is 1 if not said.
        assert_eq!(ints(con, &format!("{command} user123 15 30 60"))[..3], [0, 16, 14]);
    }
}

#[test]
fn times_are_seconds_rounded_up_and_minus_one_is_no_wait_or_never() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let ask = |con: &mut redis::Connection, key: &str, rest: &str, micros: u64| {
        ints(con, &format!("CL.THROTTLE {key} {rest} AT {}", T0 + micros))
    };
    // 3 in 10 seconds: one in 3.333 s.
    assert_eq!(ask(con, "key", "1 3 10 2", 0), [0, 2, 0, -1, 7]);
    assert_eq!(ask(con, "key", "1 3 10 1", 0), [1, 2, 0, 4, 7]);
    assert_eq!(ask(con, "key", "1 3 10 1", 333_334), [1, 2, 0, 3, 7]);
    assert_eq!(ask(con, "key", "1 3 10 1", 3_333_333), [1, 2, 0, 1, 4]);
    assert_eq!(ask(con, "key", "1 3 10 1", 3_333_334), [0, 2, 0, -1, 7]);
    // Over the limit: never. A quantity of 0 looks.
    assert_eq!(ask(con, "key", "1 3 10 3", 3_333_334), [1, 2, 0, -1, 7]);
    assert_eq!(ask(con, "key", "1 3 10 0", 3_333_334), [0, 2, 0, -1, 7]);
    assert_eq!(ask(con, "missing", "1 3 10 0", 0), [0, 2, 2, -1, 0]);
    assert_eq!(text(con, "EXISTS missing"), "0");
    assert_eq!(info(con, "ratelimit", "ratelimit_throttle_admitted").as_deref(), Some("2"));
    assert_eq!(info(con, "ratelimit", "ratelimit_throttle_refused").as_deref(), Some("4"));
}

#[test]
fn the_state_is_that_of_gcra() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    assert_eq!(ints(con, &format!("CL.THROTTLE key 4 1 60 2 AT {T0}")), [0, 5, 3, -1, 120]);
    assert_eq!(ints(con, &format!("RL.GCRA key 4 1 1m COST 3 AT {T0}")), [0, 5, 0, 0, 300_000]);
    assert_eq!(ints(con, &format!("RL.THROTTLE key 4 1 60 1 AT {T0}")), [1, 5, 0, 60, 300]);
    assert_eq!(ints(con, &format!("RL.REFUND key GCRA 4 1 1m COST 4 AT {T0}"))[2], 4);
    assert!(text(con, "RL.INFO key").starts_with("[limiter, GCRA"));
}

#[test]
fn what_brings_a_server_with_redis_cell_down_is_an_error_or_nothing_special() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for make in ["SET key text", "SET key 1700000000000000000", "RPUSH key a", "HSET key a b"] {
        text(con, "DEL key");
        text(con, make);
        assert_eq!(error(con, "CL.THROTTLE key 15 30 60 1"), WRONG_TYPE, "{make}");
    }
    for key in [&b"\xff\xfe"[..], b"\0", b"a\0b", b""] {
        let reply = call_bytes(con, &[b"CL.THROTTLE", key, b"15", b"30", b"60"]).unwrap();
        assert_eq!(simple(&reply), "[0, 16, 15, -1, 2]", "{}", key.escape_ascii());
    }
    for (line, expected) in [
        ("CL.THROTTLE new -1 30 60", "ERR max_burst must be an integer from 0 to 9007199254740991; got '-1'"),
        ("CL.THROTTLE new 15 0 60", "ERR count must be an integer from 1 to 9007199254740991; got '0'"),
        (
            "CL.THROTTLE new 15 30 0",
            "ERR period must be an integer from 1 to 3153600000, in seconds; got '0'",
        ),
        (
            "CL.THROTTLE new 15 30 60 -1",
            "ERR quantity must be an integer from 0 to 9007199254740991; got '-1'",
        ),
        (
            "CL.THROTTLE new 15 30 60 1.5",
            "ERR quantity must be an integer from 0 to 9007199254740991; got '1.5'",
        ),
        (
            "CL.THROTTLE new 15 30 60 99999999999999999999",
            "ERR quantity must be an integer from 0 to 9007199254740991; got '99999999999999999999'",
        ),
        ("CL.THROTTLE new 15 30 60 1 2", "ERR syntax error near '2'"),
        ("CL.THROTTLE new 15 30 60 1 AT 5", "ERR AT must be Unix time in microseconds; got '5'"),
        ("CL.THROTTLE new 9007199254740991 1 60", "ERR limit would take too long to refill"),
        ("CL.THROTTLE new 15 30", "ERR wrong number of arguments for 'cl.throttle' command"),
        ("RL.THROTTLE new 15 30", "ERR wrong number of arguments for 'rl.throttle' command"),
    ] {
        assert_eq!(error(con, line), expected, "{line}");
    }
    assert_eq!(text(con, "EXISTS new"), "0");
}

/// redis-cell as it documents itself: a bucket in which a token is back each `period / count`. Everything in units of
/// a `count`-th of a microsecond, so that nothing is rounded before the reply.
struct Cell {
    limit: i128,
    count: i128,
    interval: i128,
    arrival: i128,
}

impl Cell {
    fn throttle(&mut self, micros: u64, quantity: i128) -> [i64; 5] {
        let now = i128::from(micros) * self.count;
        let debt = (self.arrival - now).max(0);
        let most = self.limit * self.interval;
        let after = debt + quantity * self.interval;
        let limited = after > most && quantity > 0;
        let debt = if limited || quantity == 0 { debt } else { after };
        self.arrival = now + debt;
        let secs = |units: i128| (units + self.count * 1_000_000 - 1) / (self.count * 1_000_000);
        let retry = if limited && quantity <= self.limit { secs(after - most) } else { -1 };
        let remaining = ((most - debt) / self.interval).max(0);
        [i128::from(limited), self.limit, remaining, retry, secs(debt)].map(|n| i64::try_from(n).unwrap())
    }
}

#[test]
fn it_decides_as_redis_cell_documents_over_random_histories() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let mut dice = Dice::new(2_026);
    let mut random = |below| dice.below(below);
    let mut limited = 0;
    for key in 0..200 {
        let (burst, count, period) = (random(20), 1 + random(40), 1 + random(90));
        let mut cell = Cell {
            limit: i128::from(burst) + 1,
            count: count.into(),
            interval: i128::from(period) * 1_000_000,
            arrival: 0,
        };
        let mut micros = T0;
        for _ in 0..100 {
            micros += random(1 + period * 2_000_000 / count);
            let quantity = random(4 + burst / 4);
            let line = format!("CL.THROTTLE key{key} {burst} {count} {period} {quantity} AT {micros}");
            let reply = ints(con, &line);
            assert_eq!(reply, cell.throttle(micros, quantity.into()), "{line}");
            limited += reply[0];
        }
    }
    assert!((2000..18_000).contains(&limited), "{limited} were limited");
}

#[test]
fn a_name_that_another_module_has_is_left_to_it() {
    let server = Server::try_start_with(Some(&faulty_module()), &["TAKEN"], &[]).unwrap();
    let con = &mut server.connection();
    assert!(server.log().contains("ratelimit: CL.THROTTLE is another module's"), "{}", server.log());
    assert_eq!(ints(con, "RL.THROTTLE key 15 30 60")[..3], [0, 16, 15]);
}
