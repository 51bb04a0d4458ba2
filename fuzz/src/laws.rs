//! What every limiter must obey whatever happened to its state before: debts, other parameters, clocks set back.
//!
//! The laws of the core's own tests, less those that need a history of one kind only. `SMOOTH` means something else by
//! limit and remaining, and nobody is refused without `MAXWAIT`: only what is said of the clock holds for it.

use crate::key::{charged, copy, refunded};
use crate::limit::{
    Gauge, Kept, Kind, Limiter, Manner, Reading, Row, State, Verdict, look, read_clock, rule,
};
use crate::lines::MOST;
use crate::time::{Span, Time};

const MICRO: Span = Span::from_micros(1);

/// A limiter, the state of its key, and what the law must know of both.
pub struct Case<'c, L: Limiter> {
    pub row: &'static Row,
    pub limiter: &'c L,
    pub state: &'c L::State,
    /// At or after the state's last charge.
    pub now: Time,
    /// Whoever asks holds a lease already, and is always admitted.
    pub holds: bool,
    /// Entries must be apart: there may be room and yet nothing remaining.
    pub gap: bool,
}

impl<L: Limiter> Case<'_, L> {
    /// All that holds at an instant, for a request of this cost.
    pub fn obeys(&self, cost: u64) {
        let gauge = self.limiter.gauge(self.state, self.now);
        // Other parameters can make a debt last longer than time can be told; then its end is nowhere.
        if !L::BOOKS && gauge.reset < Span::from_micros(1 << 62) {
            self.fits(gauge);
            self.settles(gauge);
            self.retry_is_honest(cost, gauge);
            self.manners(cost, gauge);
        }
    }

    fn admits(&self, now: Time, cost: u64) -> bool {
        self.limiter.judge(self.state, now, cost).admits()
    }

    fn gauge(&self, now: Time) -> Gauge {
        self.limiter.gauge(self.state, now)
    }

    /// What remains fits, and one more does not.
    fn fits(&self, gauge: Gauge) {
        assert!(gauge.remaining <= gauge.limit);
        assert!(gauge.remaining == 0 || self.admits(self.now, gauge.remaining));
        assert!(self.holds || !self.admits(self.now, gauge.remaining + 1));
    }

    /// At the reset the state answers like a fresh one, and not before; and it does not matter who looks on the way.
    fn settles(&self, gauge: Gauge) {
        let then = self.now.plus(gauge.reset);
        let full = Gauge { limit: gauge.limit, remaining: gauge.limit, reset: Span::ZERO };
        assert_eq!(self.gauge(then), full);
        if gauge.reset > Span::ZERO {
            assert_eq!(self.gauge(then.minus(MICRO)).reset, MICRO);
        }
        if let Some(settles) = self.state.settles() {
            // A fraction of a microsecond may be none at another rate.
            assert!((then..=then.plus(MICRO)).contains(&settles.max(self.now)));
        }
        if L::State::KIND == Kind::Leases {
            return;
        }
        let halfway = self.now.plus(Span::from_micros(gauge.reset.as_micros() / 3));
        if halfway <= Time::LATEST && !self.gap && !self.limiter.counts_refused() {
            let stopped = charged(self.limiter, self.state, halfway, 0).expect("a charge of nothing");
            for later in [halfway, then.minus(MICRO).max(halfway), then, then.plus(gauge.reset)] {
                assert_eq!(self.limiter.gauge(&stopped, later), self.gauge(later));
            }
        }
    }

    /// The request fits after the retry, and not a microsecond earlier.
    pub fn retry_is_honest(&self, cost: u64, gauge: Gauge) {
        match self.limiter.judge(self.state, self.now, cost) {
            Verdict::Admit { .. } => assert!(self.holds || cost <= gauge.remaining),
            Verdict::Refuse { retry: None } => assert!(cost > gauge.limit),
            Verdict::Refuse { retry: Some(retry) } => {
                assert!(retry > Span::ZERO && cost <= gauge.limit);
                assert!(self.admits(self.now.plus(retry), cost));
                let early = self.limiter.judge(self.state, self.now.plus(retry.minus(MICRO)), cost);
                assert_eq!(early, Verdict::refuse(MICRO));
            }
        }
    }

    /// A part is what is there, a booking waits as long as a refusal would have to, and whoever is forced is charged.
    fn manners(&self, cost: u64, before: Gauge) {
        let ruled = |manner| rule(self.limiter, self.state, self.now, Span::ZERO, cost, manner);
        let strict = self.limiter.judge(self.state, self.now, cost);
        if !self.holds {
            let (part, granted) = ruled(Manner::Partial).expect("a part is no debt");
            assert_eq!(granted, cost.min(before.remaining));
            assert_eq!(part.admits(), granted > 0);
        }
        for longest in [Span::ZERO, Span::from_millis(7), Span::FOREVER] {
            match (strict, ruled(Manner::Reserve { longest })) {
                (_, Err(_)) => {}
                (Verdict::Refuse { retry: Some(retry) }, Ok((Verdict::Admit { wait }, _))) => {
                    assert!(wait == retry && wait <= longest);
                }
                (Verdict::Refuse { retry: Some(retry) }, Ok((booked, _))) => {
                    assert_eq!(booked, Verdict::refuse(retry.minus(longest)));
                }
                (strict, Ok((booked, _))) => assert_eq!(booked, strict),
            }
        }
        if self.row.allows.debt && !self.limiter.counts_refused() && ruled(Manner::Force).is_ok() {
            self.gives_back(cost, before);
        }
    }

    /// What was taken, also into debt, and is given back is there again; never above full.
    fn gives_back(&self, cost: u64, before: Gauge) {
        let (limiter, now) = (self.limiter, self.now);
        let forced = charged(limiter, self.state, now, cost).expect("what may be forced can be written down");
        let debt = limiter.gauge(&forced, now);
        assert!(self.gap || debt.remaining == before.remaining.saturating_sub(cost));
        assert!(debt.reset >= before.reset);
        let owed = limiter.reset_after(self.state, now, cost);
        assert!(owed == Span::ZERO || owed == debt.reset);
        if self.gap {
            return;
        }
        let back = refunded(limiter, &forced, now, cost).expect("what may be forced is given back");
        assert_eq!(limiter.gauge(&back, now).remaining, before.remaining);
        assert!(limiter.gauge(&back, now).reset <= debt.reset);
        // What is owed to GCRA is time, which at another rate may be any number of requests.
        if L::State::KIND == Kind::Arrival {
            return;
        }
        let full = refunded(limiter, &forced, now, 1 << 60).expect("what may be forced is given back");
        let new = Gauge { limit: before.limit, remaining: before.limit, reset: Span::ZERO };
        assert_eq!(limiter.gauge(&full, now), new);
    }
}

/// The instant at which a request of `asked` is decided, and the change that comes before it if the clock was set back.
///
/// A step back grants nothing, nobody waits longer than twice the reset, and a look answers as if.
pub fn reads_clock<L: Limiter>(
    limiter: &L,
    state: &L::State,
    asked: Time,
    cost: u64,
) -> (Time, Option<Vec<u8>>)
where
    L::State: Kept,
{
    let last = state.last();
    let then = limiter.gauge(state, last);
    match read_clock(last, asked, || then.reset) {
        Reading::At(now) => {
            let told = look(limiter, state, asked, cost).gauge;
            let gauge = limiter.gauge(state, now);
            assert_eq!((told.limit, told.remaining), (gauge.limit, gauge.remaining));
            let lag = if gauge.reset > Span::ZERO { now.since(asked) } else { Span::ZERO };
            assert_eq!(told.reset, gauge.reset.plus(lag));
            (now, None)
        }
        Reading::SetBack => {
            let mut change = Vec::new();
            L::State::encode_change(&limiter.rebase(state, asked), &mut change);
            let mut moved = copy(state);
            assert!(crate::key::apply(&mut moved, &change));
            assert_eq!(moved.last(), asked);
            let gauge = limiter.gauge(&moved, asked);
            assert!(gauge.remaining <= then.remaining, "a step back grants nothing");
            // A window or bucket that was about to end begins anew where the clock stands now.
            let anew = charged(limiter, &limiter.fresh(asked), asked, 1).expect("a first charge");
            let longest = then.reset.plus(then.reset).max(limiter.gauge(&anew, asked).reset);
            assert!(L::BOOKS || gauge.reset <= longest, "nor does it make anyone wait");
            // A window that began before the epoch, as the set-back clock counts, begins there once it is moved.
            if limiter.span() > asked.since(Time::default()) {
                return (asked, Some(change));
            }
            for cost in [0, 1, cost, then.limit.min(MOST), then.limit.saturating_add(1).min(MOST)] {
                assert_eq!(
                    look(limiter, state, asked, cost),
                    look(limiter, &moved, asked, cost),
                    "as if moved"
                );
            }
            (asked, Some(change))
        }
    }
}
