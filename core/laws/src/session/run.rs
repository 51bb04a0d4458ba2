//! How a session runs on any node.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::mem::take;

use super::line::{Expected, Line, Session, Step, Words};

/// A node on which sessions run: fresh, with the settings' defaults.
pub trait Node {
    /// The reply in one line, such as `[0, 10, 9, 0, 1000]`, `OK`, `(nil)` or an error.
    fn call(&mut self, words: &[&[u8]]) -> String;
    /// Makes a call of a caller that must wait; else returns its reply.
    fn enter(&mut self, caller: &str, words: &[&[u8]]) -> Result<(), String>;
    fn hang_up(&mut self, caller: &str);
    /// Those whose wait has ended since the last time, in order, with their replies. A server may not know the order.
    fn ended(&mut self) -> Vec<(String, String)>;
    fn pass(&mut self, micros: u64);
    fn set(&mut self, name: &str, value: u64);
    /// The bytes of a key.
    fn stored(&mut self, key: &str) -> Option<Vec<u8>>;
    /// The milliseconds until a key expires.
    fn expiry(&mut self, key: &str) -> Option<u64>;
    /// A number of `INFO ratelimit`.
    fn count(&mut self, name: &str) -> u64;
    /// What differs when a key has changed or something was sent to copies.
    fn state(&mut self) -> Vec<u8>;
}

/// Runs a session to its end, and returns each line that differs, and how.
pub fn run(session: &Session, node: &mut impl Node) -> Vec<String> {
    let mut ended: BTreeMap<String, String> = BTreeMap::new();
    let mut counted = BTreeMap::new();
    for Line { step, .. } in &session.lines {
        if let Step::Count(name, _) = step {
            counted.entry(name.as_str()).or_insert_with(|| node.count(name));
        }
    }
    let mut differs = Vec::new();
    for line in &session.lines {
        let mut report =
            |why: String| differs.push(format!("line {}, {}: {why}", line.number, session.title));
        // The lines that follow a line name those whose wait it has ended.
        if !matches!(line.step, Step::Ended(..)) {
            for (caller, reply) in take(&mut ended) {
                report(format!("before it, the wait of {caller} has ended: {reply}"));
            }
        }
        if let Err(why) = follow(&line.step, node, &mut ended, &counted) {
            report(why);
        }
        ended.extend(node.ended());
    }
    for (caller, reply) in ended {
        differs.push(format!("{}: at its end, the wait of {caller} has ended: {reply}", session.title));
    }
    differs
}

fn follow(
    step: &Step,
    node: &mut impl Node,
    ended: &mut BTreeMap<String, String>,
    counted: &BTreeMap<&str, u64>,
) -> Result<(), String> {
    match step {
        Step::Call(words, expected) => {
            let reply = call(node, words)?;
            let expected = match expected {
                Expected::Reply(text) => text.clone(),
                Expected::ReplyOf(other) => call(node, other)?,
            };
            equal(&reply, &expected)
        }
        Step::Waits(caller, words) => {
            node.enter(caller, &slices(words)).map_err(|reply| format!("it does not wait: {reply}"))
        }
        Step::Ended(caller, expected) => {
            let reply = ended.remove(caller).ok_or("it waits")?;
            equal(&reply, expected)
        }
        Step::HangsUp(caller) => {
            node.hang_up(caller);
            Ok(())
        }
        Step::Pass(micros) => {
            node.pass(*micros);
            Ok(())
        }
        Step::Set(name, value) => {
            node.set(name, *value);
            Ok(())
        }
        Step::Same(a, b) => {
            let [a, b] = [a, b].map(|key| node.stored(key));
            same(&a, &b)
        }
        Step::Apart(a, b) => {
            let [a, b] = [a, b].map(|key| node.stored(key));
            if a == b { Err(format!("both hold {a:?}")) } else { Ok(()) }
        }
        Step::Expires(key, expected) => same(&node.expiry(key), expected),
        Step::Count(name, expected) => {
            let before = counted.get(name.as_str()).copied().unwrap_or_default();
            same(&node.count(name).wrapping_sub(before), expected)
        }
    }
}

/// Makes a call. One that replies an error, and one that only looks, must change nothing.
fn call(node: &mut impl Node, words: &Words) -> Result<String, String> {
    let words = slices(words);
    let before = node.state();
    let reply = node.call(&words);
    if (is_error(&reply) || only_looks(&words)) && node.state() != before {
        return Err(format!("{reply}, and something has changed"));
    }
    Ok(reply)
}

fn slices(words: &Words) -> Vec<&[u8]> {
    words.iter().map(Vec::as_slice).collect()
}

fn is_error(reply: &str) -> bool {
    let code = reply.split(' ').next().unwrap_or_default();
    code.len() > 2 && code.bytes().all(|byte| byte.is_ascii_uppercase())
}

fn only_looks(words: &[&[u8]]) -> bool {
    const LOOKS: [&[u8]; 8] = [
        b"RL.PEEK",
        b"RL.MULTIPEEK",
        b"RL.ASKPEEK",
        b"RL.EXPLAIN",
        b"RL.INFO",
        b"RL.HELP",
        b"RL.TOP",
        b"EXISTS",
    ];
    let Some(name) = words.first() else { return false };
    let costs_nothing = words.windows(2).any(|pair| pair == [b"COST".as_slice(), b"0"]);
    // What a settlement costs is charged instead of its hold, and the words of a policy are for later calls.
    let is_of_another_call = name.ends_with(b"SETTLE") || *name == b"RL.POLICY";
    LOOKS.contains(name) && !words.contains(&b"RESET".as_slice()) || costs_nothing && !is_of_another_call
}

/// Whether a reply is as expected. Dots stand for any text.
fn equal(reply: &str, expected: &str) -> Result<(), String> {
    let mut rest = Some(reply);
    let mut parts = expected.split("...").peekable();
    let mut is_first = true;
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        rest = rest.and_then(|rest| match (is_first, is_last) {
            (true, true) => (rest == part).then_some(""),
            (true, false) => rest.strip_prefix(part),
            (false, true) => rest.ends_with(part).then_some(""),
            (false, false) => rest.split_once(part).map(|(_, after)| after),
        });
        is_first = false;
    }
    rest.map(|_| ()).ok_or_else(|| format!("expected {expected}, replied {reply}"))
}

fn same<T: PartialEq + Debug>(value: &T, expected: &T) -> Result<(), String> {
    if value == expected { Ok(()) } else { Err(format!("expected {expected:?}, it is {value:?}")) }
}
