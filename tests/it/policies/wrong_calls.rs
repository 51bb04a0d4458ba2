//! Every way to get a call of the five commands wrong, and the exact error. None of them changes anything.

use redis::Connection;

use super::{get, policies, set};
use crate::support::harmless::{error_of, words};
use crate::support::{Server, call_bytes, error};

const LEASES: &str = "LIMIT CONCURRENT 5 1h LIMIT GCRA 9 10 1s";
/// A call that makes the key `k`, so that errors are tried with a key in use, too.
const VALID: &str = "RL.GCRA k 9 10 1000s";

fn arity(command: &str) -> String {
    format!("ERR wrong number of arguments for '{}' command", command.to_lowercase())
}

fn syntax(text: &str) -> String {
    format!("ERR syntax error{text}")
}

fn server() -> (Server, Connection) {
    let server = Server::start(&[]);
    let mut con = server.connection();
    set(&mut con, "api LIMIT GCRA 9 10 1s LIMIT FIXEDWINDOW 99 1h COST 2");
    set(&mut con, &format!("leases {LEASES}"));
    (server, con)
}

fn expect(con: &mut Connection, line: &str, expected: &str) {
    let before = (policies(con), get(con, "api"));
    assert_eq!(error_of(con, VALID, &words(line)), expected, "{line}");
    assert_eq!((policies(con), get(con, "api")), before, "{line} changed a policy");
}

#[test]
fn wrong_words_and_numbers_of_words_after_rl_policy() {
    let (_server, mut con) = server();
    let con = &mut con;
    expect(con, "RL.POLICY", &arity("RL.POLICY"));
    for line in [
        "GET",
        "GET api more",
        "DEL",
        "DEL api more",
        "STATS",
        "STATS api more",
        "LIST api",
        "LOAD file",
        "SAVE file",
        "HELP me",
        "APPLY",
        "APPLY DEL",
    ] {
        let subcommand = line.split(' ').next().unwrap();
        expect(con, &format!("RL.POLICY {line}"), &arity(&format!("RL.POLICY|{subcommand}")));
    }
    for word in ["api", "PUT"] {
        let expected = format!("ERR unknown subcommand '{word}'. Try RL.POLICY HELP.");
        expect(con, &format!("RL.POLICY {word} LIMIT GCRA 1 1 1s"), &expected);
    }
    for line in ["SET api VERSION 9 LIMIT UNIFORM 1s", "DEL api", "ALL x"] {
        let words: Vec<&[u8]> = line.splitn(2, ' ').map(str::as_bytes).collect();
        let words = [&[&b"RL.POLICY"[..], b"APPLY"], &words[..]].concat();
        let told = call_bytes(con, &words).map_err(|error| crate::support::error_line(&error));
        assert_eq!(told, Err("ERR RL.POLICY APPLY is for replicas and the AOF".into()), "{line}");
    }
    for (line, expected) in [
        ("SET", ": name is missing"),
        ("SET api", ": LIMIT is missing"),
        ("SET api LIMIT", ": limiter is missing (LIMIT 1)"),
        ("SET api BOGUS LIMIT GCRA 1 1 1s", " near 'BOGUS'"),
        ("SET api VERSION", ": VERSION needs a value"),
        ("SET api VERSION 1 VERSION 2 LIMIT GCRA 1 1 1s", ": VERSION is given twice"),
        ("SET api LIMIT GCRA 1 1 1s VERSION 3", ": VERSION belongs before the first LIMIT (LIMIT 1)"),
        ("SET api LIMIT GCRA 1 1 1s KEYS k", ": KEYS is not for RL.POLICY (LIMIT 1)"),
        ("SET api LIMIT GCRA 1 1 1s FULL", ": FULL is not for RL.POLICY (LIMIT 1)"),
    ] {
        expect(con, &format!("RL.POLICY {line}"), &syntax(expected));
    }
    expect(con, "RL.POLICY SET LIMIT GCRA 1 1 1s", &syntax(" near 'GCRA': a limit begins with LIMIT"));
    expect(con, "RL.POLICY LOAD", "ERR the setting ratelimit.policy-file is empty");
    expect(con, "RL.POLICY SAVE", "ERR the setting ratelimit.policy-file is empty");
}

#[test]
fn too_few_words_after_the_four_that_ask() {
    let (_server, mut con) = server();
    let con = &mut con;
    for command in ["RL.ASK", "RL.ASKPEEK", "RL.ASKREFUND", "RL.ASKSETTLE"] {
        for words in ["", "k"] {
            expect(con, &format!("{command} {words}"), &arity(command));
        }
    }
    for words in ["k api", "k api id", "k api id COST"] {
        expect(con, &format!("RL.ASKSETTLE {words}"), &arity("RL.ASKSETTLE"));
    }
    expect(con, "RL.ASKSETTLE k api id FULL FULL", &syntax(": FULL is given twice"));
    expect(con, "RL.ASKSETTLE k api id KEYS l", &syntax(": COST is missing"));
}

#[test]
fn wrong_options_of_the_four_that_ask() {
    let (_server, mut con) = server();
    let con = &mut con;
    let cost = |word: &str| format!("ERR COST must be an integer from 0 to 9007199254740991; got '{word}'");
    for start in ["RL.ASK k api", "RL.ASKPEEK k api", "RL.ASKREFUND k api", "RL.ASKSETTLE k api held"] {
        let command = start.split(' ').next().unwrap();
        for (options, expected) in [
            ("COST 1 BOGUS", syntax(" near 'BOGUS'")),
            ("FULL COST", syntax(": COST needs a value")),
            ("COST x", cost("x")),
            ("COST -1", cost("-1")),
            ("COST 9007199254740992", cost("9007199254740992")),
            ("COST KEYS l", syntax(": COST needs a value")),
            ("COST 1 COST 1", syntax(": COST is given twice")),
            ("COST 1 ID", syntax(": id is missing")),
            ("COST 1 ID a ID a", syntax(": ID is given twice")),
            ("COST 1 FULL FULL", syntax(": FULL is given twice")),
            ("COST 1 AT", syntax(": AT needs a value")),
            ("COST 1 AT KEYS l", syntax(": AT needs a value")),
            ("COST 1 AT 1700000000", "ERR AT must be Unix time in microseconds; got '1700000000'".into()),
            ("COST 1 AT 1700000000000000 AT 1700000000000000", syntax(": AT is given twice")),
            ("COST 1 KEYS", syntax(": KEYS needs a value")),
            // These are of other commands, or of limits.
            ("COST 1 PARTIAL", syntax(&format!(": PARTIAL is not for {command}"))),
            ("COST 1 RESERVE", syntax(&format!(": RESERVE is not for {command}"))),
            ("COST 1 MAXWAIT 5ms", syntax(&format!(": MAXWAIT is not for {command}"))),
            ("COST 1 ON 1", syntax(&format!(": ON is not for {command}"))),
            ("COST 1 SHADOW", syntax(&format!(": SHADOW is not for {command}"))),
            ("COST 1 VERSION 1", syntax(&format!(": VERSION is not for {command}"))),
            ("COST 1 LIMIT GCRA 9 10 1s", syntax(&format!(": LIMIT is not for {command}"))),
            ("COST 1 BATCH", syntax(&format!(": BATCH is not for {command}"))),
            // Behind KEYS there are keys only, so these are two equal ones.
            ("COST 1 KEYS FULL FULL", "ERR keys must differ".into()),
            ("COST 1 KEYS l l", "ERR keys must differ".into()),
            ("COST 1 KEYS l k", "ERR keys must differ".into()),
            ("COST 1 KEYS k", "ERR keys must differ".into()),
        ] {
            expect(con, &format!("{start} {options}"), &expected);
        }
        for length in [0, 257, 10_000] {
            let id = vec![b'x'; length];
            let words = [words(start), vec![b"COST", b"1", b"ID", &id]].concat();
            let expected = "ERR id must be 1 to 256 bytes";
            assert_eq!(error_of(con, VALID, &words), expected, "{start}, {length} bytes");
        }
        for length in [1, 256] {
            let id = vec![b'x'; length];
            call_bytes(con, &[words(start), vec![b"COST", b"1", b"ID", &id]].concat()).unwrap();
        }
    }
    for command in ["RL.ASKPEEK k api", "RL.ASKREFUND k api", "RL.ASKSETTLE k api held COST 1"] {
        let name = command.split(' ').next().unwrap();
        expect(con, &format!("{command} FORCE"), &syntax(&format!(": FORCE is not for {name}")));
        expect(con, &format!("{command} HOLD a 1m"), &syntax(&format!(": HOLD is not for {name}")));
    }
    for (options, expected) in [
        ("FORCE FORCE", syntax(": FORCE is given twice")),
        ("FORCE PARTIAL", syntax(": FORCE and PARTIAL exclude each other")),
        ("HOLD", syntax(": id is missing")),
        ("HOLD a", syntax(": ttl is missing")),
        ("HOLD a KEYS l", syntax(": ttl is missing")),
        ("HOLD a 0", "ERR ttl must be from 1ms to 36500d; got '0'".into()),
        ("HOLD a 1m HOLD a 1m", syntax(": HOLD is given twice")),
    ] {
        expect(con, &format!("RL.ASK k api {options}"), &expected);
    }
    // The policy is looked up first, so that its errors are counted.
    expect(con, "RL.ASK k missing BOGUS", "ERR no such policy 'missing'");
    assert_eq!(error(con, "RL.ASK k missing"), "ERR no such policy 'missing'");
}
