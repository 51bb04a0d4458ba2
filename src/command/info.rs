//! `RL.INFO key`: what a key holds, for people.

use crate::limit::{Error, Figure};
use crate::server::{Call, Command, Keys, Reply, Value, describe};

pub struct Info;

impl Command for Info {
    const NAME: &'static str = "INFO";
    const SYNTAX: &'static str = "key";
    const SUMMARY: &'static str = "Tells what a key holds: its limiter, mode, stored figures and expiry";
    const COMPLEXITY: &'static str = "O(1)";
    const FLAGS: &'static str = "readonly";
    const KEYS: Keys = Keys::Read;

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let Some(description) = describe(call, 1)? else {
            return Ok(Reply::Null);
        };
        let (limiter, mode) = description.kind.title();
        let mut fields = vec![("limiter", Value::Text(limiter)), ("mode", Value::Text(mode))];
        fields.extend(numbers(description.figures));
        if !description.limits.is_empty() {
            let limits = description.limits.into_iter().map(|(name, figures)| {
                let (limiter, mode) = name.kind.title();
                let mut fields = vec![("limiter", Value::Text(limiter)), ("mode", Value::Text(mode))];
                // 0 if it stood alone, and no call has named it since.
                fields.push(("length_ms", number(Figure::Length(name.span))));
                fields.extend(numbers(figures));
                fields
            });
            fields.push(("limits", Value::Maps(limits.collect())));
        }
        // -1 as `PEXPIRETIME` has it: someone persisted the key by hand.
        let expires = description.expires.map_or(-1, u64::cast_signed);
        fields.push(("expires_at_ms", Value::Integer(expires)));
        Ok(Reply::Map(fields))
    }
}

fn numbers(figures: Vec<(&'static str, Figure)>) -> impl Iterator<Item = (&'static str, Value)> {
    figures.into_iter().map(|(name, figure)| (name, number(figure)))
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
