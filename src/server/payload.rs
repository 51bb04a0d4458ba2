//! What `RL.APPLY` carries: the effect of a call on one key, as it reaches replicas and the AOF.
//!
//! ```text
//! version  kind  form  changes or whole state  [deadline in ms]
//! 1 byte   1     1                             8, if the form says so
//! ```
//!
//! Kind 0 says that the key is gone. All numbers are little-endian.

use std::ffi::c_void;

use redis_module::raw::RedisModuleString;

use super::api::api;
use super::call::Call;
use super::form::{adopt, part};
use super::handle::{Access, Handle};
use super::value::{Slot, head, head_mut, state_mut};
use crate::limit::codec::Reader;
use crate::limit::with_state;
use crate::limit::{Error, Kind, Name, Several, SeveralChange, State};
use crate::time::Time;

const VERSION: u8 = 1;
const GONE: u8 = 0;
/// The form's bits.
const WITH_DEADLINE: u8 = 1;
const WHOLE: u8 = 2;
const FORM: usize = 2;
pub(super) const HEADER: usize = 3;

/// The payload that says that a key is gone.
pub(super) const NOTHING: [u8; HEADER] = [VERSION, GONE, 0];

/// Deadlines end long after the year 9999, and fit the head of a value.
const LAST_DEADLINE: u64 = 1 << 55;

/// Begins a payload of changes to a state.
pub(super) fn begin(payload: &mut Vec<u8>, kind: Kind) {
    payload.clear();
    payload.extend([VERSION, kind as u8, 0]);
}

/// Ends a payload with the deadline that the key has from now on.
pub(super) fn add_deadline(payload: &mut Vec<u8>, millis: u64) {
    payload.extend_from_slice(&millis.to_le_bytes());
    if let Some(form) = payload.get_mut(FORM) {
        *form |= WITH_DEADLINE;
    }
}

/// A payload that was checked to its last byte.
pub struct Payload<'a> {
    /// What the key holds then; `None` if it is gone.
    kind: Option<Kind>,
    whole: bool,
    body: Reader<'a>,
    deadline: Option<u64>,
}

impl<'a> Payload<'a> {
    /// Writes the payload that makes a key what it is here, from its kind and whole state.
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
        if bytes == NOTHING {
            return Some(Payload { kind: None, whole: false, body: Reader::new(&[]), deadline: None });
        }
        let (header, mut body) = bytes.split_at_checked(HEADER)?;
        let [VERSION, kind, form @ 0..=3] = *header else {
            return None;
        };
        let kind = Kind::from_byte(kind)?;
        let mut deadline = None;
        if form & WITH_DEADLINE != 0 {
            let (changes, last) = body.split_last_chunk()?;
            deadline = Some(Some(u64::from_le_bytes(*last)).filter(|millis| *millis < LAST_DEADLINE)?);
            body = changes;
        }
        let whole = form & WHOLE != 0;
        let payload = Payload { kind: Some(kind), whole, body: Reader::new(body), deadline };
        with_state!(kind, S => payload.sound::<S>()).then_some(payload)
    }

    /// Whether the body can be read to its end.
    fn sound<S: State>(&self) -> bool {
        let mut body = self.body;
        if self.whole {
            return S::decode(&mut body).is_some() && body.is_empty();
        }
        // At least one change: a key is never made of none.
        while S::decode_change(&mut body).is_some() {
            if body.is_empty() {
                return true;
            }
        }
        false
    }

    /// Makes the key so. What was there of another kind is replaced.
    pub fn apply(self, call: &Call<'_>, place: usize) -> Result<(), Error> {
        let handle = Handle::open(call, place, Access::Change)?;
        match self.kind {
            None => handle.unlink(),
            Some(Kind::Several) if !self.whole => self.apply_to_several(&handle),
            Some(kind) => with_state!(kind, S => self.apply_as::<S>(&handle)),
        }
        handle.signal();
        Ok(())
    }

    /// As what these changes take a limit of this kind that stands alone: they begin by adopting it; or they end by
    /// leaving it alone, and have been applied before.
    fn adopted(&self, kind: Kind) -> Option<(Name, Time)> {
        let mut changes = self.body;
        let (mut found, mut alone) = (None, false);
        while let Some(change) = Several::decode_change(&mut changes) {
            match change {
                SeveralChange::Adopt { name, until } if name.kind == kind => return Some((name, until)),
                SeveralChange::Limit { name, until, .. } if name.kind == kind => found = Some((name, until)),
                _ => {}
            }
            alone = matches!(change, SeveralChange::Alone);
        }
        found.filter(|_| alone)
    }

    /// As [`Payload::apply_as`]; a limit that stands alone may be adopted, and the last one left to stand alone.
    fn apply_to_several(mut self, handle: &Handle<'_, '_>) {
        let mut value = handle.value().unwrap_or_default();
        // SAFETY: a value that is not null is a slot of ours.
        let kind = (!value.is_null()).then(|| unsafe { head(value) }.kind());
        value = match kind {
            Some(Kind::Several) => value,
            Some(kind) => match self.adopted(kind) {
                Some((name, until)) => adopt(handle, value, name, until),
                None => handle.set_value(Slot::boxed(Several::blank())),
            },
            None => handle.set_value(Slot::boxed(Several::blank())),
        };
        // SAFETY: a slot of that kind, to which no other reference is alive.
        let several = unsafe { state_mut::<Several>(value) };
        while let Some(change) = Several::decode_change(&mut self.body) {
            several.apply(change);
        }
        value = part(handle, value);
        self.expire(handle, value);
    }

    fn apply_as<S: State>(mut self, handle: &Handle<'_, '_>) {
        // What is of another type counts as nothing: `set_value` replaces it.
        let mut value = handle.value().unwrap_or_default();
        // SAFETY: a value that is not null is a slot of ours.
        let same = !value.is_null() && unsafe { head(value) }.kind() == S::KIND;
        if self.whole {
            let Some(state) = S::decode(&mut self.body) else { return };
            value = handle.set_value(Slot::boxed(state));
        } else {
            if !same {
                value = handle.set_value(Slot::boxed(S::blank()));
            }
            // SAFETY: a slot of the kind of `S`, to which no other reference is alive.
            let state = unsafe { state_mut::<S>(value) };
            while let Some(change) = S::decode_change(&mut self.body) {
                state.apply(change);
            }
        }
        self.expire(handle, value);
    }

    fn expire(&self, handle: &Handle<'_, '_>, value: *mut c_void) {
        if let Some(deadline) = self.deadline {
            // SAFETY: a slot of ours, to which no reference is alive.
            unsafe { head_mut(value) }.set_deadline(deadline);
            handle.set_deadline(deadline);
        }
    }
}

/// Sends payloads, each for the key of its name, to replicas and the AOF in one command.
pub(super) fn replicate<'p>(
    call: &Call<'_>,
    pairs: impl Iterator<Item = (*mut RedisModuleString, &'p [u8])>,
) {
    let mut arguments: Vec<*mut RedisModuleString> = Vec::with_capacity(8);
    // SAFETY: the context of the running command, and names of its arguments; what is made here is freed here.
    unsafe {
        for (name, payload) in pairs {
            let blob = api!(RedisModule_CreateString(call.ctx, payload.as_ptr().cast(), payload.len()));
            arguments.extend([name, blob]);
        }
        let (command, format) = (c"RL.APPLY".as_ptr(), c"v".as_ptr());
        api!(RedisModule_Replicate(call.ctx, command, format, arguments.as_mut_ptr(), arguments.len()));
        for blob in arguments.iter().skip(1).step_by(2) {
            api!(RedisModule_FreeString(call.ctx, *blob));
        }
    }
}
