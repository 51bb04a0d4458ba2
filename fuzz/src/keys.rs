//! Two keys that get the same calls: to one of them another limit was added. They reply the same, and hold the same beside
//! that limit.

use ratelimit_core::state::Log;
use ratelimit_core::{Answer, LimitSet, LimitState, Limits, Name, Span, Time, with_kept};
use ratelimit_engine::reply::Reply;
use ratelimit_language::Error;
use ratelimit_laws::encoded;
use ratelimit_value::Value;

use crate::lines::BOUNDS;
use crate::nodes::Nodes;

/// The start of an hour, in 2023.
pub const T0: Time = Time::from_micros(1_700_002_800_000_000);

pub struct Keys {
    nodes: Nodes,
    /// What the caller's clock shows.
    pub at: Time,
}

/// The key with the limits of the calls, and the one with another limit beside them.
const BOTH: [&str; 2] = [ALONE, BESIDE];
const ALONE: &str = "alone";
const BESIDE: &str = "beside";

/// How long after it is fully reset a key expires that was just changed.
const LEAST_SLACK: Span = Span::from_millis(2500);
const MOST_SLACK: Span = Span::from_millis(86_400_001);

/// What a call replies: the five integers, a sixth or the only one, or an error.
pub type Told = Result<(Option<Answer>, Option<u64>), Error>;

/// A limit of a key.
#[derive(PartialEq, Debug)]
struct Limit {
    name: Name,
    until: Time,
    bytes: Vec<u8>,
}

impl Keys {
    pub fn new() -> Keys {
        let keys = Keys { nodes: Nodes::new(), at: T0 };
        keys.nodes.set_clock(T0);
        keys.begin();
        keys
    }

    /// Charges the limit that no other call names: it is a shadow.
    fn begin(&self) {
        let at = self.at.as_micros();
        self.nodes.call(&format!("RL.MULTI 1 {BESIDE} AT {at} LIMIT UNIFORM 1h SHADOW"));
    }

    /// Sets the clock of the nodes to the caller's. Keys may expire.
    pub fn set_clock(&self) {
        self.nodes.set_clock(self.at);
        self.compare();
    }

    /// Makes a call about each key.
    pub fn ask(&self, command: &str, words: &str) -> Told {
        let at = self.at.as_micros();
        let call = |key| told(self.nodes.call(&format!("RL.{command} {key} {words} AT {at}")));
        let [told, beside] = BOTH.map(call);
        assert_eq!(told, beside, "as if the other limit were not there");
        self.compare();
        told
    }

    fn compare(&self) {
        let limits = |key| {
            let limits = self.limits(key).into_iter();
            limits.filter(|limit| !limit.name.length.is_shadow()).collect()
        };
        let [alone, beside]: [Vec<Limit>; 2] = BOTH.map(limits);
        if alone.is_empty() == beside.is_empty() {
            return assert_eq!(alone, beside);
        }
        // One was fully reset, and was deleted or has expired. The other one is fully reset too, and both begin anew.
        assert!(alone.iter().chain(&beside).all(|limit| limit.until <= self.at));
        self.nodes.call(&format!("DEL {ALONE} {BESIDE}"));
        self.begin();
    }

    /// The limit that a limiter's own command is about.
    pub fn stored<S: LimitState>(&self, name: Name) -> Option<S> {
        let (value, _) = self.nodes.value(ALONE)?;
        let in_set = || value.state::<LimitSet>().and_then(|set| set.state(set.find(name)?.stored));
        value.state().or_else(in_set).cloned()
    }

    fn limits(&self, key: &str) -> Vec<Limit> {
        self.nodes.value(key).map(|(value, _)| limits(&value)).unwrap_or_default()
    }

    /// After a charge of this limit at `now`, no other is fully reset, and a log is within the operator's bounds.
    pub fn charged(&self, name: Name, now: Time) {
        let mut others = BOTH.into_iter().flat_map(|key| self.limits(key)).filter(|limit| limit.name != name);
        assert!(others.all(|limit| limit.until > self.at));
        let log = self.stored::<Log>(name);
        assert!(log.is_none_or(|log| log.entries(log.start()) <= BOUNDS.log_entries));
        self.expire(now);
    }

    /// After something was given back at `now`, a key that is fully reset is gone.
    pub fn gave_back(&self, now: Time) {
        let limits = self.limits(ALONE);
        assert!(limits.is_empty() || limits.iter().any(|limit| limit.until > self.at));
        self.expire(now);
    }

    /// After a change at `now`, a key expires some slack after it is fully reset.
    fn expire(&self, now: Time) {
        for (value, expiry) in BOTH.into_iter().filter_map(|key| self.nodes.value(key)) {
            let until = limits(&value).iter().map(|limit| limit.until).max().expect("a limit");
            let full = now.max(T0).plus(until.since(now));
            assert!(expiry >= full.plus(LEAST_SLACK), "{expiry:?} after {full:?}");
            assert!(expiry <= full.plus(MOST_SLACK) || until == Time::HORIZON, "{expiry:?} after {full:?}");
        }
    }
}

fn limits(value: &Value) -> Vec<Limit> {
    if let Some((name, until)) = value.lone_limit() {
        // Its name comes first.
        return vec![Limit { name, until, bytes: value.encode().split_off(9) }];
    }
    let limits = value.state::<LimitSet>().into_iter().flat_map(LimitSet::limits).map(|limit| Limit {
        name: limit.name,
        until: limit.until(),
        bytes: with_kept!(&limit.state, state => encoded(state.as_ref())),
    });
    limits.collect()
}

fn told(reply: Reply) -> Told {
    match reply {
        Reply::Answer(answer) => Ok((Some(answer), None)),
        Reply::Six(answer, granted) => Ok((Some(answer), Some(granted))),
        Reply::Integer(number) => Ok((None, Some(number))),
        Reply::Error(error) => Err(error),
        _ => panic!("another reply"),
    }
}
