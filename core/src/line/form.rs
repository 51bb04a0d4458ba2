//! What lines look like to a search through all orders of events, which must know when it was at a place before.
//!
//! Two lines of the same form go on in the same way. So the form has all that lines are made of, but of a number only what is
//! ever compared: numbers of callers by their order, instants as the time that is left, tags by their distance from V. Each
//! field is named here, so the compiler asks for a new one.
//!
//! The search is `core/laws/src/every_order/`. Nothing else needs a form, and no line pays for it.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::claim::Caller;
use super::{AT_ONCE, AtKey, Ends, Line, Lines, MILLISECOND, Spot, Waiting};
use crate::state::{Leases, Name};
use crate::time::Time;

/// How lines are looked at.
pub struct View<'a> {
    pub now: Time,
    /// A tag that is further below the next one, as a cost of a tenant of weight 1, is taken to be this far below it.
    pub far: u64,
    /// The most by which settlements can still move a turn in one direction, as such a cost.
    pub moved: u64,
    /// What the hash of an id stands for.
    pub id: &'a dyn Fn(u64) -> u64,
    /// The table of leases of a key.
    pub table: &'a dyn Fn(u64) -> Option<&'a Leases>,
}

/// Takes the words of a form: those of a tenant with its name, all others with `None`.
pub type Sink<'a> = dyn FnMut(Option<&[u8]>, &[u64]) + 'a;

/// A form that is written.
pub(super) struct Words<'a> {
    pub(super) view: &'a View<'a>,
    /// All numbers of callers and of hungers, in order.
    numbers: Vec<Caller>,
    out: &'a mut Sink<'a>,
}

impl Words<'_> {
    /// Writes words that are of no tenant.
    pub(super) fn put(&mut self, words: &[u64]) {
        (self.out)(None, words);
    }

    pub(super) fn put_of(&mut self, tenant: &[u8], words: &[u64]) {
        (self.out)(Some(tenant), words);
    }

    /// The place of a number among those that there are.
    pub(super) fn rank(&self, caller: Caller) -> u64 {
        self.numbers.binary_search(&caller).map_or(u64::MAX, |rank| rank as u64)
    }

    /// The time that is left; all of it before the end of time.
    pub(super) fn left(&self, end: Time) -> u64 {
        if end == Time::END { u64::MAX } else { end.since(self.view.now).as_micros() }
    }

    pub(super) fn left_of(&self, end: Option<Time>) -> u64 {
        end.map_or(u64::MAX, |end| self.left(end))
    }

    fn which(&self, which: Ends) -> u64 {
        match which {
            Ends::All => u64::MAX,
            Ends::OfId(id) => (self.view.id)(id),
        }
    }
}

impl<K: Ord + Clone + Into<u64>> Lines<K> {
    /// As if a millisecond had passed for the hungers that have ended, and only for them: as many may be removed again.
    #[doc(hidden)]
    pub fn rest(&mut self) {
        self.removed = (Time::EPOCH, AT_ONCE);
    }

    /// Writes the form of all lines.
    #[doc(hidden)]
    pub fn form<'a>(&self, view: &'a View<'a>, out: &'a mut Sink<'a>) {
        let Lines {
            last: _,
            callers,
            keys,
            wakes,
            deadlines,
            due,
            nudged,
            hungers,
            looks,
            ending,
            all_over,
            is_late,
            removed: (began, left),
        } = self;
        let lines = || keys.values().flat_map(|at| at.lines.values());
        let mut numbers: Vec<Caller> =
            lines().flat_map(|line| line.tenants.numbers()).chain(callers.keys().copied()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let words = &mut Words { view, numbers, out };
        let may_remove = if view.now.since(*began) < MILLISECOND { *left } else { AT_ONCE };
        words.put(&[u64::from(*all_over), u64::from(*is_late), u64::from(may_remove)]);
        for (caller, Waiting { deadline, stands, away, moves }) in callers {
            let rank = words.rank(*caller);
            words.put(&[rank, words.left(*deadline), u64::from(*moves)]);
            let spots = stands.iter().map(|spot| (spot, 0)).chain(away.iter().map(|spot| (spot, 1)));
            for (Spot { key, name, critical, tenant }, is_away) in spots {
                let [key, name] = of_line(key, *name);
                words.put_of(tenant, &[rank, key, name, u64::from(*critical), is_away]);
            }
        }
        for (key, AtKey { callers, lines }) in keys {
            words.put(&[key.clone().into(), *callers as u64, lines.len() as u64]);
            for (name, line) in lines {
                line_form(line, of_line(key, *name), words);
            }
        }
        for (deadline, caller) in deadlines {
            words.put(&[words.left(*deadline), words.rank(*caller)]);
        }
        put_times(wakes, words);
        put_times(looks, words);
        words.put(&[due.len() as u64, u64::from(nudged.is_some()), ending.len() as u64]);
        for (key, name) in due.iter().chain(nudged) {
            words.put(&of_line(key, *name));
        }
        for (end, key, name, tenant) in hungers {
            let [key, name] = of_line(key, *name);
            words.put_of(tenant, &[words.left(*end), key, name]);
        }
        for (key, name, which) in ending {
            let [key, name] = of_line(key, *name);
            words.put(&[key, name, words.which(*which)]);
        }
    }
}

/// Where the turn of a tenant stands, in units of 2^-32: V, S and how far settlements can move S back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    pub passed: u128,
    pub start: u128,
    pub open: u128,
}

impl<K: Ord> Lines<K> {
    /// The turn of a tenant that waits for a limit or is hungry for it.
    #[doc(hidden)]
    pub fn turn(&self, key: &K, name: Name, tenant: &[u8]) -> Option<Turn> {
        self.keys.get(key)?.lines.get(&name)?.tenants.turn(tenant)
    }
}

fn line_form(line: &Line, [key, name]: [u64; 2], words: &mut Words<'_>) {
    let Line { tenants, first, is_kept, all_over, wake, look, is_due } = line;
    words.put(&[
        name,
        first.map_or(u64::MAX, |first| words.rank(first)),
        u64::from(*is_kept),
        u64::from(*all_over),
        words.left_of(*wake),
        words.left_of(*look),
        u64::from(*is_due),
    ]);
    tenants.form(key, words);
}

/// A line as two words.
fn of_line<K: Clone + Into<u64>>(key: &K, name: Name) -> [u64; 2] {
    [key.clone().into(), name.kind as u64]
}

fn put_times<K: Clone + Into<u64>>(times: &BTreeSet<(Time, K, Name)>, words: &mut Words<'_>) {
    words.put(&[times.len() as u64]);
    for (time, key, name) in times {
        let [key, name] = of_line(key, *name);
        words.put(&[words.left(*time), key, name]);
    }
}
