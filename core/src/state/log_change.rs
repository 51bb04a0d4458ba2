//! What a call does to a log, and how both are written as bytes.

use alloc::vec::Vec;

use super::codec::{Reader, put, put_words};
use super::log::{Entry, Log, read, write};
use super::{Figure, LimitState, State};
use crate::count::MAX_DEBT;
use crate::kind::Kind;
use crate::time::{Span, Time};

/// What a call does to a log: absolute, so that saying it twice is saying it once.
#[derive(Clone, Copy, Default, Debug)]
pub struct Change {
    pub last: Time,
    /// When the last entry was made.
    pub entered: Time,
    /// When the log is fully reset.
    pub until: Time,
    /// The clock was set back from the first instant to the second: all entries move with it.
    pub moved: Option<(Time, Time)>,
    /// All entries up to this instant are dropped.
    pub dropped: Option<Time>,
    /// This is the newest entry, and those from its instant on are gone; if it weighs nothing, it is gone as well.
    pub newest: Option<Entry>,
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
        out.push(
            u8::from(change.moved.is_some())
                | u8::from(change.dropped.is_some()) << 1
                | u8::from(change.newest.is_some()) << 2,
        );
        put_words(out, [change.last, change.entered, change.until].map(Time::as_micros));
        if let Some((from, to)) = change.moved {
            put(out, from.as_micros());
            put(out, to.as_micros());
        }
        if let Some(at) = change.dropped {
            put(out, at.as_micros());
        }
        if let Some(newest) = change.newest {
            put(out, newest.at.as_micros());
            put(out, newest.weight);
        }
    }

    fn decode_change(reader: &mut Reader<'_>) -> Option<Change> {
        let parts = reader.byte().filter(|parts| *parts < 8)?;
        let (last, entered, until) = (reader.instant()?, reader.instant()?, reader.horizon()?);
        let mut change = Change { last, entered, until, ..Change::default() };
        if parts & 1 != 0 {
            // Where it moves to is when the change was made; else what is said twice would move twice.
            let moved = (reader.instant()?, reader.instant()?);
            change.moved = Some(Some(moved).filter(|(_, to)| *to == change.last)?);
        }
        if parts & 2 != 0 {
            change.dropped = Some(reader.instant()?);
        }
        if parts & 4 != 0 {
            change.newest = Some(Entry { at: reader.instant()?, weight: reader.word_up_to(MAX_DEBT)? });
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
        // A gap counts from there, also when that entry was given back.
        if self.entered > Time::EPOCH {
            figure("last_entry_us", Figure::At(self.entered));
        }
    }
}
