//! What an item is answered, call by call.

use redis::Connection;

use super::{START, after, ask, ask_at, peek_at, written};
use crate::support::{Server, ints, text};

/// Five at once, and then one in 100 ms.
const ALICE: &str = "key alice 4 10 1s";

#[test]
fn a_burst_then_one_per_interval() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (remaining, reset) in [(4, 100), (3, 200), (2, 300), (1, 400), (0, 500)] {
        assert_eq!(ask(con, ALICE, 0), [0, 5, remaining, 0, reset]);
    }
    assert_eq!(ask(con, ALICE, 0), [1, 5, 0, 100, 500]);
    assert_eq!(ask(con, ALICE, 99), [1, 5, 0, 1, 401]);
    assert_eq!(ask_at(con, ALICE, after(100) - 1), [1, 5, 0, 1, 401]);
    assert_eq!(ask(con, ALICE, 100), [0, 5, 0, 0, 500]);
    assert_eq!(ask(con, ALICE, 350), [0, 5, 1, 0, 350]);
    assert_eq!(ask(con, &format!("{ALICE} COST 0"), 699), [0, 5, 4, 0, 1]);
    assert_eq!(ask(con, &format!("{ALICE} COST 0"), 700), [0, 5, 5, 0, 0]);
    assert_eq!(ask(con, ALICE, 86_400_000), [0, 5, 4, 0, 100]);
}

#[test]
fn a_cost_counts_as_that_many_requests() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    assert_eq!(ask(con, &format!("{ALICE} COST 3"), 0), [0, 5, 2, 0, 300]);
    assert_eq!(ask(con, &format!("{ALICE} COST 3"), 0), [1, 5, 2, 100, 300]);
    assert_eq!(ask(con, &format!("{ALICE} COST 5"), 0), [1, 5, 2, 300, 300]);
    assert_eq!(ask(con, &format!("{ALICE} COST 2"), 0), [0, 5, 0, 0, 500]);
    assert_eq!(ask(con, &format!("{ALICE} cost 5"), 500), [0, 5, 0, 0, 500]);
    // A period and a count that divide to a microsecond, and to a century.
    assert_eq!(ask(con, "small a 0 1000 1ms", 0), [0, 1, 0, 0, 1]);
    assert_eq!(ask_at(con, "small a 0 1000 1ms", START + 1), [0, 1, 0, 0, 1]);
    assert_eq!(ask(con, "large a 0 1 36500d", 0), [0, 1, 0, 0, 3_153_600_000_000]);
}

#[test]
fn a_cost_of_0_only_looks_and_a_cost_above_the_limit_is_never_admitted() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let before = written(con);
    assert_eq!(ask(con, &format!("{ALICE} COST 0"), 0), [0, 5, 5, 0, 0]);
    assert_eq!(ask(con, &format!("{ALICE} COST 6"), 0), [1, 5, 5, -1, 0]);
    assert_eq!(ask(con, &format!("{ALICE} COST 9007199254740991"), 0), [1, 5, 5, -1, 0]);
    assert_eq!(text(con, "EXISTS key"), "0", "neither makes a key");
    assert_eq!(written(con), before);
    ask(con, &format!("{ALICE} COST 5"), 0);
    let before = written(con);
    for (cost, reply) in [
        (0, [0, 5, 1, 0, 400]),
        (2, [1, 5, 1, 100, 400]),
        (5, [1, 5, 1, 400, 400]),
        (6, [1, 5, 1, -1, 400]),
        (u64::MAX >> 11, [1, 5, 1, -1, 400]),
    ] {
        assert_eq!(ask(con, &format!("{ALICE} COST {cost}"), 100), reply, "{cost}");
    }
    assert_eq!(written(con), before, "looks and refusals write nothing");
}

#[test]
fn rl_peek_replies_what_the_call_would_and_charges_nothing() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    assert_eq!(peek_at(con, ALICE, START), [0, 5, 5, 0, 0]);
    assert_eq!(peek_at(con, &format!("{ALICE} COST 6 WIDTH 64"), START), [1, 5, 5, -1, 0]);
    assert_eq!(text(con, "EXISTS key"), "0");
    ask(con, &format!("{ALICE} COST 4"), 0);
    let before = written(con);
    let mut look = |options: &str, millis: u64| {
        let arguments = format!("{ALICE} {options}");
        let reply = peek_at(con, &arguments, after(millis));
        assert_eq!(
            ints(con, &format!("rl.peek key sKeTcH alice 4 10 1s {options} at {}", after(millis))),
            reply
        );
        reply
    };
    assert_eq!(look("", 0), [0, 5, 1, 0, 400]);
    assert_eq!(look("COST 2", 0), [1, 5, 1, 100, 400]);
    assert_eq!(look("COST 0", 0), [0, 5, 1, 0, 400]);
    assert_eq!(look("COST 6", 0), [1, 5, 1, -1, 400]);
    assert_eq!(look("COST 2 DEPTH 4", 99), [1, 5, 1, 1, 301]);
    assert_eq!(look("COST 2 WIDTH 16384", 100), [0, 5, 2, 0, 300]);
    assert_eq!(written(con), before);
    assert_eq!(peek_at(con, "key bob 4 10 1s", START), [0, 5, 5, 0, 0], "another item");
}

#[test]
fn other_parameters_leave_the_arrival_time_as_it_is() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let look = |con: &mut Connection, parameters: &str, millis: u64| {
        ask(con, &format!("key alice {parameters} COST 0"), millis)
    };
    // Ten at once and one a second: all of them until 10 s.
    assert_eq!(ask(con, "key alice 9 10 10s COST 10", 0), [0, 10, 0, 0, 10_000]);
    assert_eq!(ask(con, "key alice 0 1 1s", 0), [1, 1, 0, 10_000, 10_000]);
    assert_eq!(ask(con, "key alice 19 20 10s", 0), [1, 20, 0, 500, 10_000]);
    assert_eq!(ask(con, "key alice 0 1 1h", 0), [1, 1, 0, 10_000, 10_000]);
    assert_eq!(look(con, "99 100 100s", 0), [0, 100, 90, 0, 10_000]);
    assert_eq!(ask(con, "key alice 99 100 100s", 0), [0, 100, 89, 0, 11_000]);
    assert_eq!(look(con, "9 10 10s", 2000), [0, 10, 1, 0, 9000]);
    assert_eq!(look(con, "0 1 1s", 11_000), [0, 1, 1, 0, 0]);
}

#[test]
fn an_interval_of_no_whole_microseconds_is_rounded_up_with_each_charge() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    // An interval of 333,333 1/3 us. The arrival time becomes 333,334 us, and then 666,668 us.
    let three = "key a 2 3 1s";
    assert_eq!(ask(con, three, 0), [0, 3, 1, 0, 334]);
    assert_eq!(ask(con, three, 0), [0, 3, 0, 0, 667]);
    // 666,668 + 333,333 1/3 us are 1 1/3 us more than a second.
    assert_eq!(ask(con, three, 0), [1, 3, 0, 1, 667]);
    assert_eq!(ask_at(con, three, START + 1), [1, 3, 0, 1, 667]);
    assert_eq!(ask_at(con, three, START + 2), [0, 3, 0, 0, 1000]);
    // A cost of three is rounded once.
    assert_eq!(ask(con, "key b 2 3 1s COST 3", 1), [0, 3, 0, 0, 1000]);
}

#[test]
fn calls_work_in_transactions_and_scripts_and_by_the_servers_clock() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    assert_eq!(ints(con, "RL.SKETCH key alice 1 1 1h"), [0, 2, 1, 0, 3_600_000]);
    text(con, "MULTI");
    for _ in 0..2 {
        assert_eq!(text(con, "RL.SKETCH key alice 1 1 1h"), "QUEUED");
    }
    let replies = text(con, "EXEC");
    assert!(replies.starts_with("[[0, 2, 0, 0, 7"), "{replies}");
    assert!(replies.contains("], [1, 2, 0, 3"), "{replies}");
    let script = "EVAL return(redis.call('RL.SKETCH',KEYS[1],'alice','1','1','1h')[1]) 1 key";
    assert_eq!(text(con, script), "1");
}
