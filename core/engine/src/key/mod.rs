//! An open key of limits, and how a call changes it.
//!
//! # What a key holds
//!
//! A key with one limit holds that limit's name and state. The limit is then *lone*: it costs one allocation and no
//! search. A key with several limits holds a *set* of them, in the order of their names.
//!
//! The form follows from the limits alone, not from the calls that made them. A charge of a second limit turns a lone
//! limit into a set. A call that leaves one limit in a set turns it into a lone limit.
//!
//! # How a key changes
//!
//! A change is first written as bytes of a payload of `RL.APPLY`, whose format is in `payload.rs`. It is then decoded
//! from these bytes and applied. So the node that decides does exactly what each replica does.
//!
//! All changes of one call are in one payload. [`Key::commit`] adds the expiry to it, if the expiry moves.
//! [`Key::publish`] sends it to replicas and the AOF.
//!
//! # Example
//!
//! T is an instant, 1800000000000000 in microseconds. The first call makes the key:
//!
//! ```text
//! RL.FIXEDWINDOW u 100 1m AT T
//!
//! before   missing
//! payload  FIXEDWINDOW, the key was missing, 60 s    01 08 05  00 87 93 03 00 00 00 00
//!          count 1, window start T, last charge T    24 bytes
//!          expiry T + 120 s                          8 bytes
//! after    lone limit FIXEDWINDOW 60 s: count 1
//! ```
//!
//! Ten seconds later a second call charges that limit and another one:
//!
//! ```text
//! RL.MULTI 1 u AT T+10s LIMIT FIXEDWINDOW 100 1m LIMIT FIXEDWINDOW 1000 1h
//!
//! before   lone limit FIXEDWINDOW 60 s: count 1
//! payload  set, the key existed                      01 0f 01  00 00 00 00 00 00 00 00
//!          change FIXEDWINDOW 60 s                   01 08  00 87 93 03 00 00 00 00
//!          count 2, start T, last charge T + 10 s    24 bytes
//!          change FIXEDWINDOW 3600 s                 01 08  00 a4 93 d6 00 00 00 00
//!          count 1, start T + 10 s, last T + 10 s    24 bytes
//!          expiry T + 3670 s                         8 bytes
//! after    set {FIXEDWINDOW 60 s: count 2, FIXEDWINDOW 3600 s: count 1}
//! ```

mod apply;
mod content;
mod description;
mod expiry;
mod payload;
mod set;
mod several;

use ratelimit_core::state::codec::Reader;
use ratelimit_core::state::{Leases, MAX_LIMITS};
use ratelimit_core::{
    Error as CoreError, Kind, Length, LimitSet, LimitState, Limiter, Limits, Name, Place, Span, State, Time,
};
use ratelimit_language::Error;
use ratelimit_value::Value;

pub use description::{Description, describe};
pub use payload::Payload;
pub use set::publish;
pub use several::{OpenKeys, SeveralKeys};

use self::content::Content;
use self::payload::GONE;
use crate::host::Host;
use crate::slot::{Access, OfSlot, Slot};

/// How a call changes a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The key is missing or holds one limit, and the call charges no other.
    Lone,
    /// The key holds a set, or the call makes it one.
    Set,
}

/// An open key that is missing or holds a value of the module's type.
pub struct Key<O: Slot> {
    slot: O,
    form: Form,
    /// The payload so far; empty if nothing has changed.
    payload: Vec<u8>,
}

impl<O: Slot> Key<O> {
    /// Opens the key that is the argument at `place`.
    #[inline(always)]
    pub fn open<'c, H: Host<Slot<'c> = O> + 'c>(
        call: &'c H,
        place: usize,
        access: Access,
    ) -> Result<Self, Error> {
        call.open(place, access).map(OfSlot::of)
    }

    /// Finds the limit that a limiter's own command is about: the one of its name, else the only one of its limiter and mode that is no
    /// shadow. A limit that the key lacks is fully reset.
    ///
    /// # Errors
    ///
    /// If the key holds no limits but a sketch or an amount.
    #[inline(always)]
    pub fn own_place<L: Limiter>(&self, limiter: &L) -> Result<Place, Error> {
        self.locate(limiter).map(|(place, _)| place)
    }

    /// As [`Key::own_place`], and whether a charge would add the limit beside others.
    #[inline(always)]
    fn locate<L: Limiter>(&self, limiter: &L) -> Result<(Place, bool), Error> {
        let length = Length::of(limiter.length());
        let Some(value) = self.slot.value() else {
            return Ok((Place::of(length), false));
        };
        if value.state::<L::State>().is_some() && !value.length().is_shadow() {
            return Ok((Place { stored: value.length(), length }, false));
        }
        match value.state::<LimitSet>().map(|set| set.find(Name::of::<L::State>(length))) {
            Some(Some(place)) => Ok((place, false)),
            None if !value.kind().is_limit() => Err(self.holds_no_limits(Some(L::State::KIND))),
            _ => Ok((Place::of(length), true)),
        }
    }

    pub fn is_missing(&self) -> bool {
        self.slot.value().is_none()
    }

    /// Returns the state of this type that has the key to itself; `None` if the key is missing.
    pub fn lone<S: State>(&self) -> Result<Option<&S>, Error> {
        match self.slot.value().map(Value::state::<S>) {
            None => Ok(None),
            Some(None) => Err(self.holds_no_limits(Some(S::KIND))),
            Some(state) => Ok(state),
        }
    }

    /// The error for a key that holds limits where a sketch or an amount is wanted, or the reverse. `wanted` is `None` for any limits.
    #[cold]
    fn holds_no_limits(&self, wanted: Option<Kind>) -> Error {
        Error::other_kind(self.slot.value().map_or(Kind::LimitSet, Value::kind), wanted)
    }

    /// Changes the state that has the key to itself, and returns whether `write` wrote a change.
    ///
    /// A missing key gets the state that `blank` makes, changed. The state then has this length of time in its name.
    #[inline(always)]
    pub fn change_lone<S: State>(
        &mut self,
        length: Length,
        blank: impl FnOnce() -> S,
        write: impl FnOnce(&S, &mut Vec<u8>),
    ) -> Result<bool, CoreError> {
        let start = self.payload.len();
        self.begin(S::KIND, length);
        let Key { slot, payload, .. } = self;
        let body = payload.len();
        let mut created = None;
        let state = match slot.state_mut::<S>() {
            Some(state) => state,
            None => created.insert(blank()),
        };
        write(state, payload);
        let written = payload.len() > body;
        let change = S::decode_change(&mut Reader::new(payload.get(body..).unwrap_or(&[])));
        if change.map(|change| state.apply(change)).is_none() {
            payload.truncate(start);
            // Bytes that were written and cannot be decoded are a defect.
            return if written { Err(CoreError::Defect) } else { Ok(false) };
        }
        match created {
            Some(state) => slot.put(Value::new(length, state)),
            None => slot.set_length(length),
        }
        Ok(true)
    }

    /// Begins the payload with its header, unless it has begun.
    #[inline(always)]
    fn begin(&mut self, kind: Kind, length: Length) {
        if self.payload.is_empty() {
            self.payload = self.slot.lend();
            payload::begin(&mut self.payload, kind, length, self.slot.value());
        }
    }

    /// Prepares the key for a hold, which a set stores beside its limits.
    pub fn make_room_for_holds(&mut self) {
        self.form = Form::Set;
    }

    /// Ends the changes of a call: moves the expiry if it must, and signals the change to clients.
    ///
    /// The last charge was at `latest`. The limits that were charged are fully reset `reset` after it. The payload is
    /// sent by [`Key::publish`] or [`publish`].
    #[inline(always)]
    pub fn commit(&mut self, clock: Time, latest: Time, reset: Span) {
        if self.payload.is_empty() {
            return;
        }
        if self.slot.set().is_some_and(LimitSet::is_empty) {
            return self.delete();
        }
        let reset = if self.form == Form::Lone { reset.max(self.memory()) } else { self.commit_set(latest) };
        self.move_expiry(clock.max(latest), reset);
        // Any change may make room: it may shorten a lease or a window, give something back, or move a state in time.
        self.slot.changed();
    }

    /// How long a lone table of leases remembers more than its leases.
    #[inline(always)]
    fn memory(&self) -> Span {
        let leases = self.slot.value().and_then(Value::state::<Leases>);
        leases.map_or(Span::ZERO, LimitState::memory)
    }

    /// Moves the expiry of a key that is fully reset `reset` after `now`, if it must move.
    #[inline(always)]
    fn move_expiry(&mut self, now: Time, reset: Span) {
        if let Some(value) = self.slot.value()
            && let Some(expiry) = expiry::moved(value.expiry(), now, reset)
        {
            self.slot.set_expiry(expiry);
            payload::add_expiry(&mut self.payload, expiry);
        }
    }

    /// Ends the changes of a call that may have given something back. If it did, `given_back` is the caller's instant.
    ///
    /// A key that is fully reset at that instant is deleted. Any other key is committed.
    pub fn settle(&mut self, given_back: Option<Time>, clock: Time, latest: Time, reset: Span) {
        let is_reset = reset == Span::ZERO && self.memory() == Span::ZERO;
        if is_reset && given_back.is_some_and(|at| self.set_is_reset(at)) {
            self.delete();
        } else {
            self.commit(clock, latest, reset);
        }
    }

    #[inline(never)]
    fn give_up_payload(&mut self) {
        // A payload remains only after a defect. Changes before the defect are still replicated. After a panic they are not:
        // the payload may end amid a change, which no replica could read.
        if std::thread::panicking() {
            self.payload.clear();
        }
        self.publish();
        self.slot.give_back(std::mem::take(&mut self.payload));
    }

    /// Deletes the key. The payload then says only that the key is gone.
    fn delete(&mut self) {
        self.slot.unlink();
        self.payload.clear();
        self.payload.extend(GONE);
        self.slot.changed();
    }

    /// Sends the payload, if there is one, to replicas and the AOF.
    #[inline(always)]
    pub fn publish(&mut self) {
        if !self.payload.is_empty() {
            self.slot.send(&self.payload);
            self.payload.clear();
        }
    }
}

impl<O: Slot> OfSlot<O> for Key<O> {
    #[inline(always)]
    fn of(slot: O) -> Self {
        let form = if slot.set().is_some() { Form::Set } else { Form::Lone };
        Key { slot, form, payload: Vec::new() }
    }

    fn slot(&self) -> &O {
        &self.slot
    }

    fn slot_mut(&mut self) -> &mut O {
        &mut self.slot
    }
}

impl<O: Slot> Limits for Key<O> {
    #[inline(always)]
    fn state<S: LimitState>(&self, length: Length) -> Option<&S> {
        let value = self.slot.value()?;
        match value.state::<S>() {
            Some(state) => (value.length() == length).then_some(state),
            None => value.state::<LimitSet>().and_then(|set| set.get(length)),
        }
    }

    #[inline(always)]
    fn change<S: LimitState>(
        &mut self,
        place: &mut Place,
        blank: impl FnOnce() -> S,
        write: impl FnOnce(&S, &mut Vec<u8>),
    ) -> Result<bool, CoreError> {
        if self.form == Form::Set {
            return self.change_in_set(place, blank, write);
        }
        let changed = self.change_lone(place.length, blank, write)?;
        if changed {
            place.stored = place.length;
        }
        Ok(changed)
    }

    fn room(&self) -> usize {
        self.slot.set().map_or(MAX_LIMITS - 1, LimitSet::room)
    }

    fn make_room(&mut self, mut names: impl Iterator<Item = Name>) {
        if self.form == Form::Set {
            return;
        }
        match self.slot.lone_limit() {
            Some((lone, _)) if names.any(|name| name != lone) => {
                self.form = Form::Set;
                // The limit may have been moved, after the clock was set back.
                payload::make_set(&mut self.payload, lone);
            }
            None if names.nth(1).is_some() => self.form = Form::Set,
            _ => {}
        }
    }

    #[inline(always)]
    fn drop_faded(&mut self, now: Time, named: impl Iterator<Item = Name> + Clone) -> Result<(), CoreError> {
        if self.form == Form::Lone { Ok(()) } else { self.drop_faded_of_set(now, &named) }
    }

    #[inline(always)]
    fn drop_holds(&mut self, now: Time) -> Result<(), CoreError> {
        if self.form == Form::Lone { Ok(()) } else { self.drop_holds_of_set(now) }
    }
}

impl<O: Slot> Drop for Key<O> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.payload.capacity() > 0 {
            self.give_up_payload();
        }
    }
}
