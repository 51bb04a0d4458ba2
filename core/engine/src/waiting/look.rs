//! What the alarm does with tables of leases that have a line: it frees leases that have ended, and lets the line read what
//! their tenants hold now. Both are done in steps, as a million leases can expire at once.

use ratelimit_core::decide::when_decided;
use ratelimit_core::limiter::Concurrent;
use ratelimit_core::state::Leases;
use ratelimit_core::{LimitSet, Time};
use ratelimit_value::Value;

use super::WaitedKey;
use super::clients::Clients;

/// How many ended leases of a table are freed between two looks at the clock.
const AT_ONCE: usize = 4;

/// Looks at one table, if it is time. It frees leases until this instant, and at least a few. Freeing what has ended changes
/// nothing that the key's copies have.
pub(super) fn look(clients: &impl Clients, until: Time) {
    let waiting = &clients.node().waiting;
    let Some((key, name)) = waiting.with(|state| state.lines.look(clients.now())) else { return };
    let follow = |leases: Option<&Leases>, at| {
        waiting.with(|state| state.lines.follow::<WaitedKey>(&key, name, leases, at, clients.now()));
    };
    clients.value_of(&key, |mut value| {
        if let Some(value) = &mut value {
            free_ended(value, || clients.now() >= until);
        }
        match value.as_deref().and_then(Value::leases) {
            Some(leases) => {
                let reader = &Concurrent::READER;
                when_decided(reader, leases, clients.clock(), |leases, at, _| follow(Some(leases), at));
            }
            None => follow(None, clients.clock()),
        }
    });
}

fn free_ended(value: &mut Value, is_late: impl Fn() -> bool) {
    while value.leases().is_some_and(Leases::has_ended) {
        if let Some(leases) = value.state_mut::<Leases>() {
            leases.free_ended(AT_ONCE);
        } else if let Some(set) = value.state_mut::<LimitSet>() {
            set.free_ended_leases(AT_ONCE);
        }
        if is_late() {
            return;
        }
    }
}
