//! `RL.RELEASE key id [AT at]` and `RL.RENEW key ttl id [AT at]`: what is done with a lease once it is held.

use crate::limit::concurrent::{self, parse_id};
use crate::limit::{Error, Leases, State};
use crate::server::{Call, Command, Held, Keys, Limits, Reply, When, clock};
use crate::time::{Span, Time};

pub struct Release;

impl Command for Release {
    const NAME: &'static str = "RELEASE";
    const SYNTAX: &'static str = "key id [AT at]";
    const SUMMARY: &'static str = "Ends a lease";
    const COMPLEXITY: &'static str = "O(log(N)) where N is the number of leases";
    const FLAGS: &'static str = "write fast";
    const KEYS: Keys = Keys::Delete;

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let (id, at) = call.parse(2.., |words| Ok((parse_id(words)?, words.at()?)))?;
        change(call, at, |leases, now, out| put(concurrent::release(leases, id, now), out))
    }
}

pub struct Renew;

impl Command for Renew {
    const NAME: &'static str = "RENEW";
    const SYNTAX: &'static str = "key ttl id [AT at]";
    const SUMMARY: &'static str = "Extends a lease that is still held";
    const COMPLEXITY: &'static str = "O(log(N)) where N is the number of leases";
    const FLAGS: &'static str = "write fast";
    const KEYS: Keys = Keys::Update;

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let (ttl, id, at) =
            call.parse(2.., |words| Ok((words.duration("ttl")?, parse_id(words)?, words.at()?)))?;
        change(call, at, |leases, now, out| put(concurrent::renew(leases, id, ttl, now), out))
    }
}

fn put(change: Option<<Leases as State>::Change<'_>>, out: &mut Vec<u8>) {
    if let Some(change) = change {
        Leases::encode_change(&change, out);
    }
}

/// The reset as of the last charge.
fn last_reset(leases: &Leases) -> Span {
    concurrent::reset(leases, leases.last())
}

/// What moves leases to an instant before which their clock was set back.
fn rebase_to(now: Time) -> impl Fn(&Leases, &mut Vec<u8>) {
    move |leases, out| put(Some(concurrent::rebase(leases, now)), out)
}

/// Makes the change to the leases of a key that `write` puts down, if it does, and replies whether it did. A key
/// without a lease that is held is deleted.
fn change(
    call: &Call<'_>,
    at: Option<Time>,
    write: impl Fn(&Leases, Time, &mut Vec<u8>),
) -> Result<Reply, Error> {
    let clock = clock();
    let asked = at.unwrap_or(clock);
    let mut key = match Held::<Leases>::open(call, 1, When { clock, now: asked })? {
        Held::Alone(key) => key,
        Held::Together(limits) => return change_each(call, limits, asked, write),
    };
    let now = key.read_clock(asked, last_reset, rebase_to(asked))?;
    if key.state().is_none() {
        return Ok(Reply::Integer(0));
    }
    let changed = key.change(Leases::blank(), |leases, out| write(leases, now, out))?;
    let reset = key.state().map(|leases| concurrent::reset(leases, now)).unwrap_or_default();
    if changed && reset == Span::ZERO {
        key.delete();
    } else {
        key.commit(clock.max(now), reset);
    }
    Ok(Reply::Integer(changed.into()))
}

/// The same where leases are held together with other limits; there may be several tables of them.
fn change_each<'c, 'a>(
    call: &'c Call<'a>,
    mut limits: Limits<'c, 'a>,
    asked: Time,
    write: impl Fn(&Leases, Time, &mut Vec<u8>),
) -> Result<Reply, Error> {
    let (mut changed, mut latest) = (false, asked);
    for span in limits.spans::<Leases>() {
        let now = limits.read_clock(span, asked, last_reset, rebase_to(asked))?;
        let until = |leases: &Leases| Limits::settled_at(now, concurrent::reset(leases, now));
        changed |= limits.change(span, Leases::blank(), |leases, out| write(leases, now, out), until)?;
        latest = latest.max(now);
    }
    if changed && limits.settled() {
        limits.delete();
    } else {
        limits.commit(latest, Span::ZERO);
    }
    call.publish(&[limits]);
    Ok(Reply::Integer(changed.into()))
}
