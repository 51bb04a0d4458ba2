//! The settings of a node.

use std::ffi::CStr;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

use ratelimit_core::state::Shape;
use ratelimit_core::{Period, Span};
use ratelimit_language::Bounds;
use ratelimit_language::vocabulary::MOST_TOP;

/// A setting that is a number, with its range and its default.
pub struct Number {
    pub name: &'static str,
    pub value: AtomicI64,
    pub default: i64,
    pub least: i64,
    pub most: i64,
}

impl Number {
    const fn new(name: &'static str, default: u64, least: u64, most: u64) -> Number {
        let [default, least, most] = [default.cast_signed(), least.cast_signed(), most.cast_signed()];
        Number { name, value: AtomicI64::new(default), default, least, most }
    }

    /// No range begins below 0.
    fn get(&self) -> u64 {
        self.value.load(Relaxed).cast_unsigned()
    }

    fn count(&self) -> usize {
        usize::try_from(self.get()).unwrap_or(0)
    }
}

/// A setting that is a duration of at most [`DAY`].
pub struct Length {
    pub name: &'static CStr,
    pub millis: AtomicU64,
    /// In milliseconds.
    pub default: u64,
    /// In milliseconds.
    pub least: u64,
}

impl Length {
    const fn new(name: &'static CStr, default: u64, least: u64) -> Length {
        Length { name, millis: AtomicU64::new(default), default, least }
    }

    fn get(&self) -> u64 {
        self.millis.load(Relaxed)
    }
}

const LARGEST_BOUND: u64 = 100_000_000;
const LARGEST_WAITERS: u64 = 100_000;
/// In milliseconds.
pub const DAY: u64 = 86_400_000;

/// The settings `ratelimit.*`. `docs/settings.md` explains them.
pub struct Settings {
    pub events: AtomicBool,
    pub max_leases: Number,
    pub max_log_entries: Number,
    pub max_holds: Number,
    pub max_sketch_bytes: Number,
    pub max_block: Length,
    pub max_waiters: Number,
    pub max_waiters_per_key: Number,
    /// How long a tenant is hungry after a call that does not wait was refused; 0 if never.
    pub hunger: Length,
    pub max_tenants: Number,
    /// The entries of a window of `RL.TOP`; 0 if it is off.
    pub top: Number,
    pub top_window: Length,
    /// The most calls of policies that are recorded; 0 if none are.
    pub record: Number,
}

impl Settings {
    pub(crate) const fn new() -> Settings {
        let Bounds { leases, log_entries, sketch_bytes } = Bounds::DEFAULT;
        Settings {
            events: AtomicBool::new(false),
            max_leases: Number::new("max-leases", leases, 1, LARGEST_BOUND),
            max_log_entries: Number::new("max-log-entries", log_entries, 1, LARGEST_BOUND),
            max_holds: Number::new("max-holds", 10_000, 1, 100_000),
            max_sketch_bytes: Number::new(
                "max-sketch-bytes",
                sketch_bytes,
                Shape::DEFAULT.bytes(),
                Shape::MOST_BYTES,
            ),
            max_block: Length::new(c"max-block", 60_000, 1),
            max_waiters: Number::new("max-waiters", 10_000, 0, LARGEST_WAITERS),
            max_waiters_per_key: Number::new("max-waiters-per-key", 1000, 0, LARGEST_WAITERS),
            hunger: Length::new(c"hunger", 1000, 0),
            max_tenants: Number::new("max-tenants", 10_000, 0, LARGEST_WAITERS),
            top: Number::new("top", 0, 0, MOST_TOP),
            top_window: Length::new(c"top-window", 60_000, 1000),
            record: Number::new("record", 0, 0, 1_000_000),
        }
    }

    /// Whether decisions are sent as keyspace events.
    pub fn sends_events(&self) -> bool {
        self.events.load(Relaxed)
    }

    /// The longest time that a caller waits.
    pub fn longest_block(&self) -> Span {
        Span::from_millis(self.max_block.get())
    }

    /// The most callers that wait.
    pub fn most_waiters(&self) -> usize {
        self.max_waiters.count()
    }

    /// The most callers that wait for the limits of a key.
    pub fn most_waiters_of_key(&self) -> usize {
        self.max_waiters_per_key.count()
    }

    /// How long a tenant is hungry after a call that does not wait was refused.
    pub fn hunger(&self) -> Span {
        Span::from_millis(self.hunger.get())
    }

    /// The most hungry tenants.
    pub fn most_hungry(&self) -> usize {
        self.max_tenants.count()
    }

    /// Whether a tenant can be hungry at all.
    pub fn allows_hunger(&self) -> bool {
        self.hunger.get() > 0 && self.max_tenants.get() > 0
    }

    /// Whether refusals are counted for `RL.TOP`.
    #[inline(always)]
    pub fn counts_refusals(&self) -> bool {
        self.top.get() > 0
    }

    /// The entries and the length of a window of `RL.TOP`.
    pub fn top(&self) -> (usize, Period) {
        let millis = NonZeroU64::new(self.top_window.get()).unwrap_or(NonZeroU64::MIN);
        (self.top.count(), Period::from_millis(millis))
    }

    /// Whether calls of policies are recorded.
    #[inline(always)]
    pub fn records(&self) -> bool {
        self.record.get() > 0
    }

    /// The most calls of policies that are recorded.
    pub fn most_recorded(&self) -> usize {
        self.record.count()
    }

    /// Sets the bounds as another node has them.
    pub(crate) fn set_bounds(&self, Bounds { leases, log_entries, sketch_bytes }: Bounds, most_holds: u64) {
        let Settings { max_leases, max_log_entries, max_sketch_bytes, max_holds, .. } = self;
        let bounds = [(max_leases, leases), (max_log_entries, log_entries), (max_sketch_bytes, sketch_bytes)];
        for (number, bound) in bounds.into_iter().chain([(max_holds, most_holds)]) {
            number.value.store(bound.cast_signed(), Relaxed);
        }
    }

    /// The most holds of a key.
    pub fn most_holds(&self) -> u64 {
        self.max_holds.get()
    }

    /// The bounds that the parser of arguments needs.
    #[inline(always)]
    pub fn bounds(&self) -> Bounds {
        Bounds {
            leases: self.max_leases.get(),
            log_entries: self.max_log_entries.get(),
            sketch_bytes: self.max_sketch_bytes.get(),
        }
    }
}
