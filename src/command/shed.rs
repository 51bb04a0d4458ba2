//! `RL.SHED key utilization [options]`: reports how busy the workers are, and throws the dice for the caller.

use crate::limit::{Amount, Error, State, parse_shed};
use crate::server::{Access, Call, Command, Counter, Key, Keys, Outcome, Reply, chance, clock};

pub struct Shed;

impl Command for Shed {
    const NAME: &'static str = "SHED";
    const SYNTAX: &'static str =
        "key utilization [GOOD good] [BAD bad] [DELAY delay] [RAMP ramp] [TIER tier OF of] [AT at]";
    const SUMMARY: &'static str = "Sheds load with a chance that grows while workers are overloaded";
    const COMPLEXITY: &'static str = "O(1)";
    const FLAGS: &'static str = "write deny-oom fast";
    const KEYS: Keys = Keys::Update;

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let (shed, utilization, at) = call.parse(2.., parse_shed)?;
        let clock = clock();
        let now = at.unwrap_or(clock);
        let mut key = Key::<Amount>::open(call, 1, Access::Change)?;
        key.change(shed.fresh(now), |amount, out| {
            Amount::encode_change(&shed.report(amount, now, utilization), out);
        })?;
        let shed_chance = key.state().map_or(0.0, |amount| shed.chance(amount));
        let last = key.state().map_or(now, State::last);
        key.commit(clock.max(now).max(last), shed.silence());
        // Random bytes are dear: no dice where nothing is shed.
        let limited = shed_chance > 0.0 && chance() < shed_chance;
        call.decided(1, Counter::Shed, if limited { Outcome::Refused } else { Outcome::Admitted });
        Ok(Reply::Chance(limited, shed_chance))
    }
}
