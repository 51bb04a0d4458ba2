//! All that a server holds, in a form that can be compared.

use std::collections::{BTreeMap, BTreeSet};

use redis::{Connection, Value};

use crate::{Server, call, dump, simple, text};

/// By database and name: what `DUMP` tells, in hex, and `PEXPIRETIME`. Of the server's own types the digest, as
/// their dumps depend on how they came about.
pub type Contents = BTreeMap<(u8, String), (String, String)>;

pub fn contents(server: &Server) -> Contents {
    let con = &mut server.connection();
    let mut contents = Contents::new();
    for db in [0, 1] {
        text(con, &format!("SELECT {db}"));
        let Value::Array(keys) = call(con, &["KEYS", "*"]).unwrap() else { panic!("KEYS replies an array") };
        for key in keys.iter().map(simple) {
            let held = held(con, &key);
            contents.insert((db, key), held);
        }
    }
    contents
}

pub fn held(con: &mut Connection, key: &str) -> (String, String) {
    let content = match dump(con, key) {
        Value::BulkString(bytes) if text(con, &format!("TYPE {key}")).starts_with("ratelimit") => hex(&bytes),
        Value::BulkString(_) => text(con, &format!("DEBUG DIGEST-VALUE {key}")),
        _ => "missing".to_string(),
    };
    (content, text(con, &format!("PEXPIRETIME {key}")))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

/// Panics with the first keys that differ.
pub fn expect_same(found: &Contents, expected: &Contents, who: &str) {
    let keys: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    let differ: Vec<_> = keys.into_iter().filter(|key| found.get(*key) != expected.get(*key)).collect();
    let first = differ.iter().take(3).map(|key| (key, found.get(*key), expected.get(*key)));
    assert!(
        differ.is_empty(),
        "{who}: {} of {} keys differ, such as {:#?}",
        differ.len(),
        expected.len(),
        first.collect::<Vec<_>>()
    );
}
