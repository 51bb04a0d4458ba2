//! Calls in transactions, scripts and functions do not wait.

use redis::{Connection, Value};

use super::{Waiting, count, until_tried, waiting};
use crate::support::{Server, call, ints, simple, text};

const SCRIPT: &str = "return redis.call(unpack(ARGV))";
const LIBRARY: &str = "#!lua name=lib\n\
                       redis.register_function('run', function(_, args) return redis.call(unpack(args)) end)";

/// Runs a line within something larger, and returns its reply.
type Within = fn(&mut Connection, &str) -> Value;

const WITHIN: [Within; 3] = [
    |con, line| {
        text(con, "MULTI");
        assert_eq!(text(con, line), "QUEUED");
        match call(con, &["EXEC"]).unwrap() {
            Value::Array(mut replies) => replies.remove(0),
            other => panic!("{other:?}"),
        }
    },
    |con, line| {
        call(con, &[&["EVAL", SCRIPT, "0"], &line.split(' ').collect::<Vec<_>>()[..]].concat()).unwrap()
    },
    |con, line| {
        call(con, &["FUNCTION", "LOAD", "REPLACE", LIBRARY]).unwrap();
        call(con, &[&["FCALL", "run", "0"], &line.split(' ').collect::<Vec<_>>()[..]].concat()).unwrap()
    },
];

#[test]
fn a_call_in_a_transaction_a_script_or_a_function_is_decided_at_once() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET p LIMIT CONCURRENT 1 1h");
    ints(con, "RL.CONCURRENT k 1 1h a");
    let lines = |key: &str| {
        [
            format!("RL.CONCURRENT {key} 1 1h b BLOCK 1m"),
            format!("RL.MULTI 1 {key} BLOCK 1m LIMIT CONCURRENT 1 1h b"),
            format!("RL.ASK {key} p ID b BLOCK 1m"),
        ]
    };
    let run = |con: &mut Connection, key: &str, limited: &str| {
        for within in WITHIN {
            for line in lines(key) {
                let reply = simple(&within(con, &line));
                assert!(reply.trim_start_matches('[').starts_with(limited), "{line}: {reply}");
            }
        }
    };
    run(con, "k", "1, 1, 0, ");
    run(con, "new", "0, 1, 0, ");
    assert_eq!((waiting(con), count(con, "waited_timeout")), (0, 0));
    // Also if others wait.
    let mut first = Waiting::enter(&server, "RL.CONCURRENT k 1 1h c BLOCK 1m");
    run(con, "k", "1, 1, 0, ");
    until_tried(&server);
    assert!(first.waits());
    text(con, "RL.RELEASE k a");
    assert_eq!(first.ints()[0], 0);
}
