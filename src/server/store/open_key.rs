//! Between the server's handle of a key (`handle.rs`) and a key of limits (`key/`): the handle with the value behind it, which
//! becomes a set when a second limit joins, and a lone limit again.

use std::mem::ManuallyDrop;

use ratelimit_core::{Length, LimitSet, Name, State, Time};
use ratelimit_language::Error;

use super::handle::{Access, Handle};
use crate::server::entry::call::Call;
use ratelimit_value::Value;

/// A key that is open until it is dropped, and its value.
pub struct OpenKey<'c, 'a> {
    pub handle: Handle<'c, 'a>,
    /// The server owns the value; `None` if the key is missing.
    value: Option<ManuallyDrop<Value>>,
}

impl<'c, 'a> OpenKey<'c, 'a> {
    /// Opens the key that is the argument at `place`. A value of another module or type is an error.
    #[inline(always)]
    pub fn open(call: &'c Call<'a>, place: usize, access: Access) -> Result<Self, Error> {
        OpenKey::of(Handle::open(call, place, access)?)
    }

    /// Takes the value of a key that was just opened. A value of another module or type is an error.
    #[inline(always)]
    pub fn of(handle: Handle<'c, 'a>) -> Result<Self, Error> {
        let value = handle.value()?;
        Ok(OpenKey { handle, value })
    }

    /// As [`OpenKey::open`], for writing, but a value of another type counts as none. [`OpenKey::set_value`] replaces
    /// it.
    pub fn open_to_replace(call: &'c Call<'a>, place: usize) -> Result<Self, Error> {
        let handle = Handle::open(call, place, Access::Write)?;
        let value = handle.value().unwrap_or_default();
        Ok(OpenKey { handle, value })
    }

    #[inline(always)]
    pub fn value(&self) -> Option<&Value> {
        self.value.as_deref()
    }

    #[inline(always)]
    pub fn state_mut<S: State>(&mut self) -> Option<&mut S> {
        self.value.as_mut().and_then(|value| value.state_mut::<S>())
    }

    #[inline(always)]
    pub fn set(&self) -> Option<&LimitSet> {
        self.value().and_then(Value::state::<LimitSet>)
    }

    /// The name of a lone limit, and the instant at which it is fully reset.
    pub fn lone_limit(&self) -> Option<(Name, Time)> {
        self.value().and_then(Value::lone_limit)
    }

    /// Makes the key hold a value, without an expiry. The server frees the old value.
    pub fn set_value(&mut self, value: Value) {
        self.value = Some(self.handle.set_value(value));
    }

    /// Sets the length of time in the name of a lone limit.
    #[inline(always)]
    pub fn set_length(&mut self, length: Length) {
        if let Some(value) = &mut self.value {
            value.set_length(length);
        }
    }

    /// Sets the expiry of the key, if it is not missing.
    pub fn set_expiry(&mut self, millis: u64) {
        if let Some(value) = &mut self.value {
            value.set_expiry(millis);
            self.handle.set_expiry(millis);
        }
    }

    /// Treats the key as missing; [`OpenKey::set_value`] replaces its value.
    pub fn forget(&mut self) {
        self.value = None;
    }

    pub fn delete(&mut self) {
        self.value = None;
        self.handle.unlink();
    }

    /// Makes the key hold a set: of the lone limit that it holds, or of none.
    pub fn make_set(&mut self) -> Option<&mut LimitSet> {
        if self.set().is_none() {
            let lone =
                self.value.as_mut().and_then(|value| Some((value.lone_limit()?.0, value.take_state()?)));
            let set = lone.map_or_else(LimitSet::blank, |(name, state)| LimitSet::of_one(name, state));
            self.set_value(Value::new(Length::NONE, set));
        }
        self.state_mut()
    }

    /// Makes the limit of a set of one lone.
    pub fn make_lone(&mut self) {
        if let Some(limit) = self.state_mut().and_then(LimitSet::take_only) {
            self.set_value(Value::of_limit(limit));
        }
    }
}
