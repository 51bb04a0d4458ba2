//! Deliberate faults: a load of a value that panics, a save that dies, and a module that deletes a key while another one
//! is opened.

use std::ffi::{c_char, c_int};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use redis_module::raw::{
    REDISMODULE_NOTIFY_EXPIRED, REDISMODULE_NOTIFY_KEY_MISS, RedisModule_SubscribeToKeyspaceEvents,
    RedisModuleCtx, RedisModuleString,
};

use crate::server::api::{OK, api};
use crate::server::entry::call::Call;

static ARMED: AtomicBool = AtomicBool::new(false);
static SAVE_ARMED: AtomicBool = AtomicBool::new(false);

/// Makes the next load of a value panic.
pub fn arm_load() {
    ARMED.store(true, Relaxed);
}

pub(super) fn panic_if_armed() {
    assert!(!ARMED.swap(false, Relaxed), "on purpose, while loading");
}

/// Makes the next `RL.POLICY SAVE` die in the middle of the file.
pub fn arm_save() {
    SAVE_ARMED.store(true, Relaxed);
}

/// Ends the server as `kill -9` does, if a save was armed.
pub fn die_if_armed() {
    if SAVE_ARMED.load(Relaxed) {
        // SAFETY: a signal to this process.
        unsafe { libc::raise(libc::SIGKILL) };
    }
}

/// The name of the key that is deleted.
static VICTIM: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// From now on, deletes this key whenever another key expires or is missed. Another module may do so.
pub fn delete_on_events(call: &Call<'_>, victim: &[u8]) {
    // SAFETY: the server wrote the pointer before the module's code ran. `ctx` is the context of the running command.
    unsafe {
        let events = REDISMODULE_NOTIFY_EXPIRED | REDISMODULE_NOTIFY_KEY_MISS;
        RedisModule_SubscribeToKeyspaceEvents.map(|to| to(call.ctx, events, Some(delete_victim)));
    }
    if let Ok(mut name) = VICTIM.lock() {
        *name = victim.to_vec();
    }
}

unsafe extern "C" fn delete_victim(
    ctx: *mut RedisModuleCtx,
    _event: c_int,
    _name: *const c_char,
    _key: *mut RedisModuleString,
) -> c_int {
    if let Ok(victim) = VICTIM.lock() {
        // SAFETY: the server passes a context. The format `b` takes a buffer and its length.
        unsafe {
            let reply =
                api!(RedisModule_Call(ctx, c"DEL".as_ptr(), c"b".as_ptr(), victim.as_ptr(), victim.len()));
            api!(RedisModule_FreeCallReply(reply));
            // Reuses the memory that was freed.
            let (value, length) = (c"fills the gap".as_ptr(), 13_usize);
            let reply = api!(RedisModule_Call(
                ctx,
                c"SET".as_ptr(),
                c"cb".as_ptr(),
                c"filler".as_ptr(),
                value,
                length
            ));
            api!(RedisModule_FreeCallReply(reply));
        }
    }
    OK
}
