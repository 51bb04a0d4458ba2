//! Requests with several limits: the exact errors, the keys that the server finds in them, and how long they may be.

use crate::support::{Server, WRONG_TYPE, call_bytes, error, error_line, ints, kind_of_error, multi, text};

#[test]
fn what_is_wrong_is_told_and_changes_nothing() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    multi(con, "RL.MULTI 1 several LIMIT GCRA 9 1 1000s LIMIT FIXEDWINDOW 5 1000s");
    ints(con, "RL.GCRA alone 9 1 1000s");
    text(con, "RL.SHED shed 0.5");
    text(con, "SET text x");
    let digest = text(con, "DEBUG DIGEST");
    let syntax = |text: &str| format!("ERR syntax error{text}");
    let many = (0..65).map(|i| format!("LIMIT GCRA 1 1 {}ms", 1000 + i)).collect::<Vec<_>>().join(" ");
    let keys = (0..33).map(|i| format!("key{i}")).collect::<Vec<_>>().join(" ");
    let arity = |name: &str| format!("ERR wrong number of arguments for '{name}' command");
    for (line, expected) in [
        ("RL.MULTI 1 k", arity("rl.multi")),
        ("RL.MULTI 1 k LIMIT", arity("rl.multi")),
        ("RL.MULTI 1 k COST 1", arity("rl.multi")),
        ("RL.MULTI 1 k FORCE", arity("rl.multi")),
        ("RL.MULTI 1 k LIMIT GCRA 1 1 1s LIMIT", syntax(": limiter is missing (LIMIT 2)")),
        ("RL.MULTI 2 k LIMIT", arity("rl.multi")),
        ("RL.MULTI 1 k LIMIT GCRA 1 1", syntax(": period is missing (LIMIT 1)")),
        ("RL.MULTIPEEK 1 k", arity("rl.multipeek")),
        ("RL.MULTI 0 k LIMIT GCRA 1 1 1s", "ERR numkeys must be an integer from 1 to 64; got '0'".into()),
        ("RL.MULTI 65 k LIMIT GCRA 1 1 1s", "ERR numkeys must be an integer from 1 to 64; got '65'".into()),
        ("RL.MULTI x k LIMIT GCRA 1 1 1s", "ERR numkeys must be an integer from 1 to 64; got 'x'".into()),
        ("RL.MULTI 2 k k LIMIT GCRA 1 1 1s", "ERR keys must differ".into()),
        ("RL.MULTI 1 k COST 1 FORCE x", syntax(" near 'x'")),
        ("RL.MULTI 1 k GCRA 1 1 1s", syntax(" near 'GCRA': a limit begins with LIMIT")),
        ("RL.MULTI 1 k PARTIAL LIMIT GCRA 1 1 1s", syntax(": PARTIAL is not for RL.MULTI")),
        ("RL.MULTI 1 k RESERVE LIMIT GCRA 1 1 1s", syntax(": RESERVE is not for RL.MULTI")),
        ("RL.MULTI 1 k LIMIT GCRA 1 1 1s FORCE", syntax(": FORCE belongs before the first LIMIT (LIMIT 1)")),
        ("RL.MULTI 1 k LIMIT GCRA 1 1 1s RESERVE", syntax(": RESERVE is not for RL.MULTI (LIMIT 1)")),
        (
            "RL.MULTI 1 k LIMIT GCRA 1 1 1s AT 1700002800000000",
            syntax(": AT belongs before the first LIMIT (LIMIT 1)"),
        ),
        ("RL.MULTI 1 k LIMIT GCRA 1 1 1s ON 1 ON 1", syntax(": ON is given twice (LIMIT 1)")),
        ("RL.MULTI 1 k ON 1 LIMIT GCRA 1 1 1s NOSUCH", syntax(": ON belongs in a LIMIT")),
        ("RL.MULTI 1 k LIMIT NOSUCH 1 1 1000", syntax(" near 'NOSUCH' (LIMIT 1)")),
        ("RL.MULTI 1 k LIMIT SHED 0.5", syntax(": SHED is not for RL.MULTI (LIMIT 1)")),
        (
            "RL.MULTI 1 k LIMIT SLIDINGLOG 5 1s COUNTREFUSED",
            syntax(": COUNTREFUSED is not for RL.MULTI (LIMIT 1)"),
        ),
        ("RL.MULTI 1 k FORCE LIMIT CONCURRENT 5 1s id", syntax(": FORCE is not for CONCURRENT (LIMIT 1)")),
        ("RL.MULTI 1 k FORCE LIMIT SMOOTH 5 1s", syntax(": FORCE is not for SMOOTH (LIMIT 1)")),
        (
            "RL.MULTIREFUND 1 k LIMIT CONCURRENT 5 1s id",
            syntax(": CONCURRENT is not for RL.MULTIREFUND (LIMIT 1)"),
        ),
        ("RL.MULTIREFUND 1 k FORCE LIMIT GCRA 1 1 1s", syntax(": FORCE is not for RL.MULTIREFUND")),
        ("RL.MULTIPEEK 1 k FORCE LIMIT GCRA 1 1 1s", syntax(": FORCE is not for RL.MULTIPEEK")),
        // Two equal ones, also where only one of them says on which key.
        (
            "RL.MULTI 1 k LIMIT GCRA 1 1 1s LIMIT GCRA 2 2 1s",
            syntax(": GCRA of 1s twice on one key (LIMIT 2)"),
        ),
        (
            "RL.MULTI 2 k l LIMIT GCRA 1 1 1s LIMIT GCRA 2 2 1s ON 2",
            syntax(": GCRA of 1s twice on one key (LIMIT 2)"),
        ),
        (
            "RL.MULTI 2 k l LIMIT GCRA 1 1 1s ON 3",
            "ERR ON must be an integer from 1 to 2; got '3' (LIMIT 1)".into(),
        ),
        (
            "RL.MULTI 2 k l LIMIT GCRA 1 1 1s ON 0",
            "ERR ON must be an integer from 1 to 2; got '0' (LIMIT 1)".into(),
        ),
        ("RL.MULTI 2 k l ON 1 LIMIT GCRA 1 1 1s", syntax(": ON belongs in a LIMIT")),
        ("RL.MULTI 1 k LIMIT GCRA 1 1 0", "ERR period must be from 1ms to 36500d; got '0' (LIMIT 1)".into()),
        (&format!("RL.MULTI 1 k {many}"), "ERR at most 64 pairs of a limit and a key".into()),
        (
            &format!("RL.MULTI 33 {keys} LIMIT GCRA 1 1 1s LIMIT FIXEDWINDOW 1 1s"),
            "ERR at most 64 pairs of a limit and a key".into(),
        ),
        // The last of them is why nothing is charged.
        ("RL.MULTI 3 new several text LIMIT GCRA 9 1 1000s", WRONG_TYPE.into()),
        ("RL.MULTI 2 new shed LIMIT GCRA 9 1 1000s", WRONG_TYPE.into()),
        (
            "RL.MULTI 2 alone new FORCE COST 9007199254740991 LIMIT TOKENBUCKET 1 1 1s ON 2 COST 1 LIMIT GCRA 9 1 1000s",
            "ERR limit would take too long to refill (LIMIT 2)".into(),
        ),
        ("RL.SHED several 0.5", WRONG_TYPE.into()),
    ] {
        assert_eq!(kind_of_error(error(con, line)), expected, "{line}");
        assert_eq!(text(con, "DEBUG DIGEST"), digest, "{line}");
    }
}

#[test]
fn the_server_finds_the_keys() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let keys = text(con, "COMMAND GETKEYS RL.MULTI 2 a b LIMIT GCRA 1 1 1s ON 1");
    assert_eq!(keys, "[a, b]");
    // A number that cannot be right names none: the error is the command's own, on a cluster too.
    for wrong in ["5", "0", "-1", "x"] {
        error(con, &format!("COMMAND GETKEYS RL.MULTI {wrong} a b LIMIT"));
    }
    let flags = text(con, "COMMAND GETKEYSANDFLAGS RL.MULTIPEEK 1 a LIMIT GCRA 1 1 1s");
    assert_eq!(flags, "[[a, [RO, access]]]");
}

#[test]
fn a_call_of_a_megabyte_is_refused_before_it_costs_anything() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let keys: Vec<String> = (0..64).map(|i| format!("key{i}")).collect();
    let mut words = vec!["RL.MULTIPEEK".to_string(), "64".into()];
    words.extend(keys);
    for i in 1..=40_000 {
        words.extend(format!("LIMIT GCRA 1 1 {i}ms").split(' ').map(String::from));
    }
    let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    text(con, "SLOWLOG RESET");
    text(con, "CONFIG SET slowlog-log-slower-than 1000000");
    let refused = call_bytes(con, &words).unwrap_err();
    assert_eq!(error_line(&refused), "ERR at most 64 pairs of a limit and a key");
    assert_eq!(text(con, "SLOWLOG LEN"), "0", "it took less than a second");
}
