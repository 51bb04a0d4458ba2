//! `RL.INFO key`: shows what a key holds.

use ratelimit_core::{Figure, Span};
use ratelimit_language::Error;
use ratelimit_language::vocabulary::{Argument, KEY};

use crate::server::{Call, Command, Description, FieldValue, Fields, KeyUse, Keys, Reply, clock, describe};

pub struct Info;

impl Command for Info {
    const NAME: &'static str = "INFO";
    const SYNTAX: &'static str = "key";
    const SUMMARY: &'static str =
        "Replies what a key holds: its limits with their modes, lengths and figures, and its expiry";
    const COMPLEXITY: &'static str = "O(1), or O(width * depth) for a sketch";
    const ARGUMENTS: &'static [Argument] = &[KEY];
    const REPLY: &'static [&'static str] = &["A map of what the key holds, or nil if it is missing."];
    const EXAMPLE: &'static str = "RL.INFO user:1";
    const FLAGS: &'static str = "readonly";
    const KEYS: Keys = Keys::First(KeyUse::Read);

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let Some(key) = describe(call, 1, clock())? else {
            return Ok(Reply::Null);
        };
        let mut fields = fields(key.value);
        if !key.limits.is_empty() {
            let limits = key.limits.into_iter().map(self::fields);
            fields.push(("limits".into(), FieldValue::Maps(limits.collect())));
        }
        // -1 as in `PEXPIRETIME`: the key does not expire, for example after `PERSIST`.
        let expires = key.expiry.map_or(-1, u64::cast_signed);
        fields.push(("expires_at_ms".into(), FieldValue::Integer(expires)));
        fields.push(("waiting".into(), number(Figure::Count(call.waiting(1) as u64))));
        Ok(Reply::Map(fields))
    }
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
