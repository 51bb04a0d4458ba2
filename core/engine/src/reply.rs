//! The replies of commands, and how they are sent.

use std::borrow::Cow;

use ratelimit_core::Answer;
use ratelimit_core::answer::clamped;
use ratelimit_language::Error;

use crate::waiting::Wait;

pub enum Reply {
    /// The five integers of a limiter.
    Answer(Answer),
    /// The five integers, and a sixth: what was granted, which pair binds, or how much was held.
    Six(Answer, u64),
    /// Those six, then an array with the answer of each limit.
    SixAndEach(Answer, u64, Vec<Answer>),
    /// `RL.SHED`: whether the call was shed, and the chance of that.
    Chance(bool, f64),
    /// The combined answer of several limits, then an array with the answer of each.
    Answers(Answer, Vec<Answer>),
    /// As `Answers`, and the number of keys in which something was held.
    Settled(Answer, Vec<Answer>, u64),
    /// The five integers as redis-cell replies them: in seconds, and -1 for no retry.
    Cell(Answer),
    /// No reply yet: the caller waits.
    Wait(Box<Wait>),
    /// The reply of one of the host's own commands, which the host has sent already.
    Sent,
    Integer(u64),
    Null,
    Ok,
    Lines(Vec<String>),
    Map(Fields),
    /// An array of keys, each with its database, its count and the count's error.
    Top(Vec<TopKey>),
    Error(Error),
}

impl Reply {
    pub const INTERNAL: Reply = Reply::Error(Error::Internal);

    /// Whether it reports that a request was admitted.
    pub fn is_admission(&self) -> bool {
        match self {
            Reply::Answer(answer)
            | Reply::Six(answer, _)
            | Reply::SixAndEach(answer, ..)
            | Reply::Answers(answer, _) => answer.verdict.admits(),
            _ => false,
        }
    }

    /// Sends the reply. A wait is none, so it is sent as an internal error.
    pub fn send(&self, to: &mut impl Receiver) {
        match self {
            Reply::Answer(answer) => to.integers(answer.integers()),
            Reply::Six(answer, sixth) => send_six(to, answer, *sixth),
            Reply::SixAndEach(answer, sixth, each) => {
                to.array(2);
                send_six(to, answer, *sixth);
                send_each(to, each);
            }
            Reply::Chance(limited, chance) => {
                to.array(2);
                to.integer((*limited).into());
                to.real(*chance);
            }
            Reply::Answers(combined, each) => {
                to.array(2);
                to.integers(combined.integers());
                send_each(to, each);
            }
            Reply::Settled(combined, each, held) => {
                to.array(3);
                to.integers(combined.integers());
                send_each(to, each);
                to.integer(clamped(*held));
            }
            Reply::Cell(answer) => to.integers(answer.integers_of_cell()),
            Reply::Sent => {}
            Reply::Integer(number) => to.integer(clamped(*number)),
            Reply::Null => to.null(),
            Reply::Ok => to.ok(),
            Reply::Lines(lines) => {
                to.array(lines.len());
                for line in lines {
                    to.bytes(line.as_bytes());
                }
            }
            Reply::Map(fields) => send_map(to, fields),
            Reply::Top(keys) => {
                to.array(keys.len());
                for TopKey { key, database, count, error } in keys {
                    to.array(4);
                    to.bytes(key);
                    for number in [u64::from(*database), *count, *error] {
                        to.integer(clamped(number));
                    }
                }
            }
            Reply::Error(error) => to.error(error),
            Reply::Wait(_) => to.error(&Error::Internal),
        }
    }
}

/// What a reply is sent to, element by element.
pub trait Receiver {
    /// Begins an array; its elements follow.
    fn array(&mut self, length: usize);

    /// Begins a map; its names follow, each with its value.
    fn map(&mut self, length: usize);

    fn integer(&mut self, integer: i64);

    fn real(&mut self, number: f64);

    fn bytes(&mut self, bytes: &[u8]);

    fn null(&mut self);

    fn ok(&mut self);

    fn error(&mut self, error: &Error);

    /// An array of integers.
    #[inline(always)]
    fn integers<const N: usize>(&mut self, integers: [i64; N]) {
        self.array(N);
        for integer in integers {
            self.integer(integer);
        }
    }
}

fn send_six(to: &mut impl Receiver, answer: &Answer, sixth: u64) {
    let [limited, limit, remaining, retry, reset] = answer.integers();
    to.integers([limited, limit, remaining, retry, reset, clamped(sixth)]);
}

#[inline(always)]
fn send_each(to: &mut impl Receiver, each: &[Answer]) {
    to.array(each.len());
    for answer in each {
        to.integers(answer.integers());
    }
}

fn send_map(to: &mut impl Receiver, fields: &Fields) {
    to.map(fields.len());
    for (name, value) in fields {
        to.bytes(name.as_bytes());
        match value {
            FieldValue::Integer(integer) => to.integer(*integer),
            FieldValue::Real(number) => to.real(*number),
            FieldValue::Text(text) => to.bytes(text.as_bytes()),
            FieldValue::Bytes(bytes) => to.bytes(bytes),
            FieldValue::Maps(maps) => {
                to.array(maps.len());
                for map in maps {
                    send_map(to, map);
                }
            }
        }
    }
}

/// A key that is refused often.
pub struct TopKey {
    pub key: Vec<u8>,
    pub database: u32,
    pub count: u64,
    pub error: u64,
}

/// The fields of a map, each a name and a value.
pub type Fields = Vec<(Cow<'static, str>, FieldValue)>;

pub enum FieldValue {
    Integer(i64),
    Real(f64),
    Text(Cow<'static, str>),
    Bytes(Vec<u8>),
    Maps(Vec<Fields>),
}

impl From<u64> for FieldValue {
    fn from(number: u64) -> FieldValue {
        FieldValue::Integer(number.cast_signed())
    }
}
