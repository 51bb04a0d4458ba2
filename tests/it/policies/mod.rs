//! Policies: `RL.POLICY`, and `RL.ASK` with its sisters.

mod access;
mod file_faults;
mod file_load;
mod file_save;
mod file_start;
mod folder;
mod garbled;
mod keys;
mod random;
mod shown;
mod survives;
mod tries;
mod under_load;

use redis::{Connection, Value};

use crate::support::{call, info, ints, simple, text};

/// Stores a policy, and returns its version.
fn set(con: &mut Connection, line: &str) -> i64 {
    ints(con, &format!("RL.POLICY SET {line}"))[0]
}

/// So many windows of different lengths, in the words of a policy.
fn windows(count: usize) -> String {
    each(1..=count, |minutes| format!(" LIMIT FIXEDWINDOW 10 {minutes}m"))
}

/// A text for each number, one after the other.
fn each(numbers: impl Iterator<Item = usize>, text: impl Fn(usize) -> String) -> String {
    numbers.map(text).collect::<Vec<_>>().concat()
}

/// The names and versions of all policies, and their digest.
fn policies(con: &mut Connection) -> (String, String) {
    (text(con, "RL.POLICY LIST"), digest(con))
}

fn digest(con: &mut Connection) -> String {
    info(con, "ratelimit_policies", "ratelimit_policies_digest").expect("the field")
}

/// The version and the words of a policy.
fn get(con: &mut Connection, name: &str) -> (u64, String) {
    match call(con, &["RL.POLICY", "GET", name]).unwrap() {
        Value::Array(fields) => match fields.as_slice() {
            [_, Value::Int(version), _, words] => (version.cast_unsigned(), simple(words)),
            other => panic!("{name}: {other:?}"),
        },
        other => panic!("{name}: {other:?}"),
    }
}

/// What the calls of a policy led to: admitted, refused, refused in shadow, errors.
fn stats(con: &mut Connection, name: &str) -> [u64; 4] {
    let reply = text(con, &format!("RL.POLICY STATS {name}"));
    ["admitted", "refused", "shadow_refused", "errors"].map(|field| numbers(&reply, field)[0])
}

/// How often each limit of a policy refused a call.
fn limit_refusals(con: &mut Connection, name: &str) -> Vec<u64> {
    let reply = text(con, &format!("RL.POLICY STATS {name}"));
    numbers(&reply, "refused").split_off(1)
}

/// The numbers behind each of the fields of this name.
fn numbers(reply: &str, field: &str) -> Vec<u64> {
    let fields: Vec<&str> = reply.split(['[', ']', ',', ' ']).filter(|word| !word.is_empty()).collect();
    fields.windows(2).filter(|pair| pair[0] == field).map(|pair| pair[1].parse().unwrap()).collect()
}
