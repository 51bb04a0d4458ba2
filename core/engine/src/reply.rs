//! The replies of commands.

use std::borrow::Cow;

use ratelimit_core::Answer;
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
