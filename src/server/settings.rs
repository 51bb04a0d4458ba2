//! The settings of the module: `ratelimit.*` in the server's configuration.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

use ratelimit_language::Bounds;
use redis_module::Context;
use redis_module::configuration::{
    ConfigurationFlags, register_bool_configuration, register_i64_configuration,
};

/// `ratelimit.events`.
static EVENTS: AtomicBool = AtomicBool::new(false);
/// `ratelimit.max-leases`.
static MAX_LEASES: AtomicI64 = AtomicI64::new(DEFAULT_BOUND);
/// `ratelimit.max-log-entries`.
static MAX_LOG_ENTRIES: AtomicI64 = AtomicI64::new(DEFAULT_BOUND);
/// `ratelimit.max-holds`.
static MAX_HOLDS: AtomicI64 = AtomicI64::new(DEFAULT_HOLDS);
/// The default of the first two.
const DEFAULT_BOUND: i64 = 1_000_000;
const LARGEST_BOUND: i64 = 100_000_000;
const DEFAULT_HOLDS: i64 = 10_000;
const LARGEST_HOLDS: i64 = 100_000;

/// Registers the settings with the server.
pub(super) fn register(context: &Context) {
    let flags = || ConfigurationFlags::DEFAULT;
    register_bool_configuration(context, "events", &EVENTS, false, flags(), None);
    for (name, bound) in [("max-leases", &MAX_LEASES), ("max-log-entries", &MAX_LOG_ENTRIES)] {
        register_i64_configuration(context, name, bound, DEFAULT_BOUND, 1, LARGEST_BOUND, flags(), None);
    }
    let (name, bound) = ("max-holds", &MAX_HOLDS);
    register_i64_configuration(context, name, bound, DEFAULT_HOLDS, 1, LARGEST_HOLDS, flags(), None);
}

/// Returns whether decisions are sent as keyspace events.
pub(super) fn events() -> bool {
    EVENTS.load(Relaxed)
}

/// Returns the most holds of a key.
pub fn most_holds() -> u64 {
    MAX_HOLDS.load(Relaxed).cast_unsigned()
}

/// Returns the bounds that the parser of arguments needs.
pub(super) fn bounds() -> Bounds {
    Bounds {
        leases: MAX_LEASES.load(Relaxed).cast_unsigned(),
        log_entries: MAX_LOG_ENTRIES.load(Relaxed).cast_unsigned(),
    }
}
