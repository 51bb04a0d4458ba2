//! What `RL.EXPLAIN` does not explain: the errors of the call, in the words of its command.

use crate::support::{Server, error, text};

#[test]
fn a_wrong_call_gets_the_error_of_its_command() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET plan:free LIMIT GCRA 9 10 1s");
    text(con, "SET page text");
    text(con, "RL.SHED shed 0.5");
    text(con, "RL.GCRA gcra 9 10 1h");
    let limits: Vec<_> = (1..=63).map(|length| format!("LIMIT FIXEDWINDOW 1 {length}h")).collect();
    text(con, &format!("RL.MULTI 1 gcra {}", limits.join(" ")));
    for line in [
        "RL.GCRA k 15 30 60",
        "RL.GCRA k 15 30 1m COTS 2",
        "RL.SMOOTH k 5 1s RESERVE",
        "RL.SMOOTH k 1 36500d COST 9007199254740991",
        "RL.GCRA k 15 30 1m MAXWAIT 1s",
        "RL.GCRA k 15 30 1m BLOCK 1s FORCE",
        "RL.GCRA page 15 30 1m",
        "RL.UNIFORM gcra 1s",
        "RL.UNIFORM shed 1s",
        "RL.SKETCH gcra item 15 30 1m",
        "RL.SKETCH k item 15 30 1m WIDTH 3",
        "RL.MULTI 2 a b",
        "RL.MULTI 2 a LIMIT GCRA 9 10 1s",
        "RL.MULTI 2 a a LIMIT GCRA 9 10 1s",
        "RL.MULTI 1 a LIMIT GCRA 9 10 1s LIMIT GCRA 8 10 1s",
        "RL.MULTI 1 a FORCE LIMIT SMOOTH 5 1s",
        "RL.MULTI 1 a FORCE LIMIT UNIFORM 1s LIMIT GCRA 9 1 36500d COST 9007199254740991",
        "RL.MULTI 1 page LIMIT GCRA 9 10 1s",
        "RL.ASK k plan:fre",
        "RL.ASK plan:free k",
        "RL.ASK k plan:free COST x",
        "RL.ASK k plan:free KEYS",
        "RL.ASK k plan:free KEYS k",
    ] {
        let inner = error(con, line);
        assert_eq!(error(con, &format!("RL.EXPLAIN {line}")), inner, "{line}");
        assert_eq!(error(con, &format!("RL.EXPLAIN {}", line.strip_prefix("RL.").unwrap())), inner, "{line}");
    }
    // The server counts the arguments of other calls. Here, the parser says which one is missing.
    assert_eq!(error(con, "RL.EXPLAIN RL.GCRA k 15"), "ERR syntax error: count is missing");
    let arity = "ERR wrong number of arguments for 'rl.ask' command";
    assert_eq!(error(con, "RL.EXPLAIN RL.ASK k"), arity);
    assert_eq!(error(con, "RL.ASK k"), arity);
    assert_eq!(error(con, "RL.EXPLAIN RL.GCRA"), "ERR wrong number of arguments for 'rl.explain' command");
}

#[test]
fn other_commands_are_an_error_that_names_those_that_are_explained() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let explained = "RL.EXPLAIN explains RL.MULTI, RL.ASK, RL.SKETCH and the limiters: TOKENBUCKET, LEAKYBUCKET, GCRA, \
                     FIXEDWINDOW, CALENDAR, SLIDINGWINDOW, SLIDINGLOG, UNIFORM, SMOOTH, CONCURRENT, PENALTY";
    for command in ["RL.SHED", "RL.THROTTLE", "RL.PEEK", "RL.ASKPEEK", "RL.EXPLAIN", "GET", "RL.", "rl.gcr"] {
        let told = error(con, &format!("RL.EXPLAIN {command} k 1 1 1s"));
        assert_eq!(told, format!("ERR syntax error near '{command}': {explained}"));
    }
}

#[test]
fn a_hold_without_room_is_an_error() {
    let server = Server::start(&["--ratelimit.max-holds", "1"]);
    let con = &mut server.connection();
    text(con, "RL.GCRA k 9 1 1h HOLD a 1h");
    for line in ["RL.GCRA k 9 1 1h HOLD b 1h", "RL.MULTI 1 k HOLD b 1h LIMIT GCRA 9 1 1h"] {
        assert_eq!(error(con, &format!("RL.EXPLAIN {line}")), "ERR too many holds");
        assert_eq!(error(con, line), "ERR too many holds");
    }
}
