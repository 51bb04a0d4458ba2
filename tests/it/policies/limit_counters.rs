//! The counters of each limit of a policy: which limit refuses, in `RL.POLICY STATS` and in `INFO`.

use redis::Connection;

use super::{get, limit_stats, set, stats};
use crate::support::{Server, T0, call, info, ints, text, wait_for};

/// The counts of each limit: refused, and refused in shadow.
fn counts(con: &mut Connection, name: &str) -> Vec<[u64; 2]> {
    limit_stats(con, name).into_iter().map(|(_, counts)| counts).collect()
}

fn ask(con: &mut Connection, times: usize, line: &str) {
    (0..times).for_each(|_| _ = ints(con, &format!("RL.ASK {line} AT {T0}")));
}

#[test]
fn each_limit_counts_the_calls_that_it_refuses() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "one limit fixedwindow 2 1h");
    ask(con, 5, "a one");
    assert_eq!(limit_stats(con, "one"), [("FIXEDWINDOW 2 1h".into(), [3, 0])]);
    ask(con, 5, "a one COST 0");
    assert_eq!(counts(con, "one"), [[3, 0]]);

    // The first limit refuses the third call, both refuse it at cost 3.
    set(con, "two LIMIT FIXEDWINDOW 2 1h LIMIT GCRA 3 3 1h COST 1");
    ask(con, 3, "b two");
    assert_eq!(counts(con, "two"), [[1, 0], [0, 0]]);
    ask(con, 1, "b two FORCE");
    ask(con, 1, "b two FORCE");
    assert_eq!(counts(con, "two"), [[1, 0], [0, 0]], "FORCE is never refused");
    ask(con, 1, "b two");
    assert_eq!(counts(con, "two"), [[2, 0], [1, 0]]);
    assert_eq!(stats(con, "two"), [4, 2, 0, 0]);

    // Of several keys each call counts once.
    ask(con, 1, "b two KEYS c d");
    ask(con, 2, "c two KEYS d");
    ask(con, 4, "c two KEYS d");
    assert_eq!(counts(con, "two")[0], [2 + 1 + 4, 0]);
    let words = get(con, "two").1;
    let of_limits: Vec<String> = limit_stats(con, "two").into_iter().map(|(words, _)| words).collect();
    assert_eq!(words, format!("LIMIT {}", of_limits.join(" LIMIT ")));
}

#[test]
fn each_shadow_counts_the_admitted_calls_that_it_would_refuse() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "tried LIMIT FIXEDWINDOW 3 1h LIMIT UNIFORM 1h SHADOW LIMIT SLIDINGLOG 2 1h SHADOW");
    ask(con, 5, "a tried");
    // Of three admitted calls the second and the third; of two refused calls only what refused them.
    assert_eq!(counts(con, "tried"), [[2, 0], [0, 2], [0, 1]]);
    assert_eq!(stats(con, "tried"), [3, 2, 2, 0]);
    set(con, "all SHADOW LIMIT FIXEDWINDOW 1 1h");
    ask(con, 3, "b all");
    assert_eq!(limit_stats(con, "all"), [("FIXEDWINDOW 1 1h".into(), [0, 2])]);
}

#[test]
fn a_penalty_counts_the_calls_that_bring_a_ban_or_meet_one() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "login LIMIT FIXEDWINDOW 1 1h LIMIT PENALTY 2 1h 2h");
    ask(con, 2, "a login");
    assert_eq!(counts(con, "login"), [[1, 0], [0, 0]], "a strike refuses nothing");
    ask(con, 1, "a login");
    assert_eq!(counts(con, "login"), [[2, 0], [1, 0]]);
    ask(con, 1, "a login");
    assert_eq!(counts(con, "login"), [[3, 0], [2, 0]]);
}

#[test]
fn a_call_that_waits_counts_the_limit_that_refuses_it_at_last() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "jobs LIMIT CONCURRENT 1 1h LIMIT GCRA 9 10 1h");
    ints(con, "RL.ASK pool jobs ID a");
    let mut other = server.connection();
    let waiting = std::thread::spawn(move || ints(&mut other, "RL.ASK pool jobs ID b BLOCK 1s"));
    wait_for("the caller to wait", || info(con, "ratelimit", "ratelimit_waiting").unwrap() == "1");
    assert_eq!(counts(con, "jobs"), [[0, 0], [0, 0]], "it waits");
    // The pool has room for no one but the first caller in line, also after its lease ends.
    ints(con, "RL.ASK pool jobs ID c");
    assert_eq!(counts(con, "jobs"), [[1, 0], [0, 0]]);
    assert_eq!(waiting.join().unwrap()[0], 1);
    assert_eq!(counts(con, "jobs"), [[2, 0], [0, 0]]);
}

#[test]
fn counters_of_a_limit_go_on_while_its_words_mean_the_same() {
    let server = Server::start(&["--ratelimit.policy-file", "policies"]);
    let con = &mut server.connection();
    set(con, "api LIMIT FIXEDWINDOW 1 1h LIMIT GCRA 0 1 1h");
    ask(con, 3, "a api");
    assert_eq!(counts(con, "api"), [[2, 0], [2, 0]]);
    set(con, "api LIMIT UNIFORM 1m LIMIT GCRA 0 1 1h");
    assert_eq!(limit_stats(con, "api"), [("UNIFORM 1m".into(), [0, 0]), ("GCRA 0 1 1h".into(), [2, 0])]);
    text(con, "RL.POLICY SAVE");
    text(con, "RL.POLICY LOAD");
    assert_eq!(counts(con, "api"), [[0, 0], [2, 0]]);
    ask(con, 2, "b api");
    assert_eq!(counts(con, "api"), [[1, 0], [3, 0]]);
    set(con, "api LIMIT UNIFORM 60s LIMIT GCRA 0 1 60m");
    let words = ["UNIFORM 60s", "GCRA 0 1 60m"].map(String::from);
    assert_eq!(limit_stats(con, "api"), words.into_iter().zip([[1, 0], [3, 0]]).collect::<Vec<_>>());
    text(con, "RL.POLICY DEL api");
    set(con, "api LIMIT GCRA 0 1 1h");
    assert_eq!(counts(con, "api"), [[0, 0]]);
}

#[test]
fn the_section_of_policies_has_a_line_for_each_limit() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "api LIMIT FIXEDWINDOW 1 60s LIMIT UNIFORM 1s SHADOW");
    set(con, "mail LIMIT CALENDAR 8 DAY TZ Europe/Lisbon");
    ask(con, 2, "a api");
    let mut field = |name: &str| info(con, "ratelimit_policies", &format!("ratelimit_policy_{name}"));
    assert_eq!(field("1_limit_1").unwrap(), "limit=FIXEDWINDOW 1 60s,refused=1,shadow_refused=0");
    assert_eq!(field("1_limit_2").unwrap(), "limit=UNIFORM 1s SHADOW,refused=0,shadow_refused=0");
    assert_eq!(field("1_limit_3"), None);
    assert_eq!(
        field("2_limit_1").unwrap(),
        "limit=CALENDAR 8 DAY TZ Europe/Lisbon,refused=0,shadow_refused=0"
    );
    assert!(call(con, &["INFO", "ratelimit"]).is_ok());
}

#[test]
fn the_section_of_policies_lists_whole_policies_in_a_thousand_lines() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = (1..=64).map(|period| format!("LIMIT UNIFORM {period}s")).collect::<Vec<_>>().join(" ");
    // 15 policies have 975 lines, and another one would have 1,040.
    for number in 10..30 {
        set(con, &format!("policy-{number} {limits}"));
    }
    let section = text(con, "INFO ratelimit_policies");
    assert_eq!(section.matches("ratelimit_policy_").count(), 975);
    assert!(section.contains("ratelimit_policy_15_limit_64:") && section.contains("ratelimit_policies:20"));
}
