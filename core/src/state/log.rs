//! When requests came and what they weighed, oldest first, in few bytes.
//!
//! An entry is the time since the one before it and, unless that is 1, its weight, each in as many bytes as it
//! needs: two or three for a request to a busy key. The bytes are cut into blocks that know what came before them.
//! So what has left a window is found by a search and a few steps, counted by a subtraction, and dropped by the
//! block.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::codec::{Reader, put_short};
use crate::count::MAX_DEBT;
use crate::time::{Span, Time};

/// The most entries of a block: what is read, at worst, to find a place in it.
const BLOCK: u64 = 64;

/// The most blocks that one charge drops: more than one charge can fill, so that any crowd is gone in the end, and
/// none stalls a call.
const DROPS: usize = 16;

/// Requests of one instant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Entry {
    pub at: Time,
    pub weight: u64,
}

/// A sum over entries since the log was made. It wraps; only differences mean something, and those never do.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Sum {
    weight: u64,
    entries: u64,
}

/// A place between two entries.
#[derive(Clone, Copy, Default, Debug)]
pub struct Place {
    block: usize,
    offset: usize,
    /// The instant of the entry before it; at the start of a block, of the one behind it.
    at: Time,
    /// Of all that was before it.
    sum: Sum,
}

impl Place {
    /// What lies between this place and a later one weighs.
    pub fn weight_to(self, later: Place) -> u64 {
        later.sum.weight.wrapping_sub(self.sum.weight)
    }
}

#[derive(Debug)]
struct Block {
    first: Time,
    before: Sum,
    bytes: Vec<u8>,
}

#[derive(Default, Debug)]
pub struct Log {
    pub(crate) last: Time,
    /// When the last entry was made, also if it was given back since; the epoch is never.
    pub(crate) entered: Time,
    /// When the log is fully reset.
    pub(crate) until: Time,
    newest: Time,
    end: Sum,
    /// All before this place was dropped; it is in the first block.
    gone: Place,
    blocks: VecDeque<Block>,
}

impl Log {
    /// The instant of the newest entry.
    pub fn newest(&self) -> Option<Time> {
        (!self.blocks.is_empty()).then_some(self.newest)
    }

    /// What the entries behind a place weigh.
    pub fn weight(&self, from: Place) -> u64 {
        self.end.weight.wrapping_sub(from.sum.weight)
    }

    /// How many entries there are behind a place.
    pub fn entries(&self, from: Place) -> u64 {
        self.end.entries.wrapping_sub(from.sum.entries)
    }

    /// Before the oldest entry.
    pub fn start(&self) -> Place {
        self.gone
    }

    /// The place behind all entries that passed, given that no entry passed before one that is older.
    pub fn place(&self, passed: impl Fn(Time) -> bool) -> Place {
        let block = self.blocks.partition_point(|block| passed(block.first)).saturating_sub(1);
        let mut place = self.enter(block);
        while let Some((_, behind)) = self.next(place).filter(|(entry, _)| passed(entry.at)) {
            place = behind;
        }
        place
    }

    /// The entry with which the entries behind a place come to weigh so much, and the place before it.
    pub fn reach_weight(&self, from: Place, weight: u64) -> Option<(Entry, Place)> {
        self.reach(from, weight, |sum| sum.weight).map(|(entry, before, _)| (entry, before))
    }

    /// The place behind so many entries, counted from another.
    pub fn reach_entries(&self, from: Place, entries: u64) -> Option<Place> {
        self.reach(from, entries, |sum| sum.entries).map(|(_, _, behind)| behind)
    }

    fn reach(&self, from: Place, much: u64, of: impl Fn(Sum) -> u64) -> Option<(Entry, Place, Place)> {
        let zero = of(self.blocks.front()?.before);
        let so_far = |sum| of(sum).wrapping_sub(zero);
        let goal = so_far(from.sum).saturating_add(much);
        let block = self.blocks.partition_point(|block| so_far(block.before) < goal).saturating_sub(1);
        let mut place = if block > from.block { self.enter(block) } else { from };
        loop {
            let (entry, behind) = self.next(place)?;
            if so_far(behind.sum) >= goal {
                return Some((entry, place, behind));
            }
            place = behind;
        }
    }

    /// A place nearer to the start if more would have to be dropped than one call should.
    pub fn nearer(&self, place: Place) -> Place {
        if place.block > DROPS { self.enter(DROPS) } else { place }
    }

    /// What [`Log::drop_up_to`] must be told to drop all before a place; nothing, if that is gone.
    pub fn up_to(&self, place: Place) -> Option<Time> {
        let step = if place.offset == 0 { Span::from_micros(1) } else { Span::ZERO };
        (place.sum != self.gone.sum).then(|| place.at.minus(step))
    }

    pub fn iter(&self) -> impl Iterator<Item = Entry> {
        let mut place = self.gone;
        core::iter::from_fn(move || {
            let (entry, behind) = self.next(place)?;
            place = behind;
            Some(entry)
        })
    }

    /// The start of a block, or of what is left of it.
    fn enter(&self, block: usize) -> Place {
        match self.blocks.get(block) {
            Some(found) if block > 0 => Place { block, offset: 0, at: found.first, sum: found.before },
            _ => self.gone,
        }
    }

    /// The entry behind a place, and the place behind that.
    fn next(&self, mut place: Place) -> Option<(Entry, Place)> {
        let mut bytes = &self.blocks.get(place.block)?.bytes;
        if place.offset == bytes.len() {
            bytes = &self.blocks.get(place.block + 1)?.bytes;
            place = self.enter(place.block + 1);
        }
        let mut reader = Reader::new(bytes.get(place.offset..)?);
        let Entry { at, weight } = read(&mut reader, place.at)?;
        let sum =
            Sum { weight: place.sum.weight.wrapping_add(weight), entries: place.sum.entries.wrapping_add(1) };
        let offset = bytes.len() - reader.len();
        Some((Entry { at, weight }, Place { offset, at, sum, ..place }))
    }

    /// Drops all entries up to this instant, with it.
    pub(super) fn drop_up_to(&mut self, at: Time) {
        let place = self.place(|entry| entry <= at);
        if self.entries(place) == 0 {
            return self.clear();
        }
        self.blocks.drain(..place.block);
        self.gone = Place { block: 0, ..place };
        if self.blocks.capacity() > 4 * self.blocks.len() {
            self.blocks.shrink_to(2 * self.blocks.len());
        }
    }

    /// Makes this the newest entry, whatever was there from its instant on; a weight of 0 is no entry.
    pub(super) fn end_with(&mut self, entry: Entry) {
        if !self.blocks.is_empty() && self.newest >= entry.at {
            let place = self.place(|older| older < entry.at);
            if place.sum == self.gone.sum {
                self.clear();
            } else {
                self.blocks.truncate(place.block + 1);
                self.blocks.iter_mut().skip(place.block).for_each(|block| block.bytes.truncate(place.offset));
                (self.newest, self.end) = (place.at, place.sum);
            }
        }
        if entry.weight > 0 {
            self.append(entry);
        }
    }

    /// Adds an entry behind all others.
    fn append(&mut self, entry: Entry) {
        let weight = entry.weight.min(MAX_DEBT.saturating_sub(self.weight(self.gone)));
        if weight == 0 {
            return;
        }
        let full = |block: &Block| self.end.entries.wrapping_sub(block.before.entries) >= BLOCK;
        if self.blocks.back().is_none_or(full) {
            self.open_block(entry.at);
        }
        let since = entry.at.since(self.newest);
        if let Some(block) = self.blocks.back_mut() {
            write(&mut block.bytes, since, weight);
        }
        self.newest = entry.at;
        self.end.weight = self.end.weight.wrapping_add(weight);
        self.end.entries = self.end.entries.wrapping_add(1);
    }

    fn clear(&mut self) {
        self.blocks.clear();
        self.gone = Place { sum: self.end, ..Place::default() };
    }

    /// Begins a block, whose first entry will be at this instant.
    fn open_block(&mut self, first: Time) {
        if let Some(full) = self.blocks.back_mut() {
            full.bytes.shrink_to_fit();
        } else {
            self.gone = Place { block: 0, offset: 0, at: first, sum: self.end };
            self.blocks.reserve_exact(1);
        }
        self.blocks.push_back(Block { first, before: self.end, bytes: Vec::new() });
        self.newest = first;
    }

    /// Moves all entries back by `step`; what would be before the epoch comes together there.
    pub(super) fn shift(&mut self, step: Span) {
        if self.gone.at.since(Time::EPOCH) >= step {
            // Entries are told by their distances: only where the blocks begin is moved.
            self.blocks.iter_mut().for_each(|block| block.first = block.first.minus(step));
            (self.gone.at, self.newest) = (self.gone.at.minus(step), self.newest.minus(step));
            return;
        }
        let mut moved = Log::default();
        for entry in self.iter() {
            let at = entry.at.minus(step);
            let already = if moved.newest() == Some(at) { moved.weight(moved.start()) } else { 0 };
            moved.end_with(Entry { at, weight: already.saturating_add(entry.weight) });
        }
        *self = Log { last: self.last, entered: self.entered, until: self.until, ..moved };
    }

    /// Bytes that the log holds outside itself.
    pub(super) fn allocated(&self) -> usize {
        let bytes: usize = self.blocks.iter().map(|block| block.bytes.capacity()).sum();
        self.blocks.capacity() * size_of::<Block>() + bytes
    }

    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }
}

/// Writes an entry that is so long after the one before it.
pub(super) fn write(out: &mut Vec<u8>, since: Span, weight: u64) {
    let weighs_one = weight == 1;
    put_short(out, since.as_micros() << 1 | u64::from(!weighs_one));
    if !weighs_one {
        put_short(out, weight);
    }
}

/// Reads the entry after that of `before`.
pub(super) fn read(reader: &mut Reader<'_>, before: Time) -> Option<Entry> {
    let head = reader.short()?;
    let weight = if head & 1 == 0 { 1 } else { reader.short()? };
    Some(Entry { at: before.plus(Span::from_micros(head >> 1)), weight })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::State;
    use super::*;

    fn at(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    fn plain(log: &Log) -> Vec<(u64, u64)> {
        log.iter().map(|entry| (entry.at.as_micros(), entry.weight)).collect()
    }

    proptest! {
        #[test]
        fn the_log_agrees_with_a_plain_list(
            steps in prop::collection::vec((0..2000u64, 1..400u64, 0..20u8), 1..600),
        ) {
            let mut log = Log::default();
            let mut list: Vec<(u64, u64)> = Vec::new();
            let mut now = 1_000_000;
            for (wait, weight, what) in steps {
                now += wait;
                match what {
                    0 => {
                        let up_to = now - 20 * weight;
                        log.drop_up_to(at(up_to));
                        list.retain(|(when, _)| *when > up_to);
                    }
                    1 => {
                        let from = now - 3 * weight;
                        log.end_with(Entry { at: at(from), weight: weight % 3 });
                        list.retain(|(when, _)| *when < from);
                        list.extend((weight % 3 > 0).then_some((from, weight % 3)));
                    }
                    2 if weight < 40 => {
                        // Sometimes so far that many would be before the epoch.
                        let step = (now - 1_000_000) * 2 / weight;
                        log.shift(Span::from_micros(step));
                        let mut moved: Vec<(u64, u64)> = Vec::new();
                        for (when, weight) in &list {
                            match moved.last_mut().filter(|(last, _)| *last == when.saturating_sub(step)) {
                                Some((_, already)) => *already += weight,
                                None => moved.push((when.saturating_sub(step), *weight)),
                            }
                        }
                        list = moved;
                    }
                    _ => {
                        let weight = if what % 4 == 0 { weight } else { 1 };
                        log.end_with(Entry { at: at(now), weight });
                        list.retain(|(when, _)| *when < now);
                        list.push((now, weight));
                    }
                }
                prop_assert_eq!(plain(&log), list.clone());
                prop_assert_eq!(log.newest().map(Time::as_micros), list.last().map(|(when, _)| *when));
            }
            for passed in [0, 1_000_000, now / 2, now - 20_000, now - 5000, now] {
                let place = log.place(|when| when.as_micros() <= passed);
                let rest: Vec<_> = list.iter().filter(|(when, _)| *when > passed).collect();
                let total = rest.iter().map(|(_, weight)| weight).sum::<u64>();
                prop_assert_eq!(log.entries(place), rest.len() as u64);
                prop_assert_eq!(log.weight(place), total);
                prop_assert_eq!(log.start().weight_to(place), log.weight(log.start()) - total);
                for goal in [1, 2, total / 2 + 1, total, total + 1] {
                    let mut sum = 0;
                    let there = rest.iter().find(|(_, weight)| { sum += weight; sum >= goal });
                    let found = log.reach_weight(place, goal);
                    prop_assert_eq!(found.map(|(entry, _)| entry.at.as_micros()), there.map(|(when, _)| *when));
                    if let Some((entry, before)) = found {
                        prop_assert_eq!(place.weight_to(before) + entry.weight, sum);
                    }
                }
                for goal in [1, rest.len() as u64 / 2, rest.len() as u64] {
                    if (1..=rest.len() as u64).contains(&goal) {
                        let behind = log.reach_entries(place, goal).unwrap();
                        prop_assert_eq!(log.entries(behind), rest.len() as u64 - goal);
                    }
                }
            }
        }
    }

    #[test]
    fn a_busy_log_takes_less_than_four_bytes_an_entry() {
        let mut log = Log::default();
        for i in 0..100_000 {
            // A hundred requests a second, never quite even.
            log.end_with(Entry { at: at(1_000_000 + i * 10_000 + i % 7 * 31), weight: 1 });
        }
        assert!(log.allocated() < 400_000, "{} bytes", log.allocated());
        let mut bytes = Vec::new();
        log.encode(&mut bytes);
        assert!(bytes.len() < 310_000, "{} bytes", bytes.len());
    }

    #[test]
    fn what_is_stored_never_weighs_more_than_can_be_added_up() {
        let mut log = Log::default();
        for i in 1..3000 {
            log.end_with(Entry { at: at(i), weight: crate::count::MAX_STORED });
        }
        assert_eq!(log.weight(log.start()), MAX_DEBT);
    }
}
