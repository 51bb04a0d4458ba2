//! The value of a key in memory: one allocation with a head and a state. The server keeps it by a thin pointer.
//!
//! Only this file depends on that layout, so all unsafe code outside `src/server` is here.

use std::ffi::c_void;
use std::mem::{ManuallyDrop, replace};
use std::ptr::NonNull;

use ratelimit_core::state::codec::{Reader, put};
use ratelimit_core::state::{Leases, StoredLimit};
use ratelimit_core::{AnyState, Kind, Length, LimitSet, LimitState, Name, State, Time};
use ratelimit_core::{with_kept, with_limit_state, with_state};

/// The value of a key.
pub struct Value(NonNull<Head>);

/// The beginning of every value.
struct Head {
    /// The kind of the state in the low byte. Above it, the key's expiry in ms since the epoch; 0 if it is not known.
    ///
    /// A charge that does not move the expiry reads it here, which saves a call of the server.
    kind_and_expiry: u64,
    /// The length of time in a lone limit's name; zero for other states.
    length: Length,
}

#[repr(C)]
struct Slot<S> {
    head: Head,
    state: S,
}

/// The largest alignment of a value, in bytes.
pub const ALIGNMENT: usize = {
    let (mut most, mut kinds) = (align_of::<Head>(), Kind::ALL);
    while let [kind, rest @ ..] = kinds {
        let of_kind = with_state!(*kind, S => align_of::<Slot<S>>());
        most = if of_kind > most { of_kind } else { most };
        kinds = rest;
    }
    most
};

impl Value {
    /// Makes the value of a state, with the length of time in a lone limit's name.
    pub fn new<S: State>(length: Length, state: S) -> Value {
        let head = Head { kind_and_expiry: u64::from(S::KIND as u8), length };
        Value(NonNull::from(Box::leak(Box::new(Slot { head, state }))).cast())
    }

    /// Makes the value of a limit that leaves a set.
    pub fn of_limit(limit: StoredLimit) -> Value {
        with_kept!(limit.state, state => Value::new(limit.name.length, *state))
    }

    /// Returns the value at a pointer that the server holds; `None` if the pointer is null.
    ///
    /// The server still owns the value, so the result must not be dropped, unless the server gives the value up.
    ///
    /// # Safety
    ///
    /// `value` is null, or came from [`Value::into_raw`] or [`Value::as_raw`] and was not freed. Nothing else uses the
    /// value while the result lives.
    pub unsafe fn from_raw(value: *mut c_void) -> Option<ManuallyDrop<Value>> {
        NonNull::new(value.cast()).map(|head| ManuallyDrop::new(Value(head)))
    }

    pub fn into_raw(self) -> *mut c_void {
        ManuallyDrop::new(self).as_raw()
    }

    /// The pointer by which the server holds the value.
    pub fn as_raw(&self) -> *mut c_void {
        self.0.as_ptr().cast()
    }

    fn head(&self) -> &Head {
        // SAFETY: the value is alive. `Slot` is `repr(C)`, so every value begins with its head.
        unsafe { self.0.as_ref() }
    }

    fn head_mut(&mut self) -> &mut Head {
        // SAFETY: as in `head`, and `self` is borrowed mutably.
        unsafe { self.0.as_mut() }
    }

    pub fn kind(&self) -> Kind {
        let [kind, ..] = self.head().kind_and_expiry.to_le_bytes();
        // `new` wrote the byte of a kind, so the other case never happens.
        Kind::from_byte(kind).unwrap_or(Kind::LimitSet)
    }

    /// The state, if it is of this type.
    #[inline(always)]
    pub fn state<S: State>(&self) -> Option<&S> {
        // SAFETY: the value is alive. Each kind has one type of state, so a value of this kind is a `Slot<S>`.
        (self.kind_is(S::KIND)).then(|| unsafe { &self.0.cast::<Slot<S>>().as_ref().state })
    }

    #[inline(always)]
    pub fn state_mut<S: State>(&mut self) -> Option<&mut S> {
        // SAFETY: as in `state`, and `self` is borrowed mutably.
        (self.kind_is(S::KIND)).then(|| unsafe { &mut self.0.cast::<Slot<S>>().as_mut().state })
    }

    #[inline(always)]
    fn kind_is(&self, kind: Kind) -> bool {
        let [byte, ..] = self.head().kind_and_expiry.to_le_bytes();
        byte == kind as u8
    }

    /// The table of leases that plain calls use, and for which callers wait; `None` if there is none.
    pub fn leases(&self) -> Option<&Leases> {
        match self.state::<LimitSet>() {
            Some(set) => set.get(Length::NONE),
            None => self.state().filter(|_| !self.length().is_shadow()),
        }
    }

    pub fn length(&self) -> Length {
        self.head().length
    }

    pub fn set_length(&mut self, length: Length) {
        self.head_mut().length = length;
    }

    /// The key's expiry in ms since the epoch; 0 if it is not known.
    pub fn expiry(&self) -> u64 {
        self.head().kind_and_expiry >> 8
    }

    /// Notes the key's expiry; the host sets it.
    pub fn set_expiry(&mut self, millis: u64) {
        let head = self.head_mut();
        head.kind_and_expiry = (head.kind_and_expiry & 0xff) | (millis << 8);
    }

    /// The name of a lone limit, and the instant at which it is fully reset; `None` for a set and other values.
    pub fn lone_limit(&self) -> Option<(Name, Time)> {
        let (kind, length) = (self.kind(), self.length());
        let until = with_limit_state!(kind, S => self.state::<S>()?.until(length.span()), else return None);
        Some((Name { kind, length }, until))
    }

    /// Takes the state of a lone limit, and leaves a blank one.
    pub fn take_state(&mut self) -> Option<AnyState> {
        with_limit_state!(self.kind(), S => {
            let state = self.state_mut::<S>()?;
            AnyState::of(replace(state, S::blank()))
        }, else None)
    }

    /// Copies the value, except for the key's expiry.
    #[must_use]
    pub fn copy(&self) -> Value {
        with_state!(self.kind(), S => {
            let state = self.state::<S>().map_or_else(S::blank, S::clone);
            Value::new(self.length(), state)
        })
    }

    /// Encodes the value for an RDB: kind, length of time, state. The expiry is not part of it.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![self.kind() as u8];
        put(&mut bytes, self.length().to_word());
        with_state!(self.kind(), S => self.state::<S>().into_iter().for_each(|state| state.encode(&mut bytes)));
        bytes
    }

    /// Decodes the bytes of [`Value::encode`]; `None` if they are malformed, or of a newer version.
    pub fn decode(bytes: &[u8]) -> Option<Value> {
        Value::read(&mut Reader::new(bytes))
    }

    /// As [`decode`](Self::decode). The reader then knows whether a newer version wrote the bytes.
    pub fn read(reader: &mut Reader<'_>) -> Option<Value> {
        let kind = Kind::decode(reader)?;
        let length = Length::decode(reader)?;
        if !(Name { kind, length }).is_canonical() || kind.is_beside_limits() {
            return None;
        }
        let value = with_state!(kind, S => {
            let state = <S as State>::decode(reader)?;
            reader.is_empty().then(|| Value::new(length, state))
        })?;
        // A set of one limit would be that limit, lone.
        let lacks_limits =
            value.state::<LimitSet>().is_some_and(|set| set.stored().len() < 2 || set.is_empty());
        (!lacks_limits).then_some(value)
    }

    /// The bytes of memory that the state holds beside the value's own allocation.
    pub fn heap_bytes(&self) -> usize {
        with_state!(self.kind(), S => self.state::<S>().map_or(0, State::heap_bytes))
    }

    /// The number of allocations to free.
    pub fn effort(&self) -> usize {
        with_state!(self.kind(), S => self.state::<S>().map_or(1, State::effort))
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: `new` leaked the box, and `self` owns it. A value of this kind is a `Slot<S>`, as in `state`.
        unsafe { with_state!(self.kind(), S => drop(Box::from_raw(self.0.cast::<Slot<S>>().as_ptr()))) }
    }
}
