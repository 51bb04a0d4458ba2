//! A policy of one limit on one key does what the limiter's own commands do.

use ratelimit_engine::memory::Memory;

use super::node::{ints, stored, text};
use crate::support::SECOND;
use crate::support::dice::Dice;
use crate::support::families::{FAMILIES, Family, HELD};

const START: u64 = 4_102_444_800 * SECOND;
const CALLS: usize = 80;

#[test]
fn a_policy_of_one_limit_is_the_limiter_s_own_command() {
    let con = &Memory::new(1);
    let mut dice = Dice::new(49);
    let (mut admitted, mut refused, mut settled) = (0, 0, 0);
    // RL.MULTI does not take the one, and the other one only strikes what it refuses.
    for family in FAMILIES.iter().filter(|family| !["hammered", "banned"].contains(&family.key)) {
        for parameters in family.parameters {
            text(con, "FLUSHALL");
            text(
                con,
                &format!("RL.POLICY SET own LIMIT {} {}", family.limiter, parameters.replace(" #", "")),
            );
            let mut now = START;
            for _ in 0..CALLS {
                now += dice.below(100_000);
                let at = if dice.one_in(30) { now - 5000 * SECOND } else { now };
                let (own, asked) = pair_of_calls(&mut dice, family, parameters, at);
                let (of_own, of_asked) = (ints(con, &own), ints(con, &asked));
                assert_eq!(of_asked[..5], of_own[..5], "{asked}; {own}");
                if own.contains("SETTLE") {
                    assert_eq!(of_asked[5], of_own[5], "{asked}; {own}");
                    settled += of_own[5];
                } else {
                    assert_eq!(of_asked[5], 1, "{asked}");
                    admitted += i64::from(of_own[0] == 0);
                    refused += of_own[0];
                }
                assert_eq!(stored(con, "x"), stored(con, "y"), "{asked}; {own}");
            }
        }
    }
    println!("{admitted} admitted, {refused} refused, {settled} settled");
    assert!(admitted > 500 && refused > 500 && settled > 50);
}

/// A call of the limiter's own command, and the same call of the policy. The two keys change places now and then.
fn pair_of_calls(dice: &mut Dice, family: &Family, parameters: &str, at: u64) -> (String, String) {
    let (x, y) = if dice.one_in(2) { ("x", "y") } else { ("y", "x") };
    let id = format!("id{}", dice.below(12));
    let given_id = if family.key == "lease" { format!("ID {id}") } else { String::new() };
    let parameters = parameters.replace('#', &id);
    let held = format!("held{}", dice.below(3));
    let limit = format!("{} {parameters}", family.limiter);
    // Of a call's cost, a passage or a lease takes 1 at most; its own command takes all.
    let one_each = ["gate", "lease"].contains(&family.key);
    let cost = if one_each { 1 } else { 1 + dice.below(4) };
    let holds = FAMILIES[..HELD].iter().any(|other| other.key == family.key);
    match dice.below(12) {
        0 => (format!("RL.PEEK {x} {limit} AT {at}"), format!("RL.ASKPEEK {y} own {given_id} AT {at}")),
        1 if family.debt => (
            format!("RL.REFUND {x} {limit} COST {cost} AT {at}"),
            format!("RL.ASKREFUND {y} own COST {cost} AT {at}"),
        ),
        2 | 3 if holds => (
            format!("RL.SETTLE {x} {held} {limit} COST {cost} AT {at}"),
            format!("RL.ASKSETTLE {y} own {held} COST {cost} AT {at}"),
        ),
        4 | 5 if holds => (
            format!("RL.{} {x} {parameters} COST {cost} HOLD {held} 1m AT {at}", family.limiter),
            format!("RL.ASK {y} own COST {cost} HOLD {held} 1m AT {at}"),
        ),
        other => {
            let force = if family.debt && other == 6 { "FORCE" } else { "" };
            let cost = dice.pick(&[String::new(), "COST 0".into(), format!("COST {cost}")]).clone();
            (
                format!("RL.{} {x} {parameters} {force} {cost} AT {at}", family.limiter),
                format!("RL.ASK {y} own {given_id} {force} {cost} AT {at}"),
            )
        }
    }
}
