//! The server's clock.

use redis_module::raw::RedisModule_CachedMicroseconds;

use ratelimit_core::Time;

/// The system's time in microseconds; 0 before 1970.
#[inline(always)]
pub fn system_micros() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec that only this function uses.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now) };
    let [secs, nanos] = [now.tv_sec, now.tv_nsec].map(|number| u64::try_from(number).unwrap_or(0));
    secs.saturating_mul(1_000_000).saturating_add(nanos / 1000)
}

/// Returns the current instant. A command reads it once.
///
/// Newer servers return the instant at which the command began. It is the same for all calls of a transaction or a
/// script. On other servers it is the system's time.
#[inline(always)]
pub fn clock() -> Time {
    // SAFETY: the pointer was checked, and the function takes no arguments.
    let micros = match unsafe { RedisModule_CachedMicroseconds.map(|microseconds| microseconds()) } {
        Some(micros) => u64::try_from(micros).unwrap_or(0),
        None => system_micros(),
    };
    Time::from_micros(micros).min(Time::LATEST)
}
