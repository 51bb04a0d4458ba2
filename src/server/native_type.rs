//! The native type: what the server does with a value.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::slice;

use redis_module::logging::RedisLogLevel;
use redis_module::logging::log_io_error;
use redis_module::native_types::RedisType;
use redis_module::raw::{
    RedisModule_DefragAlloc, RedisModuleDefragCtx, RedisModuleDigest, RedisModuleIO, RedisModuleString,
    RedisModuleTypeMethods,
};

use super::api::api;
use super::guard::guarded;
use super::payload::Payload;
use super::value::Value;

/// The type's name is in every RDB: nine characters, never to be changed.
pub static TYPE: RedisType = RedisType::new("ratelimit", ENCODING, METHODS);

/// The version of a value's bytes in an RDB; a loader accepts its own and all before.
const ENCODING: i32 = 1;

const METHODS: RedisModuleTypeMethods = RedisModuleTypeMethods {
    // The version that Redis 7.0 knows; later servers accept it.
    version: 4,
    rdb_load: Some(rdb_load),
    rdb_save: Some(rdb_save),
    aof_rewrite: Some(aof_rewrite),
    free: Some(free),
    mem_usage: Some(mem_usage),
    digest: Some(digest),
    // No data beside the keys: an RDB without our keys loads on a server without the module.
    aux_load: None,
    aux_save: None,
    aux_save2: None,
    aux_save_triggers: 0,
    free_effort: Some(free_effort),
    unlink: None,
    copy: Some(copy),
    defrag: Some(defrag),
    mem_usage2: None,
    free_effort2: None,
    unlink2: None,
    copy2: None,
};

/// Runs `body` on a value that the server passes; `otherwise` if the value is null or the body panics.
///
/// # Safety
///
/// As for [`Value::kept`].
unsafe fn on_value<T: Copy>(value: *const c_void, otherwise: T, body: impl FnOnce(&Value) -> T) -> T {
    guarded(otherwise, || {
        // SAFETY: by the contract.
        let value = unsafe { Value::kept(value.cast_mut()) };
        value.map_or(otherwise, |value| body(&value))
    })
}

unsafe extern "C" fn rdb_load(io: *mut RedisModuleIO, version: c_int) -> *mut c_void {
    guarded(null_mut(), || {
        #[cfg(feature = "fault-injection")]
        super::fault::panic_if_armed();
        if version > ENCODING {
            log_io_error(io, RedisLogLevel::Warning, "key of a newer version of the ratelimit module");
            return null_mut();
        }
        // SAFETY: the server called with an RDB that is being read; the buffer is freed here.
        unsafe {
            let mut length = 0;
            let buffer = api!(RedisModule_LoadStringBuffer(io, &raw mut length));
            if buffer.is_null() {
                // The source has ended or is broken.
                return null_mut();
            }
            let value = Value::decode(slice::from_raw_parts(buffer.cast(), length));
            api!(RedisModule_Free(buffer.cast()));
            value.map_or_else(
                || {
                    log_io_error(io, RedisLogLevel::Warning, "malformed key of the ratelimit module");
                    null_mut()
                },
                Value::into_raw,
            )
        }
    })
}

unsafe extern "C" fn rdb_save(io: *mut RedisModuleIO, value: *mut c_void) {
    // SAFETY: the server passes a value of this type, and an RDB that is being written.
    unsafe {
        on_value(value, (), |value| {
            let bytes = value.encode();
            api!(RedisModule_SaveStringBuffer(io, bytes.as_ptr().cast(), bytes.len()));
        });
    }
}

/// Runs in a child process: no locks, no calls of commands.
unsafe extern "C" fn aof_rewrite(io: *mut RedisModuleIO, key: *mut RedisModuleString, value: *mut c_void) {
    // SAFETY: the server passes a value of this type; the format asks for a string object and a buffer with its length.
    unsafe {
        on_value(value, (), |value| {
            let payload = Payload::whole(&value.encode());
            api!(RedisModule_EmitAOF(
                io,
                c"RL.APPLY".as_ptr(),
                c"sb".as_ptr(),
                key,
                payload.as_ptr().cast::<c_char>(),
                payload.len()
            ));
        });
    }
}

unsafe extern "C" fn free(value: *mut c_void) {
    guarded((), || {
        // SAFETY: the server gives the value up, perhaps on a thread of its own, and nothing else uses it.
        let value = unsafe { Value::kept(value) };
        drop(value.map(std::mem::ManuallyDrop::into_inner));
    });
}

unsafe extern "C" fn mem_usage(value: *const c_void) -> usize {
    // SAFETY: the server passes a value of this type, which the module's allocator made.
    unsafe { on_value(value, 0, |kept| kept.bytes(api!(RedisModule_MallocSize(value.cast_mut())))) }
}

unsafe extern "C" fn free_effort(_key: *mut RedisModuleString, value: *const c_void) -> usize {
    // SAFETY: the server passes a value of this type.
    unsafe { on_value(value, 1, Value::effort) }
}

unsafe extern "C" fn digest(digest: *mut RedisModuleDigest, value: *mut c_void) {
    // SAFETY: the server passes a value of this type.
    unsafe {
        on_value(value, (), |value| {
            let bytes = value.encode();
            api!(RedisModule_DigestAddStringBuffer(digest, bytes.as_ptr().cast(), bytes.len()));
            api!(RedisModule_DigestEndSequence(digest));
        });
    }
}

/// The copy does not know its key's deadline: the next charge sets it.
unsafe extern "C" fn copy(
    _from: *mut RedisModuleString,
    _to: *mut RedisModuleString,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: the server passes a value of this type.
    unsafe {
        on_value(value, null_mut(), |value| {
            Value::decode(&value.encode()).map_or(null_mut(), Value::into_raw)
        })
    }
}

unsafe extern "C" fn defrag(
    context: *mut RedisModuleDefragCtx,
    _key: *mut RedisModuleString,
    value: *mut *mut c_void,
) -> c_int {
    guarded((), || {
        // SAFETY: `value` is where the server keeps its pointer to a value. No value holds a pointer into itself.
        unsafe {
            let moved = RedisModule_DefragAlloc.map_or(null_mut(), |alloc| alloc(context, *value));
            if !moved.is_null() {
                *value = moved;
            }
        }
    });
    0
}
