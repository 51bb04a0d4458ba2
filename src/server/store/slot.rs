//! An open key of the server, as the engine uses it: the server's handle with the value behind it.

use std::mem::ManuallyDrop;

use ratelimit_core::state::StoredLimit;
use ratelimit_engine::slot::{Access, Slot};
use ratelimit_language::Error;
use ratelimit_value::Value;

use super::buffer;
use super::discard::discard;
use super::handle::{Handle, replicate};
use crate::server::entry::call::Call;

/// A key that is open until it is dropped, and its value.
pub struct OpenKey<'c, 'a> {
    pub handle: Handle<'c, 'a>,
    /// The server owns the value; `None` if the key is missing.
    value: Option<ManuallyDrop<Value>>,
}

impl<'c, 'a> OpenKey<'c, 'a> {
    /// Opens the key that is the argument at `place`.
    #[inline(always)]
    pub fn open(call: &'c Call<'a>, place: usize, access: Access) -> Result<Self, Error> {
        let handle = Handle::open(call, place, access)?;
        match access {
            Access::Replace => {
                let value = handle.value().unwrap_or_default();
                Ok(OpenKey { handle, value })
            }
            _ => OpenKey::of(handle),
        }
    }

    /// Takes the value of a key that was just opened. A value of another module or type is an error.
    #[inline(always)]
    pub fn of(handle: Handle<'c, 'a>) -> Result<Self, Error> {
        let value = handle.value()?;
        Ok(OpenKey { handle, value })
    }
}

impl Slot for OpenKey<'_, '_> {
    #[inline(always)]
    fn value(&self) -> Option<&Value> {
        self.value.as_deref()
    }

    #[inline(always)]
    fn value_mut(&mut self) -> Option<&mut Value> {
        self.value.as_deref_mut()
    }

    fn put(&mut self, value: Value) {
        self.value = Some(self.handle.set_value(value));
    }

    fn unlink(&mut self) {
        self.value = None;
        self.handle.unlink();
    }

    fn expiry(&self) -> Option<u64> {
        self.handle.expiry()
    }

    fn expire_at(&mut self, millis: u64) {
        self.handle.set_expiry(millis);
    }

    #[inline(always)]
    fn changed(&mut self) {
        self.handle.signal();
        self.handle.mark();
    }

    #[inline(always)]
    fn send(&mut self, effect: &[u8]) {
        self.handle.replicate(effect);
    }

    fn send_all<'s>(effects: impl Iterator<Item = (&'s Self, &'s [u8])>)
    where
        Self: 's,
    {
        replicate(effects.map(|(key, effect)| (&key.handle, effect)));
    }

    #[inline(always)]
    fn lend(&self) -> Vec<u8> {
        buffer::take()
    }

    #[inline(always)]
    fn give_back(&self, buffer: Vec<u8>) {
        buffer::put_back(buffer);
    }

    fn discard(limit: StoredLimit) {
        discard(limit);
    }
}
