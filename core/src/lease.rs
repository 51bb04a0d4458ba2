//! Releasing and renewing a lease.

use alloc::vec::Vec;

use crate::adapt::Ending;
use crate::limiter::{rebase, release, renew};
use crate::limits::{Error, Limits, Place, move_to_now};
use crate::state::{LeaseChange, Leases, Length, State};
use crate::time::{Span, Time};

/// A change of a lease that is held.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    Release(Ending),
    /// The lease expires this long after now.
    Renew(Span),
}

/// The outcome of an [`Action`].
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Whether the lease was held in any table.
    pub held: bool,
    /// Whether it was held in the table that is no shadow.
    pub counted: bool,
    /// The instant at which the action was decided.
    pub now: Time,
    /// The time until the key's last lease expires.
    pub reset: Span,
}

/// Releases or renews the lease of this id in the tables of a key: that of its limit, and that of a shadow. `at` is the
/// caller's time.
///
/// # Errors
///
/// [`Error::Defect`] if a change cannot be applied.
pub fn act(limits: &mut impl Limits, action: Action, id: &[u8], at: Time) -> Result<Outcome, Error> {
    let limit = act_on(limits, Length::NONE, action, id, at)?;
    let shadow = act_on(limits, Length::NONE.in_shadow(), action, id, at)?;
    Ok(Outcome {
        held: limit.held || shadow.held,
        counted: limit.held,
        now: limit.now.max(shadow.now),
        reset: limit.reset.max(shadow.reset),
    })
}

/// [`act`] on one table.
fn act_on(
    limits: &mut impl Limits,
    table: Length,
    action: Action,
    id: &[u8],
    at: Time,
) -> Result<Outcome, Error> {
    if limits.state::<Leases>(table).is_none() {
        return Ok(Outcome { held: false, counted: false, now: at, reset: Span::ZERO });
    }
    let place = &mut Place::of(table);
    let last_reset = |leases: &Leases| leases.reset(leases.last());
    let now = move_to_now(limits, place, at, last_reset, |_, out| put(&rebase(at), out))?;
    let write = |leases: &Leases, out: &mut Vec<u8>| {
        let change = match action {
            Action::Release(ending) => release(leases, id, ending, now),
            Action::Renew(ttl) => renew(leases, id, ttl, now),
        };
        if let Some(change) = change {
            put(&change, out);
        }
    };
    let held = limits.change(place, Leases::blank, write)?;
    let reset = limits.state::<Leases>(table).map(|leases| leases.reset(now)).unwrap_or_default();
    Ok(Outcome { held, counted: held, now, reset })
}

fn put(change: &LeaseChange<'_>, out: &mut Vec<u8>) {
    Leases::encode_change(change, out);
}
