//! A policy that is changed while clients ask it: no call fails, and none is charged twice or not at all.

use redis::Connection;

use super::folder::Folder;
use super::{set, stats};
use crate::support::load::{Course, Load};
use crate::support::{Server, T0, ints, text};

const LIMIT: i64 = 4000;
const VERSIONS: u64 = 1000;
const CALLERS: usize = 4;

/// The words of a version. Each has the same limit, alone or among others that admit every call.
fn version(number: u64) -> String {
    let limit = format!("LIMIT FIXEDWINDOW {LIMIT} 1h");
    match number % 4 {
        0 => limit,
        1 => format!("LIMIT GCRA 999999 1000000 1h ON 1 {limit}"),
        2 => format!("{limit} LIMIT FIXEDWINDOW 1 2h SHADOW LIMIT PENALTY 1000000 1h 1h"),
        _ => format!("{limit} ON 1 LIMIT SLIDINGWINDOW 1000000 1h PRECISION 1m COST 0"),
    }
}

/// Callers that ask until there is nothing left. Each returns how often it was admitted.
fn callers(server: &Server) -> Load<i64> {
    Load::start((0..CALLERS).map(|caller| {
        let con = server.connection();
        move |course: &Course| ask(con, caller, course)
    }))
}

fn ask(mut con: Connection, caller: usize, course: &Course) -> i64 {
    // Some calls take the way of one limit on one key, if the version has one, and some the way of several.
    let line = format!("RL.ASK k api AT {T0} {}", ["", "FULL", "COST 1", "ID x"][caller % 4]);
    let mut admitted = 0;
    loop {
        let reply = text(&mut con, &line);
        let refused = reply.trim_start_matches('[').starts_with('1');
        if refused && course.is_enough() {
            return admitted;
        }
        admitted += i64::from(!refused);
        course.goes_on();
    }
}

#[test]
fn new_versions_and_loads_fail_no_call_and_charge_exactly_what_the_limit_allows() {
    let folder = Folder::with(format!("api {}\n", version(0)));
    let server = folder.server(&[]);
    let con = &mut server.connection();
    let load = callers(&server);
    for number in 1..VERSIONS {
        if number % 2 == 0 {
            set(con, &format!("api {}", version(number / 2)));
        } else {
            let version = version(number / 2);
            folder.write(format!("api VERSION {} {version}\nother LIMIT UNIFORM 1s\n", 1 + number % 7));
            assert_eq!(text(con, "RL.POLICY LOAD"), "2");
            text(con, &format!("CONFIG SET ratelimit.max-leases {}", 1 + number % 5));
        }
        if number % 10 == 0 {
            text(con, "RL.POLICY SAVE");
            load.goes_on(20);
        }
    }
    load.all_go_on(20);
    let admitted: i64 = load.finish().iter().sum();
    assert_eq!(admitted, LIMIT);
    // No version took counts with it.
    let [counted, refused, _, errors] = stats(con, "api");
    assert_eq!((i64::try_from(counted).unwrap(), errors), (LIMIT, 0));
    assert!(refused >= CALLERS as u64);
    assert_eq!(ints(con, &format!("RL.PEEK k FIXEDWINDOW {LIMIT} 1h AT {T0}"))[..3], [1, LIMIT, 0]);
}
