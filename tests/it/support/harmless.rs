//! An error that changes nothing: not the key, not its deadline, no other key, nothing that would be saved or replicated.

use redis::{Connection, Value};

use crate::support::{call, call_bytes, error_line, info};

/// The error that `words` are answered with, checked to leave all as it is.
pub fn harmless_error(con: &mut Connection, words: &[&[u8]]) -> String {
    let before = everything(con);
    let error = match call_bytes(con, words) {
        Ok(reply) => panic!("{}: no error but {reply:?}", readable(words)),
        Err(error) => error_line(&error),
    };
    assert_eq!(everything(con), before, "{} changed something", readable(words));
    error
}

/// The words of a line as a client sends them.
pub fn words(line: &str) -> Vec<&[u8]> {
    line.split_whitespace().map(str::as_bytes).collect()
}

/// What an error must not touch: every key's value (and that there are no more of them), the deadline of `k`, and the
/// count of changes, which also grows with what is replicated.
fn everything(con: &mut Connection) -> (Vec<Value>, Option<String>) {
    let facts = [&["DEBUG", "DIGEST"][..], &["DBSIZE"], &["DUMP", "k"], &["PEXPIRETIME", "k"]];
    let facts = facts.iter().map(|words| call(con, words).expect("a fact about the data")).collect();
    (facts, info(con, "persistence", "rdb_changes_since_last_save"))
}

fn readable(words: &[&[u8]]) -> String {
    words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(" ")
}
