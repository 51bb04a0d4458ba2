//! The argument of `RL.APPLY`: the effect of a call on one key, as it reaches replicas and the AOF.
//!
//! ```text
//! version  kind  form  length of time  changes or whole state  [deadline in ms]
//! 1 byte   1     1     8                                       8, if the form says so
//! ```
//!
//! The kind is that of a limit that stands alone, with its length of time; or of a set, whose changes name each limit.
//! Kind 0 says that the key is gone. All numbers are little-endian.

use std::mem::ManuallyDrop;

use ratelimit_core::state::codec::{Reader, put};
use ratelimit_core::{Kind, LimitSet, Span, State, with_state};
use ratelimit_language::Error;
use redis_module::raw::RedisModuleString;

use super::api::api;
use super::call::Call;
use super::handle::{Access, Handle};
use super::key::{gather, normalize};
use super::value::Value;

const VERSION: u8 = 1;
const NO_KIND: u8 = 0;
/// The form's bits.
const WITH_DEADLINE: u8 = 1;
const WHOLE: u8 = 2;
/// The key was missing: the changes start from nothing, whatever the key holds here.
const CREATED: u8 = 4;
const FORM: usize = 2;
/// Version, kind, form and length of time.
const HEADER: usize = 11;

/// The payload that says that a key is gone.
pub(super) const GONE: [u8; 3] = [VERSION, NO_KIND, 0];

/// Deadlines end long after the year 9999, and fit the head of a value.
const LAST_DEADLINE: u64 = 1 << 55;

/// Begins a payload of changes to a key that holds `before`, or is missing.
#[inline(always)]
pub(super) fn begin(payload: &mut Vec<u8>, kind: Kind, length: Span, before: Option<&Value>) {
    let mut header = [0; HEADER];
    let [version, kind_byte, form, length_bytes @ ..] = &mut header;
    (*version, *kind_byte, *form) = (VERSION, kind as u8, if before.is_some() { 0 } else { CREATED });
    *length_bytes = length.as_micros().to_le_bytes();
    payload.clear();
    payload.extend_from_slice(&header);
}

/// Ends a payload with the deadline that the key has from now on.
pub(super) fn add_deadline(payload: &mut Vec<u8>, millis: u64) {
    put(payload, millis);
    if let Some(form) = payload.get_mut(FORM) {
        *form |= WITH_DEADLINE;
    }
}

/// A payload that was checked to its last byte.
pub struct Payload<'a> {
    effect: Effect<'a>,
    created: bool,
    deadline: Option<u64>,
}

enum Effect<'a> {
    Gone,
    /// The key holds this value, whatever it held.
    Whole(Value),
    /// The key holds a state of this kind and length of time alone, after these changes.
    Lone {
        kind: Kind,
        length: Span,
        changes: Reader<'a>,
    },
    /// The key's limits change so.
    Set {
        changes: Reader<'a>,
    },
}

impl<'a> Payload<'a> {
    /// Writes the payload that makes a key hold an encoded value.
    pub(super) fn whole(encoded: &[u8]) -> Vec<u8> {
        let (kind, rest) = encoded.split_first().unwrap_or((&NO_KIND, &[]));
        let mut payload = vec![VERSION, *kind, WHOLE];
        payload.extend_from_slice(rest);
        payload
    }

    pub fn parse(bytes: &'a [u8]) -> Result<Payload<'a>, Error> {
        Payload::read(bytes).ok_or(Error::Payload)
    }

    fn read(bytes: &'a [u8]) -> Option<Payload<'a>> {
        if bytes == GONE {
            return Some(Payload { effect: Effect::Gone, created: false, deadline: None });
        }
        let ([VERSION, kind, form @ 0..=5], mut body) = bytes.split_first_chunk()? else {
            return None;
        };
        let mut deadline = None;
        if form & WITH_DEADLINE != 0 {
            let (changes, last) = body.split_last_chunk()?;
            deadline = Some(Some(u64::from_le_bytes(*last)).filter(|millis| *millis < LAST_DEADLINE)?);
            body = changes;
        }
        let effect = if form & WHOLE != 0 {
            let mut encoded = vec![*kind];
            encoded.extend_from_slice(body);
            Effect::Whole(Value::decode(&encoded)?)
        } else {
            Effect::of_changes(Kind::from_byte(*kind)?, Reader::new(body))?
        };
        Some(Payload { effect, created: form & CREATED != 0, deadline })
    }

    /// Makes the key so. A value of another kind is replaced.
    pub fn apply(self, call: &Call<'_>, place: usize) -> Result<(), Error> {
        let handle = Handle::open(call, place, Access::Write)?;
        // A value of another type counts as none: `set_value` replaces it.
        let mut value = handle.value().unwrap_or_default();
        if self.created {
            value = None;
        }
        match self.effect {
            Effect::Gone => {
                value = None;
                handle.unlink();
            }
            Effect::Whole(whole) => value = Some(handle.set_value(whole)),
            Effect::Lone { kind, length, changes } => {
                with_state!(kind, S => apply_alone::<S>(&handle, &mut value, length, changes));
            }
            Effect::Set { changes } => apply_to_set(&handle, &mut value, changes),
        }
        if let (Some(value), Some(deadline)) = (&mut value, self.deadline) {
            value.set_deadline(deadline);
            handle.set_deadline(deadline);
        }
        handle.signal();
        Ok(())
    }
}

impl<'a> Effect<'a> {
    /// The changes, if there is one at least, and all of them can be read.
    fn of_changes(kind: Kind, mut body: Reader<'a>) -> Option<Effect<'a>> {
        let length = body.span()?;
        let changes = body;
        let mut sound = false;
        with_state!(kind, S => while !body.is_empty() {
            S::decode_change(&mut body)?;
            sound = true;
        });
        let effect = if kind == Kind::LimitSet {
            Effect::Set { changes }
        } else {
            Effect::Lone { kind, length, changes }
        };
        sound.then_some(effect)
    }
}

fn apply_alone<S: State>(
    handle: &Handle<'_, '_>,
    value: &mut Option<ManuallyDrop<Value>>,
    length: Span,
    mut changes: Reader<'_>,
) {
    if value.as_ref().is_none_or(|value| value.state::<S>().is_none()) {
        *value = Some(handle.set_value(Value::lone(length, S::blank())));
    }
    let Some(value) = value else { return };
    value.set_length(length);
    if let Some(state) = value.state_mut::<S>() {
        while let Some(change) = S::decode_change(&mut changes) {
            state.apply(change);
        }
    }
}

fn apply_to_set(handle: &Handle<'_, '_>, value: &mut Option<ManuallyDrop<Value>>, mut changes: Reader<'_>) {
    if let Some(set) = gather(handle, value) {
        while let Some(change) = LimitSet::decode_change(&mut changes) {
            set.apply(change);
        }
        if set.limits().is_empty() {
            *value = None;
            return handle.unlink();
        }
    }
    normalize(handle, value);
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
