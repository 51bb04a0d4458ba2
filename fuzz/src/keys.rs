//! Two keys that get the same calls. One of them has another limit from the beginning, but they reply the same, and hold
//! the same beside that limit.

use ratelimit_core::state::{Log, StoredLimit};
use ratelimit_core::{Answer, LimitSet, LimitState, Name, Span, Time, with_kept};
use ratelimit_engine::reply::Reply;
use ratelimit_language::Error;
use ratelimit_laws::encoded;

use crate::lines::BOUNDS;
use crate::nodes::Nodes;

/// The start of an hour, in 2023.
pub const T0: Time = Time::from_micros(1_700_002_800_000_000);

pub struct Keys {
    nodes: Nodes,
    /// What the caller's clock shows.
    pub at: Time,
}

/// The key with the limits of the calls alone, and the one with another limit beside them.
const BOTH: [&str; 2] = [ALONE, BESIDE];
const ALONE: &str = "alone";
const BESIDE: &str = "beside";

/// How long after it is fully reset a key expires that was just changed.
const LEAST_SLACK: Span = Span::from_millis(2500);
const MOST_SLACK: Span = Span::from_millis(86_400_001);

/// What a call replies: the five integers, a sixth or the only one, or an error.
pub type Told = Result<(Option<Answer>, Option<u64>), Error>;

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

    /// Makes a call about limits of these names, to each key.
    pub fn ask(&self, names: &[Name], command: &str, words: &str) -> Told {
        let before = BOTH.map(|key| self.others(key, names));
        let [told, beside] = BOTH.map(|key| told(self.nodes.call(&format!("RL.{command} {key} {words}"))));
        assert_eq!(told, beside, "as if the other limit were not there");
        for (key, before) in BOTH.into_iter().zip(before) {
            let after = written(&self.limits(key), |_| true);
            assert!(before.iter().all(|limit| after.contains(limit)), "no other limit changes");
        }
        self.compare();
        told
    }

    /// The limits that a call of these names leaves as they are: those that are not fully reset.
    fn others(&self, key: &str, names: &[Name]) -> Vec<(Name, Vec<u8>)> {
        let set = self.limits(key);
        let find = |name: &Name| set.find(*name).map(|place| Name { length: place.stored, ..*name });
        let found: Vec<Name> = names.iter().filter_map(find).collect();
        written(&set, |limit| !found.contains(&limit.name) && limit.until() > self.at)
    }

    /// Both keys hold the same beside the limit that no other call names.
    fn compare(&self) {
        let sets = BOTH.map(|key| self.limits(key));
        let [alone, beside] = sets.each_ref().map(|set| written(set, |limit| is_plain(limit.name)));
        if alone.is_empty() == beside.is_empty() {
            return assert_eq!(alone, beside);
        }
        // One was fully reset, and was deleted or has expired. The other one is fully reset too, and both begin anew.
        let mut limits = sets.iter().flat_map(LimitSet::limits).filter(|limit| is_plain(limit.name));
        assert!(limits.all(|limit| limit.until() <= self.at));
        self.nodes.call(&format!("DEL {ALONE} {BESIDE}"));
        self.begin();
    }

    fn limits(&self, key: &str) -> LimitSet {
        self.nodes.limits(key).map(|(set, _)| set).unwrap_or_default()
    }

    /// The limit that a limiter's own command is about.
    pub fn stored<S: LimitState>(&self, name: Name) -> Option<S> {
        let set = self.limits(ALONE);
        set.get(set.find(name)?.stored).cloned()
    }

    /// After a charge of these limits, others that are fully reset are gone, unless a call would take another one of their
    /// limiter for them. A log is within the operator's bounds.
    pub fn charged(&self, names: &[Name]) {
        for (set, expiry) in BOTH.into_iter().filter_map(|key| self.nodes.limits(key)) {
            assert!(expiry > set.until());
            let counts = |limit: &&StoredLimit| limit.until() > self.at;
            let stay: Vec<Name> =
                set.limits().filter(counts).map(|limit| limit.name).chain(names.iter().copied()).collect();
            for StoredLimit { name, state } in set.limits() {
                let same = stay.iter().filter(|other| other.kind == name.kind && is_plain(**other));
                assert!(stay.contains(name) || is_plain(*name) && same.count() > 0, "{name:?} is gone");
                let log = state.get::<Log>();
                assert!(log.is_none_or(|log| log.entries(log.start()) <= BOUNDS.log_entries));
            }
        }
    }

    /// After something was given back, a key that is fully reset is gone.
    pub fn gave_back(&self) {
        let set = self.limits(ALONE);
        assert!(set.is_empty() || set.until() > self.at);
    }

    /// After a change at `now`, a key expires some slack after it is fully reset.
    pub fn expire(&self, now: Time) {
        for (set, expiry) in BOTH.into_iter().filter_map(|key| self.nodes.limits(key)) {
            let full = now.max(T0).plus(set.until().since(now));
            assert!(expiry >= full.plus(LEAST_SLACK), "{expiry:?} after {full:?}");
            assert!(
                expiry <= full.plus(MOST_SLACK) || set.until() == Time::HORIZON,
                "{expiry:?} after {full:?}"
            );
        }
    }
}

/// Whether it is no shadow, as the other limit is.
fn is_plain(name: Name) -> bool {
    !name.length.is_shadow()
}

/// Some limits of a set, each by its name and its bytes.
fn written(set: &LimitSet, which: impl Fn(&StoredLimit) -> bool) -> Vec<(Name, Vec<u8>)> {
    let limits = set.limits().filter(|limit| which(limit));
    limits.map(|limit| (limit.name, with_kept!(&limit.state, state => encoded(state.as_ref())))).collect()
}

fn told(reply: Reply) -> Told {
    match reply {
        Reply::Answer(answer) | Reply::Answers(answer, _) => Ok((Some(answer), None)),
        Reply::Six(answer, number) | Reply::SixAndEach(answer, number, _) => Ok((Some(answer), Some(number))),
        Reply::Integer(number) => Ok((None, Some(number))),
        Reply::Error(error) => Err(error),
        _ => panic!("another reply"),
    }
}
