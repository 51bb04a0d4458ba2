//! A set of limits as a stored state: the bytes, and how a change is written, read and applied.

use alloc::vec::Vec;

use super::{LimitSet, MAX_LIMITS, StoredLimit};
use crate::any::AnyState;
use crate::kind::Kind;
use crate::state::codec::{Reader, put};
use crate::state::{Figure, Holds, Length, Name, State};
use crate::time::Time;

/// A change of a set; a call can make several.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// The limit's state changes; `change` is the encoded change. A missing limit is added.
    Limit { name: Name, change: &'a [u8] },
    /// The limit gets another length of time.
    Renamed { from: Name, to: Name },
    /// The limit is removed.
    Dropped { name: Name },
}

/// The most that a set stores: its limits, and the holds.
const MAX_STORED: usize = MAX_LIMITS + 1;

const LIMIT: u8 = 1;
const RENAMED: u8 = 2;
const DROPPED: u8 = 3;

impl Change<'_> {
    /// Writes the beginning of a [`Change::Limit`]. The encoded change of the limit's state must follow.
    pub fn begin(name: Name, out: &mut Vec<u8>) {
        out.push(LIMIT);
        name.encode(out);
    }
}

/// Applies an encoded change.
fn apply<S: State>(state: &mut S, change: &[u8]) {
    if let Some(change) = S::decode_change(&mut Reader::new(change)) {
        state.apply(change);
    }
}

impl LimitSet {
    /// Applies a change, and returns the limit that it removes. Freeing a limit of a million leases takes long.
    pub fn apply_and_take(&mut self, change: Change<'_>) -> Option<StoredLimit> {
        match change {
            Change::Limit { name, change } => {
                if self.search(name).is_err() {
                    self.add_blank(name);
                }
                let index = self.search(name).ok();
                if let Some(limit) = index.and_then(|index| self.limits.get_mut(index)) {
                    with_kept!(&mut limit.state, state => apply(state.as_mut(), change));
                }
                None
            }
            Change::Renamed { from, to } => {
                self.rename(from, to);
                None
            }
            Change::Dropped { name } => self.remove(name),
        }
    }
}

impl State for LimitSet {
    const KIND: Kind = Kind::LimitSet;
    type Change<'a> = Change<'a>;

    fn last(&self) -> Time {
        let lasts =
            self.limits.iter().map(|limit| with_kept!(&limit.state, state => State::last(state.as_ref())));
        lasts.max().unwrap_or_default()
    }

    fn blank() -> LimitSet {
        LimitSet::default()
    }

    fn apply(&mut self, change: Change<'_>) {
        drop(self.apply_and_take(change));
    }

    fn encode_change(change: &Change<'_>, out: &mut Vec<u8>) {
        match *change {
            Change::Limit { name, change } => {
                Change::begin(name, out);
                out.extend_from_slice(change);
            }
            Change::Renamed { from, to } => {
                out.push(RENAMED);
                from.encode(out);
                to.encode(out);
            }
            Change::Dropped { name } => {
                out.push(DROPPED);
                name.encode(out);
            }
        }
    }

    fn decode_change<'a>(reader: &mut Reader<'a>) -> Option<Change<'a>> {
        Some(match reader.byte()? {
            LIMIT => {
                let name = Name::decode(reader)?;
                let from = *reader;
                with_limit_state!(name.kind, S => _ = S::decode_change(reader)?, else return None);
                Change::Limit { name, change: from.up_to(*reader) }
            }
            RENAMED => {
                let (from, to) = (Name::decode(reader)?, Name::decode(reader)?);
                // A shadow stays one.
                let same = from.kind == to.kind && from.length.is_shadow() == to.length.is_shadow();
                same.then_some(Change::Renamed { from, to })?
            }
            DROPPED => Change::Dropped { name: Name::decode(reader)? },
            _ => return None,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.limits.len() as u64);
        for limit in &self.limits {
            limit.name.encode(out);
            with_kept!(&limit.state, state => State::encode(state.as_ref(), out));
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Option<LimitSet> {
        let mut set = LimitSet::default();
        let count = reader.word_up_to(MAX_STORED as u64)?;
        for _ in 0..count {
            let name = Name::decode(reader)?;
            let state = with_limit_state!(name.kind, S => AnyState::of(<S as State>::decode(reader)?)?, else return None);
            if set.limits.last().is_some_and(|last| last.name >= name) {
                return None;
            }
            set.insert(StoredLimit { name, state });
        }
        // A limit too many was not inserted.
        (set.limits.len() as u64 == count).then_some(set)
    }

    fn heap_bytes(&self) -> usize {
        let states = self.limits.iter().map(|limit| {
            with_kept!(&limit.state, state => size_of_val(state.as_ref()) + State::heap_bytes(state.as_ref()))
        });
        self.limits.capacity() * size_of::<StoredLimit>() + states.sum::<usize>()
    }

    fn effort(&self) -> usize {
        let states = self
            .limits
            .iter()
            .map(|limit| with_kept!(&limit.state, state => 1 + State::effort(state.as_ref())));
        1 + states.sum::<usize>()
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("stored_limits", Figure::Count(self.limits().count() as u64));
        if let Some(holds) = self.get::<Holds>(Length::NONE) {
            holds.describe(figure);
        }
    }
}
