//! The module's timer, which rings when a caller is to be tried.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

use ratelimit_core::Span;
use redis_module::raw::{RedisModule_EventLoopAddOneShot, RedisModule_GetServerVersion, RedisModuleCtx};

use super::state::{now, with_state};
use crate::server::api::api;
use crate::server::node::NODE;

/// The function that the server calls when the timer rings.
pub(super) type Ring = unsafe extern "C" fn(*mut RedisModuleCtx, *mut c_void);

static RING: OnceLock<Ring> = OnceLock::new();

/// A context that lives as long as the module, for making timers.
static CONTEXT: AtomicPtr<RedisModuleCtx> = AtomicPtr::new(null_mut());

/// Whether the server may wait for the next event before it notices a timer that is due now: Redis 7.0, if a command runs
/// just before (from a pipeline, or read by another thread). Any event wakes it.
static WAKES_LATE: AtomicBool = AtomicBool::new(false);
/// The first version that always notices such a timer in time.
const WAKES_IN_TIME: c_int = 0x0007_0200;

/// The longest time for which a timer is set. Redis 7.0 computes the pause until the next timer in 32 bits, and does not
/// pause if that overflows. A timer that rings too early is set again.
const LONGEST: Span = Span::from_millis(60_000);

/// A timer that is overdue by this much is set again.
const OVERDUE: Span = Span::from_millis(20);

/// Makes the context for timers, which call `ring`.
///
/// # Safety
///
/// `ctx` is the context of the load.
pub(super) unsafe fn prepare(ctx: *mut RedisModuleCtx, ring: Ring) {
    _ = RING.set(ring);
    // SAFETY: the caller keeps the contract.
    unsafe {
        CONTEXT.store(api!(RedisModule_GetDetachedThreadSafeContext(ctx)), Relaxed);
        let version = RedisModule_GetServerVersion.map_or(0, |version| version());
        WAKES_LATE.store(version < WAKES_IN_TIME, Relaxed);
    }
}

/// Sets the timer to the next instant at which a caller is to be tried.
pub fn set_alarm() {
    let (tries, deadline) = NODE.waiting.next();
    let wanted = with_state(|state| {
        let now = now();
        let wanted = tries
            .filter(|_| !state.alarm.held_up)
            .into_iter()
            .chain(deadline)
            .min()?
            .clamp(now, now.plus(LONGEST));
        // An alarm that rings too early is set again when it rings. One that is overdue has been delayed: the server's
        // timers depend on a clock that can be set back.
        let is_set = state.alarm.set.is_some_and(|(_, set)| set <= wanted && now.since(set) < OVERDUE);
        (!is_set).then(|| (state.alarm.set.take(), wanted, now))
    });
    let Some((old, wanted, now)) = wanted else { return };
    let ctx = CONTEXT.load(Relaxed);
    let millis = wanted.since(now).as_millis_up();
    // SAFETY: the context lives as long as the module. A timer that has rung is not in the state any more.
    let timer = unsafe {
        if let Some((timer, _)) = old {
            api!(RedisModule_StopTimer(ctx, timer, null_mut()));
        }
        api!(RedisModule_CreateTimer(ctx, millis.cast_signed(), RING.get().copied(), null_mut()))
    };
    with_state(|state| state.alarm.set = Some((timer, wanted)));
    if millis == 0 && WAKES_LATE.load(Relaxed) {
        // SAFETY: the function does nothing with its argument.
        unsafe { RedisModule_EventLoopAddOneShot.map(|add| add(Some(nothing), null_mut())) };
    }
}

unsafe extern "C" fn nothing(_: *mut c_void) {}
