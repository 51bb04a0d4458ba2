//! The server's clock.

use redis_module::raw::RedisModule_CachedMicroseconds;

use ratelimit_core::Time;

/// Returns the current instant. A command reads it once.
///
/// Newer servers return the instant at which the command began. It is the same for all calls of a transaction or a
/// script. On other servers it is the system's time.
pub fn clock() -> Time {
    // SAFETY: the pointer was checked, and the function takes no arguments.
    let cached = unsafe { RedisModule_CachedMicroseconds.map(|microseconds| microseconds()) };
    let micros = cached.unwrap_or_else(|| {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is a valid timespec that only this function uses.
        unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now) };
        now.tv_sec.saturating_mul(1_000_000).saturating_add(now.tv_nsec / 1000)
    });
    Time::from_micros(u64::try_from(micros).unwrap_or(0)).min(Time::LATEST)
}
