//! Calls with `HOLD` and settlements that are repeated, because their reply was lost: each charges once, whatever became of
//! the server.

use std::io::Write as _;
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

use redis::{Connection, Value};

use crate::support::contents::contents;
use crate::support::dice::Dice;
use crate::support::load::{Course, Load};
use crate::support::replicas::{STRICT, follow, is_up, wait_for_policies};
use crate::support::{AOF_AT_ONCE, Server, call, connect, dump, info, ints, refused, sync, text, wait_for};

/// A call that is held, its settlement, and the call that charges the actual cost at once. `@` is an instant in the year
/// 2100, so nothing expires.
const CALLS: [[&str; 3]; 5] = [
    [
        "RL.TOKENBUCKET KEY 1000 1000 1h COST 600 HOLD id 1h AT @",
        "RL.SETTLE KEY id TOKENBUCKET 1000 1000 1h COST 450 AT @",
        "RL.TOKENBUCKET KEY 1000 1000 1h COST 450 AT @",
    ],
    [
        "RL.FIXEDWINDOW KEY 1000 1h COST 600 HOLD id 1h AT @",
        "RL.SETTLE KEY id FIXEDWINDOW 1000 1h COST 700 AT @",
        "RL.FIXEDWINDOW KEY 1000 1h COST 700 AT @",
    ],
    [
        "RL.SLIDINGWINDOW KEY 1000 1h PRECISION 1m COST 600 HOLD id 1h AT @",
        "RL.SETTLE KEY id SLIDINGWINDOW 1000 1h PRECISION 1m COST 600 AT @",
        "RL.SLIDINGWINDOW KEY 1000 1h PRECISION 1m COST 600 AT @",
    ],
    [
        "RL.SLIDINGLOG KEY 1000 1h COST 600 HOLD id 1h AT @",
        "RL.SETTLE KEY id SLIDINGLOG 1000 1h COST 1 AT @",
        "RL.SLIDINGLOG KEY 1000 1h COST 1 AT @",
    ],
    [
        "RL.MULTI 2 KEY KEY:2 COST 600 HOLD id 1h AT @ LIMIT GCRA 999 1000 1h LIMIT SLIDINGLOG 1000 1h ON 2",
        "RL.MULTISETTLE 2 KEY KEY:2 id COST 450 AT @ LIMIT GCRA 999 1000 1h LIMIT SLIDINGLOG 1000 1h ON 2",
        "RL.MULTI 2 KEY KEY:2 COST 450 AT @ LIMIT GCRA 999 1000 1h LIMIT SLIDINGLOG 1000 1h ON 2",
    ],
];

/// The call on this key.
fn on(line: &str, key: &str) -> String {
    line.replace("KEY", key).replace('@', "4102444800000000")
}

/// All that is held under the key and the one beside it.
fn held(con: &mut Connection, key: &str) -> [Value; 2] {
    [dump(con, key), dump(con, &format!("{key}:2"))]
}

/// Makes the call as a client that is cut off before it has the reply.
fn lose_the_reply(server: &Server, line: &str) {
    let con = &mut server.connection();
    let changes = |con: &mut Connection| info(con, "persistence", "rdb_changes_since_last_save");
    let before = changes(con);
    TcpStream::connect(("127.0.0.1", server.port))
        .unwrap()
        .write_all(format!("{line}\r\n").as_bytes())
        .unwrap();
    wait_for("the call", || changes(con) != before);
}

/// Makes the call again, which changes nothing.
fn repeat(server: &Server, line: &str, key: &str) {
    let con = &mut server.connection();
    let before = held(con, key);
    let reply = call(con, &line.split(' ').collect::<Vec<_>>()).unwrap();
    assert!(!refused(&reply), "{line}");
    assert_eq!(held(con, key), before, "{line}");
    if let (true, Value::Array(elements)) = (line.contains("SETTLE"), &reply) {
        assert_eq!(elements.last(), Some(&Value::Int(0)), "{line}");
    }
}

#[test]
fn a_call_and_a_settlement_whose_replies_were_lost_charge_once_after_a_crash() {
    let mut server = Server::start(&AOF_AT_ONCE);
    for (number, [hold, settlement, plain]) in CALLS.into_iter().enumerate() {
        let key = &format!("key{number}");
        for line in [on(hold, key), on(settlement, key)] {
            lose_the_reply(&server, &line);
            repeat(&server, &line, key);
            server.kill();
            server.start_again();
            repeat(&server, &line, key);
        }
        let con = &mut server.connection();
        text(con, &on(plain, "plain"));
        assert_eq!(held(con, key), held(con, "plain"), "{plain}");
        text(con, "DEL plain plain:2");
    }
}

#[test]
fn and_after_a_promotion() {
    for [hold, settlement, plain] in CALLS {
        let mut primary = Server::start(&AOF_AT_ONCE);
        let replica = primary.replica(&STRICT);
        wait_for_policies(&replica);
        lose_the_reply(&primary, &on(hold, "key"));
        sync(&primary, &replica);
        primary.kill();
        text(&mut replica.connection(), "REPLICAOF NO ONE");
        repeat(&replica, &on(hold, "key"), "key");
        // The old primary comes back behind the new one, and replaces it.
        primary.start_again();
        follow(&primary, replica.port);
        wait_for("the link", || is_up(&primary));
        wait_for_policies(&primary);
        lose_the_reply(&replica, &on(settlement, "key"));
        sync(&replica, &primary);
        text(&mut primary.connection(), "REPLICAOF NO ONE");
        for server in [&replica, &primary] {
            repeat(server, &on(settlement, "key"), "key");
            let con = &mut server.connection();
            text(con, &on(plain, "plain"));
            assert_eq!(held(con, "key"), held(con, "plain"), "{plain}");
        }
    }
}

/// What clients call for each request. `#` is the id of the request.
const REQUESTS: [[&str; 2]; 3] = [
    ["RL.FIXEDWINDOW window 1000000 1h COST 5 HOLD # 1h", "RL.SETTLE window # FIXEDWINDOW 1000000 1h COST 3"],
    ["RL.SLIDINGLOG log 1000000 1h COST 2 HOLD # 1h", "RL.SETTLE log # SLIDINGLOG 1000000 1h COST 3"],
    [
        "RL.MULTI 2 one two COST 9 HOLD # 1h LIMIT FIXEDWINDOW 1000000 1h LIMIT CALENDAR 1000000 YEAR ON 2",
        "RL.MULTISETTLE 2 one two # COST 3 LIMIT FIXEDWINDOW 1000000 1h LIMIT CALENDAR 1000000 YEAR ON 2",
    ],
];
/// How many clients make each request.
const CLIENTS: u64 = 2;

#[test]
fn each_request_is_charged_its_actual_cost_once_while_the_server_crashes_again_and_again() {
    let mut server = Server::start(&AOF_AT_ONCE);
    let port = server.port;
    let clients = (0..).zip(REQUESTS).flat_map(|(kind, lines)| {
        (0..CLIENTS)
            .map(move |client| move |course: &Course| request(port, &lines, 10 * kind + client, course))
    });
    let load = Load::start(clients);
    for _ in 0..4 {
        load.all_go_on(40);
        server.kill();
        server.start_again();
    }
    load.all_go_on(40);
    let requests: Vec<i64> = load.finish();
    let con = &mut server.connection();
    let of_kind = |kind: usize| requests[2 * kind] + requests[2 * kind + 1];
    for (key, limit, kind) in [
        ("window", "FIXEDWINDOW 1000000 1h", 0),
        ("log", "SLIDINGLOG 1000000 1h", 1),
        ("one", "FIXEDWINDOW 1000000 1h", 2),
        ("two", "FIXEDWINDOW 1000000 1h", 2),
        ("two", "CALENDAR 1000000 YEAR", 2),
    ] {
        let remaining = ints(con, &format!("RL.PEEK {key} {limit} COST 0"))[2];
        assert_eq!(1_000_000 - remaining, 3 * of_kind(kind), "{key} {limit}");
        let told = text(con, &format!("RL.INFO {key}"));
        assert!(!told.contains("holds"), "{told}");
    }
    let expected = contents(&server);
    server.restart();
    assert_eq!(contents(&server), expected);
    let replica = server.replica(&STRICT);
    sync(&server, &replica);
    assert_eq!(contents(&replica), expected);
}

/// Makes requests until there are enough, and returns their number. Calls that were cut off are repeated, and some others.
fn request(port: u16, lines: &[&str; 2], client: u64, course: &Course) -> i64 {
    let (mut con, mut dice, mut requests) = (None, Dice::new(client + 1), 0);
    while !course.is_enough() {
        for line in lines {
            let line = line.replace('#', &format!("{client}-{requests}"));
            let words: Vec<&str> = line.split(' ').collect();
            let mut again = dice.one_in(4);
            loop {
                let Some(open) = con.as_mut() else {
                    // Until the server is back, and has loaded its data.
                    sleep(Duration::from_millis(5));
                    con = connect(port).ok();
                    continue;
                };
                match call(open, &words) {
                    Ok(reply) if !again => {
                        assert!(!refused(&reply), "{line}");
                        break;
                    }
                    Ok(_) => again = false,
                    Err(error) => {
                        assert!(matches!(error.code(), None | Some("LOADING")), "{line}: {error}");
                        con = None;
                    }
                }
            }
        }
        requests += 1;
        course.goes_on();
    }
    requests
}
