//! `RL.RELEASE key id [OUTCOME OK | DROP | IGNORE] [AT at]`, `RL.RENEW key ttl id [AT at]`, `RL.MULTIRELEASE numkeys key ... id
//! [OUTCOME OK | DROP | IGNORE] [AT at]`: end or extend a lease that is held.

use ratelimit_core::Time;
use ratelimit_core::lease::{Action, act};
use ratelimit_language::docs;
use ratelimit_language::help::Documentation;
use ratelimit_language::{Error, ReleaseCall, release, renew};

use super::entry::Command;
use super::multi::{FIRST, keys};
use crate::host::Host;
use crate::key::{Key, publish};
use crate::reply::Reply;
use crate::slot::{Access, Slot};
use crate::waiting::Turns;

pub struct Release;
pub struct Renew;
pub struct MultiRelease;

impl Command for Release {
    const DOCUMENTATION: Documentation = docs::RELEASE;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let ReleaseCall { id, ending, at } = call.parse(2.., release)?;
        change(call, 1, &mut [Key::open(call, 1, Access::Write)?], Action::Release(ending), id, at)
    }
}

impl Command for Renew {
    const DOCUMENTATION: Documentation = docs::RENEW;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let (ttl, id, at) = call.parse(2.., renew)?;
        change(call, 1, &mut [Key::open(call, 1, Access::Write)?], Action::Renew(ttl), id, at)
    }
}

impl Command for MultiRelease {
    const DOCUMENTATION: Documentation = docs::MULTIRELEASE;

    fn run<H: Host>(call: &H) -> Result<Reply, Error> {
        let several = keys(call)?;
        let ReleaseCall { id, ending, at } = call.parse(FIRST + several.count().., release)?;
        let mut keys = several.open()?;
        change(call, FIRST, &mut keys, Action::Release(ending), id, at)
    }
}

/// Releases or renews the lease on each key, and returns the number of keys that held it.
///
/// A key that is fully reset after a release is deleted. `first` is the place of the first key.
fn change(
    call: &impl Host,
    first: usize,
    keys: &mut [Key<impl Slot>],
    action: Action,
    id: &[u8],
    at: Option<Time>,
) -> Result<Reply, Error> {
    let clock = call.clock();
    let at = at.unwrap_or(clock);
    let mut held = 0;
    for (place, key) in (first..).zip(&mut *keys) {
        let acted = act(key, action, id, at)?;
        // Who releases a lease that it does not hold does not want it any more.
        if call.somebody_waits() && (acted.counted || matches!(action, Action::Release(_))) {
            call.serve(place, id);
        }
        key.settle(acted.held.then_some(at), clock, acted.now, acted.reset);
        held += u64::from(acted.held);
    }
    publish(keys);
    Ok(Reply::Integer(held))
}
