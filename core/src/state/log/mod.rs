//! A log of requests: their ages and weights, oldest first, in few bytes.
//!
//! An entry is encoded as the time since the entry before it, and its weight if that is not 1. Each takes as many bytes
//! as its number needs: two or three for a request to a busy key.
//!
//! Entries are grouped into blocks. Each block stores the sums over all entries before it. So a binary search and a few
//! steps find the position where a window begins. A subtraction computes the weight after it.
//!
//! A log can lose a million entries at once: they leave the window, or they are refunded. Then only `start` or `end`
//! moves. Each change frees a few of the blocks outside.
//!
//! ```text
//! blocks   [ freed next ] [ .. start | entries ] [ entries ] [ entries | end .. ] [ freed next ]
//! ```

mod edit;
mod stored;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

pub use stored::Change;

use super::codec::{Reader, put_short};
use super::timeline::Timeline;
use crate::time::Span;

/// The most entries of a block. At worst, finding a position reads them all.
const BLOCK: u64 = 64;

/// The most blocks that one change frees. A change fills at most one, so later changes free the rest.
const FREED: usize = 16;

/// All requests of one instant, and the sum of their costs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Entry {
    /// The time from the entry to the last charge.
    pub age: Span,
    pub weight: u64,
}

/// A sum over all entries since the log was made. Sums wrap around, so only their differences have a meaning.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Sum {
    weight: u64,
    entries: u64,
}

/// A position between two entries.
#[derive(Clone, Copy, Default, Debug)]
pub struct Position {
    block: u32,
    /// The offset in the block's bytes.
    offset: u32,
    /// The tick of the entry before the position; at the start of a block, of the entry after it.
    tick: u64,
    /// The sum over the entries before the position.
    sum: Sum,
}

impl Position {
    /// The weight of the entries between this position and a later one.
    pub fn weight_to(self, later: Position) -> u64 {
        later.sum.weight.wrapping_sub(self.sum.weight)
    }
}

/// A run of entries.
#[derive(Clone, Debug)]
struct Block {
    /// The tick of the first entry.
    first: u64,
    /// The sum over the entries before the block.
    before: Sum,
    bytes: Vec<u8>,
}

/// A log of requests.
///
/// Ticks of entries are the low 64 bits of the timeline's. This suffices, as no entry is older than [`Span::CENTURY`].
#[derive(Clone, Debug)]
pub struct Log {
    timeline: Timeline,
    /// The time from the last entry to the last charge, even if that entry was refunded; [`Span::FOREVER`] if there was
    /// none.
    entered: Span,
    /// The time from the last charge until the log is fully reset.
    reset: Span,
    /// The position before the oldest entry.
    start: Position,
    /// The position after the newest entry.
    end: Position,
    blocks: VecDeque<Block>,
}

impl Log {
    fn is_empty(&self) -> bool {
        self.start.sum == self.end.sum
    }

    /// The age of the newest entry.
    pub fn newest(&self) -> Option<Span> {
        (!self.is_empty()).then(|| self.age(self.end.tick))
    }

    /// The time from the last entry to the last charge, even if that entry was refunded; `None` if there was none.
    pub fn entered(&self) -> Option<Span> {
        (self.entered < Span::FOREVER).then_some(self.entered)
    }

    /// The time from the last charge until the log is fully reset.
    pub fn reset(&self) -> Span {
        self.reset
    }

    /// The weight of the entries after a position.
    pub fn weight(&self, from: Position) -> u64 {
        from.weight_to(self.end)
    }

    /// The number of entries after a position.
    pub fn entries(&self, from: Position) -> u64 {
        self.end.sum.entries.wrapping_sub(from.sum.entries)
    }

    /// The position before the oldest entry.
    pub fn start(&self) -> Position {
        self.start
    }

    /// The position between the entries that passed and the others. `passed` must hold for the oldest entries only.
    pub fn position(&self, passed: impl Fn(Span) -> bool) -> Position {
        let mut position = self.last_block(self.start, |block| passed(self.age(block.first)));
        while let Some((_, after)) = self.next(position).filter(|(entry, _)| passed(entry.age)) {
            position = after;
        }
        position
    }

    /// The entry of this age, and the number of its block.
    fn find(&self, age: Span) -> Option<(Entry, u32)> {
        let (entry, after) = self.next(self.position(|older| older > age))?;
        (entry.age == age).then_some((entry, after.block))
    }

    /// The weight of the entry of this age.
    pub fn weight_at(&self, age: Span) -> Option<u64> {
        self.find(age).map(|(entry, _)| entry.weight)
    }

    /// The first entry at which the weight counted from a position reaches `weight`, and the position before it.
    pub fn reach_weight(&self, from: Position, weight: u64) -> Option<(Entry, Position)> {
        self.reach(from, weight, |sum| sum.weight).map(|(entry, before, _)| (entry, before))
    }

    /// The position `entries` entries after another; `None` if there are fewer.
    pub fn reach_entries(&self, from: Position, entries: u64) -> Option<Position> {
        self.reach(from, entries, |sum| sum.entries).map(|(_, _, after)| after)
    }

    /// The first entry at which the sum `of`, counted from a position, reaches `goal`, and the positions around it.
    fn reach(
        &self,
        from: Position,
        goal: u64,
        of: impl Fn(Sum) -> u64,
    ) -> Option<(Entry, Position, Position)> {
        let so_far = |sum| of(sum).wrapping_sub(of(from.sum));
        let mut position = self.last_block(from, |block| so_far(block.before) < goal);
        loop {
            let (entry, after) = self.next(position)?;
            if so_far(after.sum) >= goal {
                return Some((entry, position, after));
            }
            position = after;
        }
    }

    /// The start of the last block after `from` for which `holds` does; `from` if it holds for none. It must hold for
    /// the oldest blocks only.
    fn last_block(&self, from: Position, holds: impl Fn(&Block) -> bool) -> Position {
        let (mut low, mut high) = (from.block, self.end.block);
        while low < high {
            let middle = high - (high - low) / 2;
            if self.block(middle).is_some_and(&holds) { low = middle } else { high = middle - 1 }
        }
        if low > from.block { self.start_of(low) } else { from }
    }

    /// The age such that `drop_from_age` drops exactly the entries before a position; `None` if there are none.
    pub fn age_before(&self, position: Position) -> Option<Span> {
        (position.sum != self.start.sum).then(|| self.age(position.tick))
    }

    pub fn iter(&self) -> impl Iterator<Item = Entry> {
        let mut position = self.start;
        core::iter::from_fn(move || {
            let (entry, after) = self.next(position)?;
            position = after;
            Some(entry)
        })
    }

    /// The time from a tick of an entry to the last charge.
    fn age(&self, tick: u64) -> Span {
        Span::from_micros(self.timeline.tick.micros.wrapping_sub(tick))
    }

    fn block(&self, number: u32) -> Option<&Block> {
        self.blocks.get(number as usize)
    }

    /// The position before the first entry of a block after the one with `start`.
    fn start_of(&self, number: u32) -> Position {
        let start =
            |block: &Block| Position { block: number, offset: 0, tick: block.first, sum: block.before };
        self.block(number).map_or(self.end, start)
    }

    /// The entry after a position, and the position after that entry.
    fn next(&self, mut position: Position) -> Option<(Entry, Position)> {
        if position.sum == self.end.sum {
            return None;
        }
        let mut bytes = &self.block(position.block)?.bytes;
        if position.offset as usize == bytes.len() {
            bytes = &self.block(position.block + 1)?.bytes;
            position = self.start_of(position.block + 1);
        }
        let mut reader = Reader::new(bytes.get(position.offset as usize..)?);
        let (since, weight) = read(&mut reader)?;
        let tick = position.tick.wrapping_add(since.as_micros());
        let Sum { weight: before, entries } = position.sum;
        let sum = Sum { weight: before.wrapping_add(weight), entries: entries.wrapping_add(1) };
        let offset = offset(bytes.len() - reader.len());
        Some((Entry { age: self.age(tick), weight }, Position { offset, tick, sum, ..position }))
    }

    /// Frees a few blocks that hold no entries.
    fn tidy(&mut self) {
        for _ in 0..FREED {
            if self.start.block > 0 {
                self.blocks.pop_front();
                self.start.block -= 1;
                self.end.block -= 1;
            } else if self.blocks.len() > self.end.block as usize + 1 {
                self.blocks.pop_back();
            } else {
                break;
            }
        }
        if self.blocks.capacity() > 4 * self.blocks.len() {
            self.blocks.shrink_to(2 * self.blocks.len());
        }
    }

    /// The bytes that the log has allocated.
    fn allocated(&self) -> usize {
        let bytes: usize = self.blocks.iter().map(|block| block.bytes.capacity()).sum();
        self.blocks.capacity() * size_of::<Block>() + bytes
    }

    /// The number of blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }
}

/// An offset in a block's bytes. They are fewer than 2^11.
fn offset(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Writes an entry that is `since` after the one before it.
fn write(out: &mut Vec<u8>, since: Span, weight: u64) {
    let weighs_one = weight == 1;
    put_short(out, since.as_micros() << 1 | u64::from(!weighs_one));
    if !weighs_one {
        put_short(out, weight);
    }
}

/// Reads an entry: the time since the one before it, and its weight.
fn read(reader: &mut Reader<'_>) -> Option<(Span, u64)> {
    let head = reader.short()?;
    let weight = if head & 1 == 0 { 1 } else { reader.short()? };
    Some((Span::from_micros(head >> 1), weight))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::State;
    use super::*;
    use crate::count::{MAX_DEBT, MAX_STORED};
    use crate::time::Time;

    fn micros(micros: u64) -> Span {
        Span::from_micros(micros)
    }

    /// The ticks and weights of all entries.
    fn plain(log: &Log) -> Vec<(u64, u64)> {
        log.iter().map(|entry| (log.timeline.tick.micros - entry.age.as_micros(), entry.weight)).collect()
    }

    proptest! {
        #[test]
        fn the_log_agrees_with_a_plain_list(
            steps in prop::collection::vec((0..2000u64, 1..400u64, 0..20u8), 1..600),
        ) {
            let mut log = Log::blank();
            let mut list: Vec<(u64, u64)> = Vec::new();
            log.timeline.set(Time::from_micros(1_000_000));
            for (wait, weight, what) in steps {
                log.timeline.set(log.timeline.last.plus(micros(wait)));
                let now = log.timeline.tick.micros;
                match what {
                    0 => {
                        log.drop_from_age(micros(20 * weight));
                        list.retain(|(when, _)| now - when < 20 * weight);
                    }
                    1 => {
                        let from = now - 3 * weight;
                        log.end_with(Entry { age: micros(3 * weight), weight: weight % 3 });
                        list.retain(|(when, _)| *when < from);
                        list.extend((weight % 3 > 0).then_some((from, weight % 3)));
                    }
                    // The clock is set back, perhaps by more than the age of the entries.
                    2 => log.timeline.set(log.timeline.last.minus(micros(weight * 1000))),
                    3 => log.tidy(),
                    4 => {
                        // The n-th entry from the end, which may be the newest or the oldest.
                        let chosen = list.len().checked_sub(1 + usize::try_from(weight % 150).unwrap());
                        if let Some((when, old)) = chosen.map(|chosen| list[chosen]) {
                            let entry = Entry { age: micros(now - when), weight: old * (weight % 2) };
                            log.correct(entry);
                            list.retain_mut(|(other, weight)| {
                                *weight = if *other == when { entry.weight } else { *weight };
                                *weight > 0
                            });
                        }
                        log.correct(Entry { age: micros(now + 1), weight: 0 });
                    }
                    5 => {
                        if let Some((when, old)) = list.first_mut() {
                            *old = (*old).div_ceil(2);
                            log.correct(Entry { age: micros(now - *when), weight: *old });
                        }
                    }
                    _ => {
                        let weight = if what % 4 == 0 { weight } else { 1 };
                        log.end_with(Entry { age: Span::ZERO, weight });
                        list.retain(|(when, _)| *when < now);
                        list.push((now, weight));
                    }
                }
                prop_assert_eq!(plain(&log), list.clone());
                let newest = list.last().map(|(when, _)| micros(now - when));
                prop_assert_eq!(log.newest(), newest);
            }
            let now = log.timeline.tick.micros;
            for passed in [0, 5000, 20_000, now / 2, now - 1_000_000, now] {
                let from = log.position(|age| age.as_micros() >= passed);
                let rest: Vec<_> = list.iter().filter(|(when, _)| now - when < passed).collect();
                let total = rest.iter().map(|(_, weight)| weight).sum::<u64>();
                prop_assert_eq!(log.entries(from), rest.len() as u64);
                prop_assert_eq!(log.weight(from), total);
                prop_assert_eq!(log.start().weight_to(from), log.weight(log.start()) - total);
                let mut dropped = log.clone();
                log.age_before(from).into_iter().for_each(|age| dropped.drop_from_age(age));
                prop_assert_eq!(dropped.entries(dropped.start()), rest.len() as u64);
                for goal in [1, 2, total / 2 + 1, total, total + 1] {
                    let mut sum = 0;
                    let expected = rest.iter().find(|(_, weight)| { sum += weight; sum >= goal });
                    let found = log.reach_weight(from, goal);
                    let found_at = found.map(|(entry, _)| now - entry.age.as_micros());
                    prop_assert_eq!(found_at, expected.map(|(when, _)| *when));
                    if let Some((entry, before)) = found {
                        prop_assert_eq!(from.weight_to(before) + entry.weight, sum);
                    }
                }
                for goal in [1, rest.len() as u64 / 2, rest.len() as u64] {
                    if (1..=rest.len() as u64).contains(&goal) {
                        let after = log.reach_entries(from, goal).unwrap();
                        prop_assert_eq!(log.entries(after), rest.len() as u64 - goal);
                    }
                }
            }
        }
    }

    /// A log of this many entries of weight 1, some 10 ms apart.
    fn busy(entries: u64) -> Log {
        let mut log = Log::blank();
        for i in 0..entries {
            // A hundred requests a second, not quite evenly spaced.
            log.timeline.set(Time::from_micros(1_000_000 + i * 10_000 + i % 7 * 31));
            log.end_with(Entry { age: Span::ZERO, weight: 1 });
        }
        log
    }

    #[test]
    fn a_busy_log_takes_less_than_four_bytes_an_entry() {
        let log = busy(100_000);
        assert!(log.allocated() < 400_000, "{} bytes", log.allocated());
        let mut bytes = Vec::new();
        log.encode(&mut bytes);
        assert!(bytes.len() < 310_000, "{} bytes", bytes.len());
    }

    #[test]
    fn a_log_that_lost_its_entries_is_freed_in_small_steps() {
        for lose in [|log: &mut Log| log.drop_from_age(micros(1)), |log: &mut Log| log.clear()] {
            let mut log = busy(100_000);
            lose(&mut log);
            let blocks = log.blocks();
            assert!(blocks > 1500);
            for _ in 0..=blocks / FREED {
                let before = log.blocks();
                log.end_with(Entry { age: Span::ZERO, weight: 1 });
                log.tidy();
                assert!(before <= log.blocks() + FREED);
            }
            assert_eq!((log.blocks(), plain(&log).len()), (1, 1));
            assert!(log.allocated() < 1000);
        }
    }

    #[test]
    fn a_log_never_weighs_more_than_the_largest_debt() {
        let mut log = Log::blank();
        for i in 1..3000 {
            log.timeline.set(Time::from_micros(i));
            log.end_with(Entry { age: Span::ZERO, weight: MAX_STORED });
        }
        assert_eq!(log.weight(log.start()), MAX_DEBT);
    }
}
