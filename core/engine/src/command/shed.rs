//! `RL.SHED key utilization [options]`: records the utilization of a worker, and sheds the call by chance.

use ratelimit_core::limiter::Amount;
use ratelimit_core::{Length, State};
use ratelimit_language::docs;
use ratelimit_language::help::Documentation;
use ratelimit_language::{Error, shed};

use super::entry::Command;
use crate::count::{Counter, Outcome};
use crate::host::Host;
use crate::key::Key;
use crate::reply::Reply;
use crate::slot::Access;

pub struct Shed;

impl Command for Shed {
    const DOCUMENTATION: Documentation = docs::SHED;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let report = call.parse(2.., shed)?;
        let clock = call.clock();
        let now = report.at.unwrap_or(clock);
        let shed = report.shed;
        let mut key = Key::open(call, 1, Access::Write)?;
        key.lone::<Amount>()?;
        key.change_lone(
            Length::NONE,
            || shed.fresh(now),
            |amount, out| {
                Amount::encode_change(&shed.report(amount, now, report.utilization), out);
            },
        )?;
        let amount = key.lone::<Amount>()?;
        let shed_chance = amount.map_or(0.0, |amount| shed.chance(amount));
        let last = amount.map_or(now, State::last);
        key.commit(clock, now.max(last), shed.silence());
        key.publish();
        drop(key);
        // Random bytes are expensive, so none are read if the chance is 0.
        let limited = shed_chance > 0.0 && chance(call.random()) < shed_chance;
        call.record(1, Counter::Shed, if limited { Outcome::Refused } else { Outcome::Admitted });
        Ok(Reply::Chance(limited, shed_chance))
    }
}

/// A number of the uniform distribution on [0, 1).
fn chance(word: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "53 bits, which an f64 holds exactly")]
    let numerator = (word >> 11) as f64;
    numerator / 2f64.powi(53)
}
