//! The reply of a call, as a trial needs it.

use ratelimit_engine::reply::Reply as Whole;
use serde_json::{Value, json};

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reply {
    /// limited, limit, remaining, `retry_after`, `reset_after`: of several limits, those that bind.
    Five([i64; 5]),
    /// The shedder's: limited, and the chance that it was.
    Chance(bool, f64),
    Integer(i64),
}

impl Reply {
    /// What a trial needs of a reply; `Err` is its error.
    pub fn of(whole: &Whole) -> Result<Reply, String> {
        match whole {
            Whole::Answer(answer) | Whole::Answers(answer, _) => Ok(Reply::Five(answer.integers())),
            Whole::Chance(limited, chance) => Ok(Reply::Chance(*limited, *chance)),
            Whole::Integer(integer) => Ok(Reply::Integer(integer.cast_signed())),
            Whole::Error(error) => Err(error.to_string()),
            _ => Err("no trial makes such a call".into()),
        }
    }

    pub fn to_json(self) -> Value {
        match self {
            Reply::Five(five) => json!(five),
            Reply::Chance(limited, chance) => json!([i64::from(limited), chance]),
            Reply::Integer(integer) => json!(integer),
        }
    }

    pub fn limited(self) -> bool {
        match self {
            Reply::Five([limited, ..]) | Reply::Integer(limited) => limited != 0,
            Reply::Chance(limited, _) => limited,
        }
    }

    /// Milliseconds: until what was admitted may act, or what was refused may ask again; none is never.
    pub fn retry_after(self) -> Option<u64> {
        let Reply::Five([_, _, _, retry, _]) = self else { return Some(0) };
        u64::try_from(retry).ok()
    }
}

/// A server that replies to calls.
pub trait Server {
    /// Replies to a command, its words between spaces; `Err` is its error.
    fn call(&mut self, line: &str) -> Result<Reply, String>;
}
