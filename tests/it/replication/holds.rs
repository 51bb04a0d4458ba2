//! Calls with `HOLD` and settlements that are repeated, because their reply was lost: each charges once, whatever became of
//! the server.

use std::thread::sleep;
use std::time::Duration;

use crate::support::contents::contents;
use crate::support::dice::Dice;
use crate::support::load::{Course, Load};
use crate::support::replicas::STRICT;
use crate::support::{AOF_AT_ONCE, Server, call, connect, ints, refused, sync, text};

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
