//! Several limits under one key: each with a state of its own, and one expiry for all.
//!
//! A limit is known by its limiter and its length of time: period, window, interval or ttl. So "10 per second and 240
//! per hour" are two limits, and 12 per second instead of 10 is the first of them with another parameter. What a call
//! does not name stays as it is until it is as good as new, which each limit remembers of its last charge.
//!
//! A key with a single limit holds that limit's state and nothing else. It becomes one of several when another one is
//! named, and stands alone again when the others have faded. Most states do not know their length of time while they
//! stand alone; then the limit is the one of that limiter that is named, and of several of them the longest, whose
//! loss would grant the most.
//!
//! Source: Josiah Carlson's hash of windows (seed 003), without its traps: no name is made up, and windows that a call
//! does not name are neither lost nor kept for ever.

use std::mem::take;

use super::catalog::{AnyState, Kept};
use super::codec::{Reader, put};
use super::several_change::Change;
use super::{Kind, State, with_state};
use crate::time::{Span, Time};

/// The most limits of a key.
pub const MOST_LIMITS: usize = 64;

/// What tells a limit from the others of its key; no length of time if it is not known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Name {
    pub kind: Kind,
    pub span: Span,
}

impl Name {
    pub fn of<S: State>(span: Span) -> Name {
        Name { kind: S::KIND, span }
    }

    /// The length of time by which a limit goes of which only the kind is known: that of the longest of those named
    /// that has no state of its own.
    pub fn resolve(self, named: &[Name], stored: impl Fn(Name) -> bool) -> Name {
        let candidates = named.iter().filter(|name| name.kind == self.kind && !stored(**name));
        candidates.max().copied().unwrap_or(self)
    }

    pub(super) fn encode(self, out: &mut Vec<u8>) {
        out.push(self.kind as u8);
        put(out, self.span.as_micros());
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Option<Name> {
        // None within another.
        let kind =
            Kind::from_byte(reader.byte()?).filter(|kind| ![Kind::Several, Kind::Amount].contains(kind))?;
        Some(Name { kind, span: Span::from_micros(reader.word_up_to(Span::CENTURY.as_micros())?) })
    }
}

/// A limit of several.
#[derive(Debug)]
pub struct Stored {
    pub name: Name,
    /// When it is as good as new.
    pub until: Time,
    pub state: AnyState,
}

/// The limits in the order of their names, so that the bytes depend on nothing but them.
#[derive(Default, Debug)]
pub struct Several {
    pub(super) limits: Vec<Stored>,
    /// The last change said that the only limit is to stand alone.
    pub(super) alone: bool,
}

impl Several {
    /// The limit that stood alone, as the first of several.
    pub fn adopting(name: Name, until: Time, state: AnyState) -> Several {
        Several { limits: vec![Stored { name, until, state }], alone: false }
    }

    pub fn limits(&self) -> &[Stored] {
        &self.limits
    }

    pub fn get<S: State + Kept>(&self, span: Span) -> Option<&S> {
        let place = self.place(Name::of::<S>(span)).ok()?;
        self.limits.get(place).and_then(|limit| S::of(&limit.state))
    }

    pub fn has(&self, name: Name) -> bool {
        self.place(name).is_ok()
    }

    /// When the last of them is as good as new.
    pub fn until(&self) -> Time {
        self.limits.iter().map(|limit| limit.until).max().unwrap_or_default()
    }

    /// The state of the only limit, if it is to stand alone.
    pub fn leave(&mut self) -> Option<AnyState> {
        let alone = take(&mut self.alone) && self.limits.len() == 1;
        if alone { self.limits.pop().map(|limit| limit.state) } else { None }
    }

    fn place(&self, name: Name) -> Result<usize, usize> {
        self.limits.binary_search_by(|limit| limit.name.cmp(&name))
    }

    pub(super) fn insert(&mut self, limit: Stored) {
        if let Err(place) = self.place(limit.name)
            && self.limits.len() < MOST_LIMITS
        {
            self.limits.reserve_exact(1);
            self.limits.insert(place, limit);
        }
    }

    pub(super) fn remove(&mut self, name: Name) -> Option<Stored> {
        self.place(name).ok().map(|place| self.limits.remove(place))
    }

    /// The limit of this name, which is made if there is none and room for one.
    pub(super) fn limit(&mut self, name: Name) -> Option<&mut Stored> {
        let place = self.place(name).or_else(|_| {
            let state = with_state!(name.kind, S => S::blank().kept());
            self.insert(Stored { name, until: Time::default(), state });
            self.place(name)
        });
        self.limits.get_mut(place.ok()?)
    }

    /// Applies a change to the state of a limit, and notes when it is as good as new as `until` tells of the state
    /// after it. Where the type is known, this is what [`Change::Limit`] does.
    pub fn apply_to<S: State + Kept>(
        &mut self,
        span: Span,
        change: S::Change<'_>,
        until: impl FnOnce(&S) -> Time,
    ) -> Time {
        self.alone = false;
        let Some(limit) = self.limit(Name::of::<S>(span)) else { return Time::default() };
        if let Some(state) = S::of_mut(&mut limit.state) {
            state.apply(change);
            limit.until = Change::writable(until(state));
        }
        limit.until
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Arrival, Gcra, Limiter, SlidingWindow};
    use super::*;
    use crate::limit::laws::T0;

    fn name(millis: u64) -> Name {
        Name::of::<Arrival>(Span::from_millis(millis))
    }

    /// Applies a change by way of its bytes, twice.
    fn tell(several: &mut Several, change: Change<'_>) {
        let mut bytes = Vec::new();
        change.put(&mut bytes);
        for _ in 0..2 {
            let mut reader = Reader::new(&bytes);
            several.apply(Several::decode_change(&mut reader).unwrap());
            assert!(reader.is_empty());
        }
    }

    fn charge(several: &mut Several, millis: u64) {
        let gcra = Gcra { limit: 10, count: 1, period: Span::from_millis(millis) };
        let mut change = Vec::new();
        Arrival::encode_change(&gcra.charge(&gcra.fresh(T0), T0, 1), &mut change);
        tell(several, Change::Limit { name: name(millis), until: T0, change: &change });
    }

    fn charge_each(several: &mut Several, millis: impl IntoIterator<Item = u64>) {
        for millis in millis {
            charge(several, millis);
        }
    }

    fn encoded(several: &Several) -> Vec<u8> {
        let mut bytes = Vec::new();
        several.encode(&mut bytes);
        bytes
    }

    #[test]
    fn limits_are_kept_in_the_order_of_their_names_whoever_came_first() {
        let (mut one, mut other) = (Several::blank(), Several::blank());
        charge_each(&mut one, [3000, 1000, 2000]);
        charge_each(&mut other, [1000, 2000, 3000]);
        assert_eq!(encoded(&one), encoded(&other));
        let again = Several::decode(&mut Reader::new(&encoded(&one))).unwrap();
        assert_eq!(encoded(&again), encoded(&one));
    }

    #[test]
    fn a_limit_of_unknown_length_is_the_longest_that_is_named_and_has_no_state() {
        let unknown = name(0);
        assert_eq!(unknown.resolve(&[name(1000), name(3000), name(2000)], |_| false), name(3000));
        assert_eq!(unknown.resolve(&[name(1000), name(3000)], |stored| stored == name(3000)), name(1000));
        let window = Name::of::<<SlidingWindow as Limiter>::State>(Span::from_millis(5000));
        assert_eq!(unknown.resolve(&[window], |_| false), unknown);
        let mut several = Several::adopting(unknown, T0, Arrival::blank().kept());
        tell(&mut several, Change::Know { name: name(3000) });
        assert!(several.has(name(3000)) && !several.has(unknown));
    }

    #[test]
    fn only_a_single_limit_leaves_and_only_when_it_is_told_so() {
        let mut several = Several::blank();
        charge_each(&mut several, [1000, 2000]);
        tell(&mut several, Change::Alone);
        assert!(several.leave().is_none());
        tell(&mut several, Change::Gone { name: name(1000) });
        assert!(several.leave().is_none());
        tell(&mut several, Change::Alone);
        assert!(several.leave().is_some());
        assert!(several.limits().is_empty());
    }

    #[test]
    fn no_more_than_64_are_held_and_none_within_another() {
        let mut several = Several::blank();
        charge_each(&mut several, 1..=70);
        assert_eq!(several.limits().len(), MOST_LIMITS);
        let nested = Name { kind: Kind::Several, span: Span::ZERO };
        for change in [Change::Gone { name: nested }, Change::Adopt { name: nested, until: T0 }] {
            let mut bytes = Vec::new();
            change.put(&mut bytes);
            assert!(Several::decode_change(&mut Reader::new(&bytes)).is_none());
        }
        let twice = Several { limits: Vec::new(), alone: false };
        let mut bytes = encoded(&twice);
        bytes[0] = 2;
        let mut one = Several::blank();
        charge(&mut one, 1000);
        bytes.extend_from_slice(&encoded(&one)[8..]);
        bytes.extend_from_slice(&encoded(&one)[8..]);
        assert!(Several::decode(&mut Reader::new(&bytes)).is_none(), "the same limit twice");
    }
}
