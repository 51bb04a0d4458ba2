//! How a limit adapts by latency: it shrinks while requests take longer than on an idle backend.
//!
//! A *window* is a second of leases that ended well, or longer if they are fewer than ten. Its mean is how long they were
//! held: the *short* mean. The *long* mean is that of an idle backend.
//!
//! ```text
//! gradient = 1.1 * long / short, at least 1/2 and at most 1
//! limit    = 0.8 * limit + 0.2 * (gradient * limit + 4)        4, or 4 % of the limit if that is more
//!
//! long = short = 10 ms, and at least half of the limit is held     20, 20.8, 21.6, 22.4, 23.2, 24
//! 50 workers, and long is the time of one request                  it settles at 59: 1.1 * 50 + 4
//! ```
//!
//! What is the latency of an idle backend? An average over a long time rises in a lasting overload. The limit follows it,
//! and so makes the overload worse, up to any ceiling. So from time to time a *probe* measures the latency: half of the
//! limit counts until no more than that is held, and the mean of the next window is the new long. Half of a limit that is
//! up to twice as large as it should be leaves no request waiting in the backend.
//!
//! A probe comes after the first ten windows, until when long is the mean of their means, and as each sixtieth window. It
//! comes at once when the long mean is visibly wrong:
//!
//! - The limit has halved since the last probe. If the load was the cause, requests would be fast by now.
//! - Requests take less than half of the long mean.
//!
//! So a backend that becomes three times as slow keeps its limit, except for a dip of seconds.
//!
//! A probe learns only from leases that end. If none does, for example because all callers died, half of the limit would count for
//! as long as the table is kept. So each of a probe's two phases ends by time: after 30 s, and ten times the short mean, which is
//! what ten leases take one after the other. A probe that ended so has measured nothing, and the long mean stays.
//!
//! # Exactness
//!
//! Limits are whole billionths, so the example is exact. Means are whole picoseconds, and durations above 100 µs, so a mean
//! is exact to a part in 10^8. A window that shrinks the limit is off by less than 10^-8 of it.

use super::terms::{Ended, ONE, Settings};
use crate::time::Span;

/// What windows and probes measured.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Latency {
    /// Means in picoseconds.
    pub long: u64,
    pub short: u64,
    /// The number of windows that ended.
    pub windows: u64,
    /// The largest exact limit since the last probe.
    pub most: u64,
    pub probe: Probe,
    pub window: Window,
}

/// The leases that ended in a window.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Window {
    pub count: u64,
    /// When the first one ended.
    pub began: u64,
    /// The sum of their durations, in microseconds.
    pub sum: u64,
    /// The most that was held.
    pub held: u64,
}

/// Half of the limit counts during a probe.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Probe {
    #[default]
    No,
    /// More than half of the limit is held, since this instant. An earlier module did not store it.
    Drains(Option<u64>),
    /// No more was held at this instant.
    Measures(u64),
}

impl Latency {
    /// Learns from a lease that ended well. Returns the new exact limit.
    pub(super) fn sample(&mut self, ended: &Ended, exact: u64, settings: &Settings) -> u64 {
        let Some(window) = self.add(ended) else { return exact };
        self.short = window.mean();
        self.windows = self.windows.saturating_add(1);
        if self.probe != Probe::No {
            *self = Latency { long: self.short, most: exact, probe: Probe::No, ..*self };
            return exact;
        }
        self.average();
        let next = if settings.are_tested(exact, window.held) { self.follow(exact) } else { exact.into() };
        let next = settings.nearest(next);
        self.plan(next, ended.now);
        next
    }

    /// The limit that the gradient leads to.
    fn follow(&self, exact: u64) -> u128 {
        let [exact, long, short] = [exact, self.long, self.short].map(u128::from);
        let scaled = exact * 11 * long / (10 * short.max(1));
        let queue = (exact / 25).max(4 * u128::from(ONE));
        (4 * exact + scaled.clamp(exact / 2, exact) + queue) / 5
    }

    /// When the probe ends by time; `None` if there is none, or if its beginning is not known.
    fn probe_ends(&self) -> Option<u64> {
        let since = match self.probe {
            Probe::No | Probe::Drains(None) => return None,
            Probe::Drains(Some(since)) | Probe::Measures(since) => since,
        };
        Some(since.wrapping_add(PHASE + (self.short / PICOSECONDS).saturating_mul(FEWEST)))
    }

    /// The time from `now` until the probe ends by time, in microseconds; `None` as above.
    pub(super) fn probe_left(&self, now: u64) -> Option<u64> {
        // An instant before `now` is more than half of the clock ahead.
        let left = self.probe_ends()?.wrapping_sub(now);
        Some(if left > u64::MAX / 2 { 0 } else { left })
    }

    /// Ends a probe that has taken too long, without what it measured.
    pub(super) fn pass(&mut self, now: u64, exact: u64) {
        if self.probe_left(now) == Some(0) {
            *self = Latency { probe: Probe::No, window: Window::default(), most: exact, ..*self };
        }
    }

    /// Lets a probe measure when no more than `limit`, half of the whole, is held after a lease ended.
    pub(super) fn drain(&mut self, ended: &Ended, limit: u64) {
        if matches!(self.probe, Probe::Drains(_)) && ended.held.saturating_sub(ended.cost) <= limit {
            self.probe = Probe::Measures(ended.now);
        }
    }

    /// Adds a duration. Returns the window if that completes it.
    fn add(&mut self, ended: &Ended) -> Option<Window> {
        let counts = match self.probe {
            Probe::No => true,
            Probe::Drains(_) => false,
            // Many that end earlier have waited for those that were held before.
            Probe::Measures(since) => ended.since(since) >= self.short / PICOSECONDS,
        };
        if !counts || ended.lasted() <= SHORTEST {
            return None;
        }
        let window = &mut self.window;
        if window.count == 0 {
            window.began = ended.now;
        }
        window.count = window.count.saturating_add(1);
        window.sum = window.sum.saturating_add(ended.lasted().min(LONGEST));
        window.held = window.held.max(ended.held);
        let complete = window.count >= FEWEST && ended.since(window.began) >= SECOND;
        complete.then(|| core::mem::take(window))
    }

    /// Makes the long mean that of the first windows. Later only probes change it.
    fn average(&mut self) {
        if self.windows <= FIRST {
            let [long, short, windows] = [self.long, self.short, self.windows].map(u128::from);
            let mean = (long * windows.saturating_sub(1) + short) / windows.max(1);
            self.long = u64::try_from(mean).unwrap_or(u64::MAX);
        }
    }

    /// Begins a probe if it is time for one, or if the long mean seems wrong.
    fn plan(&mut self, exact: u64, now: u64) {
        self.most = self.most.max(exact);
        let due = self.windows == FIRST || self.windows % EACH == EACH - 1;
        if due || exact <= self.most / 2 || self.short < self.long / 2 {
            self.probe = Probe::Drains(Some(now));
        }
    }
}

impl Window {
    /// The mean duration, in picoseconds.
    fn mean(&self) -> u64 {
        let mean = u128::from(self.sum) * u128::from(PICOSECONDS) / u128::from(self.count.max(1));
        u64::try_from(mean).unwrap_or(u64::MAX).min(LONGEST_MEAN)
    }
}

/// A mean as a duration, rounded up.
pub fn mean_of(picoseconds: u64) -> Span {
    Span::from_micros(picoseconds.div_ceil(PICOSECONDS))
}

/// In a microsecond.
const PICOSECONDS: u64 = 1_000_000;

/// In microseconds: shorter leases say nothing of the backend, and durations above the longest count as it, which is 19
/// hours. So no mean overflows.
const SHORTEST: u64 = 100;
const LONGEST: u64 = 1 << 36;
pub(crate) const LONGEST_MEAN: u64 = LONGEST * PICOSECONDS;

/// The leases of a window, and its microseconds.
const FEWEST: u64 = 10;
const SECOND: u64 = 1_000_000;

/// The microseconds after which a phase of a probe ends, beside ten leases.
const PHASE: u64 = 30 * SECOND;

/// The windows before the first probe.
const FIRST: u64 = 10;

/// The windows from one probe to the next.
const EACH: u64 = 60;

#[cfg(test)]
mod tests {
    use super::super::{Adapt, Adapted, Ending, Rule};
    use super::*;

    struct Trial {
        limit: Adapted,
        now: u64,
    }

    impl Trial {
        fn new(start: u32) -> Trial {
            let settings =
                Settings { rule: Rule::Latency, ceiling: 1000, floor: 1, reserved: 0, backoff: 10, slow: 0 };
            Trial { limit: Adapted::new(Adapt { settings, start }), now: 0 }
        }

        /// A window of leases that each last `millis`.
        fn window(&mut self, millis: u64, held: u64) {
            for _ in 0..11 {
                self.lease(millis, held);
            }
        }

        /// The rest of a probe.
        fn probe(&mut self, millis: u64) {
            while self.limit.latency.probe != Probe::No {
                self.lease(millis, 1);
            }
        }

        fn lease(&mut self, millis: u64, held: u64) {
            self.now += 100_000;
            let taken = self.now.wrapping_sub(millis * 1000);
            self.limit.learn(&Ended { taken, now: self.now, cost: 1, held }, Ending::Well);
        }
    }

    #[test]
    fn a_longer_latency_lowers_the_limit_at_most_by_a_tenth_but_for_the_queue() {
        let mut trial = Trial::new(100);
        trial.window(10, 100);
        assert_eq!(trial.limit.exact, 100_800_000_000);
        // long is now the mean of 10 and 30 ms.
        trial.window(30, 100);
        assert_eq!(trial.limit.latency.long, 20_000_000_000);
        let gradient_of_22_to_30 = 80_640_000_000 + 14_784_000_000 + 806_400_000;
        assert_eq!(trial.limit.exact, gradient_of_22_to_30);
        let before = trial.limit.exact;
        trial.window(3000, 100);
        assert!(trial.limit.exact < before * 91 / 100 + 800_000_000);
    }

    #[test]
    fn a_limit_that_is_less_than_half_used_stays() {
        let mut trial = Trial::new(100);
        trial.window(10, 49);
        trial.window(90, 49);
        assert_eq!(trial.limit.limit(), 100);
    }

    #[test]
    fn a_window_has_ten_leases_and_takes_a_second() {
        let mut trial = Trial::new(20);
        (0..10).for_each(|_| trial.lease(10, 20));
        assert_eq!((trial.limit.latency.windows, trial.limit.latency.window.count), (0, 10));
        trial.lease(10, 20);
        assert_eq!(trial.limit.latency.windows, 1);
        (0..9).for_each(|_| {
            trial.now += SECOND;
            trial.lease(10, 20);
        });
        assert_eq!(trial.limit.latency.windows, 1);
        trial.lease(10, 20);
        assert_eq!(trial.limit.latency.windows, 2);
        for (micros, counted) in [(100, 0), (101, 1)] {
            let taken = trial.now - micros;
            trial.limit.learn(&Ended { taken, now: trial.now, cost: 1, held: 20 }, Ending::Well);
            assert_eq!(trial.limit.latency.window.count, counted, "{micros} us");
        }
    }

    #[test]
    fn a_probe_halves_the_limit_until_no_more_is_held_and_measures_one_window() {
        let mut trial = Trial::new(20);
        (0..10).for_each(|_| trial.window(10, 28));
        let latency = trial.limit.latency;
        assert_eq!((latency.windows, latency.probe), (10, Probe::Drains(Some(trial.now))));
        assert_eq!((trial.limit.exact / ONE, trial.limit.limit()), (28, 14));
        // 15 are held after this one.
        trial.lease(10, 16);
        assert!(matches!(trial.limit.latency.probe, Probe::Drains(_)));
        trial.lease(10, 15);
        assert_eq!(trial.limit.latency.probe, Probe::Measures(trial.now));
        trial.window(4, 14);
        assert_eq!((trial.limit.exact / ONE, trial.limit.limit()), (28, 28));
        assert_eq!((trial.limit.latency.long, trial.limit.latency.probe), (4_000_000_000, Probe::No));
    }

    #[test]
    fn a_probe_does_not_measure_leases_that_waited_for_those_that_were_held_before() {
        let mut trial = Trial::new(20);
        (0..10).for_each(|_| trial.window(250, 10));
        assert!(matches!(trial.limit.latency.probe, Probe::Measures(_)));
        // Two leases end within 250 ms.
        (0..2).for_each(|_| trial.lease(900, 10));
        assert_eq!(trial.limit.latency.window.count, 0);
        trial.lease(100, 10);
        assert_eq!(trial.limit.latency.window.count, 1);
    }

    #[test]
    fn a_probe_in_which_no_lease_ends_is_over_after_half_a_minute_and_ten_leases() {
        let mut trial = Trial::new(20);
        (0..10).for_each(|_| trial.window(10, 28));
        let began = trial.now;
        let at = |trial: &Trial, seconds: u64| trial.limit.after(began.wrapping_add(seconds * SECOND / 10));
        assert_eq!(at(&trial, 300).limit(), 14, "half of 28");
        let whole = at(&trial, 301);
        assert_eq!((whole.limit(), whole.latency.probe, whole.latency.long), (28, Probe::No, 10_000_000_000));
        // The second phase begins when no more than half is held.
        trial.lease(10, 15);
        assert_eq!(at(&trial, 301).limit(), 14);
        assert_eq!(at(&trial, 302).limit(), 28);
        // A lease that ends then begins a window like any other.
        trial.now = began.wrapping_add(40 * SECOND);
        trial.limit = trial.limit.after(trial.now);
        trial.lease(10, 20);
        assert_eq!(trial.limit.latency.window.count, 1);
    }

    #[test]
    fn each_sixtieth_window_is_a_probe() {
        let mut trial = Trial::new(20);
        (0..11).for_each(|_| trial.window(10, 1));
        assert_eq!((trial.limit.latency.windows, trial.limit.latency.probe), (11, Probe::No));
        (0..48).for_each(|_| trial.window(10, 1));
        assert_eq!(trial.limit.latency.windows, 59);
        assert!(matches!(trial.limit.latency.probe, Probe::Measures(_)));
    }

    #[test]
    fn a_backend_that_becomes_slow_or_fast_is_probed_at_once() {
        let mut trial = Trial::new(100);
        (0..10).for_each(|_| trial.window(10, 100));
        trial.probe(10);
        let mut windows = 0;
        while trial.limit.latency.probe == Probe::No {
            trial.window(30, 100);
            windows += 1;
        }
        assert_eq!(windows, 8);
        trial.probe(30);
        assert_eq!(trial.limit.latency.long, 30_000_000_000);
        trial.window(14, 20);
        assert_ne!(trial.limit.latency.probe, Probe::No);
    }

    #[test]
    fn the_longest_leases_overflow_nothing() {
        let mut trial = Trial::new(1000);
        let mut longest = |count: usize| {
            for _ in 0..count {
                trial.now = trial.now.wrapping_add(SECOND);
                let ended =
                    Ended { taken: trial.now.wrapping_add(1), now: trial.now, cost: 1, held: u64::MAX };
                trial.limit.learn(&ended, Ending::Well);
            }
            trial.limit
        };
        assert_eq!(longest(10).latency.long, LONGEST * PICOSECONDS);
        assert_eq!(longest(600).latency.short, LONGEST * PICOSECONDS);
    }
}
