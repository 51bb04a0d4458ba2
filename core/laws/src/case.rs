//! What every limiter must obey whatever happened to its state before: debts, other parameters, clocks set back.
//!
//! `SMOOTH` gives limit and remaining another meaning, and without `MAXWAIT` refuses no request: only the laws of clock
//! and reset hold for it.

use ratelimit_core::decide::{peek, reading, rule};
use ratelimit_core::{
    Gauge, Kind, LimitState, Limiter, MAX_COUNT, MAX_DEBT, Manner, Reading, Span, State, Time, Verdict,
};

use crate::states::{charged, rebased, refunded};

const MICRO: Span = Span::from_micros(1);
/// Under other parameters a debt can last longer than an instant can say.
const ENDLESS: Span = Span::from_micros(1 << 62);

/// A limiter, the state of its key, and what the laws must know of both.
pub struct Case<'c, L: Limiter> {
    pub limiter: &'c L,
    pub state: &'c L::State,
    /// At or after the state's last charge.
    pub now: Time,
    /// The caller holds a lease already, and is always admitted.
    pub holds: bool,
    /// Entries must be apart: there may be room and yet nothing remaining.
    pub gap: bool,
    /// The state may have been charged under other parameters.
    pub changed: bool,
}

impl<'c, L: Limiter> Case<'c, L> {
    /// A state that was always charged under these parameters.
    pub fn of(limiter: &'c L, state: &'c L::State, now: Time) -> Self {
        Case { limiter, state, now, holds: false, gap: false, changed: false }
    }

    /// All that holds at an instant, for a request of this cost.
    pub fn obeys(&self, cost: u64) {
        let gauge = self.limiter.gauge(self.state, self.now);
        let capabilities = self.limiter.capabilities();
        if capabilities.books || gauge.reset >= ENDLESS {
            return;
        }
        self.resets(gauge);
        // The last of a penalty's strikes does not fit, and its retry is the ban.
        if capabilities.bans {
            assert!(gauge.remaining <= gauge.limit);
            assert_eq!(self.admits(self.now, 0), gauge.remaining > 0);
            assert_eq!(self.admits(self.now, cost), cost < gauge.remaining);
            return;
        }
        self.fits(gauge);
        self.retry_is_honest(cost, gauge);
        self.manners(cost, gauge);
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

    /// At the reset the state answers like a fresh one, and not before. A charge of nothing on the way changes nothing.
    fn resets(&self, gauge: Gauge) {
        if ends_sooner(self.limiter, self.state) {
            return;
        }
        let then = self.now.plus(gauge.reset);
        let full = Gauge { limit: gauge.limit, remaining: gauge.limit, reset: Span::ZERO };
        assert_eq!(self.gauge(then), full);
        assert_eq!(self.limiter.gauge(&self.limiter.fresh(then), then), full);
        if gauge.reset > Span::ZERO {
            assert_eq!(self.gauge(then.minus(MICRO)).reset, MICRO);
        }
        if L::State::KIND == Kind::Leases {
            return;
        }
        let halfway = self.now.plus(Span::from_micros(gauge.reset.as_micros() / 3));
        if halfway <= Time::LATEST && !self.gap && !self.limiter.capabilities().counts_refused {
            let stopped = charged(self.limiter, self.state, halfway, 0);
            for later in [halfway, then.minus(MICRO).max(halfway), then, then.plus(gauge.reset)] {
                assert_eq!(self.limiter.gauge(&stopped, later), self.gauge(later));
            }
        }
    }

    /// The request fits after the retry, and not a microsecond earlier.
    fn retry_is_honest(&self, cost: u64, gauge: Gauge) {
        match self.limiter.judge(self.state, self.now, cost) {
            Verdict::Admit { .. } => assert!(self.holds || cost <= gauge.remaining),
            Verdict::Refuse { retry: None } => assert!(cost > gauge.limit),
            Verdict::Refuse { retry: Some(retry) } => {
                assert!(retry > Span::ZERO && cost <= gauge.limit);
                assert!(self.admits(self.now.plus(retry), cost));
                let early = self.limiter.judge(self.state, self.now.plus(retry.minus(MICRO)), cost);
                assert!(early == Verdict::refuse(MICRO) || ends_sooner(self.limiter, self.state));
            }
        }
    }

    /// `PARTIAL` grants what remains, a booking waits as long as the retry of a refusal, and `FORCE` charges.
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
        if self.limiter.capabilities().force && ruled(Manner::Force).is_ok() {
            self.gives_back(cost, before);
        }
    }

    /// A refund of what was charged, also into debt, makes up for the charge; it never goes above full.
    fn gives_back(&self, cost: u64, before: Gauge) {
        let (limiter, now) = (self.limiter, self.now);
        let forced = charged(limiter, self.state, now, cost);
        knows_its_end(limiter, &forced, now);
        let debt = limiter.gauge(&forced, now);
        assert!(self.gap || debt.remaining == before.remaining.saturating_sub(cost));
        assert!(debt.reset >= before.reset);
        let owed = limiter.reset_after(self.state, now, cost);
        assert!(owed == Span::ZERO || owed == debt.reset);
        let back = refunded(limiter, &forced, now, cost).expect("what can be forced can be refunded");
        knows_its_end(limiter, &back, now);
        if self.gap {
            return;
        }
        assert_eq!(limiter.gauge(&back, now).remaining, before.remaining);
        assert!(limiter.gauge(&back, now).reset <= debt.reset);
        // What is owed to GCRA is time, which at another rate may be any number of requests.
        if L::State::KIND == Kind::Arrival && self.changed {
            return;
        }
        let full = refunded(limiter, &forced, now, MAX_DEBT).expect("what can be forced can be refunded");
        let new = Gauge { limit: before.limit, remaining: before.limit, reset: Span::ZERO };
        assert_eq!(limiter.gauge(&full, now), new);
        knows_its_end(limiter, &full, now);
    }
}

/// A count that a charge would move to the window of another zone ends sooner without that charge.
fn ends_sooner<L: Limiter>(limiter: &L, state: &L::State) -> bool {
    L::State::KIND == Kind::Page && limiter.moves_charges(state, limiter.length())
}

/// As of a charge at `now`, a state knows when it is fully reset.
pub fn knows_its_end<L: Limiter>(limiter: &L, state: &L::State, now: Time) {
    let (until, reset) = (state.until(limiter.length()), limiter.gauge(state, now).reset);
    if state.memory() > Span::ZERO {
        let leases = if reset > Span::ZERO { now.plus(reset) } else { Time::EPOCH };
        return assert_eq!(until, state.last().plus(state.memory()).max(leases));
    }
    assert!(end_is(until, now, reset), "{until:?} is not {reset:?} after {now:?}");
}

/// A state stores no instant after the horizon; only bytes that no node wrote make one in so much debt.
fn end_is(until: Time, now: Time, reset: Span) -> bool {
    let then = now.plus(reset);
    if reset == Span::ZERO { until <= now } else { until == then || until == Time::HORIZON && until < then }
}

/// The instant at which a request of `asked` is decided, and the state as it is moved first if the clock was set back.
pub fn reads_clock<L: Limiter>(
    limiter: &L,
    state: &L::State,
    asked: Time,
    cost: u64,
) -> (Time, Option<L::State>) {
    match reading(limiter, state, asked) {
        Reading::At(now) => {
            lag_is_told(limiter, state, asked, now, cost);
            (now, None)
        }
        Reading::SetBack => (asked, Some(set_back(limiter, state, asked, cost))),
    }
}

/// For a caller whose clock lags no time passes, and it waits for its lag too.
fn lag_is_told<L: Limiter>(limiter: &L, state: &L::State, asked: Time, now: Time, cost: u64) {
    let look = |asked| peek(limiter, state, asked, cost);
    let (told, gauge) = (look(asked), limiter.gauge(state, now));
    let lag = if gauge.reset > Span::ZERO { now.since(asked) } else { Span::ZERO };
    assert_eq!(told.gauge, Gauge { reset: gauge.reset.plus(lag), ..gauge });
    let capabilities = limiter.capabilities();
    if let Verdict::Refuse { retry: Some(retry) } = told.verdict
        && !capabilities.books
        && !capabilities.bans
        && gauge.reset < ENDLESS
    {
        assert!(look(asked.plus(retry)).verdict.admits());
        let early = look(asked.plus(retry.minus(MICRO)));
        assert!(!early.verdict.admits() || ends_sooner(limiter, state));
    }
}

/// The state after a step back, which grants nothing. No caller waits longer than twice the reset, and a peek answers as if
/// the state were moved.
fn set_back<L: Limiter>(limiter: &L, state: &L::State, asked: Time, cost: u64) -> L::State {
    let last = state.last();
    let then = limiter.gauge(state, last);
    let moved = rebased(limiter, state, asked);
    assert_eq!(moved.last(), asked);
    let gauge = limiter.gauge(&moved, asked);
    assert!(gauge.remaining <= then.remaining, "a step back grants nothing");
    // A window or bucket that was about to end begins anew where the clock stands now.
    let anew = charged(limiter, &limiter.fresh(asked), asked, 1);
    let longest = then.reset.plus(then.reset).max(limiter.gauge(&anew, asked).reset);
    // A moved ban ends at the epoch at the earliest, so after a step of decades its level may be forgiven later.
    let capabilities = limiter.capabilities();
    let is_late = capabilities.bans && last.since(asked) > Time::EARLIEST.since(Time::EPOCH);
    assert!(capabilities.books || is_late || gauge.reset <= longest, "nor does it make anyone wait");
    // A moved window begins at the epoch at the earliest.
    if limiter.length() > asked.since(Time::EPOCH) {
        return moved;
    }
    if end_is(state.until(limiter.length()), last, then.reset) {
        knows_its_end(limiter, &moved, asked);
    }
    for cost in [0, 1, cost, then.limit, then.limit.saturating_add(1)].map(|cost| cost.min(MAX_COUNT)) {
        assert_eq!(peek(limiter, state, asked, cost), peek(limiter, &moved, asked, cost), "as if moved");
    }
    moved
}
