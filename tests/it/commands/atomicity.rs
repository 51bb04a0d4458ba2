//! Calls inside transactions and scripts, watched keys, and many clients at once.

use std::thread;
use std::time::{Duration, Instant};

use redis::{Connection, Value};

use crate::support::{Server, call, error_line, older, text};

#[test]
fn transactions_and_scripts_run_the_commands() {
    let server = Server::start(&["--appendonly", "yes"]);
    let con = &mut server.connection();
    text(con, "MULTI");
    for _ in 0..3 {
        text(con, "RL.UNIFORM key 1h");
    }
    assert_eq!(text(con, "EXEC").matches("[1, 1, 0, ").count(), 2);
    let script = |call: &str| format!("EVAL return(redis.{call}) 1 scripted");
    let taken = text(con, &script("call('RL.GCRA',KEYS[1],1,1,'1h')"));
    assert!(taken.starts_with("[0, 2, 1, "), "{taken}");
    let refused = text(con, &script("pcall('RL.GCRA',KEYS[1],1,1)['err']"));
    assert!(refused.starts_with("ERR"), "{refused}");
}

#[test]
fn a_wrong_call_fails_when_its_transaction_runs() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let wrong = ["RL.GCRA key 9 1", "RL.LPUSH 42 abc x"];
    assert_eq!(text(con, "MULTI"), "OK");
    for line in ["RL.GCRA key 9 1 1h", wrong[0], wrong[1], "RL.UNIFORM other 1h"] {
        assert_eq!(text(con, line), "QUEUED", "{line}");
    }
    let Value::Array(replies) = call(con, &["EXEC"]).unwrap() else { panic!("no replies") };
    let errors = wrong.map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        error_line(&call(con, &words).unwrap_err())
    });
    assert!(errors[0].starts_with("ERR period is missing: RL.GCRA key"), "{errors:?}");
    assert!(errors[1].ends_with("; got 'abc'"), "{errors:?}");
    for (reply, error) in replies.into_iter().skip(1).zip(errors) {
        let Value::ServerError(replied) = reply else { panic!("{reply:?} is no error") };
        assert_eq!(error_line(&replied.into()), error);
    }
    assert_eq!(text(con, "EXISTS key other"), "2");
}

#[test]
fn who_watches_a_key_is_disturbed_by_a_charge_and_by_no_refusal() {
    let server = Server::start(&[]);
    let (watcher, other) = (&mut server.connection(), &mut server.connection());
    let limits = "LIMIT GCRA 9 1 1h LIMIT CONCURRENT 5 1h a";
    text(other, &format!("RL.MULTI 1 key {limits}"));
    for (line, executes) in [
        (format!("RL.MULTI 2 new key COST 11 {limits}"), true),
        (format!("RL.MULTIPEEK 1 key {limits}"), true),
        (format!("RL.MULTI 1 key COST 0 {limits}"), true),
        (format!("RL.MULTI 1 key {limits}"), false),
        ("RL.GCRA key 9 1 1h COST 11".into(), true),
        ("RL.GCRA key 9 1 1h".into(), false),
        ("RL.MULTIREFUND 1 key LIMIT GCRA 9 1 1h".into(), false),
        ("RL.CONCURRENT key 1 1h b".into(), true),
        ("RL.RENEW key 1h a".into(), false),
        ("RL.RELEASE key nobody".into(), true),
        ("RL.RELEASE key a".into(), false),
    ] {
        for command in ["WATCH key", "MULTI", "PING"] {
            text(watcher, command);
        }
        text(other, &line);
        let reply = call(watcher, &["EXEC"]).unwrap();
        assert_eq!(reply != Value::Nil, executes, "{line}");
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
                        calls
                            .filter(|line| text(&mut con, line).trim_start_matches('[').starts_with('0'))
                            .count()
                    })
                })
                .collect();
            clients.into_iter().map(|client| client.join().unwrap()).sum()
        })
    };
    assert_eq!(admitted("RL.TOKENBUCKET tb 700 1 1h"), 700);
    assert_eq!(admitted("RL.CONCURRENT lease 700 1h {id}"), 700);
    let several = "RL.MULTI 2 user all LIMIT FIXEDWINDOW 700 1h ON 1 LIMIT SLIDINGLOG 500 1h ON 2 \
                   LIMIT TOKENBUCKET 900 1 1h LIMIT CONCURRENT 10000 1h {id} ON 2";
    assert_eq!(admitted(several), 500);
    let left = text(
        &mut server.connection(),
        "RL.MULTIPEEK 2 user all LIMIT FIXEDWINDOW 700 1h ON 1 LIMIT TOKENBUCKET 900 1 1h",
    );
    assert!(left.contains("[[0, 700, 200, ") && left.matches("[0, 900, 400, ").count() == 2, "{left}");
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
