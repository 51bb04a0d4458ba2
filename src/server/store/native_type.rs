//! The module's native type: the callbacks by which the server saves, copies and frees a value.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::slice;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use ratelimit_core::state::codec::Reader;
use redis_module::logging::RedisLogLevel;
use redis_module::logging::log_io_error;
use redis_module::raw::{
    Aux, RedisModule_DefragAlloc, RedisModuleCtx, RedisModuleDefragCtx, RedisModuleDigest, RedisModuleIO,
    RedisModuleKeyOptCtx, RedisModuleString, RedisModuleType, RedisModuleTypeMethods, Status,
};

use crate::server::api::{OK, api};
use crate::server::guard::guarded;
use crate::server::node::{NODE, policies};
use crate::server::waiting::left;
use ratelimit_engine::key::Payload;
use ratelimit_engine::policies::encode;
use ratelimit_value::Value;

/// The name, always nine characters, is in every RDB. It must never change.
const NAME: &CStr = c"ratelimit";

static TYPE: AtomicPtr<RedisModuleType> = AtomicPtr::new(null_mut());

/// The type, once it is created.
#[inline(always)]
pub fn of_module() -> *mut RedisModuleType {
    TYPE.load(Relaxed)
}

/// Creates the type. `saves_policies` is whether an RDB gets the policies.
///
/// # Safety
///
/// `ctx` is the context of the load.
pub unsafe fn create(ctx: *mut RedisModuleCtx, saves_policies: bool) -> Result<(), String> {
    // SAFETY: the caller keeps the contract, and the server copies the methods.
    let created = unsafe {
        let version = api!(RedisModule_GetTypeMethodVersion()).clamp(OF_REDIS_7_0, WITH_AUX_SAVE2);
        let mut methods = METHODS;
        methods.version = u64::try_from(version).unwrap_or(0);
        if saves_policies {
            methods.aux_save = Some(save_policies);
            methods.aux_save2 = Some(save_some_policies);
        }
        api!(RedisModule_CreateDataType(ctx, NAME.as_ptr(), ENCODING, &raw mut methods))
    };
    TYPE.store(created, Relaxed);
    if created.is_null() { Err("the server refused its type".into()) } else { Ok(()) }
}

/// The version of the methods of Redis 7.0, which refuses newer ones, and that of those with `aux_save2`.
const OF_REDIS_7_0: c_int = 4;
const WITH_AUX_SAVE2: c_int = 5;

/// The version of a value's bytes in an RDB. A loader accepts its own version and older ones.
const ENCODING: i32 = 1;

const ERR: c_int = Status::Err as c_int;

/// The bytes of the object and the typed pointer that the server allocates for each value. `MEMORY USAGE` does not
/// count them by itself.
const SERVER_BYTES: usize = 32;

/// Why a key cannot be loaded, for the log.
const NEWER: &str = "key of a newer version of the ratelimit module";
const MALFORMED: &str = "malformed key of the ratelimit module";
const POLICIES: &str = "malformed policies of the ratelimit module, or those of a newer version";

const METHODS: RedisModuleTypeMethods = RedisModuleTypeMethods {
    version: 0, // Set when the type is created.
    rdb_load: Some(rdb_load),
    rdb_save: Some(rdb_save),
    aof_rewrite: Some(aof_rewrite),
    free: Some(free),
    mem_usage: Some(mem_usage),
    digest: Some(digest),
    aux_load: Some(load_policies),
    aux_save: None,
    aux_save2: None,
    aux_save_triggers: Aux::Before as c_int,
    free_effort: Some(free_effort),
    unlink: None,
    copy: Some(copy),
    defrag: Some(defrag),
    mem_usage2: None,
    free_effort2: None,
    unlink2: Some(unlinked),
    copy2: None,
};

/// Runs `body` on a value that the server passes. Returns `otherwise` if the value is null or `body` panics.
///
/// # Safety
///
/// As for [`Value::from_raw`].
unsafe fn on_value<T: Copy>(value: *const c_void, otherwise: T, body: impl FnOnce(&Value) -> T) -> T {
    guarded(otherwise, || {
        // SAFETY: the caller keeps the contract of `from_raw`.
        let value = unsafe { Value::from_raw(value.cast_mut()) };
        value.map_or(otherwise, |value| body(&value))
    })
}

/// Reads the next bytes of an RDB; `None` if it ends here, or cannot be read.
///
/// # Safety
///
/// The server passes `io`, an RDB that it reads.
unsafe fn read_bytes<T>(io: *mut RedisModuleIO, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
    // SAFETY: the caller keeps the contract. The buffer has `length` bytes, and is freed after its last use.
    unsafe {
        let mut length = 0;
        let buffer = api!(RedisModule_LoadStringBuffer(io, &raw mut length));
        if buffer.is_null() {
            return None;
        }
        let result = read(slice::from_raw_parts(buffer.cast(), length));
        api!(RedisModule_Free(buffer.cast()));
        Some(result)
    }
}

/// Loads the policies, which stand before the keys.
unsafe extern "C" fn load_policies(io: *mut RedisModuleIO, _: c_int, _: c_int) -> c_int {
    guarded(ERR, || {
        // SAFETY: the server passes an RDB that it reads.
        match unsafe { read_bytes(io, policies::load) } {
            Some(Ok(())) => OK,
            Some(Err(_)) => {
                log_io_error(io, RedisLogLevel::Warning, POLICIES);
                ERR
            }
            None => ERR,
        }
    })
}

/// Saves the policies, also if there are none. Servers before Redis 7.2 begin the field in any case.
unsafe extern "C" fn save_policies(io: *mut RedisModuleIO, _: c_int) {
    guarded((), || {
        let bytes = encode(&NODE);
        // SAFETY: the server passes an RDB that it writes.
        unsafe { api!(RedisModule_SaveStringBuffer(io, bytes.as_ptr().cast(), bytes.len())) };
    });
}

/// Saves the policies, if there are any. So an RDB without them and without keys of the module loads on a server without the module.
unsafe extern "C" fn save_some_policies(io: *mut RedisModuleIO, when: c_int) {
    if !NODE.policies().is_empty() || NODE.next_policies().is_some() {
        // SAFETY: the server passes an RDB that it writes.
        unsafe { save_policies(io, when) };
    }
}

unsafe extern "C" fn rdb_load(io: *mut RedisModuleIO, version: c_int) -> *mut c_void {
    guarded(null_mut(), || {
        #[cfg(feature = "fault-injection")]
        crate::server::fault::panic_if_armed();
        if version > ENCODING {
            log_io_error(io, RedisLogLevel::Warning, NEWER);
            return null_mut();
        }
        // SAFETY: the server passes an RDB that it reads.
        let value = unsafe {
            read_bytes(io, |bytes| {
                let mut reader = Reader::new(bytes);
                let value = Value::read(&mut reader);
                value.ok_or(if reader.is_newer() { NEWER } else { MALFORMED })
            })
        };
        match value {
            Some(Ok(value)) => {
                NODE.pass_tokens(&value);
                value.into_raw()
            }
            Some(Err(why)) => {
                log_io_error(io, RedisLogLevel::Warning, why);
                null_mut()
            }
            None => null_mut(),
        }
    })
}

unsafe extern "C" fn rdb_save(io: *mut RedisModuleIO, value: *mut c_void) {
    // SAFETY: the server passes a value of this type, and an RDB that it writes.
    unsafe {
        on_value(value, (), |value| {
            let bytes = value.encode();
            api!(RedisModule_SaveStringBuffer(io, bytes.as_ptr().cast(), bytes.len()));
        });
    }
}

/// Runs in a child process, so it takes no lock and calls no command.
unsafe extern "C" fn aof_rewrite(io: *mut RedisModuleIO, key: *mut RedisModuleString, value: *mut c_void) {
    // SAFETY: the server passes a value of this type. The format `sb` takes a string object, then a buffer and its
    // length.
    unsafe {
        on_value(value, (), |value| {
            Payload::pieces(value, |payload| {
                api!(RedisModule_EmitAOF(
                    io,
                    c"RL.APPLY".as_ptr(),
                    c"sb".as_ptr(),
                    key,
                    payload.as_ptr().cast::<c_char>(),
                    payload.len()
                ));
            });
        });
    }
}

unsafe extern "C" fn free(value: *mut c_void) {
    guarded((), || {
        // SAFETY: the server gives the value up, perhaps on another thread, and nothing else uses it.
        let value = unsafe { Value::from_raw(value) };
        drop(value.map(ManuallyDrop::into_inner));
    });
}

unsafe extern "C" fn mem_usage(value: *const c_void) -> usize {
    // SAFETY: the server passes a value of this type, which the server's allocator allocated.
    unsafe {
        on_value(value, 0, |held| {
            api!(RedisModule_MallocSize(value.cast_mut())) + held.heap_bytes() + SERVER_BYTES
        })
    }
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

/// The server calls this when a value leaves its key: the key is deleted, expires, is evicted, renamed or overwritten.
unsafe extern "C" fn unlinked(ctx: *mut RedisModuleKeyOptCtx, value: *const c_void) {
    // SAFETY: the server passes a value of this type, and a context of the callback.
    unsafe { on_value(value, (), |value| left(ctx, value)) };
}

/// The copy does not know its key's expiry. The next charge sets it.
unsafe extern "C" fn copy(
    _from: *mut RedisModuleString,
    _to: *mut RedisModuleString,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: the server passes a value of this type.
    unsafe { on_value(value, null_mut(), |value| value.copy().into_raw()) }
}

unsafe extern "C" fn defrag(
    context: *mut RedisModuleDefragCtx,
    _key: *mut RedisModuleString,
    value: *mut *mut c_void,
) -> c_int {
    guarded((), || {
        // SAFETY: `value` points to the server's pointer to a value. A value has no pointer into itself, so it can be
        // moved.
        unsafe {
            let moved = RedisModule_DefragAlloc.map_or(null_mut(), |alloc| alloc(context, *value));
            if !moved.is_null() {
                *value = moved;
            }
        }
    });
    0
}
