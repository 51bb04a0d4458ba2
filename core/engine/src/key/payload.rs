//! The argument of `RL.APPLY`: the effect of a call on one key, for replicas and the AOF.
//!
//! ```text
//! field      bytes
//! version    1
//! kind       1     of a lone state, or that of a set; 0 if the key is gone
//! form       1     the bits below
//! length     8     the length of time in a lone limit's name, in us; the highest bit is that of a shadow
//! body             changes, or a whole state
//! expiry     8     in ms since the epoch, if the form has the bit
//! ```
//!
//! Numbers are little-endian. The payload of a key that is gone ends after the form. Each change of a set names its
//! limit. `mod.rs` shows an example. `apply.rs` applies payloads. Their tests are `tests/it/fuzz/payloads.rs` and the fuzzer
//! `history`, which applies them to a replica.

use ratelimit_core::state::codec::{Reader, put};
use ratelimit_core::state::{Cells, SetChange};
use ratelimit_core::{Kind, Length, Name, State, with_state};
use ratelimit_language::Error;
use ratelimit_value::Value;

const VERSION: u8 = 1;
const NO_KIND: u8 = 0;
/// The payload ends with an expiry.
const WITH_EXPIRY: u8 = 1;
/// The body is a whole state.
const WHOLE: u8 = 2;
/// The key was missing: the changes apply to a blank state, even if the key holds a value here.
const CREATED: u8 = 4;
/// The place of the form.
const FORM: usize = 2;
/// The bytes before the body.
const HEADER: usize = 11;

/// The payload of a key that is gone.
pub const GONE: [u8; 3] = [VERSION, NO_KIND, 0];

/// Every expiry is below this. It lies long after the year 9999, and fits the head of a value.
const EXPIRY_BOUND: u64 = 1 << 55;

/// Begins a payload of changes in an empty buffer. The key holds `before`, or is missing.
#[inline(always)]
pub fn begin(payload: &mut Vec<u8>, kind: Kind, length: Length, before: Option<&Value>) {
    let mut header = [0; HEADER];
    let [version, kind_byte, form, length_bytes @ ..] = &mut header;
    (*version, *kind_byte, *form) = (VERSION, kind as u8, if before.is_some() { 0 } else { CREATED });
    *length_bytes = length.to_word().to_le_bytes();
    payload.extend_from_slice(&header);
}

/// Turns a payload with one change of a lone limit into that of a set, so that other limits can follow.
pub fn make_set(payload: &mut Vec<u8>, lone: Name) {
    if payload.len() < HEADER {
        return;
    }
    let change = payload.split_off(HEADER);
    if let Some([_, kind, _, length @ ..]) = payload.get_mut(..HEADER) {
        *kind = Kind::LimitSet as u8;
        length.copy_from_slice(&Length::NONE.to_word().to_le_bytes());
    }
    SetChange::begin(lone, payload);
    payload.extend(change);
}

/// Ends a payload with the new expiry of the key.
pub fn add_expiry(payload: &mut Vec<u8>, millis: u64) {
    put(payload, millis);
    if let Some(form) = payload.get_mut(FORM) {
        *form |= WITH_EXPIRY;
    }
}

/// A payload, checked to its last byte.
pub struct Payload<'a> {
    pub(super) effect: Effect<'a>,
    pub(super) created: bool,
    pub(super) expiry: Option<u64>,
}

pub(super) enum Effect<'a> {
    /// The key is deleted.
    Gone,
    /// This value replaces any other.
    Whole(Value),
    /// These changes apply to a lone state. A missing state, or one of another kind, is first made blank.
    Lone { kind: Kind, length: Length, changes: Reader<'a> },
    /// These changes apply to a set.
    Set { changes: Reader<'a> },
}

impl<'a> Payload<'a> {
    /// Calls `emit` with the payloads that make a key hold a value: one for most, and several small ones for a sketch.
    pub fn pieces(value: &Value, mut emit: impl FnMut(&[u8])) {
        let Some(cells) = value.state::<Cells>() else {
            return emit(&Payload::whole(&value.encode()));
        };
        for (number, change) in cells.pieces().enumerate() {
            let mut payload = Vec::with_capacity(HEADER + change.len());
            let before = (number > 0).then_some(value);
            begin(&mut payload, Cells::KIND, Length::NONE, before);
            payload.extend_from_slice(&change);
            emit(&payload);
        }
    }

    /// Writes the payload that makes a key hold an encoded value.
    fn whole(encoded: &[u8]) -> Vec<u8> {
        let (kind, rest) = encoded.split_first().unwrap_or((&NO_KIND, &[]));
        let mut payload = vec![VERSION, *kind, WHOLE];
        payload.extend_from_slice(rest);
        payload
    }

    pub fn parse(bytes: &'a [u8]) -> Result<Payload<'a>, Error> {
        Payload::decode(bytes).ok_or(Error::Payload)
    }

    fn decode(bytes: &'a [u8]) -> Option<Payload<'a>> {
        if bytes == GONE {
            return Some(Payload { effect: Effect::Gone, created: false, expiry: None });
        }
        // A whole state does not depend on what the key held, so no payload has both `WHOLE` and `CREATED`.
        let ([VERSION, kind, form @ 0..=5], mut body) = bytes.split_first_chunk()? else {
            return None;
        };
        let mut expiry = None;
        if form & WITH_EXPIRY != 0 {
            let (before, millis) = body.split_last_chunk()?;
            expiry = Some(Some(u64::from_le_bytes(*millis)).filter(|millis| *millis < EXPIRY_BOUND)?);
            body = before;
        }
        let effect = if form & WHOLE != 0 {
            let mut encoded = vec![*kind];
            encoded.extend_from_slice(body);
            Effect::Whole(Value::decode(&encoded)?)
        } else {
            Effect::of_changes(Kind::from_byte(*kind)?, Reader::new(body))?
        };
        Some(Payload { effect, created: form & CREATED != 0, expiry })
    }

    /// Whether it is the only payload of its command. A few bytes can make a large sketch.
    pub fn stands_alone(&self) -> bool {
        matches!(self.effect, Effect::Lone { kind: Kind::Cells, .. })
    }

    /// Whether the key holds a value after the effect, which may need memory.
    pub fn stores(&self) -> bool {
        !matches!(self.effect, Effect::Gone)
    }
}

impl<'a> Effect<'a> {
    /// Checks the changes: there is at least one, and each can be decoded.
    fn of_changes(kind: Kind, mut body: Reader<'a>) -> Option<Effect<'a>> {
        let length = Length::decode(&mut body)?;
        if !(Name { kind, length }).is_canonical() || kind.is_beside_limits() || body.is_empty() {
            return None;
        }
        let changes = body;
        with_state!(kind, S => while !body.is_empty() {
            S::decode_change(&mut body)?;
            // A change can make a large sketch, so a payload has one only.
            if kind == Kind::Cells && !body.is_empty() {
                return None;
            }
        });
        Some(match kind {
            Kind::LimitSet => Effect::Set { changes },
            _ => Effect::Lone { kind, length, changes },
        })
    }
}
