//! Calls inside transactions and scripts, watched keys, and many clients at once.

use std::thread;

use redis::Value;

use crate::support::{Server, call, error, ints, simple, text};

#[test]
fn transactions_and_scripts_run_the_commands() {
    let server = Server::start(&["--appendonly", "yes"]);
    let con = &mut server.connection();
    text(con, "MULTI");
    text(con, "RL.GCRA key 1 1 3600000");
    text(con, "RL.GCRA key 1 1 3600000");
    text(con, "RL.GCRA key 1 1 3600000");
    let Value::Array(replies) = call(con, &["EXEC"]).unwrap() else { panic!("EXEC replies an array") };
    let limited: Vec<_> = replies
        .iter()
        .map(|reply| match reply {
            Value::Array(five) => five[0].clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(limited, [Value::Int(0), Value::Int(0), Value::Int(1)]);

    let script = "return redis.call('RL.GCRA', KEYS[1], 1, 1, 3600000)";
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
        ("RL.GCRA key 0 1 3600000", "RL.GCRA key 0 1 3600000", "RL.GCRA key 1 1 3600000"),
        ("RL.CONCURRENT lease 1 3600000 a", "RL.CONCURRENT lease 1 3600000 b", "RL.RELEASE lease a"),
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
    assert_eq!(admitted("RL.TOKENBUCKET tb 700 1 3600000"), 700);
    assert_eq!(admitted("RL.GCRA gcra 699 1 3600000"), 700);
    assert_eq!(admitted("RL.SLIDINGWINDOW sw 700 86400000000"), 700);
    assert_eq!(admitted("RL.CONCURRENT lease 700 3600000 {id}"), 700);
}

#[test]
fn a_client_that_only_may_look_may_only_look() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ints(con, "RL.GCRA key 1 1 3600000");
    text(con, "ACL SETUSER app on nopass ~* +rl.gcra");
    text(con, "ACL SETUSER board on nopass %R~* +rl.peek +rl.info +rl.gcra");
    text(con, "AUTH app x");
    assert_eq!(ints(con, "RL.GCRA key 1 1 3600000")[0], 0);
    assert!(error(con, "RL.APPLY key x").starts_with("NOPERM"));
    text(con, "AUTH board x");
    assert_eq!(ints(con, "RL.PEEK key GCRA 1 1 3600000")[0], 1);
    // The key specifications say what reads and what writes.
    assert!(error(con, "RL.GCRA key 1 1 3600000").starts_with("NOPERM"));
}

#[test]
fn out_of_memory_refuses_what_takes_and_lets_go_what_gives() {
    let server = Server::start(&["--maxmemory-policy", "noeviction"]);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT lease 2 3600000 a");
    ints(con, "RL.CONCURRENT lease 2 3600000 b");
    text(con, "CONFIG SET maxmemory 1");
    for line in ["RL.GCRA key 1 1 1000", "RL.TOKENBUCKET key 1 1 1000", "RL.SLIDINGWINDOW key 1 1000"] {
        assert!(error(con, line).starts_with("OOM"), "{line}");
    }
    assert!(error(con, "RL.CONCURRENT lease 2 3600000 a").starts_with("OOM"));
    assert_eq!(text(con, "EXISTS key"), "0");
    assert_eq!(ints(con, "RL.PEEK lease CONCURRENT 2 3600000 c")[0], 1);
    assert_eq!(ints(con, "RL.RENEW lease 3600000 a"), [1]);
    assert_eq!(ints(con, "RL.RELEASE lease a"), [1]);
    assert_eq!(ints(con, "RL.RELEASE lease b"), [1]);
}
