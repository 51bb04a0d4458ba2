//! Keys: opening one, changing its state in place, and telling replicas and the AOF what changed.
//!
//! A change is written down first, as the bytes of an `RL.APPLY` payload, and then applied from those bytes. So
//! the node that decides does exactly what every replica will do.

use std::cell::Cell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::take;

use super::call::Call;
use super::handle::{Access, Handle};
use super::payload::{self, HEADER, NOTHING};
use super::value::{Slot, head, head_mut, state, state_mut};
use crate::limit::codec::Reader;
use crate::limit::{Error, Figure, Kind, Name, Reading, Several, State, read_clock};
use crate::limit::{with_kept, with_state};
use crate::time::{Span, Time};

/// The deadline of a key leaves some room behind the moment when its state is as good as new: as much time again,
/// within these bounds. It is moved when less than a quarter of the room is left, so that few charges move it and a
/// key in constant use never expires only to be made again; and when there is more room than ever is left, because
/// the reset has come nearer.
const LEAST_SLACK: Span = Span::from_millis(1000);
const MOST_SLACK: Span = Span::from_millis(60_000);

/// Where payloads are written, kept from call to call so that none is allocated.
static JOURNAL: Spare = Spare(Cell::new(Vec::new()));

struct Spare(Cell<Vec<u8>>);

// SAFETY: only commands touch it, and the server runs them one at a time, under its lock.
unsafe impl Sync for Spare {}

/// An open key that holds a state of type `S`, or nothing yet.
pub struct Key<'c, 'a, S: State> {
    handle: Handle<'c, 'a>,
    /// The value; null if the key does not exist.
    value: *mut c_void,
    /// The payload so far; empty as long as nothing changed.
    journal: Vec<u8>,
    state: PhantomData<S>,
}

impl<'c, 'a, S: State> Key<'c, 'a, S> {
    /// Opens the key that is an argument of the call.
    #[inline(always)]
    pub fn open(call: &'c Call<'a>, place: usize, access: Access) -> Result<Self, Error> {
        let handle = Handle::open(call, place, access)?;
        let value = handle.value()?;
        Key::holding(handle, value)
    }

    /// An open key that holds this value.
    #[inline(always)]
    pub(super) fn holding(handle: Handle<'c, 'a>, value: *mut c_void) -> Result<Self, Error> {
        // SAFETY: a value that is not null is a slot of ours.
        if !value.is_null() && unsafe { head(value) }.kind() != S::KIND {
            return Err(Error::WrongType);
        }
        Ok(Key { handle, value, journal: Vec::new(), state: PhantomData })
    }

    pub fn state(&self) -> Option<&S> {
        // SAFETY: the kind was checked when the key was opened, and only `change`, which borrows `self` alone,
        // changes the state.
        (!self.value.is_null()).then(|| unsafe { state(self.value) })
    }

    /// What `ask` says of the state, or of a fresh one if there is none.
    #[inline(always)]
    pub fn with_state<T>(&self, fresh: impl FnOnce() -> S, ask: impl FnOnce(&S) -> T) -> T {
        match self.state() {
            Some(state) => ask(state),
            None => ask(&fresh()),
        }
    }

    /// Reads the clock for the key's state: the instant to decide at. If the clock was set back, the state is moved
    /// to now, by what `rebase` puts down; that is written whatever comes of the call.
    #[inline(always)]
    pub fn read_clock(
        &mut self,
        now: Time,
        reset: impl FnOnce(&S) -> Span,
        rebase: impl FnOnce(&S, &mut Vec<u8>),
    ) -> Result<Time, Error> {
        let Some(state) = self.state() else {
            return Ok(now);
        };
        match read_clock(state.last(), now, || reset(state)) {
            Reading::At(instant) => Ok(instant),
            Reading::SetBack => {
                self.change(S::blank(), rebase)?;
                Ok(now)
            }
        }
    }

    /// Applies the change that `write` puts down, if it does: here, and with `commit` everywhere. `blank` is what a
    /// missing key is taken for. Tells whether there was a change.
    pub fn change(&mut self, blank: S, write: impl FnOnce(&S, &mut Vec<u8>)) -> Result<bool, Error> {
        write_change(&self.handle, &mut self.value, &mut self.journal, blank, write)
    }

    /// Makes what changed known: sets the deadline if it must move, wakes who watches the key, and sends the
    /// payload to replicas and the AOF. Does nothing if nothing changed. The state is as good as new `reset` after
    /// `now`.
    pub fn commit(mut self, now: Time, reset: Span) {
        if self.journal.is_empty() {
            return;
        }
        move_deadline(&self.handle, self.value, &mut self.journal, now, reset);
        self.handle.publish(&self.journal);
    }

    /// Deletes the key, here and everywhere.
    pub fn delete(self) {
        self.handle.unlink();
        self.handle.publish(&NOTHING);
    }
}

impl<S: State> Drop for Key<'_, '_, S> {
    fn drop(&mut self) {
        keep_journal(take(&mut self.journal));
    }
}

/// Keeps a payload's bytes for the next one.
pub(super) fn keep_journal(journal: Vec<u8>) {
    if journal.capacity() > 0 {
        JOURNAL.0.set(journal);
    }
}

/// An empty payload of changes to a state.
pub(super) fn journal(kind: Kind) -> Vec<u8> {
    let mut journal = JOURNAL.0.take();
    // What most effects take, so that it does not grow by and by.
    journal.reserve(128);
    payload::begin(&mut journal, kind);
    journal
}

/// Applies the change to a value of the kind of `S`, or to a missing one, that `write` puts down; as [`Key::change`].
#[inline(always)]
pub(super) fn write_change<S: State>(
    handle: &Handle<'_, '_>,
    value: &mut *mut c_void,
    payload: &mut Vec<u8>,
    blank: S,
    write: impl FnOnce(&S, &mut Vec<u8>),
) -> Result<bool, Error> {
    let mut changes = take(payload);
    if changes.is_empty() {
        changes = journal(S::KIND);
    }
    let mark = changes.len();
    let mut created = None;
    let state: &mut S = if value.is_null() {
        created.insert(blank)
    } else {
        // SAFETY: the caller has checked the kind, and holds the key alone.
        unsafe { state_mut(*value) }
    };
    write(state, &mut changes);
    let mut reader = Reader::new(changes.get(mark..).unwrap_or(&[]));
    let written = !reader.is_empty();
    let readable = match S::decode_change(&mut reader) {
        Some(change) => {
            state.apply(change);
            true
        }
        None => false,
    };
    if readable && let Some(state) = created {
        *value = handle.set_value(Slot::boxed(state));
    }
    if !readable {
        changes.truncate(if mark == HEADER { 0 } else { mark });
    }
    *payload = changes;
    // A change that was put down and cannot be read is a defect of ours.
    if written == readable { Ok(written) } else { Err(Error::Internal) }
}

/// Sets the deadline of a key that is as good as new `reset` after `now`, if it must move, and adds it to the payload.
#[inline(always)]
pub(super) fn move_deadline(
    handle: &Handle<'_, '_>,
    value: *mut c_void,
    payload: &mut Vec<u8>,
    now: Time,
    reset: Span,
) {
    // SAFETY: a slot of ours, to which no reference is alive.
    let head = unsafe { head_mut(value) };
    let settled = now.plus(reset);
    let slack = reset.clamp(LEAST_SLACK, MOST_SLACK);
    let known = Time::from_millis(head.deadline());
    // A deadline is a whole millisecond, rounded up.
    let latest = settled.plus(MOST_SLACK).plus(Span::from_millis(1));
    if known < settled.plus(slack.quarter()) || known > latest {
        let deadline = settled.plus(slack).as_millis_up();
        head.set_deadline(deadline);
        handle.set_deadline(deadline);
        payload::add_deadline(payload, deadline);
    }
}

type Figures = Vec<(&'static str, Figure)>;

/// What `RL.INFO` tells of a key.
pub struct Description {
    pub kind: Kind,
    pub figures: Figures,
    /// Of several limits each: its name, and what it stores.
    pub limits: Vec<(Name, Figures)>,
    /// When the key expires, in ms since the epoch.
    pub expires: Option<u64>,
}

/// Describes a key of any kind; `None` if it does not exist.
pub fn describe(call: &Call<'_>, place: usize) -> Result<Option<Description>, Error> {
    let handle = Handle::open(call, place, Access::Look)?;
    let value = handle.value()?;
    if value.is_null() {
        return Ok(None);
    }
    // SAFETY: a value that is not null is a slot of ours, of the kind that its head tells.
    unsafe {
        let kind = head(value).kind();
        let mut limits = Vec::new();
        if kind == Kind::Several {
            for limit in state::<Several>(value).limits() {
                let figures = with_kept!(&limit.state, state => figures(state.as_ref()));
                limits.push((limit.name, figures));
            }
        }
        let figures = with_state!(kind, S => figures(state::<S>(value)));
        Ok(Some(Description { kind, figures, limits, expires: handle.deadline() }))
    }
}

fn figures<S: State>(state: &S) -> Figures {
    let mut figures = Vec::new();
    state.describe(&mut |name, figure| figures.push((name, figure)));
    figures.push(("last_charge_us", Figure::At(state.last())));
    figures
}
