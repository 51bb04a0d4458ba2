//! The server's clock.

use redis_module::raw::RedisModule_CachedMicroseconds;

use ratelimit_core::Time;

/// The server's now; read it once per command. Newer servers offer the instant at which the command began, the same
/// for all calls of a transaction or a script; elsewhere it is the system's clock.
pub fn clock() -> Time {
    // SAFETY: a function of the server without arguments, if it has it.
    let cached = unsafe { RedisModule_CachedMicroseconds.map(|microseconds| microseconds()) };
    let micros = cached.unwrap_or_else(|| {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is a timespec of our own.
        unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now) };
        now.tv_sec.saturating_mul(1_000_000).saturating_add(now.tv_nsec / 1000)
    });
    Time::from_micros(u64::try_from(micros).unwrap_or(0)).min(Time::LATEST)
}
