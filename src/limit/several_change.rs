//! What a call does to several limits, and how both are written as bytes.

use std::ops::Range;

use super::catalog::{Kept, with_kept};
use super::codec::{Reader, put};
use super::several::{MOST_LIMITS, Name, Several, Stored};
use super::{Figure, HORIZON, Kind, State, with_state};
use crate::time::{Span, Time};

/// What a call does to several limits; a call makes many changes.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// The limit that stood alone is one of several, of this name.
    Adopt {
        name: Name,
        until: Time,
    },
    /// The limit of this kind whose length of time is not known has this one.
    Know {
        name: Name,
    },
    /// The limit's state changes by what these bytes say, and is as good as new at that instant.
    Limit {
        name: Name,
        until: Time,
        change: &'a [u8],
    },
    Gone {
        name: Name,
    },
    /// The only limit left is to stand alone.
    Alone,
}

fn apply<S: State>(state: &mut S, change: &[u8]) {
    if let Some(change) = S::decode_change(&mut Reader::new(change)) {
        state.apply(change);
    }
}

const ADOPT: u8 = 1;
const KNOW: u8 = 2;
const LIMIT: u8 = 3;
const GONE: u8 = 4;
const ALONE: u8 = 5;

/// Where in a change of a limit its instant is: behind what it is, and the limit's name.
const UNTIL: Range<usize> = 10..18;

impl Change<'_> {
    /// An instant as it can be written down: what is later is as late as can be told.
    pub fn writable(until: Time) -> Time {
        until.min(HORIZON)
    }

    /// Begins the change of a limit's state, which is to follow; when it is as good as new is for [`Change::finish`].
    pub fn begin(name: Name, out: &mut Vec<u8>) {
        timed(LIMIT, name, Time::default(), out);
    }

    /// Ends a change that was begun, now that it is known how long it lasts.
    pub fn finish(until: Time, begun: &mut [u8]) {
        if let Some(place) = begun.get_mut(UNTIL) {
            place.copy_from_slice(&until.as_micros().to_le_bytes());
        }
    }

    pub fn put(self, out: &mut Vec<u8>) {
        Several::encode_change(&self, out);
    }
}

impl State for Several {
    const KIND: Kind = Kind::Several;
    type Change<'a> = Change<'a>;

    fn last(&self) -> Time {
        let lasts =
            self.limits.iter().map(|limit| with_kept!(&limit.state, state => State::last(state.as_ref())));
        lasts.max().unwrap_or_default()
    }

    fn blank() -> Several {
        Several::default()
    }

    fn apply(&mut self, change: Change<'_>) {
        self.alone = false;
        match change {
            // Whoever holds the key has done it, or there was nothing to adopt.
            Change::Adopt { .. } => {}
            Change::Know { name } => {
                if let Some(limit) = self.remove(Name { span: Span::ZERO, ..name }) {
                    self.insert(Stored { name, ..limit });
                }
            }
            Change::Limit { name, until, change } => {
                if let Some(limit) = self.limit(name) {
                    limit.until = until;
                    with_kept!(&mut limit.state, state => apply(state.as_mut(), change));
                }
            }
            Change::Gone { name } => _ = self.remove(name),
            Change::Alone => self.alone = true,
        }
    }

    fn encode_change(change: &Change<'_>, out: &mut Vec<u8>) {
        match *change {
            Change::Adopt { name, until } => timed(ADOPT, name, until, out),
            Change::Know { name } => named(KNOW, name, out),
            Change::Gone { name } => named(GONE, name, out),
            Change::Limit { name, until, change } => {
                timed(LIMIT, name, until, out);
                out.extend_from_slice(change);
            }
            Change::Alone => out.push(ALONE),
        }
    }

    fn decode_change<'a>(reader: &mut Reader<'a>) -> Option<Change<'a>> {
        Some(match reader.byte()? {
            ADOPT => Change::Adopt { name: Name::decode(reader)?, until: until(reader)? },
            KNOW => Change::Know { name: Name::decode(reader).filter(|name| name.span > Span::ZERO)? },
            LIMIT => {
                let (name, until) = (Name::decode(reader)?, until(reader)?);
                let from = *reader;
                with_state!(name.kind, S => _ = S::decode_change(reader)?);
                Change::Limit { name, until, change: from.before(*reader) }
            }
            GONE => Change::Gone { name: Name::decode(reader)? },
            ALONE => Change::Alone,
            _ => return None,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.limits.len() as u64);
        for limit in &self.limits {
            limit.name.encode(out);
            put(out, limit.until.as_micros());
            with_kept!(&limit.state, state => State::encode(state.as_ref(), out));
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Several> {
        let mut several = Several::default();
        for _ in 0..reader.word_up_to(MOST_LIMITS as u64)? {
            let name = Name::decode(reader)?;
            let until = until(reader)?;
            let state = with_state!(name.kind, S => S::decode(reader)?.kept());
            if several.limits.last().is_some_and(|last| last.name >= name) {
                return None;
            }
            several.insert(Stored { name, until, state });
        }
        Some(several)
    }

    fn heap_bytes(&self) -> usize {
        let states = self.limits.iter().map(|limit| {
            with_kept!(&limit.state, state => size_of_val(state.as_ref()) + State::heap_bytes(state.as_ref()))
        });
        self.limits.capacity() * size_of::<Stored>() + states.sum::<usize>()
    }

    fn effort(&self) -> usize {
        let states = self
            .limits
            .iter()
            .map(|limit| with_kept!(&limit.state, state => 1 + State::effort(state.as_ref())));
        1 + states.sum::<usize>()
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("stored_limits", Figure::Count(self.limits.len() as u64));
    }
}

fn named(what: u8, name: Name, out: &mut Vec<u8>) {
    out.push(what);
    name.encode(out);
}

fn timed(what: u8, name: Name, until: Time, out: &mut Vec<u8>) {
    named(what, name, out);
    put(out, until.as_micros());
}

fn until(reader: &mut Reader<'_>) -> Option<Time> {
    reader.word_up_to(HORIZON.as_micros()).map(Time::from_micros)
}
