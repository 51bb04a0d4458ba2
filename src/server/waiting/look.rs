//! What the alarm does with tables of leases that have a line: it frees leases that have ended, and lets the line read what
//! their tenants hold now. Both are done in steps, as a million leases can expire at once.

use std::ptr::null_mut;

use ratelimit_core::decide::when_decided;
use ratelimit_core::limiter::Concurrent;
use ratelimit_core::state::Leases;
use ratelimit_core::{Length, LimitSet, Name};
use redis_module::raw::{REDISMODULE_READ, RedisModuleCtx};

use super::state::{now, with_state};
use super::wait::{OfDatabase, WaitedKey};
use crate::server::api::api;
use crate::server::node::clock::clock;
use crate::server::store::native_type::TYPE;
use crate::server::store::value::Value;

/// The most ended leases of a table that are freed at once.
const FREED: usize = 200;

/// Looks at one table, if it is time.
///
/// # Safety
///
/// `ctx` is the context of a timer.
pub(super) unsafe fn look(ctx: *mut RedisModuleCtx) {
    let Some((key, name)) = with_state(|state| state.lines.look(now())) else { return };
    // SAFETY: the caller keeps the contract. The server owns the value, and nothing else uses it in a timer's callback. Freeing what
    // has ended changes nothing that the key's copies have.
    unsafe {
        api!(RedisModule_SelectDb(ctx, key.database));
        let string = api!(RedisModule_CreateString(null_mut(), key.name.as_ptr().cast(), key.name.len()));
        let open = api!(RedisModule_OpenKey(ctx, string, REDISMODULE_READ.cast_signed()));
        if api!(RedisModule_ModuleTypeGetType(open)) == *TYPE.raw_type.as_ptr()
            && let Some(mut value) = Value::from_raw(api!(RedisModule_ModuleTypeGetValue(open)))
        {
            free_ended(&mut value);
            let of_set = || value.state::<LimitSet>().and_then(|set| set.get::<Leases>(Length::NONE));
            follow(&key, name, value.state::<Leases>().or_else(of_set));
        }
        api!(RedisModule_CloseKey(open));
        api!(RedisModule_FreeString(null_mut(), string));
    }
}

fn free_ended(value: &mut Value) {
    if let Some(leases) = value.state_mut::<Leases>() {
        leases.free_ended(FREED);
    } else if let Some(set) = value.state_mut::<LimitSet>() {
        set.free_ended_leases(FREED);
    }
}

fn follow(key: &WaitedKey, name: Name, leases: Option<&Leases>) {
    let Some(leases) = leases else { return };
    when_decided(&Concurrent::READER, leases, clock(), |leases, at, _| {
        with_state(|state| state.lines.follow::<dyn OfDatabase>(key, name, Some(leases), at, now()));
    });
}
