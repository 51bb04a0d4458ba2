//! Random policies.

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
        self.limits.iter().fold(shadow.into(), |words, limit| words + &limit.words())
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

    /// A policy does not have the ids of leases.
    fn words(&self) -> String {
        let parameters = self.parameters.replace(" #", "");
        let mut words = format!(" LIMIT {} {parameters}", self.family.limiter);
        if let Some(on) = self.on {
            write!(words, " ON {on}").unwrap();
        }
        if let Some(cost) = self.cost {
            write!(words, " COST {cost}").unwrap();
        }
        if self.shadow {
            words.push_str(" SHADOW");
        }
        words
    }
}
