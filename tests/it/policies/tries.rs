//! `RL.POLICY TRY` on a server: its thread, its client, and what the record survives. What it counts is a law, and its words are sessions.

use std::collections::BTreeSet;

use ratelimit_testing::{connect, wait_for};
use redis::{Connection, Value};

use super::{numbers, set};
use crate::support::{Server, T0, call, error, error_line, info, simple, text};

const TRY: &str = "RL.POLICY TRY api LIMIT GCRA 0 1 1h";

/// A server that has recorded this many calls of a hundred keys.
fn recorded(calls: usize) -> Server {
    let server = Server::start(&["--ratelimit.record", "1000000"]);
    let con = &mut server.connection();
    set(con, "api LIMIT GCRA 99 100 1h");
    let mut pipe = redis::pipe();
    for number in 0..calls {
        pipe.cmd("RL.ASK")
            .arg(format!("user:{}", number % 100))
            .arg("api")
            .arg("AT")
            .arg(T0 + number as u64)
            .ignore();
    }
    pipe.query::<()>(con).unwrap();
    server
}

fn field(reply: &str, name: &str) -> u64 {
    numbers(reply, name)[0]
}

fn kept(con: &mut Connection) -> u64 {
    info(con, "ratelimit", "ratelimit_record_calls").unwrap().parse().unwrap()
}

#[test]
fn a_replay_replies_in_both_protocols_and_changes_nothing() {
    let server = recorded(1000);
    let con = &mut server.connection();
    let before = text(con, "DEBUG DIGEST");
    let told = text(con, TRY);
    assert_eq!(
        (field(&told, "calls"), field(&told, "newly_refused"), field(&told, "keys")),
        (1000, 900, 100)
    );
    let resp3 = &mut connect(server.port).unwrap();
    call(resp3, &["HELLO", "3"]).unwrap();
    let Value::Map(fields) = call(resp3, &words()).unwrap() else { panic!("no map") };
    let newly = fields.iter().find(|(name, _)| simple(name) == "newly_refused");
    assert_eq!(newly.map(|(_, value)| value), Some(&Value::Int(900)));
    assert_eq!((text(con, "DEBUG DIGEST"), kept(con)), (before, 1000));
    assert_eq!(
        error(con, "RL.POLICY TRY api LIMIT GCRA"),
        "ERR max_burst is missing: RL.POLICY TRY name [options] LIMIT GCRA max_burst count period [options] [LIMIT ...] (LIMIT 1)"
    );
}

#[test]
fn one_replay_runs_at_a_time_and_no_transaction_and_no_script_has_one() {
    let server = recorded(20_000);
    let con = &mut server.connection();
    let alone = answer(con);
    let told: Vec<String> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..8)
            .map(|_| {
                let mut con = server.connection();
                scope.spawn(move || answer(&mut con))
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    let refused = "ERR another RL.POLICY TRY runs; one runs at a time";
    assert!(told.contains(&alone) && told.iter().all(|told| *told == alone || told == refused), "{told:?}");

    text(con, "MULTI");
    text(con, TRY);
    let told = text(con, "EXEC");
    assert!(told.contains("RL.POLICY TRY takes time, so it is not for transactions and scripts"), "{told}");
    assert!(
        error(con, "EVAL return(redis.call('RL.POLICY','TRY','api','LIMIT','UNIFORM','1s')) 0")
            .contains("script")
    );
    assert_eq!(answer(con), alone);
}

/// The reply, or the error.
fn answer(con: &mut Connection) -> String {
    call(con, &words()).map_or_else(|error| error_line(&error), |reply| simple(&reply))
}

fn words() -> Vec<&'static str> {
    TRY.split(' ').collect()
}

#[test]
fn a_client_that_leaves_ends_its_replay_and_a_change_of_the_record_none() {
    let server = recorded(20_000);
    let con = &mut server.connection();
    for _ in 0..5 {
        let mut leaving = server.connection();
        leaving
            .send_packed_command(&redis::cmd("RL.POLICY").arg(&words()[1..]).get_packed_command())
            .unwrap();
        drop(leaving);
    }
    wait_for("the end of the replays", || call(con, &words()).is_ok());
    text(con, "CONFIG SET ratelimit.record 5000");
    wait_for("the end of the oldest calls", || kept(con) <= 5000);
    assert!(field(&text(con, TRY), "calls") > 4000);
    text(con, "CONFIG SET ratelimit.record 0");
    wait_for("an empty record", || kept(con) == 0);
    assert_eq!(error(con, TRY), "ERR no call is recorded: the setting ratelimit.record is 0");
    let bytes: u64 = info(con, "ratelimit", "ratelimit_record_bytes").unwrap().parse().unwrap();
    assert_eq!(bytes, 0);
}

#[test]
fn a_right_can_be_for_trying_alone() {
    let server = recorded(10);
    let con = &mut server.connection();
    text(con, "ACL SETUSER trier on nopass +rl.policy|try");
    let trier = &mut server.connection();
    text(trier, "AUTH trier x");
    assert_eq!(field(&text(trier, TRY), "calls"), 10);
    let refused: BTreeSet<String> =
        ["RL.POLICY LIST", "RL.POLICY DEL api"].map(|line| error(trier, line)).into();
    assert!(refused.iter().all(|error| error.starts_with("NOPERM")), "{refused:?}");
}
