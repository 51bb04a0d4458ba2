//! The native type: how a value lies in memory, and what the server does with it.
//!
//! A value is one allocation: a head of 8 bytes and the state. The head tells the kind of the state, so that a
//! pointer alone says what it points to, and remembers the key's deadline, so that a charge that need not move it
//! does not ask for it.

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
use crate::limit::codec::Reader;
use crate::limit::with_state;
use crate::limit::{Kind, State};

/// The type's name is in every RDB: nine characters, never to be changed.
pub static TYPE: RedisType = RedisType::new("ratelimit", ENCODING, METHODS);

/// The version of what stands in an RDB; a loader accepts its own and all before.
const ENCODING: i32 = 1;

const METHODS: RedisModuleTypeMethods = RedisModuleTypeMethods {
    // What a server of 7.0 knows; later ones accept it.
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

/// A value in memory.
#[repr(C)]
pub(super) struct Slot<S> {
    head: Head,
    state: S,
}

/// The kind in the low byte, the key's deadline in ms above it; 0 is an unknown deadline.
#[derive(Clone, Copy)]
pub(super) struct Head(u64);

impl Head {
    fn new(kind: Kind) -> Head {
        Head(u64::from(kind as u8))
    }

    pub(super) fn deadline(self) -> u64 {
        self.0 >> 8
    }

    pub(super) fn set_deadline(&mut self, millis: u64) {
        self.0 = (self.0 & 0xff) | (millis << 8);
    }

    pub(super) fn kind(self) -> Kind {
        let [kind, ..] = self.0.to_le_bytes();
        // Only `new` writes the low byte.
        Kind::from_byte(kind).unwrap_or(Kind::Level)
    }
}

impl<S: State> Slot<S> {
    /// Puts a state on the heap, as the server keeps it.
    pub(super) fn boxed(state: S) -> *mut c_void {
        Box::into_raw(Box::new(Slot { head: Head::new(S::KIND), state })).cast()
    }
}

/// The head of a value.
///
/// # Safety
///
/// `value` came from `Slot::boxed` and was not freed, and nobody changes it meanwhile.
pub(super) unsafe fn head<'a>(value: *const c_void) -> &'a Head {
    // SAFETY: by the contract; whatever the state, a slot begins with its head.
    unsafe { &*value.cast() }
}

/// The head of a value, to be changed.
///
/// # Safety
///
/// As for `head`; and nobody else refers to the slot meanwhile.
pub(super) unsafe fn head_mut<'a>(value: *mut c_void) -> &'a mut Head {
    // SAFETY: by the contract.
    unsafe { &mut *value.cast() }
}

/// The state of a value.
///
/// # Safety
///
/// As for `head`; and the head says that it is of the kind of `S`.
pub(super) unsafe fn state<'a, S: State>(value: *const c_void) -> &'a S {
    // SAFETY: by the contract.
    unsafe { &(*value.cast::<Slot<S>>()).state }
}

/// The state of a value, to be changed.
///
/// # Safety
///
/// As for `state`; and nobody else refers to the slot meanwhile.
pub(super) unsafe fn state_mut<'a, S: State>(value: *mut c_void) -> &'a mut S {
    // SAFETY: by the contract.
    unsafe { &mut (*value.cast::<Slot<S>>()).state }
}

/// A value's logical state: its kind and what `State::encode` writes. `None` if it cannot be read back.
fn decode(bytes: &[u8]) -> Option<*mut c_void> {
    let mut reader = Reader::new(bytes);
    let kind = Kind::from_byte(reader.byte()?)?;
    with_state!(kind, S => {
        let state = S::decode(&mut reader)?;
        reader.is_empty().then(|| Slot::boxed(state))
    })
}

/// # Safety
///
/// As for `head`.
unsafe fn encode(value: *const c_void) -> Vec<u8> {
    // SAFETY: by the contract, and the slot is of the kind that its head tells.
    unsafe {
        let kind = head(value).kind();
        let mut bytes = vec![kind as u8];
        with_state!(kind, S => state::<S>(value).encode(&mut bytes));
        bytes
    }
}

unsafe extern "C" fn rdb_load(io: *mut RedisModuleIO, version: c_int) -> *mut c_void {
    guarded(null_mut(), || {
        #[cfg(feature = "fault-injection")]
        super::fault::panic_if_armed();
        if version > ENCODING {
            log_io_error(io, RedisLogLevel::Warning, "key of a newer version of the ratelimit module");
            return null_mut();
        }
        // SAFETY: the server called with an RDB that is being read; the buffer is ours to free.
        unsafe {
            let mut length = 0;
            let buffer = api!(RedisModule_LoadStringBuffer(io, &raw mut length));
            if buffer.is_null() {
                // The source has ended or is broken.
                return null_mut();
            }
            let value = decode(slice::from_raw_parts(buffer.cast(), length));
            api!(RedisModule_Free(buffer.cast()));
            value.unwrap_or_else(|| {
                log_io_error(io, RedisLogLevel::Warning, "malformed key of the ratelimit module");
                null_mut()
            })
        }
    })
}

unsafe extern "C" fn rdb_save(io: *mut RedisModuleIO, value: *mut c_void) {
    guarded((), || {
        // SAFETY: `value` is one of ours.
        unsafe {
            let bytes = encode(value);
            api!(RedisModule_SaveStringBuffer(io, bytes.as_ptr().cast(), bytes.len()));
        }
    });
}

/// Runs in a child process: no locks, no calls of commands.
unsafe extern "C" fn aof_rewrite(io: *mut RedisModuleIO, key: *mut RedisModuleString, value: *mut c_void) {
    guarded((), || {
        // SAFETY: `value` is one of ours, and the format asks for a string object and a buffer with its length.
        unsafe {
            let payload = Payload::whole(&encode(value));
            api!(RedisModule_EmitAOF(
                io,
                c"RL.APPLY".as_ptr(),
                c"sb".as_ptr(),
                key,
                payload.as_ptr().cast::<c_char>(),
                payload.len()
            ));
        }
    });
}

unsafe extern "C" fn free(value: *mut c_void) {
    guarded((), || {
        // SAFETY: the server gives the value up; it may do so on a thread of its own, and nothing else has it.
        unsafe { with_state!(head(value).kind(), S => drop(Box::from_raw(value.cast::<Slot<S>>()))) };
    });
}

unsafe extern "C" fn mem_usage(value: *const c_void) -> usize {
    guarded(0, || {
        // SAFETY: `value` is one of ours.
        unsafe {
            let outside = with_state!(head(value).kind(), S => state::<S>(value).heap_bytes());
            api!(RedisModule_MallocSize(value.cast_mut())) + outside + SERVERS_OWN
        }
    })
}

/// The object and the typed pointer that the server itself allocates for a value of a module, and does not count.
const SERVERS_OWN: usize = 32;

unsafe extern "C" fn free_effort(_key: *mut RedisModuleString, value: *const c_void) -> usize {
    // SAFETY: `value` is one of ours.
    guarded(1, || unsafe { with_state!(head(value).kind(), S => state::<S>(value).effort()) })
}

unsafe extern "C" fn digest(digest: *mut RedisModuleDigest, value: *mut c_void) {
    guarded((), || {
        // SAFETY: `value` is one of ours.
        unsafe {
            let bytes = encode(value);
            api!(RedisModule_DigestAddStringBuffer(digest, bytes.as_ptr().cast(), bytes.len()));
            api!(RedisModule_DigestEndSequence(digest));
        }
    });
}

/// The copy does not know its key's deadline: the next charge sets it.
unsafe extern "C" fn copy(
    _from: *mut RedisModuleString,
    _to: *mut RedisModuleString,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: `value` is one of ours.
    guarded(null_mut(), || decode(&unsafe { encode(value) }).unwrap_or(null_mut()))
}

unsafe extern "C" fn defrag(
    context: *mut RedisModuleDefragCtx,
    _key: *mut RedisModuleString,
    value: *mut *mut c_void,
) -> c_int {
    guarded((), || {
        // SAFETY: `value` is where the server keeps its pointer to one of ours. No slot holds a pointer into itself.
        unsafe {
            let moved = RedisModule_DefragAlloc.map_or(null_mut(), |alloc| alloc(context, *value));
            if !moved.is_null() {
                *value = moved;
            }
        }
    });
    0
}
