//! The reply of a call, from any server.

use serde_json::{Value, json};

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reply {
    /// limited, limit, remaining, `retry_after`, `reset_after`.
    Five([i64; 5]),
    /// The five, and what was granted of the cost.
    Granted([i64; 5], i64),
    /// The five, and the number of keys in which something was settled.
    Settled([i64; 5], i64),
    /// The five of redis-cell: the last two are in seconds.
    Cell([i64; 5]),
    /// The shedder's: limited, and the chance that it was.
    Chance(bool, f64),
    Integer(i64),
}

/// The whole of a reply. A trial needs only what binds.
#[derive(Clone, PartialEq, Debug)]
pub struct Full {
    pub reply: Reply,
    /// The five integers of each limit on each key, if the call has several limits.
    pub each: Vec<[i64; 5]>,
}

impl From<Reply> for Full {
    fn from(reply: Reply) -> Full {
        Full { reply, each: Vec::new() }
    }
}

impl Full {
    /// As the server nests it.
    pub fn to_json(&self) -> Value {
        match (self.reply, &*self.each) {
            (reply, []) => reply.to_json(),
            (Reply::Settled(all, keys), each) => json!([all, each, keys]),
            (reply, each) => json!([reply.to_json(), each]),
        }
    }
}

impl Reply {
    pub fn to_json(self) -> Value {
        match self {
            Reply::Five(five) | Reply::Cell(five) => json!(five),
            Reply::Granted(five, sixth) | Reply::Settled(five, sixth) => {
                json!([&five[..], &[sixth]].concat())
            }
            Reply::Chance(limited, chance) => json!([i64::from(limited), chance]),
            Reply::Integer(integer) => json!(integer),
        }
    }

    /// The five integers of a limiter, in milliseconds.
    pub fn five(self) -> Option<[i64; 5]> {
        match self {
            Reply::Five(five) | Reply::Granted(five, _) | Reply::Settled(five, _) => Some(five),
            Reply::Cell([limited, limit, remaining, retry, reset]) => {
                let retry = if retry < 0 { retry } else { retry * 1000 };
                Some([limited, limit, remaining, retry, reset * 1000])
            }
            Reply::Chance(..) | Reply::Integer(_) => None,
        }
    }

    pub fn limited(self) -> bool {
        match self {
            Reply::Chance(limited, _) => limited,
            Reply::Integer(limited) => limited != 0,
            five => five.five().is_some_and(|[limited, ..]| limited != 0),
        }
    }

    /// Milliseconds: until what was admitted may act, or what was refused may ask again; none is never.
    pub fn retry_after(self) -> Option<u64> {
        let Some([_, _, _, retry, _]) = self.five() else { return Some(0) };
        u64::try_from(retry).ok()
    }
}

/// A server that replies to calls.
pub trait Server {
    /// Replies to a command, its words between spaces; `Err` is its error.
    fn call(&mut self, line: &str) -> Result<Reply, String>;
}
