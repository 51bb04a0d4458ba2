//! Lines: callers that wait for limits, first come first served.
//!
//! A line belongs to a limit of a key. A caller stands in the lines of the limits that refuse it. Lines are in the order of
//! arrival, with critical callers before the others. Only the first of a line is tried.
//!
//! ```text
//! limit A refuses: 3, 5        limit B refuses: 4, 5
//!
//! A has room for two: 3 is admitted. Then 5 is tried: A admits it now, B has refused 4 before it.
//! So 5 leaves the line of A, and no caller waits for A because of B.
//! ```
//!
//! # Why no wake-up is lost
//!
//! Each line is in one of two states. It is *due*, so its first caller will be tried. Or its first caller has been tried
//! since it became the first, and the limit itself refused it; it is then tried again at the line's *wake*, when time has
//! passed, or when something marks the line as due. A line becomes due whenever its first caller leaves.
//!
//! # Why no caller keeps another one waiting for ever
//!
//! The caller that arrived first of all is the first of each line in which it stands, if it is critical there or no other
//! caller is. So it is tried whenever one of its limits may have room, and no waiting caller keeps it from any of them. A
//! caller of two limits still waits until both have room at once: no room is reserved for it.
//!
//! # Cost
//!
//! Each step takes time that is logarithmic in the number of callers, for each line that it names. Room for one caller
//! causes two trials: of the one that is admitted, and of the next one. A grant also marks the other lines of its key.
//! Callers that leave a line because of another limit cause a trial each.
//!
//! Nothing here reads a clock or decides on a request.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::ops::Bound::{Excluded, Unbounded};

use crate::state::Name;
use crate::time::{Span, Time};

/// The number of a caller. Later callers have greater numbers.
pub type Caller = u64;

/// Where a caller stands: in the line of a limit that refuses it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stand<K> {
    pub key: K,
    pub name: Name,
    /// Whether the caller comes before those that are not critical.
    pub critical: bool,
    /// The time after which the limit may admit the caller, if it is the first; `None` if time alone makes no room.
    pub retry: Option<Span>,
}

/// All lines.
///
/// Instants are those of a clock that is never set back.
#[derive(Debug)]
pub struct Lines<K> {
    last: Caller,
    callers: BTreeMap<Caller, Waiting<K>>,
    /// The lines of each key for which a caller waits.
    keys: BTreeMap<K, AtKey>,
    /// When the first caller of a line is tried again.
    wakes: BTreeSet<(Time, K, Name)>,
    deadlines: BTreeSet<(Time, Caller)>,
    /// The lines whose first callers are to be tried. Some of them may be empty by now.
    due: VecDeque<(K, Name)>,
    /// The line at which the last [`Lines::nudge`] ended.
    nudged: Option<(K, Name)>,
}

#[derive(Debug)]
struct Waiting<K> {
    deadline: Time,
    /// In the order of their keys.
    stands: Vec<Spot<K>>,
}

/// A caller in a line.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Spot<K> {
    key: K,
    name: Name,
    rank: Rank,
}

/// The order in a line: critical callers first, then by arrival.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Rank {
    ordinary: bool,
    caller: Caller,
}

#[derive(Debug, Default)]
struct AtKey {
    /// The number of callers that stand in one of the lines.
    callers: usize,
    lines: BTreeMap<Name, Line>,
}

#[derive(Debug, Default)]
struct Line {
    order: BTreeSet<Rank>,
    /// When the first caller is tried again, if that is known.
    wake: Option<Time>,
    /// Whether the line is in the list of those that are due.
    is_due: bool,
}

impl<K> Default for Lines<K> {
    fn default() -> Self {
        Lines::new()
    }
}

impl<K> Lines<K> {
    pub const fn new() -> Lines<K> {
        Lines {
            last: 0,
            callers: BTreeMap::new(),
            keys: BTreeMap::new(),
            wakes: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            due: VecDeque::new(),
            nudged: None,
        }
    }

    /// The number of callers.
    pub fn len(&self) -> usize {
        self.callers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.callers.is_empty()
    }
}

impl<K: Ord + Clone> Lines<K> {
    /// The number of callers that wait for limits of a key.
    pub fn at_key<Q: Ord + ?Sized>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        self.keys.get(key).map_or(0, |at| at.callers)
    }

    /// If a caller in the line of a limit comes before this one, returns the time until the first of the line is tried again.
    /// That is zero if the line is due, or if the time is not known. The caller `None` is one that arrives now.
    pub fn ahead<Q: Ord + ?Sized>(
        &self,
        key: &Q,
        name: Name,
        critical: bool,
        caller: Option<Caller>,
        now: Time,
    ) -> Option<Span>
    where
        K: Borrow<Q>,
    {
        let line = self.keys.get(key)?.lines.get(&name)?;
        let rank = Rank { ordinary: !critical, caller: caller.unwrap_or(Caller::MAX) };
        let wake = line.wake.filter(|_| !line.is_due);
        (*line.order.first()? < rank).then(|| wake.map_or(Span::ZERO, |wake| wake.since(now)))
    }

    /// The number of callers in the line of a limit that come before one that arrives now. All of them, unless it is critical.
    pub fn before<Q: Ord + ?Sized>(&self, key: &Q, name: Name, critical: bool) -> usize
    where
        K: Borrow<Q>,
    {
        let line = self.keys.get(key).and_then(|at| at.lines.get(&name));
        let last = Rank { ordinary: !critical, caller: Caller::MAX };
        line.map_or(0, |line| line.order.range(..last).count())
    }

    /// Whether a caller still waits.
    pub fn waits(&self, caller: Caller) -> bool {
        self.callers.contains_key(&caller)
    }

    /// The time that a caller has left.
    pub fn time_left(&self, caller: Caller, now: Time) -> Option<Span> {
        self.callers.get(&caller).map(|waiting| waiting.deadline.since(now))
    }

    /// Adds a caller that has been tried and refused.
    pub fn enter(&mut self, now: Time, deadline: Time, stands: Vec<Stand<K>>) -> Caller {
        self.last += 1;
        self.callers.insert(self.last, Waiting { deadline, stands: Vec::new() });
        self.deadlines.insert((deadline, self.last));
        self.stay(self.last, now, stands);
        self.last
    }

    /// After a caller was tried and refused: it stands in these lines, and leaves all others.
    pub fn stay(&mut self, caller: Caller, now: Time, mut stands: Vec<Stand<K>>) {
        let Some(waiting) = self.callers.get_mut(&caller) else { return };
        stands.sort_by(|a, b| (&a.key, a.name).cmp(&(&b.key, b.name)));
        let spot = |stand: &Stand<K>| Spot {
            key: stand.key.clone(),
            name: stand.name,
            rank: Rank { ordinary: !stand.critical, caller },
        };
        let new: Vec<Spot<K>> = stands.iter().map(spot).collect();
        let old = core::mem::replace(&mut waiting.stands, new.clone());
        for key in keys_of(&new) {
            self.keys.entry(key.clone()).or_default().callers += 1;
        }
        for (spot, stand) in new.iter().zip(&stands) {
            self.stand(spot, stand.retry.map(|retry| now.plus(retry)));
        }
        for spot in old.iter().filter(|spot| !new.contains(spot)) {
            self.step_out(spot);
        }
        for key in keys_of(&old) {
            self.forget_at(key);
        }
    }

    /// Removes a caller. Returns whether it waited.
    pub fn leave(&mut self, caller: Caller) -> bool {
        let Some(waiting) = self.callers.remove(&caller) else { return false };
        self.deadlines.remove(&(waiting.deadline, caller));
        waiting.stands.iter().for_each(|spot| self.step_out(spot));
        keys_of(&waiting.stands).for_each(|key| self.forget_at(key));
        true
    }

    /// Marks the lines of a key as due: one of its limits may have room.
    pub fn mark<Q: Ord + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        let Some((key, at)) = self.keys.get_key_value(key) else { return };
        let names: Vec<Name> = at.lines.keys().copied().collect();
        let key = key.clone();
        for name in names {
            self.make_due(&key, name);
        }
    }

    /// Marks all lines as due.
    pub fn mark_all(&mut self) {
        self.nudge(self.keys.values().map(|at| at.lines.len()).sum());
    }

    /// Marks the next `count` lines, in turn. This finds changes that no event reports.
    pub fn nudge(&mut self, count: usize) {
        for _ in 0..count {
            let Some((key, name)) = self.after_nudged().or_else(|| self.first_line()) else { return };
            self.make_due(&key, name);
            self.nudged = Some((key, name));
        }
    }

    /// The line after the one that was nudged last.
    fn after_nudged(&self) -> Option<(K, Name)> {
        let (key, name) = self.nudged.as_ref()?;
        let of_key = self.keys.get(key).and_then(|at| at.lines.range((Excluded(name), Unbounded)).next());
        if let Some((name, _)) = of_key {
            return Some((key.clone(), *name));
        }
        let (key, at) = self.keys.range((Excluded(key), Unbounded)).next()?;
        Some((key.clone(), *at.lines.keys().next()?))
    }

    fn first_line(&self) -> Option<(K, Name)> {
        let (key, at) = self.keys.first_key_value()?;
        Some((key.clone(), *at.lines.keys().next()?))
    }

    /// A caller whose deadline has passed. It still waits, but is not returned again.
    pub fn timed_out(&mut self, now: Time) -> Option<Caller> {
        let (deadline, _) = self.deadlines.first()?;
        if *deadline > now { None } else { self.deadlines.pop_first().map(|(_, caller)| caller) }
    }

    /// The first caller of the next line that is due. It must be tried: then it leaves, or it stays.
    pub fn due(&mut self, now: Time) -> Option<Caller> {
        if self.wakes.first().is_some_and(|(wake, ..)| *wake <= now)
            && let Some((_, key, name)) = self.wakes.pop_first()
        {
            self.line(&key, name).into_iter().for_each(|line| line.wake = None);
            self.make_due(&key, name);
        }
        while let Some((key, name)) = self.due.pop_front() {
            let Some(line) = self.line(&key, name) else { continue };
            line.is_due = false;
            if let Some(first) = line.order.first() {
                return Some(first.caller);
            }
        }
        None
    }

    /// The next deadline.
    pub fn next_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// When [`Lines::due`] returns a caller again; [`Time::EPOCH`] if it does now.
    pub fn next_due(&self) -> Option<Time> {
        if self.due.is_empty() { self.wakes.first().map(|(wake, ..)| *wake) } else { Some(Time::EPOCH) }
    }

    fn line(&mut self, key: &K, name: Name) -> Option<&mut Line> {
        self.keys.get_mut(key)?.lines.get_mut(&name)
    }

    fn make_due(&mut self, key: &K, name: Name) {
        if let Some(line) = self.line(key, name).filter(|line| !line.is_due) {
            line.is_due = true;
            self.due.push_back((key.clone(), name));
        }
    }

    /// Puts a caller in a line, in which it may stand already. If it is the first, the line wakes at `wake`.
    fn stand(&mut self, spot: &Spot<K>, wake: Option<Time>) {
        let Some(at) = self.keys.get_mut(&spot.key) else { return };
        let line = at.lines.entry(spot.name).or_default();
        line.order.insert(spot.rank);
        if line.order.first() == Some(&spot.rank) {
            let old = core::mem::replace(&mut line.wake, wake);
            move_wake(&mut self.wakes, spot, old, wake);
        }
    }

    /// Takes a caller out of a line. If it was the first, the line becomes due.
    fn step_out(&mut self, spot: &Spot<K>) {
        let Some(at) = self.keys.get_mut(&spot.key) else { return };
        let Some(line) = at.lines.get_mut(&spot.name) else { return };
        let was_first = line.order.first() == Some(&spot.rank);
        line.order.remove(&spot.rank);
        if was_first {
            let old = line.wake.take();
            if line.order.is_empty() {
                at.lines.remove(&spot.name);
            }
            move_wake(&mut self.wakes, spot, old, None);
            self.make_due(&spot.key, spot.name);
        }
    }

    /// Counts one caller fewer at a key, and forgets a key without callers.
    fn forget_at(&mut self, key: &K) {
        let Some(at) = self.keys.get_mut(key) else { return };
        at.callers -= 1;
        if at.callers == 0 {
            self.keys.remove(key);
        }
    }
}

/// The keys of a caller's spots, each once.
fn keys_of<K: Ord>(spots: &[Spot<K>]) -> impl Iterator<Item = &K> {
    spots.chunk_by(|a, b| a.key == b.key).filter_map(|spots| spots.first()).map(|spot| &spot.key)
}

fn move_wake<K: Ord + Clone>(
    wakes: &mut BTreeSet<(Time, K, Name)>,
    spot: &Spot<K>,
    old: Option<Time>,
    new: Option<Time>,
) {
    if old != new {
        let entry = |time| (time, spot.key.clone(), spot.name);
        if let Some(old) = old {
            wakes.remove(&entry(old));
        }
        wakes.extend(new.map(entry));
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec;

    use super::*;
    use crate::state::{Leases, Length};
    use crate::testing::T0;

    fn leases() -> Name {
        Name::of::<Leases>(Length::NONE)
    }

    fn at(millis: u64) -> Time {
        T0.plus(Span::from_millis(millis))
    }

    /// A stand in the line of a key's leases, which may have room in `millis` milliseconds.
    fn stand(key: &str, millis: u64) -> Stand<String> {
        let retry = Some(Span::from_millis(millis));
        Stand { key: key.into(), name: leases(), critical: false, retry }
    }

    fn critical(key: &str, millis: u64) -> Stand<String> {
        Stand { critical: true, ..stand(key, millis) }
    }

    /// Adds a caller at [`T0`] that waits for at most 9 s.
    fn enter(lines: &mut Lines<String>, stands: Vec<Stand<String>>) -> Caller {
        lines.enter(T0, at(9000), stands)
    }

    /// Whether others come before a caller in the line of a key, or before one that arrives now.
    fn is_behind(lines: &Lines<String>, key: &str, caller: Option<Caller>) -> bool {
        lines.ahead(key, leases(), false, caller, T0).is_some()
    }

    #[test]
    fn who_is_refused_by_one_limit_leaves_the_line_of_the_other() {
        let mut lines = Lines::new();
        let first = enter(&mut lines, vec![stand("a", 50)]);
        let second = enter(&mut lines, vec![stand("b", 50)]);
        let both = enter(&mut lines, vec![stand("a", 50), stand("b", 50)]);
        assert_eq!((lines.at_key("a"), lines.at_key("b"), lines.at_key("c")), (2, 2, 0));
        assert!(is_behind(&lines, "a", Some(both)) && is_behind(&lines, "b", None));

        lines.mark("a");
        assert_eq!(lines.due(T0), Some(first));
        assert!(lines.leave(first));
        assert_eq!(lines.due(T0), Some(both));
        assert!(!is_behind(&lines, "a", Some(both)) && is_behind(&lines, "b", Some(both)));
        lines.stay(both, T0, vec![stand("b", 0)]);
        assert!(!is_behind(&lines, "a", None) && lines.at_key("a") == 0);
        assert_eq!(lines.due(T0), None);

        assert!(lines.leave(second));
        assert_eq!(lines.due(T0), Some(both));
    }

    #[test]
    fn critical_callers_come_before_others_and_among_themselves_by_arrival() {
        let mut lines = Lines::new();
        let ordinary = enter(&mut lines, vec![stand("a", 50)]);
        let urgent = enter(&mut lines, vec![critical("a", 50)]);
        let later = enter(&mut lines, vec![critical("a", 50)]);
        for caller in [urgent, later, ordinary] {
            lines.mark("a");
            assert_eq!(lines.due(T0), Some(caller));
            assert!(lines.leave(caller));
        }
        assert!(lines.is_empty());
    }

    #[test]
    fn a_caller_that_moves_back_by_its_arrival_sets_the_wake_of_the_line() {
        let mut lines = Lines::new();
        let first = enter(&mut lines, vec![stand("b", 90)]);
        let second = enter(&mut lines, vec![stand("a", 50)]);
        assert_eq!(lines.next_due(), Some(at(50)));
        lines.stay(first, at(10), vec![stand("a", 20), stand("b", 80)]);
        assert_eq!(lines.next_due(), Some(at(30)));
        assert_eq!(lines.ahead("a", leases(), false, None, at(10)), Some(Span::from_millis(20)));
        // The second's own wake does not count any more.
        assert_eq!(lines.due(at(30)), Some(first));
        lines.stay(first, at(30), vec![stand("a", 70), stand("b", 60)]);
        assert_eq!(lines.due(at(50)), None);
        assert_eq!(lines.next_due(), Some(at(90)));
        // When the first leaves, the second is tried.
        assert!(lines.leave(first));
        assert_eq!(lines.next_due(), Some(Time::EPOCH));
        assert_eq!((lines.due(at(50)), lines.due(at(50))), (Some(second), None));
    }

    #[test]
    fn without_a_retry_a_line_wakes_only_when_it_is_marked() {
        let mut lines = Lines::new();
        let caller = enter(&mut lines, vec![Stand { retry: None, ..stand("a", 0) }]);
        assert_eq!((lines.next_due(), lines.due(at(8000))), (None, None));
        assert_eq!(lines.ahead("a", leases(), false, None, T0), Some(Span::ZERO));
        lines.mark("b");
        assert_eq!(lines.next_due(), None);
        lines.mark("a");
        lines.mark("a");
        assert_eq!((lines.due(T0), lines.due(T0)), (Some(caller), None));
    }

    #[test]
    fn nudges_mark_the_keys_in_turn() {
        let mut lines = Lines::new();
        let callers = ["a", "b", "c"].map(|key| enter(&mut lines, vec![stand(key, 50)]));
        for turn in [[0, 1], [2, 0], [1, 2]] {
            lines.nudge(2);
            let due = [lines.due(T0), lines.due(T0), lines.due(T0)];
            assert_eq!(due, [Some(callers[turn[0]]), Some(callers[turn[1]]), None]);
        }
        lines.mark_all();
        let due = [lines.due(T0), lines.due(T0), lines.due(T0)];
        assert_eq!(due, callers.map(Some));
        lines.nudge(1);
        assert_eq!(lines.due(T0), Some(callers[0]));
        // The key where the last nudge ended is gone.
        assert!(lines.leave(callers[0]));
        lines.nudge(9);
        assert_eq!([lines.due(T0), lines.due(T0), lines.due(T0)], [Some(callers[1]), Some(callers[2]), None]);
    }

    #[test]
    fn a_line_that_is_emptied_and_filled_again_is_marked_anew() {
        let mut lines = Lines::new();
        let caller = enter(&mut lines, vec![stand("a", 50)]);
        lines.mark("a");
        assert!(lines.leave(caller));
        assert_eq!((lines.len(), lines.at_key("a"), lines.next_deadline()), (0, 0, None));
        assert_eq!((lines.due(T0), lines.next_due()), (None, None));
        let caller = enter(&mut lines, vec![stand("a", 50)]);
        lines.mark("a");
        assert_eq!(lines.due(T0), Some(caller));
    }
}
