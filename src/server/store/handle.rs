//! The server's handle of an open key, of any type.

use std::cell::Cell;
use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;

use ratelimit_core::answer::clamped;
use ratelimit_engine::slot::Access;
use ratelimit_language::Error;
use redis_module::raw::{KeyType, REDISMODULE_READ, REDISMODULE_WRITE, RedisModuleKey, RedisModuleString};

use super::native_type::of_module;
use crate::server::api::api;
use crate::server::entry::call::Call;
use crate::server::node::options;
use crate::server::waiting::{by_this_module, mark, somebody_waits};
use ratelimit_value::Value;

/// The type of a key that is a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    Stream,
    List,
}

/// Returns the length of the stream or list that is the argument at `place`; 0 if the key is missing.
pub fn queue_length(call: &Call<'_>, place: usize, queue: Queue) -> Result<u64, Error> {
    let handle = Handle::open(call, place, Access::Read)?;
    let wanted = match queue {
        Queue::Stream => KeyType::Stream,
        Queue::List => KeyType::List,
    };
    // SAFETY: the handle is open, or null for a missing key, which both functions accept.
    let (found, length) =
        unsafe { (api!(RedisModule_KeyType(handle.key)), api!(RedisModule_ValueLength(handle.key))) };
    if found == KeyType::Empty as c_int || found == wanted as c_int {
        Ok(length as u64)
    } else {
        Err(Error::WrongType(type_name(found)))
    }
}

/// The type of a value that is none of this module's.
#[cold]
fn type_name(key_type: c_int) -> &'static str {
    let types = [
        (KeyType::String, "a string"),
        (KeyType::List, "a list"),
        (KeyType::Hash, "a hash"),
        (KeyType::Set, "a set"),
        (KeyType::ZSet, "a sorted set"),
        (KeyType::Stream, "a stream"),
    ];
    let named = types.into_iter().find_map(|(named, name)| (named as c_int == key_type).then_some(name));
    named.unwrap_or("a value of a module")
}

/// An open key. Dropping it closes the key.
pub struct Handle<'c, 'a> {
    call: &'c Call<'a>,
    name: *mut RedisModuleString,
    /// Null if the key is missing and was opened for reading.
    key: *mut RedisModuleKey,
    has_changed: Cell<bool>,
}

impl<'c, 'a> Handle<'c, 'a> {
    /// Opens the key that is the argument at `place`. It fails while a key of the call is open.
    #[inline(always)]
    pub fn open(call: &'c Call<'a>, place: usize, access: Access) -> Result<Self, Error> {
        if call.open.get() > 0 {
            return Err(Error::Internal);
        }
        // SAFETY: the call has no other open handle.
        unsafe { Self::open_beside(call, place, access) }
    }

    /// Opens the key that is the argument at `place`, while others are open.
    ///
    /// # Safety
    ///
    /// If an open handle of the call has the same name, then it is not used any more. Two handles would give two
    /// references to one value.
    #[inline(always)]
    pub unsafe fn open_beside(call: &'c Call<'a>, place: usize, access: Access) -> Result<Self, Error> {
        let name = call.argument(place)?;
        let mode = match access {
            Access::Read => REDISMODULE_READ,
            Access::Write | Access::Replace => REDISMODULE_READ | REDISMODULE_WRITE,
        };
        // SAFETY: context and name are those of the running command.
        let key = unsafe { api!(RedisModule_OpenKey(call.ctx, name, mode.cast_signed())) };
        call.open.set(call.open.get() + 1);
        Ok(Handle { call, name, key, has_changed: Cell::new(false) })
    }

    /// Returns the module's value of the key; `None` if the key is missing.
    #[inline(always)]
    pub fn value(&self) -> Result<Option<ManuallyDrop<Value>>, Error> {
        // SAFETY: the handle is open, or null for a missing key, which these functions accept. A value of the module's
        // type came from `set_value` or `rdb_load`, and only the running command uses it.
        unsafe {
            let module_type = api!(RedisModule_ModuleTypeGetType(self.key));
            if !module_type.is_null() && module_type == of_module() {
                return Ok(Value::from_raw(api!(RedisModule_ModuleTypeGetValue(self.key))));
            }
            let key_type = api!(RedisModule_KeyType(self.key));
            if key_type == KeyType::Empty as c_int {
                Ok(None)
            } else {
                Err(Error::WrongType(type_name(key_type)))
            }
        }
    }

    /// Makes the key hold a value, without an expiry. The server frees the old value, on another thread if it is large.
    pub fn set_value(&self, value: Value) -> ManuallyDrop<Value> {
        // Setting a value would free the old one on this thread.
        self.unlink();
        // SAFETY: the key is open for writing. The server owns the value from now on, so it is not dropped here.
        unsafe {
            let module_type = of_module();
            let value = ManuallyDrop::new(value);
            api!(RedisModule_ModuleTypeSetValue(self.key, module_type, value.as_raw()));
            value
        }
    }

    /// The key's expiry in ms since the epoch; `None` if it does not expire.
    pub fn expiry(&self) -> Option<u64> {
        // SAFETY: the handle is open.
        u64::try_from(unsafe { api!(RedisModule_GetAbsExpire(self.key)) }).ok()
    }

    pub fn set_expiry(&self, millis: u64) {
        // SAFETY: the key is open for writing.
        unsafe { api!(RedisModule_SetAbsExpire(self.key, clamped(millis))) };
    }

    /// Marks the key: one of its limits may have room now.
    pub fn mark(&self) {
        if somebody_waits() {
            mark(self.call, self.name);
        }
    }

    /// Deletes the key. The server frees a large value on another thread.
    pub fn unlink(&self) {
        // SAFETY: the key is open for writing.
        by_this_module(|| unsafe { api!(RedisModule_UnlinkKey(self.key)) });
    }

    /// Lets closing the key signal the change to clients that watch or track it.
    pub fn signal(&self) {
        self.has_changed.set(true);
    }

    /// Leaks the handle instead of closing it. Closing reads the type of the key's value, which may have been freed.
    pub fn leak(&mut self) {
        self.key = null_mut();
    }

    /// Sends a payload for the key to replicas and the AOF, unless nothing can receive it.
    pub fn replicate(&self, payload: &[u8]) {
        if !self.call.sends_effects() {
            return self.call.count_change();
        }
        // SAFETY: context and name are those of the running command. The format `sb` takes a string object, then a
        // buffer and its length.
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
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: `open` opened the handle, and nothing uses it afterwards. The server accepts null.
        let close = || unsafe { api!(RedisModule_CloseKey(self.key)) };
        if self.has_changed.get() {
            // SAFETY: the context is that of the running command.
            unsafe { options::signal_what_closes(self.call.ctx, close) };
        } else {
            close();
        }
        self.call.open.set(self.call.open.get() - 1);
    }
}

/// Sends payloads, each for an open key of the same call, to replicas and the AOF in one command, unless nothing can receive
/// it.
pub fn replicate<'s, 'c: 's, 'a: 'c>(payloads: impl Iterator<Item = (&'s Handle<'c, 'a>, &'s [u8])>) {
    let mut payloads = payloads.peekable();
    let Some(call) = payloads.peek().map(|(handle, _)| handle.call) else { return };
    if !call.sends_effects() {
        return call.count_change();
    }
    let mut arguments: Vec<*mut RedisModuleString> = Vec::with_capacity(8);
    // SAFETY: the context belongs to the running command, and the names are arguments of it. Each string that is
    // created here is freed here, after the server has copied it.
    unsafe {
        for (handle, payload) in payloads {
            let string = api!(RedisModule_CreateString(call.ctx, payload.as_ptr().cast(), payload.len()));
            arguments.extend([handle.name, string]);
        }
        let (command, format) = (c"RL.APPLY".as_ptr(), c"v".as_ptr());
        api!(RedisModule_Replicate(call.ctx, command, format, arguments.as_mut_ptr(), arguments.len()));
        for string in arguments.iter().skip(1).step_by(2) {
            api!(RedisModule_FreeString(call.ctx, *string));
        }
    }
}
