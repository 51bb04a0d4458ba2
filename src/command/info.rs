//! `RL.INFO key`: what a key holds, for people.

use ratelimit_core::{Figure, Span};
use ratelimit_language::Error;

use crate::server::{Call, Command, Described, Keys, Reply, Value, describe};

pub struct Info;

impl Command for Info {
    const NAME: &'static str = "INFO";
    const SYNTAX: &'static str = "key";
    const SUMMARY: &'static str =
        "Replies what a key holds: its limits with their modes, lengths and figures, and its expiry";
    const COMPLEXITY: &'static str = "O(1)";
    const FLAGS: &'static str = "readonly";
    const KEYS: Keys = Keys::Read;

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let Some(description) = describe(call, 1)? else {
            return Ok(Reply::Null);
        };
        let mut fields = fields(description.whole);
        if !description.limits.is_empty() {
            let limits = description.limits.into_iter().map(self::fields);
            fields.push(("limits", Value::Maps(limits.collect())));
        }
        // -1 as `PEXPIRETIME` has it: someone persisted the key by hand.
        let expires = description.expires.map_or(-1, u64::cast_signed);
        fields.push(("expires_at_ms", Value::Integer(expires)));
        Ok(Reply::Map(fields))
    }
}

/// A limit's name, then its figures.
fn fields(described: Described) -> Vec<(&'static str, Value)> {
    let (limiter, mode) = described.name.kind.title();
    let mut fields = vec![("limiter", Value::Text(limiter)), ("mode", Value::Text(mode))];
    let length = described.name.length;
    if length > Span::ZERO {
        fields.push(("length_ms", number(Figure::Length(length))));
    }
    fields.extend(described.figures.into_iter().map(|(name, figure)| (name, number(figure))));
    fields
}

fn number(figure: Figure) -> Value {
    Value::Integer(match figure {
        Figure::Real(number) => return Value::Real(number),
        Figure::Signed(number) => number,
        Figure::Count(number) => number.cast_signed(),
        Figure::Length(span) => span.as_millis_up().cast_signed(),
        Figure::At(time) => time.as_micros().cast_signed(),
    })
}
