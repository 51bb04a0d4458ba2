//! Guava's `RateLimiter`: a request does not wait for its own cost; the next request waits for it.
//!
//! Every reply contains a wait. A request is refused only if its wait would exceed the caller's `MAXWAIT`.
//!
//! Idle time is stored as permits. A bursty limiter grants stored permits without a wait. A limiter that warms up
//! charges more time for each permit the more are stored, because the service behind it is then cold.
//!
//! ```text
//! cold     +            /        The line is the time that a permit costs when a number of permits is stored.
//! interval |           /.        Idle time moves to the right, and a request moves to the left.
//!          |          / .        A request costs the area below the part of the line that it moves along.
//! stable   +---------/  .
//! interval |         .  .
//!          +---------+--+--> stored permits
//!          0 threshold  max
//!
//! RL.SMOOTH key 2 1s WARMUP 4s     waits 0, 1375, 1125, 875, 625, 500, 500, ... ms
//! ```
//!
//! When it warms up, `threshold = warmup / stable / 2` and `max = threshold + 2 * warmup / (stable + cold)`. With
//! these, the way from cold to stable takes `warmup`. When it is bursty, `max = burst / interval`.
//!
//! Source: <https://github.com/google/guava>, `SmoothRateLimiter.java`.
//!
//! When not to use it: where a limit must hold at every instant. A request of a thousand permits goes through at once.
//!
//! The area is computed in `f64`. Durations are below 2^53 microseconds, and each operation has an error of at most
//! 2^-53 of its result. So over an hour, the error of a million requests is below a microsecond.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts and durations are below 2^53, which an f64 holds exactly; casts to integers saturate"
)]

use alloc::vec::Vec;
use core::num::NonZeroU64;

use super::{Capabilities, Limiter};
use crate::answer::{Gauge, Verdict};
use crate::kind::Kind;
use crate::state::codec::{Reader, put_words};
use crate::state::{Figure, LimitState, Small, State};
use crate::time::{Period, Span, Time};

/// The limiter: stored permits are free, or, if `WARM`, cost time. All `f64` times are in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Smooth<const WARM: bool> {
    /// The time that a permit costs when none is stored.
    interval: f64,
    /// How much the time for a permit grows with each permit that is stored above the threshold.
    slope: f64,
    /// The number of stored permits up to which each costs `interval`.
    threshold: f64,
    /// The most permits that are stored.
    max: f64,
    /// The idle time that stores one permit.
    cool_down: f64,
    /// The longest wait that is admitted.
    longest: Span,
    period: Period,
}

pub type Bursty = Smooth<false>;
pub type Warming = Smooth<true>;

/// The stored permits, and the wait of the next request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Store<const WARM: bool> {
    /// The stored permits as a share of the limiter's `max`, from 0 to 1. So they scale when `max` changes.
    share: f64,
    /// The wait of a request at `last`, in microseconds.
    owed: f64,
    last: Time,
    /// When the store is full.
    until: Time,
}

pub type BurstStore = Store<false>;
pub type WarmStore = Store<true>;

impl Bursty {
    /// A limiter that stores up to `burst` of idle time, and refuses a wait longer than `longest`.
    pub fn new(permits: NonZeroU64, period: Period, burst: Span, longest: Span) -> Bursty {
        let interval = micros(period.span()) / permits.get() as f64;
        let max = micros(burst) / interval;
        Smooth { interval, slope: 0.0, threshold: 0.0, max, cool_down: interval, longest, period }
    }
}

impl Warming {
    /// A limiter that speeds up from `factor` times the stable interval to the stable interval over `warmup`. It
    /// refuses a wait longer than `longest`. `None` if `factor` is not between 1 and 1000.
    pub fn new(
        permits: NonZeroU64,
        period: Period,
        warmup: Period,
        factor: f64,
        longest: Span,
    ) -> Option<Warming> {
        if !(1.0..=1000.0).contains(&factor) {
            return None;
        }
        let interval = micros(period.span()) / permits.get() as f64;
        let (warmup, cold) = (micros(warmup.span()), interval * factor);
        let threshold = 0.5 * warmup / interval;
        let max = threshold + 2.0 * warmup / (interval + cold);
        let slope = (cold - interval) / (max - threshold);
        Some(Smooth { interval, slope, threshold, max, cool_down: warmup / max, longest, period })
    }
}

fn micros(span: Span) -> f64 {
    span.as_micros() as f64
}

/// Rounds up to microseconds, but first subtracts a thousandth of one, which is more than the rounding error of a sum.
fn span(micros: f64) -> Span {
    let micros = micros - 1e-3;
    // The cast rounds towards zero and saturates.
    let whole = micros as u64;
    Span::from_micros(if micros > whole as f64 { whole.saturating_add(1) } else { whole })
}

impl<const WARM: bool> Smooth<WARM> {
    /// The stored permits at `now`, and the wait of a request, in microseconds.
    fn settled(&self, store: &Store<WARM>, now: Time) -> (f64, f64) {
        let permits = store.share * self.max;
        let since = micros(now.since(store.last)) - store.owed;
        if since < 0.0 {
            return (permits, -since);
        }
        ((permits + since / self.cool_down).min(self.max), 0.0)
    }

    /// The time until a store with `permits` and a wait of `owed` is full.
    fn time_to_fill(&self, permits: f64, owed: f64) -> Span {
        span(owed + (self.max - permits) * self.cool_down)
    }

    /// The time that the first `taken` of `permits` stored ones cost: the area below the line.
    fn price(&self, permits: f64, taken: f64) -> f64 {
        if !WARM {
            return 0.0;
        }
        let above = (permits - self.threshold).max(0.0);
        // Permits above the threshold cost the interval in the middle of their part of the slope.
        let sloped = above.min(taken);
        let middle = above - sloped / 2.0;
        sloped * (self.interval + middle * self.slope) + (taken - sloped) * self.interval
    }

    /// The store after a request of this cost.
    fn paid(&self, store: &Store<WARM>, now: Time, cost: u64) -> Store<WARM> {
        let (permits, wait) = self.settled(store, now);
        let taken = permits.min(cost as f64);
        let owed = wait + self.price(permits, taken) + (cost as f64 - taken) * self.interval;
        let share = if self.max > 0.0 { (permits - taken) / self.max } else { 0.0 };
        // From what is stored, as the gauge computes it: the share is rounded, which shows in a store of decades.
        let reset = self.time_to_fill(share * self.max, owed);
        let until = if reset == Span::ZERO { Time::EPOCH } else { now.plus(reset).min(Time::HORIZON) };
        Store { share, owed, last: now, until }
    }
}

impl<const WARM: bool> Limiter for Smooth<WARM>
where
    Store<WARM>: LimitState + for<'a> State<Change<'a> = Store<WARM>>,
{
    type State = Store<WARM>;

    fn capabilities(&self) -> Capabilities {
        Capabilities { books: true, ..Capabilities::NONE }
    }

    fn length(&self) -> Span {
        self.period.span()
    }

    /// A full store, as after a long idle time. A limiter that warms up is then cold.
    fn fresh(&self, now: Time) -> Store<WARM> {
        Store { share: 1.0, owed: 0.0, last: now, until: Time::EPOCH }
    }

    fn longest_wait(&self) -> Span {
        self.longest
    }

    fn judge(&self, store: &Store<WARM>, now: Time, _cost: u64) -> Verdict {
        let wait = span(self.settled(store, now).1);
        if wait <= self.longest { Verdict::Admit { wait } } else { Verdict::refuse(wait.minus(self.longest)) }
    }

    fn charge(&self, store: &Store<WARM>, now: Time, cost: u64) -> Store<WARM> {
        self.paid(store, now, cost)
    }

    fn reset_after(&self, store: &Store<WARM>, now: Time, cost: u64) -> Span {
        span(self.paid(store, now, cost).owed)
    }

    /// The limit is the most permits that are stored, and the remaining are those stored. The reset fills the store.
    fn gauge(&self, store: &Store<WARM>, now: Time) -> Gauge {
        let (permits, wait) = self.settled(store, now);
        Gauge {
            limit: (self.max + 1e-9) as u64,
            remaining: (permits + 1e-9) as u64,
            reset: self.time_to_fill(permits, wait),
        }
    }

    fn rebase<'a>(&'a self, store: &'a Store<WARM>, now: Time) -> Store<WARM> {
        Store { last: now, until: store.until.minus(store.last.since(now)), ..*store }
    }
}

/// Both kinds of store have the same encoding.
macro_rules! small {
    ($warm:literal, $kind:expr) => {
        impl LimitState for Store<$warm> {
            fn until(&self, _: Span) -> Time {
                self.until
            }
        }

        impl Small for Store<$warm> {
            const KIND: Kind = $kind;

            fn last(&self) -> Time {
                self.last
            }

            fn encode(&self, out: &mut Vec<u8>) {
                let [share, owed] = [self.share, self.owed].map(f64::to_bits);
                put_words(out, [share, owed, self.last.as_micros(), self.until.as_micros()]);
            }

            fn decode(reader: &mut Reader<'_>) -> Option<Self> {
                let [share, owed] = [real(reader)?, real(reader)?];
                let (last, until) = (reader.instant()?, reader.horizon()?);
                let sound = share <= 1.0 && owed <= 2.0 * micros(Span::CENTURY);
                sound.then_some(Store { share, owed, last, until })
            }

            fn zero() -> Self {
                Store { share: 0.0, owed: 0.0, last: Time::EPOCH, until: Time::EPOCH }
            }

            fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
                figure("stored_share", Figure::Real(self.share));
                figure("owed_us", Figure::Real(self.owed));
            }
        }
    };
}
small!(false, Kind::BurstStore);
small!(true, Kind::WarmStore);

/// Reads a finite number that is not negative.
fn real(reader: &mut Reader<'_>) -> Option<f64> {
    Some(f64::from_bits(reader.word()?)).filter(|number| (0.0..1e30).contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{T0, charged, millis, n};

    fn warming(permits: u64, warmup: u64, factor: f64) -> Warming {
        Warming::new(n(permits), millis(1000), millis(warmup), factor, Span::FOREVER).unwrap()
    }

    fn bursty(permits: u64, burst: u64) -> Bursty {
        Bursty::new(n(permits), millis(1000), Span::from_millis(burst), Span::FOREVER)
    }

    /// The waits, in milliseconds, of callers that each sleep for the wait that they get.
    fn waits<const WARM: bool>(
        smooth: &Smooth<WARM>,
        store: &mut Option<Store<WARM>>,
        now: &mut Time,
        costs: &[u64],
    ) -> Vec<u64>
    where
        Store<WARM>: LimitState + for<'a> State<Change<'a> = Store<WARM>>,
    {
        costs
            .iter()
            .map(|cost| {
                let state = store.unwrap_or_else(|| smooth.fresh(*now));
                let Verdict::Admit { wait } = smooth.judge(&state, *now, *cost) else { panic!("refused") };
                *store = Some(charged(smooth, Some(state), *now, *cost));
                *now = now.plus(wait);
                wait.as_millis_up()
            })
            .collect()
    }

    #[test]
    fn a_cold_limiter_warms_up_as_guavas_does() {
        let smooth = warming(2, 4000, 3.0);
        let (mut store, mut now) = (None, T0);
        let warm = [0, 1375, 1125, 875, 625, 500, 500, 500];
        assert_eq!(waits(&smooth, &mut store, &mut now, &[1; 8]), warm);
        // Eight permits are stored in four seconds, so half a second stores one.
        now = now.plus(Span::from_millis(500));
        assert_eq!(waits(&smooth, &mut store, &mut now, &[1; 4]), [0, 500, 500, 500]);
        now = now.plus(Span::from_millis(4500));
        assert_eq!(waits(&smooth, &mut store, &mut now, &[1; 8]), warm, "cold again");
    }

    #[test]
    fn an_empty_bursty_limiter_waits_as_guavas_does() {
        let smooth = bursty(5, 1000);
        let (mut store, mut now) = (None, T0);
        // A new limiter of Guava's is empty, but this one is full. Drain it.
        waits(&smooth, &mut store, &mut now, &[5]);
        assert_eq!(waits(&smooth, &mut store, &mut now, &[1, 1, 1]), [0, 200, 200]);
        now = now.plus(Span::from_millis(1200));
        // The first 200 ms pay off the last wait, and one second stores five permits.
        assert_eq!(waits(&smooth, &mut store, &mut now, &[1, 1, 1, 1, 1, 1, 1]), [0, 0, 0, 0, 0, 0, 200]);
    }

    #[test]
    fn a_store_of_decades_knows_when_it_is_full() {
        let smooth = bursty(7, 30 * 365 * 86_400_000);
        let mut store = None;
        for cost in 1..200 {
            let charged = charged(&smooth, store, T0, 1_000_003 * cost);
            assert_eq!(charged.until, T0.plus(smooth.gauge(&charged, T0).reset), "{cost}");
            store = Some(charged);
        }
    }

    #[test]
    fn any_split_of_the_permits_into_requests_costs_the_same_time() {
        let smooth = warming(3, 5000, 2.5);
        let whole = charged(&smooth, None, T0, 24);
        for parts in [[6u64; 4].as_slice(), &[1; 24], &[23, 1], &[2, 3, 5, 7, 7]] {
            let mut store = smooth.fresh(T0);
            for part in parts {
                store = charged(&smooth, Some(store), T0, *part);
            }
            assert!((store.owed - whole.owed).abs() < 1e-3, "{parts:?}: {} of {}", store.owed, whole.owed);
        }
    }

    #[test]
    fn stored_permits_scale_when_the_rate_changes_and_zero_stays_zero() {
        let slow = warming(2, 4000, 3.0);
        let store = charged(&slow, None, T0, 4);
        assert_eq!((slow.gauge(&store, T0).limit, slow.gauge(&store, T0).remaining), (8, 4));
        let fast = warming(4, 4000, 3.0);
        assert_eq!((fast.gauge(&store, T0).limit, fast.gauge(&store, T0).remaining), (16, 8));
        let none = bursty(1, 0);
        let empty = charged(&none, None, T0, 1);
        assert_eq!(bursty(1, 9000).gauge(&empty, T0).remaining, 0);
    }

    #[test]
    fn a_wait_that_is_too_long_is_refused_and_the_retry_is_the_difference() {
        let patient = Bursty { longest: Span::from_millis(1500), ..bursty(1, 1000) };
        let store = charged(&patient, None, T0, 4);
        assert_eq!(patient.judge(&store, T0, 1), Verdict::refuse(Span::from_millis(1500)));
        let later = T0.plus(Span::from_millis(1500));
        assert_eq!(patient.judge(&store, later, 1), Verdict::Admit { wait: Span::from_millis(1500) });
    }
}
