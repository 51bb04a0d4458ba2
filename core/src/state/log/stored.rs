//! A log as a stored state: the bytes, and how a change is written, read and applied.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::{Entry, Log, Position, read, write};
use crate::count::MAX_DEBT;
use crate::kind::Kind;
use crate::state::codec::{Reader, put, put_words};
use crate::state::timeline::Timeline;
use crate::state::{Figure, LimitState, State};
use crate::time::{Span, Time};

/// The change that a call makes to a log. Applying it twice has the same effect as applying it once.
///
/// Ages are those at `last`. If `last` is before the log's last charge, the log moves: its entries keep their ages.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub last: Time,
    /// The age of the last entry, even if it was refunded; [`Span::FOREVER`] if there was none.
    pub entered: Span,
    /// The time from `last` until the log is fully reset.
    pub reset: Span,
    /// Entries of at least this age are dropped.
    pub dropped: Option<Span>,
    /// This entry replaces the entries of at most its age. If its weight is 0, they are removed.
    pub newest: Option<Entry>,
    /// The entry of this age gets this weight. If it is 0, the entry is removed.
    pub corrected: Option<Entry>,
}

impl Change {
    /// Whether the newest entry is made at `last`, and so is the last entry, as by a charge.
    fn is_charge(&self) -> bool {
        self.entered == Span::ZERO && self.newest.is_some_and(|newest| newest.age == Span::ZERO)
    }
}

// The parts of an encoded change.
const DROPPED: u8 = 1;
const NEWEST: u8 = 2;
/// [`Change::is_charge`]. Neither age is written.
const CHARGED: u8 = 4;
const CORRECTED: u8 = 8;

impl Log {
    /// An empty log whose last charge was at this instant.
    pub fn new(last: Time) -> Log {
        let mut log = Log::blank();
        log.timeline.set(last);
        log
    }
}

impl LimitState for Log {
    fn until(&self, _: Span) -> Time {
        if self.reset == Span::ZERO { Time::EPOCH } else { self.last().plus(self.reset) }
    }
}

impl State for Log {
    const KIND: Kind = Kind::Log;
    type Change<'a> = Change;

    fn last(&self) -> Time {
        self.timeline.last
    }

    fn blank() -> Log {
        Log {
            timeline: Timeline::default(),
            entered: Span::FOREVER,
            reset: Span::ZERO,
            start: Position::default(),
            end: Position::default(),
            blocks: VecDeque::new(),
        }
    }

    fn apply(&mut self, change: Change) {
        self.timeline.set(change.last);
        // A forged change may drop too few entries, but ticks must not wrap around.
        let forged = !self.is_empty() && self.age(self.start.tick) >= TOO_OLD;
        if forged || change.dropped.is_some() {
            self.drop_from_age(change.dropped.unwrap_or(TOO_OLD).min(TOO_OLD));
        }
        if let Some(newest) = change.newest {
            self.end_with(newest);
        }
        if let Some(corrected) = change.corrected {
            self.correct(corrected);
        }
        (self.entered, self.reset) = (change.entered, change.reset);
        self.tidy();
    }

    fn encode_change(change: &Change, out: &mut Vec<u8>) {
        // Most changes are charges.
        let charged = change.is_charge();
        let part = |present: bool, bit: u8| if present { bit } else { 0 };
        out.push(
            part(change.dropped.is_some(), DROPPED)
                | part(change.newest.is_some(), NEWEST)
                | part(charged, CHARGED)
                | part(change.corrected.is_some(), CORRECTED),
        );
        put_words(out, [change.last.as_micros(), change.reset.as_micros()]);
        if !charged {
            put(out, change.entered.as_micros());
        }
        if let Some(age) = change.dropped {
            put(out, age.as_micros());
        }
        if let Some(newest) = change.newest {
            if !charged {
                put(out, newest.age.as_micros());
            }
            put(out, newest.weight);
        }
        if let Some(corrected) = change.corrected {
            put(out, corrected.age.as_micros());
            put(out, corrected.weight);
        }
    }

    fn decode_change(reader: &mut Reader<'_>) -> Option<Change> {
        let parts = reader.byte().filter(|parts| *parts < 16)?;
        let has = |part| parts & part != 0;
        if has(CHARGED) && !has(NEWEST) {
            return None;
        }
        let age = |reader: &mut Reader<'_>| reader.word().map(Span::from_micros);
        let (last, reset) = (reader.instant()?, reader.span()?);
        let entered = if has(CHARGED) { Span::ZERO } else { age(reader)? };
        let mut change = Change { last, entered, reset, dropped: None, newest: None, corrected: None };
        if has(DROPPED) {
            change.dropped = Some(age(reader)?);
        }
        if has(NEWEST) {
            let age = if has(CHARGED) { Span::ZERO } else { age(reader)? };
            let weight = reader.word_up_to(MAX_DEBT)?;
            change.newest = Some(Entry { age, weight }).filter(|_| weight == 0 || age < TOO_OLD);
            change.newest?;
        }
        if has(CORRECTED) {
            change.corrected = Some(Entry { age: age(reader)?, weight: reader.word_up_to(MAX_DEBT)? });
        }
        // A charge has one encoding only.
        Some(change).filter(|change| change.is_charge() == has(CHARGED))
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let last = self.last().as_micros();
        put_words(out, [last, self.entered.as_micros(), self.reset.as_micros(), self.entries(self.start)]);
        // The oldest entry is written with its age, each other one with the time since the entry before it.
        let mut before = None;
        for Entry { age, weight } in self.iter() {
            write(out, before.map_or(age, |before: Span| before.minus(age)), weight);
            before = Some(age);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Log> {
        let mut log = Log::new(reader.instant()?);
        log.entered = Span::from_micros(reader.word()?);
        log.reset = reader.span()?;
        let mut room = MAX_DEBT;
        for _ in 0..reader.word()? {
            let (written, weight) = read(reader)?;
            let age = match log.newest() {
                None => Some(written).filter(|age| *age < TOO_OLD),
                Some(before) => Some(before.minus(written)).filter(|age| *age < before && written <= before),
            };
            room = room.checked_sub(weight).filter(|_| weight > 0)?;
            log.append(Entry { age: age?, weight });
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
        let instant = |age| Figure::At(self.last().minus(age));
        if let (Some(oldest), Some(newest)) = (self.iter().next(), self.newest()) {
            figure("oldest_us", instant(oldest.age));
            figure("newest_us", instant(newest));
        }
        // A gap starts at this instant, even if that entry was refunded.
        if let Some(age) = self.entered() {
            figure("last_entry_us", instant(age));
        }
    }
}

/// No window is longer, so entries of this age never count.
const TOO_OLD: Span = Span::CENTURY;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_is_encoded_in_one_way() {
        let newest = Some(Entry { age: Span::ZERO, weight: 5 });
        let (entered, reset) = (Span::ZERO, Span::from_micros(9));
        let last = Time::from_micros(7);
        let charge = Change { last, entered, reset, dropped: None, newest, corrected: None };
        let mut written = Vec::new();
        Log::encode_change(&charge, &mut written);
        assert!(Log::decode_change(&mut Reader::new(&written)).is_some());
        // The same with both ages, which are zero.
        let mut ages = Vec::from([NEWEST]);
        put_words(&mut ages, [7, 9, 0, 0, 5]);
        assert!(Log::decode_change(&mut Reader::new(&ages)).is_none());
        // One of the ages is not zero.
        let mut older = Vec::from([NEWEST]);
        put_words(&mut older, [7, 9, 1, 0, 5]);
        assert!(Log::decode_change(&mut Reader::new(&older)).is_some());
    }

    #[test]
    fn no_change_adds_an_entry_as_old_as_the_longest_window() {
        for (age, is_read) in [(TOO_OLD.minus(Span::from_micros(1)), true), (TOO_OLD, false)] {
            let mut change = Vec::from([NEWEST]);
            put_words(&mut change, [7, 9, 0, age.as_micros(), 5]);
            assert_eq!(Log::decode_change(&mut Reader::new(&change)).is_some(), is_read, "{age:?}");
        }
    }
}
