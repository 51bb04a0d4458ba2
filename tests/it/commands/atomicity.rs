//! Calls inside transactions and scripts, watched keys, and many clients at once.

use std::thread;
use std::time::{Duration, Instant};

use redis::{Connection, Value};

use crate::support::{Server, call, ints, older, simple, text};

#[test]
fn transactions_and_scripts_run_the_commands() {
    let server = Server::start(&["--appendonly", "yes"]);
    let con = &mut server.connection();
    text(con, "MULTI");
    text(con, "RL.GCRA key 1 1 1h");
    text(con, "RL.GCRA key 1 1 1h");
    text(con, "RL.GCRA key 1 1 1h");
    let Value::Array(replies) = call(con, &["EXEC"]).unwrap() else { panic!("EXEC replies an array") };
    let limited: Vec<_> = replies
        .iter()
        .map(|reply| match reply {
            Value::Array(five) => five[0].clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(limited, [Value::Int(0), Value::Int(0), Value::Int(1)]);

    let script = "return redis.call('RL.GCRA', KEYS[1], 1, 1, '1h')";
    assert_eq!(ints_of(&call(con, &["EVAL", script, "1", "scripted"]).unwrap())[..3], [0, 2, 1]);
    let refused = "return redis.pcall('RL.GCRA', KEYS[1], 1, 1)['err']";
    let text = simple(&call(con, &["EVAL", refused, "1", "scripted"]).unwrap());
    assert!(text.starts_with("ERR"), "{text}");
}

fn ints_of(reply: &Value) -> Vec<i64> {
    let Value::Array(elements) = reply else { panic!("{reply:?}") };
    elements
        .iter()
        .map(|element| if let Value::Int(n) = element { *n } else { panic!("{element:?}") })
        .collect()
}

#[test]
fn a_refusal_does_not_disturb_who_watches_the_key_and_an_admission_does() {
    let server = Server::start(&[]);
    let (watcher, other) = (&mut server.connection(), &mut server.connection());
    for (make, refused, admitted) in [
        ("RL.GCRA key 0 1 1h", "RL.GCRA key 0 1 1h", "RL.GCRA key 1 1 1h"),
        ("RL.CONCURRENT lease 1 1h a", "RL.CONCURRENT lease 1 1h b", "RL.RELEASE lease a"),
    ] {
        let key = make.split(' ').nth(1).unwrap();
        ints(other, make);
        for (line, executes) in [(refused, true), (admitted, false)] {
            text(watcher, &format!("WATCH {key}"));
            text(watcher, "MULTI");
            text(watcher, "PING");
            ints(other, line);
            let reply = call(watcher, &["EXEC"]).unwrap();
            assert_eq!(reply != Value::Nil, executes, "{line}");
        }
    }
}

#[test]
fn many_clients_at_once_are_admitted_exactly_to_the_limit() {
    let server = Server::start(&[]);
    let admitted = |line: &str| -> usize {
        thread::scope(|scope| {
            let clients: Vec<_> = (0..16)
                .map(|client| {
                    let mut con = server.connection();
                    scope.spawn(move || {
                        let calls = (0..100).map(|i| line.replace("{id}", &format!("{client}-{i}")));
                        calls.filter(|line| ints(&mut con, line)[0] == 0).count()
                    })
                })
                .collect();
            clients.into_iter().map(|client| client.join().unwrap()).sum()
        })
    };
    assert_eq!(admitted("RL.TOKENBUCKET tb 700 1 1h"), 700);
    assert_eq!(admitted("RL.GCRA gcra 699 1 1h"), 700);
    assert_eq!(admitted("RL.SLIDINGWINDOW sw 700 1000d"), 700);
    assert_eq!(admitted("RL.CONCURRENT lease 700 1h {id}"), 700);
}

#[test]
fn all_calls_of_a_transaction_or_a_script_see_one_instant() {
    const PAUSE: Duration = Duration::from_millis(20);
    const SCRIPT: &str = "redis.call('RL.GCRA', KEYS[1], 9, 1, '1h') \
                          for i = 1, 1000000 do end \
                          return redis.call('RL.GCRA', KEYS[2], 9, 1, '1h')";
    let server = Server::start(&[]);
    let con = &mut server.connection();
    if older(con, [7, 2], "RM_CachedMicroseconds") {
        return;
    }
    let pause = format!("DEBUG SLEEP {}", PAUSE.as_secs_f64());
    let lines = ["RL.GCRA a 9 1 1h", &pause, "RL.GCRA b 9 1 1h"];

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

/// The instant of the last charge, in microseconds.
fn charged(con: &mut Connection, key: &str) -> u128 {
    let told = text(con, &format!("RL.INFO {key}"));
    told.split("last_charge_us, ").nth(1).unwrap().split(',').next().unwrap().parse().unwrap()
}
