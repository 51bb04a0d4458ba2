//! What the alarm does with tables of leases that have a line: it frees leases that have ended, and lets the line read what
//! their tenants hold now. Both are done in steps, as a million leases can expire at once.

use std::ffi::c_int;
use std::ptr::null_mut;

use ratelimit_core::decide::when_decided;
use ratelimit_core::limiter::Concurrent;
use ratelimit_core::state::Leases;
use ratelimit_core::{Length, LimitSet, Name, Time};
use ratelimit_engine::waiting::{OfDatabase, WaitedKey};
use redis_module::raw::{
    REDISMODULE_OPEN_KEY_NONOTIFY, REDISMODULE_OPEN_KEY_NOSTATS, REDISMODULE_OPEN_KEY_NOTOUCH,
    REDISMODULE_READ, RedisModuleCtx,
};

use super::state::{now, with_lines};
use crate::server::api::api;
use crate::server::node::clock::clock;
use crate::server::store::native_type::TYPE;
use ratelimit_value::Value;

/// The key is not used. A server that does not know a flag ignores it.
const LOOKS: c_int = (REDISMODULE_READ
    | REDISMODULE_OPEN_KEY_NOTOUCH
    | REDISMODULE_OPEN_KEY_NONOTIFY
    | REDISMODULE_OPEN_KEY_NOSTATS)
    .cast_signed();
/// How many ended leases of a table are freed between two looks at the clock.
const AT_ONCE: usize = 4;

/// Looks at one table, if it is time. It frees leases until this instant, and at least a few.
///
/// # Safety
///
/// `ctx` is the context of a timer.
pub(super) unsafe fn look(ctx: *mut RedisModuleCtx, until: Time) {
    let Some((key, name)) = with_lines(|state| state.lines.look(now())) else { return };
    // SAFETY: the caller keeps the contract. The server owns the value, and nothing else uses it in a timer's callback. Freeing what
    // has ended changes nothing that the key's copies have.
    unsafe {
        api!(RedisModule_SelectDb(ctx, key.database));
        let string = api!(RedisModule_CreateString(null_mut(), key.name.as_ptr().cast(), key.name.len()));
        let open = api!(RedisModule_OpenKey(ctx, string, LOOKS));
        let is_ours = api!(RedisModule_ModuleTypeGetType(open)) == *TYPE.raw_type.as_ptr();
        let mut value =
            is_ours.then(|| Value::from_raw(api!(RedisModule_ModuleTypeGetValue(open)))).flatten();
        if let Some(value) = &mut value {
            free_ended(value, until);
        }
        follow(&key, name, value.as_deref().and_then(leases));
        api!(RedisModule_CloseKey(open));
        api!(RedisModule_FreeString(null_mut(), string));
    }
}

fn free_ended(value: &mut Value, until: Time) {
    while leases(value).is_some_and(Leases::has_ended) {
        if let Some(leases) = value.state_mut::<Leases>() {
            leases.free_ended(AT_ONCE);
        } else if let Some(set) = value.state_mut::<LimitSet>() {
            set.free_ended_leases(AT_ONCE);
        }
        if now() >= until {
            return;
        }
    }
}

/// The table for which callers wait.
fn leases(value: &Value) -> Option<&Leases> {
    match value.state::<LimitSet>() {
        Some(set) => set.get(Length::NONE),
        None => value.state().filter(|_| !value.length().is_shadow()),
    }
}

fn follow(key: &WaitedKey, name: Name, leases: Option<&Leases>) {
    let follow = |leases: Option<&Leases>, at| {
        with_lines(|state| state.lines.follow::<dyn OfDatabase>(key, name, leases, at, now()));
    };
    match leases {
        Some(leases) => {
            when_decided(&Concurrent::READER, leases, clock(), |leases, at, _| follow(Some(leases), at));
        }
        None => follow(None, clock()),
    }
}
