//! An open key of the server's, of whatever type.

use std::ffi::c_int;
use std::mem::ManuallyDrop;

use ratelimit_core::decide::clamped;
use ratelimit_language::Error;
use redis_module::raw::{KeyType, REDISMODULE_READ, REDISMODULE_WRITE, RedisModuleKey, RedisModuleString};

use super::api::api;
use super::call::Call;
use super::native_type::TYPE;
use super::value::Value;

/// What an open key is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// What a queue is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    Stream,
    List,
}

/// How long the stream or list at a place is; 0 if there is none.
pub fn queue_length(call: &Call<'_>, place: usize, queue: Queue) -> Result<u64, Error> {
    let handle = Handle::open(call, place, Access::Read)?;
    let wanted = match queue {
        Queue::Stream => KeyType::Stream,
        Queue::List => KeyType::List,
    };
    // SAFETY: the handle is open; the server takes a null one for a missing key.
    let (found, length) =
        unsafe { (api!(RedisModule_KeyType(handle.key)), api!(RedisModule_ValueLength(handle.key))) };
    if found == KeyType::Empty as c_int || found == wanted as c_int {
        Ok(length as u64)
    } else {
        Err(Error::WrongType)
    }
}

/// Closed when dropped.
pub(super) struct Handle<'c, 'a> {
    call: &'c Call<'a>,
    name: *mut RedisModuleString,
    /// Null if the key does not exist and was opened to look.
    key: *mut RedisModuleKey,
}

impl<'c, 'a> Handle<'c, 'a> {
    /// Opens the key that is an argument of the call.
    #[inline(always)]
    pub(super) fn open(call: &'c Call<'a>, place: usize, access: Access) -> Result<Self, Error> {
        let name = call.argument(place)?;
        let mode = match access {
            Access::Read => REDISMODULE_READ,
            Access::Write => REDISMODULE_READ | REDISMODULE_WRITE,
        };
        // SAFETY: the context and an argument of the running command.
        let key = unsafe { api!(RedisModule_OpenKey(call.ctx, name, mode.cast_signed())) };
        Ok(Handle { call, name, key })
    }

    /// The value of the key; `None` if the key does not exist.
    #[inline(always)]
    pub(super) fn value(&self) -> Result<Option<ManuallyDrop<Value>>, Error> {
        // SAFETY: the handle is open; the server takes a null one for a missing key. A value of the module's type came
        // from `set_value` or a loader, and only the running command uses it.
        unsafe {
            let module_type = api!(RedisModule_ModuleTypeGetType(self.key));
            if !module_type.is_null() && module_type == *TYPE.raw_type.as_ptr() {
                return Ok(Value::kept(api!(RedisModule_ModuleTypeGetValue(self.key))));
            }
            let missing = api!(RedisModule_KeyType(self.key)) == KeyType::Empty as c_int;
            if missing { Ok(None) } else { Err(Error::WrongType) }
        }
    }

    /// Makes the key hold a value, without an expiry; what it held before is freed.
    pub(super) fn set_value(&self, value: Value) -> ManuallyDrop<Value> {
        // SAFETY: the key is open for writing, and takes the value over.
        unsafe {
            let module_type = *TYPE.raw_type.as_ptr();
            let value = ManuallyDrop::new(value);
            api!(RedisModule_ModuleTypeSetValue(self.key, module_type, value.as_raw()));
            value
        }
    }

    /// When the key expires, in ms since the epoch; `None` is never.
    pub(super) fn deadline(&self) -> Option<u64> {
        // SAFETY: the handle is open.
        u64::try_from(unsafe { api!(RedisModule_GetAbsExpire(self.key)) }).ok()
    }

    pub(super) fn set_deadline(&self, millis: u64) {
        // SAFETY: the key is open for writing.
        unsafe { api!(RedisModule_SetAbsExpire(self.key, clamped(millis))) };
    }

    /// The key's name.
    pub(super) fn name(&self) -> *mut RedisModuleString {
        self.name
    }

    /// Takes the key out of the keyspace. A large value is freed on another thread.
    pub(super) fn unlink(&self) {
        // SAFETY: the key is open for writing.
        unsafe { api!(RedisModule_UnlinkKey(self.key)) };
    }

    /// Wakes clients that watch the key.
    pub(super) fn signal(&self) {
        // SAFETY: the context and an argument of the running command.
        unsafe { api!(RedisModule_SignalModifiedKey(self.call.ctx, self.name)) };
    }

    /// Sends a payload for the key to replicas and the AOF.
    pub(super) fn replicate(&self, payload: &[u8]) {
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
