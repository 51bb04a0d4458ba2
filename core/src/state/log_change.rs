//! The change that a call makes to a log, and the encoding of both.

use alloc::vec::Vec;

use super::codec::{Reader, put, put_words};
use super::log::{BLOCK, Block, Entry, Log, Position, read, write};
use super::{Figure, LimitState, State};
use crate::count::MAX_DEBT;
use crate::kind::Kind;
use crate::time::{Span, Time};

/// The change that a call makes to a log. Applying it twice has the same effect as applying it once.
#[derive(Clone, Copy, Default, Debug)]
pub struct Change {
    pub last: Time,
    /// When the last entry was made, even if it was refunded since; the epoch if never.
    pub entered: Time,
    /// When the log is fully reset.
    pub until: Time,
    /// The clock was set back from the first instant to the second, and all entries move by the difference.
    pub moved: Option<(Time, Time)>,
    /// Entries at or before this instant are dropped.
    pub dropped: Option<Time>,
    /// This entry replaces the entries at or after its instant. If its weight is 0, they are removed.
    pub newest: Option<Entry>,
}

// The parts of an encoded change.
const MOVED: u8 = 1;
const DROPPED: u8 = 2;
const NEWEST: u8 = 4;
const CHARGED: u8 = 8;

impl Log {
    /// Drops the entries at or before this instant.
    pub(super) fn drop_up_to(&mut self, at: Time) {
        let start = self.position(|entry| entry <= at);
        if self.entries(start) == 0 {
            return self.clear();
        }
        self.blocks.drain(..start.block);
        self.start = Position { block: 0, ..start };
        if self.blocks.capacity() > 4 * self.blocks.len() {
            self.blocks.shrink_to(2 * self.blocks.len());
        }
    }

    /// Replaces the entries at or after the instant of `entry` with `entry`, or removes them if its weight is 0.
    pub(super) fn end_with(&mut self, entry: Entry) {
        if !self.blocks.is_empty() && self.newest >= entry.at {
            let end = self.position(|older| older < entry.at);
            if end.sum == self.start.sum {
                self.clear();
            } else {
                self.blocks.truncate(end.block + 1);
                self.blocks.iter_mut().skip(end.block).for_each(|block| block.bytes.truncate(end.offset));
                (self.newest, self.end) = (end.at, end.sum);
            }
        }
        if entry.weight > 0 {
            self.append(entry);
        }
    }

    /// Adds an entry after all others. Its weight is cut so that the log weighs at most [`MAX_DEBT`].
    fn append(&mut self, entry: Entry) {
        let weight = entry.weight.min(MAX_DEBT.saturating_sub(self.weight(self.start)));
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
        self.start = Position { sum: self.end, ..Position::default() };
    }

    /// Begins a block whose first entry will be at this instant.
    fn open_block(&mut self, first: Time) {
        if let Some(full) = self.blocks.back_mut() {
            full.bytes.shrink_to_fit();
        } else {
            self.start = Position { block: 0, offset: 0, at: first, sum: self.end };
            self.blocks.reserve_exact(1);
        }
        self.blocks.push_back(Block { first, before: self.end, bytes: Vec::new() });
        self.newest = first;
    }

    /// Moves all entries back by `step`. Entries that would be before the epoch are merged into one at the epoch.
    pub(super) fn shift(&mut self, step: Span) {
        if self.start.at.since(Time::EPOCH) >= step {
            // Entries store only their distances, so they need no change.
            self.blocks.iter_mut().for_each(|block| block.first = block.first.minus(step));
            (self.start.at, self.newest) = (self.start.at.minus(step), self.newest.minus(step));
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
}

impl LimitState for Log {
    fn until(&self, _: Span) -> Time {
        self.until
    }
}

impl State for Log {
    const KIND: Kind = Kind::Log;
    type Change<'a> = Change;

    fn last(&self) -> Time {
        self.last
    }

    fn blank() -> Log {
        Log::default()
    }

    fn apply(&mut self, change: Change) {
        if let Some((from, to)) = change.moved
            && self.last == from
        {
            self.shift(from.since(to));
        }
        if let Some(at) = change.dropped {
            self.drop_up_to(at);
        }
        if let Some(newest) = change.newest {
            self.end_with(newest);
        }
        (self.last, self.entered, self.until) = (change.last, change.entered, change.until);
    }

    fn encode_change(change: &Change, out: &mut Vec<u8>) {
        // Most changes are charges: their entry is made at the last instant, which is then written once.
        let charged =
            change.entered == change.last && change.newest.is_some_and(|newest| newest.at == change.last);
        let part = |present: bool, bit: u8| if present { bit } else { 0 };
        out.push(
            part(change.moved.is_some(), MOVED)
                | part(change.dropped.is_some(), DROPPED)
                | part(change.newest.is_some(), NEWEST)
                | part(charged, CHARGED),
        );
        put_words(out, [change.last, change.until].map(Time::as_micros));
        if !charged {
            put(out, change.entered.as_micros());
        }
        if let Some((from, to)) = change.moved {
            put(out, from.as_micros());
            put(out, to.as_micros());
        }
        if let Some(at) = change.dropped {
            put(out, at.as_micros());
        }
        if let Some(newest) = change.newest {
            if !charged {
                put(out, newest.at.as_micros());
            }
            put(out, newest.weight);
        }
    }

    fn decode_change(reader: &mut Reader<'_>) -> Option<Change> {
        let parts = reader.byte().filter(|parts| *parts < 16)?;
        let has = |part| parts & part != 0;
        if has(CHARGED) && !has(NEWEST) {
            return None;
        }
        let (last, until) = (reader.instant()?, reader.horizon()?);
        let entered = if has(CHARGED) { last } else { reader.instant()? };
        let mut change = Change { last, entered, until, ..Change::default() };
        if has(MOVED) {
            // A move must end at the change's own instant. Then the same change, applied again, does not move again.
            let moved = (reader.instant()?, reader.instant()?);
            change.moved = Some(Some(moved).filter(|(_, to)| *to == change.last)?);
        }
        if has(DROPPED) {
            change.dropped = Some(reader.instant()?);
        }
        if has(NEWEST) {
            let at = if has(CHARGED) { last } else { reader.instant()? };
            change.newest = Some(Entry { at, weight: reader.word_up_to(MAX_DEBT)? });
        }
        Some(change)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_words(out, [self.last, self.entered, self.until].map(Time::as_micros));
        put(out, self.entries(self.start()));
        let mut before = Time::EPOCH;
        for entry in self.iter() {
            write(out, entry.at.since(before), entry.weight);
            before = entry.at;
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Log> {
        let mut log = Log::default();
        (log.last, log.entered, log.until) = (reader.instant()?, reader.instant()?, reader.horizon()?);
        let mut room = MAX_DEBT;
        for _ in 0..reader.word()? {
            let entry = read(reader, log.newest().unwrap_or_default())?;
            let in_order = log.newest().is_none_or(|newest| newest < entry.at) && entry.at <= Time::LATEST;
            room = room.checked_sub(entry.weight).filter(|_| in_order && entry.weight > 0)?;
            log.end_with(entry);
        }
        Some(log)
    }

    fn heap_bytes(&self) -> usize {
        self.allocated()
    }

    fn effort(&self) -> usize {
        1 + self.blocks()
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("stored_entries", Figure::Count(self.entries(self.start())));
        figure("stored_cost", Figure::Count(self.weight(self.start())));
        if let (Some(oldest), Some(newest)) = (self.iter().next(), self.newest()) {
            figure("oldest_us", Figure::At(oldest.at));
            figure("newest_us", Figure::At(newest));
        }
        // A gap starts at this instant, even if that entry was refunded.
        if self.entered > Time::EPOCH {
            figure("last_entry_us", Figure::At(self.entered));
        }
    }
}
