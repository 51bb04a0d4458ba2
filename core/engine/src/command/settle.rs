//! `RL.SETTLE key id LIMITER <parameters> COST actual [AT at] [TENANT tenant]`, `RL.MULTISETTLE numkeys key [key ...] id COST actual
//! [AT at] LIMIT ...`: settle a charge that a call holds (`HOLD`), at its actual cost.

use ratelimit_core::hold::{find, held};
use ratelimit_core::state::Tenant;
use ratelimit_core::{Ask, Limiter, Time, with_limiter};
use ratelimit_language::docs;
use ratelimit_language::help::Documentation;
use ratelimit_language::{Error, NamedCall, Purpose, lease_id, multi};

use super::entry::Command;
use super::multi::{FIRST, answers, keys};
use super::refund::finish;
use crate::host::Host;
use crate::key::Key;
use crate::plan::own::look;
use crate::plan::several::Several;
use crate::reply::Reply;
use crate::slot::Access;
use crate::waiting::Turns;

pub struct Settle;
pub struct MultiSettle;

impl Command for Settle {
    const DOCUMENTATION: Documentation = docs::SETTLE;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let (id, NamedCall { limiter, request }, actual) = call.parse(2.., ratelimit_language::settle)?;
        with_limiter!(&limiter, limiter => {
            settle(call, limiter, id, actual, request.at, request.tenant())
        })
    }
}

/// Settles what is held under the id for the limit. If nothing is, it only looks.
fn settle<L: Limiter>(
    call: &impl Host,
    limiter: &L,
    id: &[u8],
    actual: u64,
    at: Option<Time>,
    tenant: Option<Tenant<'_>>,
) -> Result<Reply, Error> {
    let clock = call.clock();
    let at = at.unwrap_or(clock);
    let mut key = Key::open(call, 1, Access::Write)?;
    // Only a line remembers what a tenant used.
    let tenant = tenant.filter(|_| call.somebody_waits());
    let charge = tenant.and_then(|_| find(&key, held(&key, id, at)?, limiter));
    let Some((ask, gave_back)) = Ask::settle_held(&mut key, limiter, id, at, actual)? else {
        return Ok(Reply::Six(look(&key, limiter, 0, at)?, 0));
    };
    if let (Some(charge), Some(tenant)) = (charge, tenant) {
        call.correct(1, limiter.name(), tenant.name, charge.cost, actual);
    }
    Ok(Reply::Six(finish(&mut key, &ask, limiter, gave_back, clock), 1))
}

impl Command for MultiSettle {
    const DOCUMENTATION: Documentation = docs::MULTISETTLE;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let keys = keys(call)?;
        let count = keys.count();
        let (id, arguments) = call.parse(FIRST + count.., |arguments| {
            Ok((lease_id(arguments)?, multi(arguments, count as u64, Purpose::Settle)?))
        })?;
        let (joint, held) = Several::of(keys, &arguments).settle(id)?;
        let (combined, each) = answers(&joint)?;
        Ok(Reply::Settled(combined, each, held))
    }
}
