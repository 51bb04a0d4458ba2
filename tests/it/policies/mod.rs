//! Policies: `RL.POLICY`, and `RL.ASK` with its sisters.

mod access;
mod asked_in_vain;
mod binds;
mod bounds;
mod cluster;
mod counters;
mod file_faults;
mod file_load;
mod file_save;
mod file_start;
mod folder;
mod garbled;
mod limit_counters;
mod random;
mod refused_at_set;
mod store;
mod survives;
mod under_load;
mod wrong_calls;

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
    let fields: Vec<&str> = reply.trim_matches(['[', ']']).split(", ").collect();
    let [
        "version",
        _,
        "admitted",
        admitted,
        "refused",
        refused,
        "shadow_refused",
        shadow,
        "errors",
        errors,
        "limits",
        ..,
    ] = fields[..]
    else {
        panic!("{reply}")
    };
    [admitted, refused, shadow, errors].map(|count| count.parse().unwrap())
}

/// The words of each limit of a policy, and how often it refused a call, and would have refused one as a shadow.
fn limit_stats(con: &mut Connection, name: &str) -> Vec<(String, [u64; 2])> {
    let reply = text(con, &format!("RL.POLICY STATS {name}"));
    let (_, limits) = reply.split_once("limits, [").expect("the field");
    let limits = limits.split("[limit, ").skip(1).map(|limit| {
        let fields: Vec<&str> = limit.split([',', ']']).map(str::trim).collect();
        let [words, "refused", refused, "shadow_refused", shadow, ..] = fields[..] else { panic!("{reply}") };
        let counts = [refused, shadow].map(|count| count.parse().unwrap());
        (words.to_string(), counts)
    });
    limits.collect()
}
