//! An adaptive limit of leases, from what callers report when their requests end.
//!
//! # By failures
//!
//! As TCP finds its window: up slowly while requests end well, down at once when one fails.
//!
//! ```text
//! limit 20, 10 held, leases of cost 20 end well    21    1 more for each `limit` of cost
//! limit 30, a lease fails                          27    10 % less
//!   another one fails, taken before that           27    a burst of failures counts once
//!   another one fails, taken since                 24
//! ```
//!
//! A limit that is less than half used does not grow, since no one tests whether a larger one is right. And without
//! failures it grows to twice what is used: it has no other signal.
//!
//! # By latency
//!
//! `latency.rs` explains it. The limit shrinks while requests take longer than on an idle backend.
//!
//! # Source
//!
//! <https://github.com/Netflix/concurrency-limits>: `AIMDLimit`, `Gradient2Limit`. `AIMDLimit` adds 1 for each request that
//! ends well, so a limit of 100 grows a hundred times as fast as here. It serves one process, and this the whole fleet.

mod latency;
mod terms;

pub(crate) use latency::LONGEST_MEAN;
pub use latency::{Latency, Probe, Window, mean_of};
pub use terms::{Adapt, Ended, Ending, ONE, Rule, Settings};

use terms::exactly;

/// An adaptive limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Adapted {
    pub settings: Settings,
    /// The limit in billionths, between floor and ceiling. By failures it is whole.
    pub exact: u64,
    /// The cost that ended well since the limit last changed.
    pub credit: u64,
    /// When a failure last lowered the limit.
    pub lowered: Option<u64>,
    /// Blank by failures.
    pub latency: Latency,
}

impl Adapted {
    /// A limit that begins at `start`.
    pub fn new(Adapt { settings, start }: Adapt) -> Adapted {
        let exact = settings.nearest(exactly(start).into());
        Adapted { settings, exact, credit: 0, lowered: None, latency: Latency::default() }
    }

    /// The limit as a call with these parameters finds it.
    #[must_use]
    pub fn adopt(mut self, settings: Settings) -> Adapted {
        self.exact = settings.nearest(self.exact.into());
        if settings.rule == Rule::Failures {
            self.exact -= self.exact % ONE;
            self.latency = Latency::default();
        }
        Adapted { settings, ..self }
    }

    /// The limit with other instants.
    #[must_use]
    pub(crate) fn at(mut self, instant: impl Fn(u64) -> u64) -> Adapted {
        self.lowered = self.lowered.map(&instant);
        let Latency { probe, window, .. } = &mut self.latency;
        if let Probe::Drains(Some(since)) | Probe::Measures(since) = probe {
            *since = instant(*since);
        }
        if window.count > 0 {
            window.began = instant(window.began);
        }
        self
    }

    /// The limit at an instant at which no lease has ended since it was last changed.
    #[must_use]
    pub fn after(mut self, now: u64) -> Adapted {
        self.latency.pass(now, self.exact);
        self
    }

    /// The time from `now` until a probe ends by time, in microseconds; `None` if none does.
    pub fn probe_left(&self, now: u64) -> Option<u64> {
        self.latency.probe_left(now)
    }

    /// The limit that counts now.
    pub fn limit(&self) -> u64 {
        let limit = self.exact / ONE;
        match self.latency.probe {
            Probe::No => limit,
            _ => limit.div_ceil(2).max(self.settings.floor.into()),
        }
    }

    /// Learns from a lease that ends.
    pub fn learn(&mut self, ended: &Ended, ending: Ending) {
        let Settings { rule, slow, .. } = self.settings;
        let is_slow = slow > 0 && ended.lasted() > slow;
        match ending {
            Ending::Unknown => {}
            Ending::Well if !is_slow => match rule {
                Rule::Failures => self.raise(ended),
                Rule::Latency => self.exact = self.latency.sample(ended, self.exact, &self.settings),
            },
            _ => self.lower(ended),
        }
        let limit = self.limit();
        self.latency.drain(ended, limit);
    }

    /// Adds the lease's cost to the credit, and 1 to the limit when the credit reaches it.
    fn raise(&mut self, ended: &Ended) {
        if self.settings.are_tested(self.exact, ended.held) {
            self.credit = self.credit.saturating_add(ended.cost);
            if self.credit >= self.exact / ONE {
                self.credit = 0;
                self.exact = self.settings.nearest(u128::from(self.exact) + u128::from(ONE));
            }
        }
    }

    /// Lowers the limit, unless the lease was taken before it was last lowered.
    fn lower(&mut self, ended: &Ended) {
        if self.lowered.is_none_or(|lowered| ended.lasted() < ended.since(lowered)) {
            let percent = 100 - u128::from(self.settings.backoff.min(100));
            let limit = u128::from(self.exact) * percent / (100 * u128::from(ONE));
            self.exact = self.settings.nearest(limit * u128::from(ONE));
            self.credit = 0;
            self.lowered = Some(ended.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// The parameters that a call has by default.
    fn by(rule: Rule) -> Settings {
        Settings { rule, ceiling: 1000, floor: 1, reserved: 0, backoff: 10, slow: 0 }
    }

    fn lease(taken: u64, now: u64, held: u64) -> Ended {
        Ended { taken, now, cost: 1, held }
    }

    /// `count` leases end well.
    fn well(limit: &mut Adapted, count: u64, held: u64) {
        (0..count).for_each(|_| limit.learn(&lease(0, 1000, held), Ending::Well));
    }

    #[test]
    fn a_limit_of_20_that_is_half_used_grows_by_1_after_20_leases() {
        let mut limit = Adapted::new(Adapt { settings: by(Rule::Failures), start: 20 });
        well(&mut limit, 19, 10);
        assert_eq!((limit.limit(), limit.credit), (20, 19));
        well(&mut limit, 1, 10);
        assert_eq!((limit.limit(), limit.credit), (21, 0));
        // A half of 21 is not 10.
        well(&mut limit, 1000, 10);
        assert_eq!(limit.limit(), 21);
    }

    #[test]
    fn the_ceiling_bounds_the_limit_and_resets_the_credit() {
        let settings = Settings { ceiling: 21, ..by(Rule::Failures) };
        let mut limit = Adapted::new(Adapt { settings, start: 21 });
        well(&mut limit, 21, 21);
        assert_eq!((limit.limit(), limit.credit), (21, 0));
    }

    #[test]
    fn a_failure_lowers_the_limit_by_a_tenth_and_a_burst_of_failures_only_once() {
        let mut limit = Adapted::new(Adapt { settings: by(Rule::Failures), start: 30 });
        limit.credit = 7;
        (0..21).for_each(|i| limit.learn(&lease(500, 1000 + i, 30), Ending::Failed));
        assert_eq!((limit.limit(), limit.credit, limit.lowered), (27, 0, Some(1000)));
        // A lease that was taken at that instant is of the burst.
        limit.learn(&lease(1000, 2000, 30), Ending::Failed);
        assert_eq!(limit.limit(), 27);
        limit.learn(&lease(1001, 2000, 30), Ending::Failed);
        assert_eq!((limit.limit(), limit.lowered), (24, Some(2000)));
    }

    #[test]
    fn a_failure_lowers_the_limit_at_most_to_the_floor() {
        let mut limit = Adapted::new(Adapt {
            settings: Settings { floor: 25, backoff: 90, ..by(Rule::Failures) },
            start: 30,
        });
        limit.learn(&lease(0, 1, 30), Ending::Failed);
        assert_eq!(limit.limit(), 25);
    }

    #[test]
    fn a_slow_lease_has_failed_and_an_unknown_ending_changes_nothing() {
        let mut limit =
            Adapted::new(Adapt { settings: Settings { slow: 1000, ..by(Rule::Failures) }, start: 30 });
        well(&mut limit, 29, 30);
        let before = limit;
        limit.learn(&lease(0, 100_000, 30), Ending::Unknown);
        assert_eq!(limit, before);
        limit.learn(&lease(0, 1001, 30), Ending::Well);
        assert_eq!(limit.limit(), 27);
        limit.learn(&lease(2000, 3000, 30), Ending::Well);
        assert_eq!(limit.limit(), 27, "a lease of just that length has not failed");
    }

    #[test]
    fn half_of_what_is_offered_is_without_what_is_reserved() {
        let settings = Settings { reserved: 10, floor: 11, ..by(Rule::Failures) };
        let mut limit = Adapted::new(Adapt { settings, start: 20 });
        well(&mut limit, 100, 4);
        assert_eq!(limit.limit(), 20);
        well(&mut limit, 20, 5);
        assert_eq!(limit.limit(), 21);
    }

    #[test]
    fn the_parameters_of_a_later_call_clamp_the_limit() {
        let limit = Adapted::new(Adapt { settings: by(Rule::Failures), start: 20 });
        assert_eq!(limit.adopt(Settings { ceiling: 15, ..by(Rule::Failures) }).limit(), 15);
        assert_eq!(limit.adopt(Settings { floor: 30, ..by(Rule::Failures) }).limit(), 30);
        let exact = Adapted { exact: 20 * ONE + 7, ..limit.adopt(by(Rule::Latency)) };
        assert_eq!(exact.adopt(by(Rule::Failures)), limit);
    }

    #[test]
    fn five_windows_of_equal_durations_raise_a_limit_by_four() {
        let mut limit = Adapted::new(Adapt { settings: by(Rule::Latency), start: 20 });
        let mut now = 0;
        let limits: Vec<u64> = (0..5)
            .map(|_| {
                // Eleven leases: the last one ends a second after the first.
                for _ in 0..11 {
                    now += 100_000;
                    limit.learn(&lease(now - 10_000, now, 20), Ending::Well);
                }
                limit.exact / (ONE / 10)
            })
            .collect();
        assert_eq!(limits, [208, 216, 224, 232, 240]);
        assert_eq!(limit.limit(), 24);
    }
}
