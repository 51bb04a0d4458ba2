//! How the entries of a log change.

use alloc::vec::Vec;

use super::{BLOCK, Block, Entry, Log, Position, Sum, offset, write};
use crate::count::MAX_DEBT;
use crate::time::Span;

impl Log {
    /// Drops the entries of at least this age.
    pub(super) fn drop_from_age(&mut self, age: Span) {
        self.start = self.position(|entry| entry >= age);
        if self.is_empty() {
            self.clear();
        }
    }

    /// Replaces the entries of at most the age of `entry` with `entry`, or removes them if its weight is 0.
    pub(super) fn end_with(&mut self, entry: Entry) {
        if self.newest().is_some_and(|newest| newest <= entry.age) {
            self.end = self.position(|older| older > entry.age);
            if self.is_empty() {
                self.clear();
            } else if let Some(last) = self.blocks.get_mut(self.end.block as usize) {
                last.bytes.truncate(self.end.offset as usize);
            }
        }
        if entry.weight > 0 {
            self.append(entry);
        }
    }

    /// Gives the entry of this age this weight, or removes it if the weight is 0. The weight never grows.
    pub(super) fn correct(&mut self, corrected: Entry) {
        let Some((entry, number)) = self.find(corrected.age) else { return };
        let weight = corrected.weight.min(entry.weight);
        if self.newest() == Some(entry.age) {
            return self.end_with(Entry { weight, ..entry });
        }
        self.rewrite(number, Entry { weight, ..entry });
        let less = |sum: &mut Sum| {
            sum.weight = sum.weight.wrapping_sub(entry.weight - weight);
            sum.entries = sum.entries.wrapping_sub(u64::from(weight == 0));
        };
        let after = number as usize + 1;
        self.blocks.iter_mut().skip(after).for_each(|block| less(&mut block.before));
        less(&mut self.end.sum);
        if self.blocks.get(number as usize).is_some_and(|block| block.bytes.is_empty()) {
            self.blocks.remove(number as usize);
            self.end.block -= 1;
            if self.start.block == number {
                self.start = self.start_of(number);
            }
        }
    }

    /// Writes the entries of a block anew, without those that were dropped, and with this weight for the entry of this age.
    /// The sums of later blocks stay.
    fn rewrite(&mut self, number: u32, corrected: Entry) {
        let length = self.blocks.get(number as usize).map_or(0, |block| block.bytes.len());
        let mut bytes = Vec::with_capacity(length);
        let mut position = if self.start.block == number { self.start } else { self.start_of(number) };
        let sum = position.sum;
        let (mut first, mut before) = (0, None);
        while let Some((entry, after)) = self.next(position).filter(|(_, after)| after.block == number) {
            let weight = if entry.age == corrected.age { corrected.weight } else { entry.weight };
            if weight > 0 {
                let since = before.map_or(0, |before| after.tick.wrapping_sub(before));
                write(&mut bytes, Span::from_micros(since), weight);
                first = if before.is_none() { after.tick } else { first };
                before = Some(after.tick);
            }
            position = after;
        }
        let length = offset(bytes.len());
        if let Some(block) = self.blocks.get_mut(number as usize) {
            (block.first, block.before, block.bytes) = (first, sum, bytes);
        }
        if self.start.block == number {
            self.start = self.start_of(number);
        }
        if self.end.block == number {
            self.end.offset = length;
        }
    }

    /// Adds an entry after all others. Its weight is cut so that the log weighs at most [`MAX_DEBT`].
    pub(super) fn append(&mut self, entry: Entry) {
        let weight = entry.weight.min(MAX_DEBT.saturating_sub(self.weight(self.start)));
        if weight == 0 {
            return;
        }
        let tick = self.timeline.tick.micros.wrapping_sub(entry.age.as_micros());
        let full = |block: &Block| self.end.sum.entries.wrapping_sub(block.before.entries) >= BLOCK;
        if self.is_empty() || self.blocks.get(self.end.block as usize).is_none_or(full) {
            self.open_block(tick);
        }
        if let Some(block) = self.blocks.get_mut(self.end.block as usize) {
            write(&mut block.bytes, Span::from_micros(tick.wrapping_sub(self.end.tick)), weight);
            self.end.offset = offset(block.bytes.len());
        }
        self.end.tick = tick;
        let Sum { weight: before, entries } = self.end.sum;
        self.end.sum = Sum { weight: before.wrapping_add(weight), entries: entries.wrapping_add(1) };
    }

    /// Removes all entries. The last block is used again, and the others are freed later.
    pub(super) fn clear(&mut self) {
        self.end = Position { offset: 0, ..self.end };
        self.start = self.end;
    }

    /// Begins a block whose first entry will have this tick.
    fn open_block(&mut self, first: u64) {
        if let Some(full) =
            self.blocks.get_mut(self.end.block as usize).filter(|_| self.start.sum != self.end.sum)
        {
            full.bytes.shrink_to_fit();
            self.end.block += 1;
        }
        self.end = Position { offset: 0, tick: first, ..self.end };
        if self.is_empty() {
            self.start = self.end;
        }
        let before = self.end.sum;
        if let Some(unused) = self.blocks.get_mut(self.end.block as usize) {
            unused.bytes.clear();
            (unused.first, unused.before) = (first, before);
        } else {
            if self.blocks.is_empty() {
                self.blocks.reserve_exact(1);
            }
            self.blocks.push_back(Block { first, before, bytes: Vec::new() });
        }
    }
}
