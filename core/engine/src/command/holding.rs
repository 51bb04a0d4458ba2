//! `RL.EXPLAIN key`: describes what a key holds, as `RL.INFO` does, in sentences.

use ratelimit_core::decide::when_decided;
use ratelimit_core::limiter::Concurrent;
use ratelimit_core::state::Leases;
use ratelimit_core::{Kind, Limits, Name, Span, Time};
use ratelimit_language::{Error, Held, Rough, Shown, shown};

use super::info::{Tenant, leases, tenants};
use crate::host::Host;
use crate::key::{Description, Key, describe};
use crate::slot::Access;
use crate::waiting::{Turns, Waits};

/// The most leases and tenants that are named.
const MOST_NAMED: usize = 10;

/// Describes the key that is the argument at `place`.
pub(super) fn holding(call: &impl Host, place: usize) -> Result<Vec<String>, Error> {
    let (now, name) = (call.clock(), call.word(place)?);
    let key = describe(call, place, now)?;
    let mut lines = Vec::new();
    let Some(key) = key else {
        lines.push(nothing(name));
        lines.extend(sharing(call, place)?);
        return Ok(lines);
    };
    let expires = key.expiry.map_or("it does not expire".into(), |millis| {
        format!("it expires in {}", Rough(Time::from_millis(millis).since(now)))
    });
    let holds = key.value.figures.iter().find(|(figure, _)| *figure == "holds");
    let holds = holds.map_or(String::new(), |(_, figure)| match figure {
        ratelimit_core::Figure::Count(1) => "; 1 charge is on hold".into(),
        ratelimit_core::Figure::Count(count) => format!("; {count} charges are on hold"),
        _ => String::new(),
    });
    let (held, limits) = match key.value.name.kind {
        Kind::LimitSet => (several(key.limits.len()), key.limits),
        _ => (Shown(key.value.name).to_string(), vec![key.value]),
    };
    lines.push(format!("{} holds {held}; {expires}{holds}", quoted(name)));
    for (limit, number) in limits.iter().zip(1..) {
        lines.push(format!("{number}. {}", line(call, place, limit, now)?));
    }
    let table = |limit: &Description| limit.name.kind == Kind::Leases;
    if limits.iter().any(table) {
        for lease in leases(call, place, MOST_NAMED)? {
            let shadow = if lease.is_shadow { ", of a shadow" } else { "" };
            let (id, cost, left) = (shown(&lease.id), lease.cost, Rough(lease.left));
            lines.push(format!("lease {id} holds {cost}{shadow}, for {left}"));
        }
    }
    lines.extend(sharing(call, place)?);
    Ok(lines)
}

/// What is said of a key that is missing.
pub(super) fn nothing(name: &[u8]) -> String {
    format!("nothing is stored at {}: is the name right?", quoted(name))
}

/// A name as it is shown. That of no bytes is in quotes.
fn quoted(name: &[u8]) -> String {
    if name.is_empty() { "''".into() } else { shown(name).to_string() }
}

fn several(limits: usize) -> String {
    if limits == 1 { "1 limit".into() } else { format!("{limits} limits") }
}

fn line(call: &impl Host, place: usize, limit: &Description, now: Time) -> Result<String, Error> {
    let Description { name, figures, until } = limit;
    let leases = if name.kind == Kind::Leases { table(call, place, *name, now)? } else { None };
    let waiting = call.waiting_for(place, *name);
    Ok(Held { name: *name, figures, until: *until, leases, waiting, now }.to_string())
}

/// The number of leases of a table, their cost, and when the next one ends.
fn table(
    call: &impl Host,
    place: usize,
    name: Name,
    now: Time,
) -> Result<Option<(u64, u64, Option<Span>)>, Error> {
    let key = Key::open(call, place, Access::Read)?;
    let Some(stored) = key.state::<Leases>(name.length) else { return Ok(None) };
    Ok(Some(when_decided(&Concurrent::READER, stored, now, |stored, now, lag| {
        (stored.count(now), stored.cost(now), stored.ends(1, now).map(|next| next.plus(lag)))
    })))
}

/// The callers that wait for the key, and the tenants that share it.
fn sharing(call: &impl Host, place: usize) -> Result<Vec<String>, Error> {
    let mut lines = Vec::new();
    match call.waiting(place) {
        0 => {}
        1 => lines.push("on this node 1 caller waits for the key".into()),
        waiting => lines.push(format!("on this node {waiting} callers wait for the key")),
    }
    let (tenants, count) = tenants(call, place)?;
    for (name, Tenant { weight, held, waiting, .. }) in tenants.iter().take(MOST_NAMED) {
        let name = quoted(name);
        lines.push(format!(
            "tenant {name} of weight {weight} holds {held}, and {waiting} of its callers wait"
        ));
    }
    if count > MOST_NAMED as u64 {
        lines.push(format!("{count} tenants in all"));
    }
    Ok(lines)
}
