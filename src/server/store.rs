//! Keys: opening one, changing its state in place, and telling replicas and the AOF what changed.
//!
//! A change is written down first, as the bytes of an `RL.APPLY` payload, and then applied from those bytes. So
//! the node that decides does exactly what every replica will do.
//!
//! ```text
//! payload:  version  kind  form  changes or whole state  [deadline in ms]
//!           1 byte   1     1                             8, if the form says so
//! ```
//!
//! Kind 0 says that the key is gone.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::mem::take;

use redis_module::raw::{KeyType, REDISMODULE_READ, REDISMODULE_WRITE, RedisModuleKey, RedisModuleString};

use super::api::api;
use super::call::Call;
use super::reply::integer;
use super::value::{Slot, TYPE, head, kind, slot};
use crate::limit::codec::Reader;
use crate::limit::{Error, Kind, State};
use crate::time::{Span, Time};
use crate::with_state;

const VERSION: u8 = 1;
const GONE: u8 = 0;
/// The form's bits.
const WITH_DEADLINE: u8 = 1;
const WHOLE: u8 = 2;
const HEADER: usize = 3;
const FORM: usize = 2;

/// The deadline of a key leaves some room behind the moment when its state is as good as new: as much time again,
/// within these bounds. It is moved when less than a quarter of the room is left, so that few charges move it, and
/// a key in constant use never expires only to be made again.
const LEAST_SLACK: Span = Span::from_millis(1000);
const MOST_SLACK: Span = Span::from_millis(60_000);

/// Where payloads are written, kept from call to call so that none is allocated.
static JOURNAL: Spare = Spare(Cell::new(Vec::new()));

struct Spare(Cell<Vec<u8>>);

// SAFETY: only commands touch it, and the server runs them one at a time, under its lock.
unsafe impl Sync for Spare {}

/// A longer journal is given back after use.
const JOURNAL_KEPT: usize = 4096;

/// What an open key is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Look,
    Change,
}

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
        // SAFETY: a value that is not null is a slot of ours.
        if !value.is_null() && unsafe { kind(value) } != S::KIND {
            return Err(Error::WrongType);
        }
        Ok(Key { handle, value, journal: Vec::new(), state: PhantomData })
    }

    pub fn state(&self) -> Option<&S> {
        if self.value.is_null() {
            return None;
        }
        // SAFETY: the kind was checked when the key was opened, and only methods of this `Key` change the slot.
        Some(&unsafe { slot::<S>(self.value) }.state)
    }

    /// Applies the change that `write` puts down, if it does: here, and with `commit` everywhere. `blank` is what a
    /// missing key is taken for. Tells whether there was a change.
    pub fn change(&mut self, blank: S, write: impl FnOnce(&S, &mut Vec<u8>)) -> bool {
        let mut journal = take(&mut self.journal);
        if journal.is_empty() {
            journal = JOURNAL.0.take();
            journal.clear();
            journal.extend([VERSION, S::KIND as u8, 0]);
        }
        let mark = journal.len();
        let mut created = None;
        let state: &mut S = if self.value.is_null() {
            created.insert(blank)
        } else {
            // SAFETY: as in `state`.
            &mut unsafe { slot::<S>(self.value) }.state
        };
        write(state, &mut journal);
        let changed = match S::decode_change(&mut Reader::new(journal.get(mark..).unwrap_or(&[]))) {
            Some(change) => {
                state.apply(change);
                true
            }
            None => false,
        };
        if changed && let Some(state) = created {
            self.value = self.handle.set_value(Slot::boxed(state));
        }
        if !changed && mark == HEADER {
            journal.clear();
        }
        self.journal = journal;
        changed
    }

    /// Forgets the deadline that the key had, so that `commit` sets it anew: the clock it was set by is wrong.
    pub fn forget_deadline(&mut self) {
        if !self.value.is_null() {
            // SAFETY: a slot of ours, to which no reference is alive.
            unsafe { head(self.value) }.set_deadline(0);
        }
    }

    /// Makes what changed known: sets the deadline if it must move, wakes who watches the key, and sends the
    /// payload to replicas and the AOF. Does nothing if nothing changed.
    pub fn commit(mut self, now: Time, reset: Span) {
        if self.journal.is_empty() {
            return;
        }
        // SAFETY: a slot of ours, to which no reference is alive.
        let head = unsafe { head(self.value) };
        let slack = reset.clamp(LEAST_SLACK, MOST_SLACK);
        if head.deadline() < now.plus(reset).plus(slack.quarter()).as_millis_up() {
            let deadline = now.plus(reset).plus(slack).as_millis_up();
            head.set_deadline(deadline);
            self.handle.set_deadline(deadline);
            self.journal.extend_from_slice(&deadline.to_le_bytes());
            if let Some(form) = self.journal.get_mut(FORM) {
                *form |= WITH_DEADLINE;
            }
        }
        self.handle.publish(&self.journal);
        if self.journal.capacity() <= JOURNAL_KEPT {
            JOURNAL.0.set(take(&mut self.journal));
        }
    }

    /// Deletes the key, here and everywhere.
    pub fn delete(self) {
        self.handle.delete();
        self.handle.publish(&[VERSION, GONE, 0]);
    }
}

/// What `RL.APPLY` does to one key; checked to the last byte before anything is changed.
pub struct Payload<'a> {
    /// What the key holds then; `None` if it is gone.
    kind: Option<Kind>,
    form: u8,
    body: Reader<'a>,
    deadline: Option<u64>,
}

impl<'a> Payload<'a> {
    /// Writes the payload that makes a key what it is here, from what `value` encodes it as: its kind and state.
    pub(super) fn whole(encoded: &[u8]) -> Vec<u8> {
        let (kind, state) = encoded.split_first().unwrap_or((&GONE, &[]));
        let mut payload = vec![VERSION, *kind, WHOLE];
        payload.extend_from_slice(state);
        payload
    }

    pub fn parse(bytes: &'a [u8]) -> Result<Payload<'a>, Error> {
        Payload::read(bytes).ok_or(Error::Payload)
    }

    fn read(bytes: &'a [u8]) -> Option<Payload<'a>> {
        let (header, mut body) = bytes.split_at_checked(HEADER)?;
        let [VERSION, kind, form] = *header else {
            return None;
        };
        if kind == GONE {
            return (form == 0 && body.is_empty()).then_some(Payload {
                kind: None,
                form,
                body: Reader::new(body),
                deadline: None,
            });
        }
        let kind = Kind::from_byte(kind)?;
        let mut deadline = None;
        if form & WITH_DEADLINE != 0 {
            let (changes, last) = body.split_last_chunk()?;
            deadline = Some(u64::from_le_bytes(*last)).filter(|deadline| *deadline < 1 << 55);
            deadline?;
            body = changes;
        }
        let payload = Payload { kind: Some(kind), form, body: Reader::new(body), deadline };
        let sound = form <= (WITH_DEADLINE | WHOLE) && with_state!(kind, S => payload.sound::<S>());
        sound.then_some(payload)
    }

    /// Whether the body can be read to its end.
    fn sound<S: State>(&self) -> bool {
        let mut body = self.body;
        if self.form & WHOLE != 0 {
            return S::decode(&mut body).is_some() && body.is_empty();
        }
        // At least one change: a key is never made of none.
        loop {
            if S::decode_change(&mut body).is_none() {
                return false;
            }
            if body.is_empty() {
                return true;
            }
        }
    }

    /// Makes the key so. What was there of another kind is replaced.
    pub fn apply(self, call: &Call<'_>, place: usize) -> Result<(), Error> {
        let handle = Handle::open(call, place, Access::Change)?;
        match self.kind {
            None => handle.delete(),
            Some(kind) => with_state!(kind, S => self.apply_as::<S>(&handle)),
        }
        handle.signal();
        Ok(())
    }

    fn apply_as<S: State>(mut self, handle: &Handle<'_, '_>) {
        // What is of another type counts as nothing: `set_value` replaces it.
        let mut value = handle.value().unwrap_or_default();
        // SAFETY: a value that is not null is a slot of ours.
        let same = !value.is_null() && unsafe { kind(value) } == S::KIND;
        if self.form & WHOLE != 0 {
            let Some(state) = S::decode(&mut self.body) else { return };
            value = handle.set_value(Slot::boxed(state));
        } else {
            if !same {
                value = handle.set_value(Slot::boxed(S::blank()));
            }
            // SAFETY: a slot of the kind of `S`, to which no other reference is alive.
            let state = &mut unsafe { slot::<S>(value) }.state;
            while let Some(change) = S::decode_change(&mut self.body) {
                state.apply(change);
            }
        }
        if let Some(deadline) = self.deadline {
            // SAFETY: a slot of ours, to which no reference is alive.
            unsafe { head(value) }.set_deadline(deadline);
            handle.set_deadline(deadline);
        }
    }
}

/// What `RL.INFO` tells of a key.
pub struct Description {
    pub kind: Kind,
    pub figures: Vec<(&'static str, crate::limit::Figure)>,
    /// When the key expires, in ms since the epoch.
    pub expires: Option<u64>,
}

/// Opens a key of any kind to describe it; `None` if it does not exist.
pub fn describe(call: &Call<'_>, place: usize) -> Result<Option<Description>, Error> {
    let handle = Handle::open(call, place, Access::Look)?;
    let value = handle.value()?;
    if value.is_null() {
        return Ok(None);
    }
    // SAFETY: a value that is not null is a slot of ours, of the kind that its head tells.
    unsafe {
        let kind = kind(value);
        let mut figures = Vec::new();
        with_state!(kind, S => {
            let state = &slot::<S>(value).state;
            state.describe(&mut |name, figure| figures.push((name, figure)));
            figures.push(("last_charge_us", crate::limit::Figure::At(state.last())));
        });
        let expires = u64::try_from(api!(RedisModule_GetAbsExpire(handle.key))).ok();
        Ok(Some(Description { kind, figures, expires }))
    }
}

/// An open key of the server's; closed when dropped.
struct Handle<'c, 'a> {
    call: &'c Call<'a>,
    name: *mut RedisModuleString,
    /// Null if the key does not exist and was opened to look.
    key: *mut RedisModuleKey,
}

impl<'c, 'a> Handle<'c, 'a> {
    #[inline(always)]
    fn open(call: &'c Call<'a>, place: usize, access: Access) -> Result<Self, Error> {
        let name = call.argument(place)?;
        let mode = match access {
            Access::Look => REDISMODULE_READ,
            Access::Change => REDISMODULE_READ | REDISMODULE_WRITE,
        };
        // SAFETY: the context and an argument of the running command.
        let key = unsafe { api!(RedisModule_OpenKey(call.ctx, name, mode.cast_signed())) };
        Ok(Handle { call, name, key })
    }

    /// The value of ours that the key holds; null if the key does not exist.
    #[inline(always)]
    fn value(&self) -> Result<*mut c_void, Error> {
        // SAFETY: the handle is open; the server takes a null one for a missing key.
        unsafe {
            let module_type = api!(RedisModule_ModuleTypeGetType(self.key));
            if !module_type.is_null() && module_type == *TYPE.raw_type.as_ptr() {
                return Ok(api!(RedisModule_ModuleTypeGetValue(self.key)));
            }
            let missing = api!(RedisModule_KeyType(self.key)) == KeyType::Empty as c_int;
            if missing { Ok(std::ptr::null_mut()) } else { Err(Error::WrongType) }
        }
    }

    /// Makes the key hold a value, without an expiry; what it held before is freed.
    fn set_value(&self, value: *mut c_void) -> *mut c_void {
        // SAFETY: the key is open for writing, and the value is of our type and nobody else's.
        unsafe { api!(RedisModule_ModuleTypeSetValue(self.key, *TYPE.raw_type.as_ptr(), value)) };
        value
    }

    fn set_deadline(&self, millis: u64) {
        // SAFETY: the key is open for writing.
        unsafe { api!(RedisModule_SetAbsExpire(self.key, integer(millis))) };
    }

    fn delete(&self) {
        // SAFETY: the key is open for writing.
        unsafe { api!(RedisModule_DeleteKey(self.key)) };
    }

    fn signal(&self) {
        // SAFETY: the context and an argument of the running command.
        unsafe { api!(RedisModule_SignalModifiedKey(self.call.ctx, self.name)) };
    }

    /// Signals the key and sends a payload for it to replicas and the AOF.
    fn publish(&self, payload: &[u8]) {
        self.signal();
        // SAFETY: the format asks for a string object and a buffer with its length.
        unsafe {
            api!(RedisModule_Replicate(
                self.call.ctx,
                c"RL.APPLY".as_ptr(),
                c"sb".as_ptr(),
                self.name,
                payload.as_ptr(),
                payload.len()
            ));
        }
    }
}

impl Drop for Handle<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: the handle was opened by us; the server takes a null one.
        unsafe { api!(RedisModule_CloseKey(self.key)) };
    }
}
