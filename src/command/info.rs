//! `RL.INFO key [LEASES [count]]`: shows what a key holds, or who holds its leases.

use ratelimit_core::decide::when_decided;
use ratelimit_core::limiter::Concurrent;
use ratelimit_core::state::Leases;
use ratelimit_core::{Figure, Length, Limits, Period, Span};
use ratelimit_language::vocabulary::{Argument, HOLDERS, KEY, MOST_HOLDERS};
use ratelimit_language::{Error, info};

use crate::server::{
    Access, Call, Command, Description, FieldValue, Fields, Key, KeyUse, Keys, Reply, clock, describe,
};

pub struct Info;

impl Command for Info {
    const NAME: &'static str = "INFO";
    const SYNTAX: &'static str = "key [LEASES [count]]";
    const SUMMARY: &'static str =
        "Replies what a key holds: its limits with their modes, lengths and figures, and its expiry";
    const COMPLEXITY: &'static str = "O(1), or O(width * depth) for a sketch; with LEASES O(log(N) + count) where N is the number of leases";
    const ARGUMENTS: &'static [Argument] = &[KEY, HOLDERS, MOST_HOLDERS];
    const REPLY: &'static [&'static str] = &[
        "A map of what the key holds, or nil if it is missing.",
        "With LEASES also a field leases: an array of maps, each with id, cost and left_ms, and with shadow if a shadow counts it.",
    ];
    const EXAMPLE: &'static str = "RL.INFO user:1";
    const FLAGS: &'static str = "readonly";
    const KEYS: Keys = Keys::First(KeyUse::Read);

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let most_leases = call.parse(2.., info)?;
        let Some(key) = describe(call, 1, clock())? else {
            return Ok(Reply::Null);
        };
        let mut fields = fields(key.value);
        if !key.limits.is_empty() {
            let limits = key.limits.into_iter().map(self::fields);
            fields.push(("limits".into(), FieldValue::Maps(limits.collect())));
        }
        if let Some(most) = most_leases {
            fields.push(("leases".into(), FieldValue::Maps(leases(call, most)?)));
        }
        // -1 as in `PEXPIRETIME`: the key does not expire, for example after `PERSIST`.
        let expires = key.expiry.map_or(-1, u64::cast_signed);
        fields.push(("expires_at_ms".into(), FieldValue::Integer(expires)));
        fields.push(("waiting".into(), number(Figure::Count(call.waiting(1) as u64))));
        Ok(Reply::Map(fields))
    }
}

/// Lists the leases of the key's limit and of its shadow, at most `most`. Those that end first come first.
fn leases(call: &Call<'_>, most: usize) -> Result<Vec<Fields>, Error> {
    let now = clock();
    let key = Key::open(call, 1, Access::Read)?;
    // Only the reading of the clock matters, which depends on no parameter.
    let limiter = Concurrent { limit: 0, ttl: Period::LONGEST, id: &[], critical: false, tenant: None };
    let mut leases = Vec::new();
    for table in [Length::NONE, Length::NONE.in_shadow()] {
        let Some(stored) = key.state::<Leases>(table) else { continue };
        when_decided(&limiter, stored, now, |stored, now, lag| {
            leases.extend(stored.soonest(now, most).map(|(id, held)| {
                let left = held.left.plus(lag);
                let mut fields: Fields = vec![
                    ("id".into(), FieldValue::Bytes(id.to_vec())),
                    ("cost".into(), number(Figure::Count(held.cost))),
                    ("left_ms".into(), number(Figure::Length(left))),
                ];
                if table.is_shadow() {
                    fields.push(("shadow".into(), FieldValue::Integer(1)));
                }
                (left, fields)
            }));
        });
    }
    // Each table is in order already, and the sort is stable.
    leases.sort_by_key(|(left, _)| *left);
    leases.truncate(most);
    Ok(leases.into_iter().map(|(_, fields)| fields).collect())
}

/// The fields of a value or a limit: its name, then its figures.
fn fields(description: Description) -> Fields {
    let (limiter, mode) = description.name.kind.title();
    let mut fields = vec![
        ("limiter".into(), FieldValue::Text(limiter.into())),
        ("mode".into(), FieldValue::Text(mode.into())),
    ];
    let length = description.name.length;
    if length.span() > Span::ZERO {
        fields.push(("length_ms".into(), number(Figure::Length(length.span()))));
    }
    if length.is_shadow() {
        fields.push(("shadow".into(), FieldValue::Integer(1)));
    }
    fields.extend(description.figures.into_iter().map(|(name, figure)| (name.into(), number(figure))));
    fields
}

fn number(figure: Figure) -> FieldValue {
    FieldValue::Integer(match figure {
        Figure::Real(number) => return FieldValue::Real(number),
        Figure::Signed(number) => number,
        Figure::Count(number) => number.cast_signed(),
        Figure::Length(span) => span.as_millis_up().cast_signed(),
        Figure::At(time) => time.as_micros().cast_signed(),
    })
}
