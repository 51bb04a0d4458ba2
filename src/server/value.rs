//! A value in memory: one allocation that holds a head and a state. This file alone knows how it lies there.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use ratelimit_core::state::codec::{Reader, put};
use ratelimit_core::{AnyState, Kind, LimitSet, LimitState, Name, Span, State, Time};
use ratelimit_core::{with_kept, with_limit_state, with_state};

/// What the server allocates for a value of a module beside the value, and does not count: an object and a typed
/// pointer.
const SERVERS_OWN: usize = 32;

/// The value of a key.
pub(super) struct Value(NonNull<Head>);

/// What every value begins with.
struct Head {
    /// The kind of the state in the low byte; above it the key's deadline in milliseconds, 0 if it is not known.
    ///
    /// The deadline is kept here so that a charge that need not move it does not ask the server for it.
    kind_and_deadline: u64,
    /// The length of time in the limit's name.
    length: Span,
}

#[repr(C)]
struct Slot<S> {
    head: Head,
    state: S,
}

impl Value {
    /// A limit that stands alone.
    pub(super) fn lone<S: State>(length: Span, state: S) -> Value {
        let head = Head { kind_and_deadline: u64::from(S::KIND as u8), length };
        Value(NonNull::from(Box::leak(Box::new(Slot { head, state }))).cast())
    }

    pub(super) fn set(limits: LimitSet) -> Value {
        Value::lone(Span::ZERO, limits)
    }

    /// A value as the server keeps it: `value` is null if there is none. The result must not be dropped.
    ///
    /// # Safety
    ///
    /// `value` is null or came from [`Value::into_raw`] and was not freed. Nothing else uses it while the result lives.
    pub(super) unsafe fn kept(value: *mut c_void) -> Option<ManuallyDrop<Value>> {
        NonNull::new(value.cast()).map(|head| ManuallyDrop::new(Value(head)))
    }

    pub(super) fn into_raw(self) -> *mut c_void {
        ManuallyDrop::new(self).as_raw()
    }

    /// The pointer by which the server keeps the value.
    pub(super) fn as_raw(&self) -> *mut c_void {
        self.0.as_ptr().cast()
    }

    fn head(&self) -> &Head {
        // SAFETY: the value is alive, and begins with its head whatever its state is.
        unsafe { self.0.as_ref() }
    }

    fn head_mut(&mut self) -> &mut Head {
        // SAFETY: as above; and `self` is borrowed alone.
        unsafe { self.0.as_mut() }
    }

    pub(super) fn kind(&self) -> Kind {
        let [kind, ..] = self.head().kind_and_deadline.to_le_bytes();
        // Only `lone` writes the low byte.
        Kind::from_byte(kind).unwrap_or(Kind::LimitSet)
    }

    /// The state, if it is of this type.
    #[inline(always)]
    pub(super) fn state<S: State>(&self) -> Option<&S> {
        // SAFETY: the value is alive; its kind says that it is a slot of this type, since each kind has one type.
        (self.kind_is(S::KIND)).then(|| unsafe { &self.0.cast::<Slot<S>>().as_ref().state })
    }

    #[inline(always)]
    pub(super) fn state_mut<S: State>(&mut self) -> Option<&mut S> {
        // SAFETY: as above; and `self` is borrowed alone.
        (self.kind_is(S::KIND)).then(|| unsafe { &mut self.0.cast::<Slot<S>>().as_mut().state })
    }

    #[inline(always)]
    fn kind_is(&self, kind: Kind) -> bool {
        let [byte, ..] = self.head().kind_and_deadline.to_le_bytes();
        byte == kind as u8
    }

    pub(super) fn length(&self) -> Span {
        self.head().length
    }

    pub(super) fn set_length(&mut self, length: Span) {
        self.head_mut().length = length;
    }

    pub(super) fn deadline(&self) -> u64 {
        self.head().kind_and_deadline >> 8
    }

    pub(super) fn set_deadline(&mut self, millis: u64) {
        let head = self.head_mut();
        head.kind_and_deadline = (head.kind_and_deadline & 0xff) | (millis << 8);
    }

    /// The name of a limit that stands alone, and when it is fully reset.
    pub(super) fn only(&self) -> Option<(Name, Time)> {
        let (kind, length) = (self.kind(), self.length());
        let until = with_limit_state!(kind, S => self.state::<S>()?.until(length), else return None);
        Some((Name { kind, length }, until))
    }

    /// Takes the state out of a limit that stands alone, and leaves a blank one.
    pub(super) fn take_state(&mut self) -> Option<AnyState> {
        with_limit_state!(self.kind(), S => {
            let state = self.state_mut::<S>()?;
            Some(ratelimit_core::Kept::kept(std::mem::replace(state, S::blank())))
        }, else None)
    }

    /// The value for a limit that leaves a set.
    pub(super) fn of_any(length: Span, state: AnyState) -> Value {
        with_kept!(state, state => Value::lone(length, *state))
    }

    /// The logical value: kind, length, and what [`State::encode`] writes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![self.kind() as u8];
        put(&mut bytes, self.length().as_micros());
        with_state!(self.kind(), S => self.state::<S>().into_iter().for_each(|state| state.encode(&mut bytes)));
        bytes
    }

    /// Reads what [`Value::encode`] wrote; `None` if it is malformed.
    pub(super) fn decode(bytes: &[u8]) -> Option<Value> {
        let mut reader = Reader::new(bytes);
        let kind = Kind::from_byte(reader.byte()?)?;
        let length = reader.span()?;
        with_state!(kind, S => {
            let state = <S as State>::decode(&mut reader)?;
            reader.is_empty().then(|| Value::lone(length, state))
        })
    }

    /// The bytes that the value takes, with what the server allocates for it.
    pub(super) fn bytes(&self, allocated: usize) -> usize {
        let outside = with_state!(self.kind(), S => self.state::<S>().map_or(0, State::heap_bytes));
        allocated + outside + SERVERS_OWN
    }

    /// The number of allocations to free.
    pub(super) fn effort(&self) -> usize {
        with_state!(self.kind(), S => self.state::<S>().map_or(1, State::effort))
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: the value is owned; its kind says of which type its slot is, since each kind has one type.
        unsafe { with_state!(self.kind(), S => drop(Box::from_raw(self.0.cast::<Slot<S>>().as_ptr()))) }
    }
}
