//! A log of requests: their instants and weights, oldest first, in few bytes.
//!
//! An entry is encoded as the time since the entry before it, and its weight if that is not 1. Each takes as many bytes
//! as its number needs: two or three for a request to a busy key.
//!
//! Entries are grouped into blocks. Each block stores the sums over all entries before it. So a binary search and a few
//! steps find the position where a window begins. A subtraction computes the weight after it. Old entries are dropped
//! in whole blocks.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::codec::{Reader, put_short};
use crate::time::{Span, Time};

/// The most entries of a block. At worst, finding a position reads them all.
pub(super) const BLOCK: u64 = 64;

/// The most blocks that one charge drops. The bound keeps each call fast. A charge fills less than a block, so later
/// charges drop the rest.
const DROPS: usize = 16;

/// All requests of one instant, and the sum of their costs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Entry {
    pub at: Time,
    pub weight: u64,
}

/// A sum over all entries since the log was made. Sums wrap around, so only their differences have a meaning.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Sum {
    pub(super) weight: u64,
    pub(super) entries: u64,
}

/// A position between two entries.
#[derive(Clone, Copy, Default, Debug)]
pub struct Position {
    pub(super) block: usize,
    /// The offset in the block's bytes.
    pub(super) offset: usize,
    /// The instant of the entry before the position; at the start of a block, of the entry after it.
    pub(super) at: Time,
    /// The sum over the entries before the position.
    pub(super) sum: Sum,
}

impl Position {
    /// The weight of the entries between this position and a later one.
    pub fn weight_to(self, later: Position) -> u64 {
        later.sum.weight.wrapping_sub(self.sum.weight)
    }
}

/// A run of entries.
#[derive(Debug)]
pub(super) struct Block {
    /// The instant of the first entry.
    pub(super) first: Time,
    /// The sum over the entries before the block.
    pub(super) before: Sum,
    pub(super) bytes: Vec<u8>,
}

/// A log of requests.
#[derive(Default, Debug)]
pub struct Log {
    pub(crate) last: Time,
    /// When the last entry was made, even if it was refunded since; the epoch if never.
    pub(crate) entered: Time,
    /// When the log is fully reset.
    pub(crate) until: Time,
    /// The instant of the newest entry.
    pub(super) newest: Time,
    /// The sum over all entries.
    pub(super) end: Sum,
    /// The position before the oldest entry, in the first block. The entries before it were dropped.
    pub(super) start: Position,
    pub(super) blocks: VecDeque<Block>,
}

impl Log {
    /// The instant of the newest entry.
    pub fn newest(&self) -> Option<Time> {
        (!self.blocks.is_empty()).then_some(self.newest)
    }

    /// The weight of the entries after a position.
    pub fn weight(&self, from: Position) -> u64 {
        self.end.weight.wrapping_sub(from.sum.weight)
    }

    /// The number of entries after a position.
    pub fn entries(&self, from: Position) -> u64 {
        self.end.entries.wrapping_sub(from.sum.entries)
    }

    /// The position before the oldest entry.
    pub fn start(&self) -> Position {
        self.start
    }

    /// The position between the entries that passed and the others. `passed` must hold for the oldest entries only.
    pub fn position(&self, passed: impl Fn(Time) -> bool) -> Position {
        let block = self.blocks.partition_point(|block| passed(block.first)).saturating_sub(1);
        let mut position = self.start_of(block);
        while let Some((_, after)) = self.next(position).filter(|(entry, _)| passed(entry.at)) {
            position = after;
        }
        position
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
        let zero = of(self.blocks.front()?.before);
        let so_far = |sum| of(sum).wrapping_sub(zero);
        let goal = so_far(from.sum).saturating_add(goal);
        let block = self.blocks.partition_point(|block| so_far(block.before) < goal).saturating_sub(1);
        let mut position = if block > from.block { self.start_of(block) } else { from };
        loop {
            let (entry, after) = self.next(position)?;
            if so_far(after.sum) >= goal {
                return Some((entry, position, after));
            }
            position = after;
        }
    }

    /// This position, or an earlier one if dropping up to it would be too much for one charge.
    pub fn within_one_charge(&self, position: Position) -> Position {
        if position.block > DROPS { self.start_of(DROPS) } else { position }
    }

    /// An instant such that `drop_up_to` drops exactly the entries before a position; `None` if there are none.
    pub fn newest_before(&self, position: Position) -> Option<Time> {
        let step = if position.offset == 0 { Span::from_micros(1) } else { Span::ZERO };
        (position.sum != self.start.sum).then(|| position.at.minus(step))
    }

    pub fn iter(&self) -> impl Iterator<Item = Entry> {
        let mut position = self.start;
        core::iter::from_fn(move || {
            let (entry, after) = self.next(position)?;
            position = after;
            Some(entry)
        })
    }

    /// The position before a block's first entry that was not dropped.
    fn start_of(&self, block: usize) -> Position {
        match self.blocks.get(block) {
            Some(found) if block > 0 => Position { block, offset: 0, at: found.first, sum: found.before },
            _ => self.start,
        }
    }

    /// The entry after a position, and the position after that entry.
    fn next(&self, mut position: Position) -> Option<(Entry, Position)> {
        let mut bytes = &self.blocks.get(position.block)?.bytes;
        if position.offset == bytes.len() {
            bytes = &self.blocks.get(position.block + 1)?.bytes;
            position = self.start_of(position.block + 1);
        }
        let mut reader = Reader::new(bytes.get(position.offset..)?);
        let Entry { at, weight } = read(&mut reader, position.at)?;
        let Sum { weight: before, entries } = position.sum;
        let sum = Sum { weight: before.wrapping_add(weight), entries: entries.wrapping_add(1) };
        let offset = bytes.len() - reader.len();
        Some((Entry { at, weight }, Position { offset, at, sum, ..position }))
    }

    /// The bytes that the log has allocated.
    pub(super) fn allocated(&self) -> usize {
        let bytes: usize = self.blocks.iter().map(|block| block.bytes.capacity()).sum();
        self.blocks.capacity() * size_of::<Block>() + bytes
    }

    /// The number of blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }
}

/// Writes an entry that is `since` after the one before it.
pub(super) fn write(out: &mut Vec<u8>, since: Span, weight: u64) {
    let weighs_one = weight == 1;
    put_short(out, since.as_micros() << 1 | u64::from(!weighs_one));
    if !weighs_one {
        put_short(out, weight);
    }
}

/// Reads an entry; the one before it was at `before`.
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
    use crate::count::{MAX_DEBT, MAX_STORED};

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
                        // Some steps are so long that many entries would be before the epoch.
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
                let place = log.position(|when| when.as_micros() <= passed);
                let rest: Vec<_> = list.iter().filter(|(when, _)| *when > passed).collect();
                let total = rest.iter().map(|(_, weight)| weight).sum::<u64>();
                prop_assert_eq!(log.entries(place), rest.len() as u64);
                prop_assert_eq!(log.weight(place), total);
                prop_assert_eq!(log.start().weight_to(place), log.weight(log.start()) - total);
                for goal in [1, 2, total / 2 + 1, total, total + 1] {
                    let mut sum = 0;
                    let expected = rest.iter().find(|(_, weight)| { sum += weight; sum >= goal });
                    let found = log.reach_weight(place, goal);
                    let found_at = found.map(|(entry, _)| entry.at.as_micros());
                    prop_assert_eq!(found_at, expected.map(|(when, _)| *when));
                    if let Some((entry, before)) = found {
                        prop_assert_eq!(place.weight_to(before) + entry.weight, sum);
                    }
                }
                for goal in [1, rest.len() as u64 / 2, rest.len() as u64] {
                    if (1..=rest.len() as u64).contains(&goal) {
                        let after = log.reach_entries(place, goal).unwrap();
                        prop_assert_eq!(log.entries(after), rest.len() as u64 - goal);
                    }
                }
            }
        }
    }

    #[test]
    fn a_busy_log_takes_less_than_four_bytes_an_entry() {
        let mut log = Log::default();
        for i in 0..100_000 {
            // A hundred requests a second, not quite evenly spaced.
            log.end_with(Entry { at: at(1_000_000 + i * 10_000 + i % 7 * 31), weight: 1 });
        }
        assert!(log.allocated() < 400_000, "{} bytes", log.allocated());
        let mut bytes = Vec::new();
        log.encode(&mut bytes);
        assert!(bytes.len() < 310_000, "{} bytes", bytes.len());
    }

    #[test]
    fn a_log_never_weighs_more_than_the_largest_debt() {
        let mut log = Log::default();
        for i in 1..3000 {
            log.end_with(Entry { at: at(i), weight: MAX_STORED });
        }
        assert_eq!(log.weight(log.start()), MAX_DEBT);
    }
}
