//! Random policies, their limits in the words of `RL.MULTI`, and which pair binds.

use std::fmt::Write;

use crate::support::dice::Dice;
use crate::support::families::{FAMILIES, Family};

pub struct RandomLimit {
    family: &'static Family,
    parameters: &'static str,
    on: Option<u64>,
    cost: Option<u64>,
    shadow: bool,
}

/// The limits of a policy.
pub struct RandomPolicy {
    limits: Vec<RandomLimit>,
    /// Whether `SHADOW` stands before the first limit.
    shadow: bool,
}

impl RandomPolicy {
    /// One to six limits. Some are the same limit twice.
    pub fn new(dice: &mut Dice) -> RandomPolicy {
        let limits = (0..=dice.below(6)).map(|_| RandomLimit::new(dice)).collect();
        RandomPolicy { limits, shadow: dice.one_in(10) }
    }

    /// The words of `RL.POLICY SET` after the name.
    pub fn words(&self) -> String {
        let shadow = if self.shadow { "SHADOW" } else { "" };
        self.limits.iter().fold(shadow.into(), |words, limit| words + &limit.words("", limit.shadow))
    }

    /// The same limits in the words of `RL.MULTI`, with this id of leases.
    pub fn for_multi(&self, id: &str) -> String {
        let words = |limit: &RandomLimit| limit.words(id, limit.shadow || self.shadow);
        self.limits.iter().map(words).collect()
    }

    /// The least number of keys.
    pub fn least_keys(&self) -> u64 {
        self.limits.iter().filter_map(|limit| limit.on).max().unwrap_or(1)
    }

    pub fn has_leases(&self) -> bool {
        self.limits.iter().any(|limit| limit.family.limiter == "CONCURRENT")
    }

    /// The number of the pair that binds, from the replies alone, as the contract has it. `pairs` has the five integers
    /// of each pair.
    pub fn binding(&self, keys: u64, combined: &[i64], pairs: &[Vec<i64>]) -> i64 {
        let candidates = self.limits_of(keys, pairs).map(|(_, limit)| limit).zip(pairs).zip(1..).filter_map(
            |((limit, pair), number)| {
                let refuses = pair[0] == 1;
                let enters = !limit.shadow && !self.shadow && (refuses || limit.family.limiter != "PENALTY");
                enters.then_some((pair, number))
            },
        );
        let mut best: Option<(i64, i64)> = None;
        for (pair, number) in candidates {
            let tightness = match (combined[0], pair[0], pair[3]) {
                (0, 0, _) => -pair[2],
                // In a refused call, a pair that admits does not bind.
                (1, 0, _) => continue,
                (1, 1, -1) => i64::MAX,
                (1, 1, retry) => retry,
                (_, _, _) => panic!("{combined:?} does not fit {pairs:?}"),
            };
            if best.is_none_or(|(least, _)| tightness > least) {
                best = Some((tightness, number));
            }
        }
        best.map_or(0, |(_, number)| number)
    }
}

impl RandomPolicy {
    /// The limit of each pair, and its number.
    fn limits_of(&self, keys: u64, pairs: &[Vec<i64>]) -> impl Iterator<Item = (usize, &RandomLimit)> {
        let limits = (1..).zip(&self.limits).flat_map(move |(number, limit)| {
            let count = if limit.on.is_some() { 1 } else { keys };
            (0..count).map(move |_| (number, limit))
        });
        assert_eq!(limits.clone().count(), pairs.len());
        limits
    }

    /// The error of the first limit that never admits its cost. `pairs` has the five integers of each pair on fresh keys.
    pub fn never(&self, keys: u64, pairs: &[Vec<i64>]) -> Option<String> {
        let mut never = self.limits_of(keys, pairs).zip(pairs).filter(|(_, pair)| pair[3] == -1);
        never.next().map(|((number, limit), pair)| {
            let cost = limit.cost.unwrap_or(1);
            format!("ERR COST {cost} is above the limit {} (LIMIT {number})", pair[1])
        })
    }
}

impl RandomLimit {
    fn new(dice: &mut Dice) -> RandomLimit {
        // Several limits of a call cannot count refused calls.
        let family = loop {
            let family = dice.pick(&FAMILIES);
            if family.key != "hammered" {
                break family;
            }
        };
        RandomLimit {
            family,
            parameters: dice.pick::<&str>(family.parameters),
            on: dice.one_in(4).then(|| 1 + dice.below(3)),
            cost: *dice.pick(&[None, None, None, Some(0), Some(1), Some(2), Some(9)]),
            shadow: dice.one_in(6),
        }
    }

    /// A policy does not have the ids of leases, so with `id` empty there is none.
    fn words(&self, id: &str, shadow: bool) -> String {
        let parameters = match id {
            "" => self.parameters.replace(" #", ""),
            id => self.parameters.replace('#', id),
        };
        let mut words = format!(" LIMIT {} {parameters}", self.family.limiter);
        if let Some(on) = self.on {
            write!(words, " ON {on}").unwrap();
        }
        if let Some(cost) = self.cost {
            write!(words, " COST {cost}").unwrap();
        }
        if shadow {
            words.push_str(" SHADOW");
        }
        words
    }
}
