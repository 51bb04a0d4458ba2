//! What a reply promises, by the command: its shape, and figures that agree with each other.

use redis::Value;

use crate::support::fuzz::grammar::Command;
use crate::support::fuzz::probe::Seen;
use crate::support::fuzz::request::Request;
use crate::support::simple;

/// The five integers, and the sixth where a part may be granted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decision {
    pub limited: i64,
    pub limit: i64,
    pub remaining: i64,
    pub retry: i64,
    pub reset: i64,
    pub granted: Option<i64>,
}

/// The shapes that replies have.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Shape {
    Decision,
    /// A decision, and whether something was held.
    Settled,
    Several,
    /// Six integers of a policy, and with `FULL` the answer of each limit on each key.
    Asked,
    /// With the number of keys in which something was held.
    SeveralSettled,
    /// Limited or not, and the chance.
    Shed,
    Flag,
    /// At least 0.
    Count,
    /// Of a queue: where it went, or nil.
    Place,
    Map,
    Lines,
    Ok,
    /// Of a command that is not known here.
    Any,
}

fn shape(command: &Command) -> Shape {
    match command.name.as_str() {
        _ if command.limiter().is_some() => Shape::Decision,
        "RL.PEEK" | "RL.REFUND" | "RL.THROTTLE" | "CL.THROTTLE" => Shape::Decision,
        "RL.SETTLE" => Shape::Settled,
        "RL.MULTI" | "RL.MULTIPEEK" | "RL.MULTIREFUND" => Shape::Several,
        "RL.MULTISETTLE" => Shape::SeveralSettled,
        "RL.ASK" | "RL.ASKPEEK" | "RL.ASKREFUND" | "RL.ASKSETTLE" => Shape::Asked,
        "RL.SHED" => Shape::Shed,
        "RL.RELEASE" | "RL.RENEW" => Shape::Flag,
        "RL.MULTIRELEASE" => Shape::Count,
        "RL.XADD" | "RL.LPUSH" | "RL.RPUSH" => Shape::Place,
        "RL.INFO" => Shape::Map,
        "RL.HELP" => Shape::Lines,
        "RL.APPLY" => Shape::Ok,
        _ => Shape::Any,
    }
}

/// Checks a reply that is no error, and gives back what was decided: for all, and for each where there are several.
pub fn decisions(seen: &Seen, command: &Command) -> Vec<Decision> {
    let shape = shape(command);
    let good = match (shape, &seen.reply) {
        (Shape::Decision, reply) => match decision(reply) {
            Some(one) => {
                check(seen, &one, command);
                return vec![one];
            }
            None => false,
        },
        (Shape::Settled, reply) => match decision(reply) {
            Some(one @ Decision { granted: Some(held @ 0..=1), .. }) => {
                check(seen, &one, command);
                check_settled(seen, &seen.words[1..2], held);
                return vec![one];
            }
            _ => false,
        },
        (Shape::SeveralSettled, Value::Array(parts)) => match parts.as_slice() {
            [all, pairs, Value::Int(keys @ 0..)] => {
                let count: usize = std::str::from_utf8(&seen.words[1]).unwrap().parse().unwrap();
                check_settled(seen, &seen.words[2..2 + count], *keys);
                return several(seen, &[all.clone(), pairs.clone()], command);
            }
            _ => false,
        },
        (Shape::Several, Value::Array(parts)) => return several(seen, parts, command),
        (Shape::Asked, reply) => match asked(reply) {
            Some((all, pairs)) => {
                // The sixth integer is no grant.
                let sixth = all.granted.unwrap_or(-1);
                let all = Decision { granted: None, ..all };
                for one in [all].iter().chain(&pairs) {
                    check(seen, one, command);
                }
                let most = if pairs.is_empty() { 64 } else { i64::try_from(pairs.len()).unwrap() };
                seen.insist((0..=most).contains(&sixth), "the sixth integer must be the number of a pair");
                return [vec![all], pairs].concat();
            }
            None => false,
        },
        (Shape::Shed, Value::Array(two)) => match two.as_slice() {
            [Value::Int(0 | 1), chance] => {
                let chance = match chance {
                    Value::Double(chance) => *chance,
                    chance => simple(chance).parse().unwrap_or(f64::NAN),
                };
                (0.0..=1.0).contains(&chance)
            }
            _ => false,
        },
        (Shape::Flag, reply) => matches!(reply, Value::Int(0 | 1)),
        (Shape::Count, reply) => matches!(reply, Value::Int(0..)),
        (Shape::Place, reply) => matches!(reply, Value::Nil | Value::Int(1..) | Value::BulkString(_)),
        (Shape::Map, reply) => matches!(reply, Value::Nil | Value::Map(_) | Value::Array(_)),
        (Shape::Lines, Value::Array(lines)) => !lines.is_empty(),
        (Shape::Ok, reply) => simple(reply) == "OK",
        (Shape::Any, _) => true,
        _ => false,
    };
    seen.insist(good, &format!("the reply must have the shape {shape:?}"));
    Vec::new()
}

fn decision(reply: &Value) -> Option<Decision> {
    let Value::Array(elements) = reply else { return None };
    let ints: Vec<i64> = elements
        .iter()
        .map(|element| if let Value::Int(int) = element { Some(*int) } else { None })
        .collect::<Option<_>>()?;
    let [limited, limit, remaining, retry, reset, granted @ ..] = ints.as_slice() else { return None };
    let granted = match granted {
        [] => None,
        [granted] => Some(*granted),
        _ => return None,
    };
    Some(Decision {
        limited: *limited,
        limit: *limit,
        remaining: *remaining,
        retry: *retry,
        reset: *reset,
        granted,
    })
}

/// The answer of a policy: for all, and for each pair if they were asked for.
fn asked(reply: &Value) -> Option<(Decision, Vec<Decision>)> {
    let Value::Array(parts) = reply else { return None };
    match parts.as_slice() {
        [all, Value::Array(pairs)] => {
            let pairs = pairs.iter().map(decision).collect::<Option<Vec<_>>>()?;
            decision(all).filter(|all| all.granted.is_some()).map(|all| (all, pairs))
        }
        _ => decision(reply).filter(|all| all.granted.is_some()).map(|all| (all, Vec::new())),
    }
}

/// What holds of any decision.
fn check(seen: &Seen, one: &Decision, command: &Command) {
    let seconds = command.name.ends_with("THROTTLE");
    seen.insist(matches!(one.limited, 0 | 1), "limited must be 0 or 1");
    seen.insist(0 <= one.remaining && one.remaining <= one.limit, "remaining must be 0 to limit");
    seen.insist(0 <= one.reset, "reset must not be negative");
    match (one.limited, one.retry) {
        (0, -1) if seconds => {}
        (0, 0..) if !seconds => {}
        // Who is refused must wait, or will never be admitted.
        (1, -1 | 1..) => {}
        _ => seen.fail("retry must be a time to wait, or -1 for never"),
    }
    if let Some(granted) = one.granted {
        let refused = one.limited == 1;
        seen.insist(granted >= 0 && (!refused || granted == 0), "who is refused must be granted 0");
    }
}

/// What holds of a settlement: it changes the keys, or nothing was held.
fn check_settled(seen: &Seen, keys: &[Vec<u8>], held: i64) {
    seen.insist(held > 0 || seen.changed_nothing(), "a settlement of nothing must change nothing");
    // Not all of its keys may have been looked at.
    let looked_at = seen.lasts(0) && keys.iter().all(|key| seen.keys.contains(key));
    seen.insist(held == 0 || !looked_at || !seen.changed_nothing(), "what is settled must end");
}

/// The answer for all must be that of the pairs taken together.
fn several(seen: &Seen, parts: &[Value], command: &Command) -> Vec<Decision> {
    let [all, Value::Array(pairs)] = parts else { seen.fail("the reply must be two arrays") };
    let (Some(all), Some(pairs)) = (decision(all), pairs.iter().map(decision).collect::<Option<Vec<_>>>())
    else {
        seen.fail("all must be five integers")
    };
    for one in [all].iter().chain(&pairs) {
        check(seen, one, command);
    }
    // Limits in the shadow are no part of it, unless there are no others; then nothing is refused.
    let shadows = shadows(&seen.words);
    let only_shadows = shadows.iter().all(|shadow| *shadow);
    let told = pairs.iter().zip(&shadows).filter(|(_, shadow)| only_shadows || !**shadow);
    let told: Vec<Decision> = told.map(|(pair, _)| *pair).collect();
    seen.insist(shadows.len() == pairs.len(), "each pair must answer");
    let tightest = told.iter().map(|pair| pair.remaining).min().unwrap_or(-1);
    let first = told.iter().find(|pair| pair.remaining == tightest);
    let refused = told.iter().filter(|pair| pair.limited == 1 && !only_shadows).map(|pair| pair.retry);
    let refused: Vec<i64> = refused.collect();
    let waits = told.iter().map(|pair| if only_shadows { 0 } else { pair.retry });
    let retry = match refused.as_slice() {
        [] => waits.max(),
        retries if retries.contains(&-1) => Some(-1),
        retries => retries.iter().copied().max(),
    };
    seen.insist(all.limited == i64::from(!refused.is_empty()), "all are limited if one is");
    seen.insist(
        first.map(|pair| (pair.limit, pair.remaining)) == Some((all.limit, all.remaining)),
        "the tightest must tell",
    );
    seen.insist(retry == Some(all.retry), "the longest wait must count");
    seen.insist(told.iter().map(|pair| pair.reset).max() == Some(all.reset), "the longest reset must count");
    [vec![all], pairs].concat()
}

/// Whether each pair of a limit and a key is in the shadow, in the order of the reply.
fn shadows(words: &[Vec<u8>]) -> Vec<bool> {
    let keys: usize = std::str::from_utf8(&words[1]).unwrap().parse().unwrap();
    let limits = words[2 + keys..].split(|word| word.eq_ignore_ascii_case(b"LIMIT")).skip(1);
    let of_limit = |limit: &[Vec<u8>]| {
        let says = |token: &[u8]| limit.iter().any(|word| word.eq_ignore_ascii_case(token));
        vec![says(b"SHADOW"); if says(b"ON") { 1 } else { keys }]
    };
    limits.flat_map(of_limit).collect()
}

/// What a limiter's own command must do for the cost that it was asked for.
pub fn check_cost(request: &Request, seen: &Seen, decision: Decision, limiter: &str) {
    let cost = i64::try_from(request.number("COST").unwrap_or(1)).unwrap();
    let refused = decision.limited == 1;
    if cost == 0 {
        // With PARTIAL nothing is asked for and nothing granted.
        seen.insist(!refused && decision.retry == 0, "a look must be admitted at once");
        seen.insist(seen.changed_nothing(), "a look must change nothing");
    }
    // Asking again for a lease that ends no later changes nothing; nor does a debt that is full, nor an id that is held.
    let holds = request.says("HOLD");
    let may_change_nothing = limiter == "CONCURRENT" || request.says("FORCE") || holds;
    if !refused && cost > 0 && !may_change_nothing && seen.lasts(0) {
        seen.insist(!seen.changed_nothing(), "what is admitted must be charged");
    }
    let most = if request.says("PARTIAL") { cost.min(1) } else { cost };
    if refused && limiter != "SMOOTH" {
        let (never, is_over) = (decision.retry == -1, most > decision.limit);
        // An adaptive limit can grow.
        let as_promised = if request.says("ADAPT") { is_over || !never } else { never == is_over };
        seen.insist(as_promised, "never is for what is over the limit");
    }
    let waits = ["LEAKYBUCKET", "SMOOTH"].contains(&limiter) || request.says("RESERVE");
    seen.insist(refused || waits || decision.retry == 0, "only who shapes may be told to wait");
    // The reply to an id that is held has what is held for the limit.
    if let Some(token) = decision.granted.filter(|_| request.says("FENCE")) {
        seen.insist((token > 0) == (!refused && cost > 0), "who has a lease has a token, and nobody else");
    } else if let Some(granted) = decision.granted.filter(|_| !holds || !seen.changed_nothing()) {
        seen.insist(granted <= cost && (refused || cost == 0 || granted > 0), "a part must be granted");
    }
}
