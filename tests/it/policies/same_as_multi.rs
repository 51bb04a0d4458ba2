//! `RL.ASK` is `RL.MULTI` of the policy's limits, and so are the sisters: reply for reply, and key for key.
//!
//! Each call of a random policy is made twice, with equal keys: once by name, and once with all words. Which of the two
//! keys is asked by name is random, so that both ways of asking go on with what the other one left.

use std::collections::BTreeMap;

use super::random::RandomPolicy;
use super::stats;
use super::twins::{Parts, Twins};
use crate::support::dice::Dice;
use crate::support::{Server, info, text};

const ROUNDS: usize = 10;
const POLICIES: usize = 50;
const CALLS: usize = 20;

#[test]
fn asking_a_policy_is_asking_its_limits_by_rl_multi() {
    let mut outcomes = BTreeMap::new();
    for seed in 1..=ROUNDS {
        let server = Server::start(&[]);
        let mut twins = Twins::new(Dice::of(48, seed), server.connection());
        let names: Vec<String> = (0..POLICIES).map(|number| format!("policy{number}")).collect();
        let stored: Vec<&String> = names.iter().filter(|name| store_and_ask(&mut twins, name)).collect();
        compare_counters(&mut twins, &stored);
        for (outcome, count) in twins.outcomes {
            *outcomes.entry(outcome).or_insert(0) += count;
        }
    }
    println!("{outcomes:?}");
    for outcome in [
        "RL.ASK admitted",
        "RL.ASK refused",
        "RL.ASK never",
        "RL.ASK error",
        "RL.ASKPEEK admitted",
        "RL.ASKPEEK refused",
        "RL.ASKREFUND admitted",
        "RL.ASKREFUND error",
        "RL.ASKSETTLE found",
        "RL.ASKSETTLE admitted",
        "no pair binds",
        "the first pair binds",
        "another pair binds",
        "equal pairs",
        "no such limits",
        "a cost above its limit",
        "refused in shadow",
    ] {
        assert!(outcomes.get(outcome).is_some_and(|count: &u64| *count >= 30), "{outcome}: {outcomes:?}");
    }
}

/// Stores a random policy, and calls it. Returns whether there was something to store.
fn store_and_ask(twins: &mut Twins, name: &str) -> bool {
    let policy = RandomPolicy::new(&mut twins.dice);
    let stored = twins.call(&format!("RL.POLICY SET {name} {}", policy.words()));
    let keys: Vec<String> = (0..policy.least_keys()).map(|key| format!("new:{key}")).collect();
    let look = format!("RL.MULTIPEEK {} {} {}", keys.len(), keys.join(" "), policy.for_multi("id"));
    // What no call can ask is not stored.
    match (stored, twins.call(&look)) {
        (Ok(_), Ok(Parts { each, .. })) => {
            let never = policy.never(policy.least_keys(), &each.expect("each pair's integers"));
            assert_eq!(never, None, "{look}");
        }
        (Err(stored), Ok(Parts { each, .. })) => {
            let never = policy.never(policy.least_keys(), &each.expect("each pair's integers"));
            assert_eq!(Some(stored), never, "{look}");
            twins.count("a cost above its limit", 1);
            return false;
        }
        // Costs are compared with their limits first.
        (Err(stored), Err(_)) if stored.starts_with("ERR COST ") => return false,
        (Err(stored), Err(asked)) => {
            assert_eq!(stored, asked, "{look}");
            twins.count("no such limits", 1);
            return false;
        }
        (stored, asked) => panic!("{look}: {asked:?}, but {stored:?}"),
    }
    for _ in 0..CALLS {
        match twins.dice.below(24) {
            0 | 1 => twins.own_command(),
            2 => twins.replace(),
            _ => ask(twins, name, &policy),
        }
    }
    true
}

/// Makes the same call by the policy's name and with its limits.
fn ask(twins: &mut Twins, name: &str, policy: &RandomPolicy) {
    let calls = twins.calls_of(name, policy);
    let before = text(&mut twins.con, "DEBUG DIGEST");
    let asked = twins.call(&calls.ask);
    // Without the id of its leases, the call has no equal.
    let expected = calls.multi.as_ref().map_or(Err(String::new()), |multi| twins.call(multi));
    let command = calls.ask.split(' ').next().unwrap();
    match (asked, expected) {
        (Ok(Parts { combined: mut six, each, .. }), Ok(Parts { combined, each: pairs, settled })) => {
            let pairs = pairs.expect("each pair's integers");
            let sixth = six.pop().expect("six integers");
            let expected = settled.unwrap_or_else(|| policy.binding(calls.keys, &combined, &pairs));
            assert_eq!((&six, sixth), (&combined, expected), "{}", twins.told());
            assert_eq!(each, calls.full.then(|| pairs.clone()), "{}", twins.told());
            twins.count(&format!("{command} {}", outcome(&combined, settled)), 1);
            if settled.is_none() {
                count_binding(twins, sixth, &pairs);
            }
        }
        (Err(asked), Err(expected)) => {
            // Policies check some things themselves.
            let own = asked.starts_with(&format!("ERR policy '{name}' "));
            let same = asked == expected.replace("RL.MULTI", "RL.ASK");
            assert!(same || own || calls.multi.is_none(), "{asked}, not {expected}: {}", twins.told());
            assert_eq!(text(&mut twins.con, "DEBUG DIGEST"), before, "{}", twins.told());
            twins.count(&format!("{command} error"), 1);
        }
        (asked, expected) => panic!("{asked:?}, not {expected:?}: {}", twins.told()),
    }
    twins.compare_keys();
}

fn outcome(combined: &[i64], settled: Option<i64>) -> &'static str {
    match (settled, combined[0], combined[3]) {
        (Some(1..), _, _) => "found",
        (_, 1, -1) => "never",
        (_, 1, _) => "refused",
        _ => "admitted",
    }
}

fn count_binding(twins: &mut Twins, sixth: i64, pairs: &[Vec<i64>]) {
    let Some(bound) = usize::try_from(sixth - 1).ok().map(|place| &pairs[place]) else {
        return twins.count("no pair binds", 1);
    };
    twins.count(if sixth == 1 { "the first pair binds" } else { "another pair binds" }, 1);
    let equal = |pair: &&Vec<i64>| pair[0] == bound[0] && pair[2..4] == bound[2..4];
    if pairs.iter().filter(equal).count() > 1 {
        twins.count("equal pairs", 1);
    }
}

/// Both ways of asking decided the same calls, and each of them was counted for its policy.
fn compare_counters(twins: &mut Twins, names: &[&String]) {
    let mut field = |name: &str| -> u64 {
        let value = info(&mut twins.con, "ratelimit", &format!("ratelimit_{name}"));
        value.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
    };
    let asked = ["admitted", "refused"].map(|outcome| field(&format!("ask_{outcome}")));
    let multi = ["admitted", "refused"].map(|outcome| field(&format!("multi_{outcome}")));
    let in_shadow = field("shadow_refused");
    assert_eq!(asked, multi);
    let mut sums = [0; 4];
    for name in names {
        let counts = stats(&mut twins.con, name);
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    assert_eq!(sums[..2], asked);
    assert_eq!(2 * sums[2], in_shadow);
    twins.count("refused in shadow", sums[2]);
}
