//! A key's life: a limiter, and requests of any manner, cost and instant, some to another limiter or under other
//! parameters. The laws hold at each step. As long as the history is one that the limiter's model knows, it decides as
//! the model does.

use ratelimit_core::adapt::Ending;
use ratelimit_core::lease::{Action, act};
use ratelimit_core::state::{Leases, Log};
use ratelimit_core::{
    AnyLimiter, AnyState, Ask, Error, Gauge, Kind, Limiter, MAX_COUNT, Manner, Place, Span, State, Taken,
    Time, Verdict, with_kept, with_limiter,
};
use ratelimit_laws::{Case, knows_its_end, reads_clock};

use crate::bytes::Bytes;
use crate::key::{Key, any, encoded_any};
use crate::lines::{BOUNDS, FORM_COUNT, line, parse};
use crate::oracle::{Model, model};

/// The start of an hour, in 2023.
pub(crate) const T0: Time = Time::from_micros(1_700_002_800_000_000);

/// The most steps of a history; the models are slow.
const STEPS: usize = 60;

/// The input: a byte for the form of the limiter, and for whether the history is one that the model knows; the
/// limiter's parameters; steps.
pub fn check(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let first = bytes.byte();
    let (form, tame) = (first % FORM_COUNT, (first / FORM_COUNT).is_multiple_of(2));
    let mut words = line(form, &mut bytes);
    let Some(limiter) = parse(&words) else { return };
    let model = model(&limiter, &words);
    let mut life = Life { key: Key::missing(T0), model, heard: T0, asked: T0, retry: Span::ZERO, tame };
    for _ in 0..STEPS {
        if bytes.is_empty() {
            break;
        }
        let step = bytes.byte();
        if !tame && step >= 0xf0 {
            words = line(if step == 0xff { bytes.byte() } else { form }, &mut bytes);
            life.model = None;
        }
        // In a tame history no lease is renewed.
        let words =
            if tame { words.replace("holder", &format!("holder{}x", bytes.0.len())) } else { words.clone() };
        let Some(limiter) = parse(&words) else { continue };
        let gap = matches!(&limiter, AnyLimiter::SlidingLog(log) if log.gap > Span::ZERO);
        let lease = if let AnyLimiter::Concurrent(leases) = &limiter {
            Some((leases.id, leases.ttl.span()))
        } else {
            None
        };
        with_limiter!(&limiter, limiter => life.step(limiter, lease, gap, step, &mut bytes));
    }
}

struct Life {
    key: Key,
    model: Option<Box<dyn Model>>,
    /// The instant of the last request that the model was asked. A refused request leaves no trace in the state, which
    /// can then be asked about an earlier instant; the model cannot.
    heard: Time,
    /// What the caller's clock shows.
    asked: Time,
    /// Of the last refusal.
    retry: Span,
    tame: bool,
}

impl Life {
    /// `lease` is the id and the time to live of the lease that is asked for.
    fn step<L: Limiter>(
        &mut self,
        limiter: &L,
        lease: Option<(&[u8], Span)>,
        gap: bool,
        step: u8,
        bytes: &mut Bytes<'_>,
    ) {
        let Some(place) = self.key.find::<L::State>(limiter.name().length) else {
            // WRONGTYPE
            return;
        };
        let (id, pace) = lease.unwrap_or((b"", limiter.length()));
        self.asked = self.moment(pace, step, bytes);
        let cost = bytes.number(1, MAX_COUNT);
        let fresh = any(limiter.fresh(self.asked));
        let stored = self.key.any().unwrap_or(&fresh);
        let (now, moved) = reads_clock(limiter, state_of::<L>(stored), self.asked, cost);
        if moved.is_some() {
            self.model = None;
        }
        let moved = moved.map(any);
        let kept = moved.as_ref().unwrap_or(stored);
        let holds = kept.get::<Leases>().is_some_and(|leases| leases.held(id, now).is_some());
        let state = state_of::<L>(kept);
        Case { limiter, state, now, holds, gap, changed: !self.tame }.obeys(cost);
        let before = limiter.gauge(state, now);
        let capabilities = limiter.capabilities();
        let manner = match step / 8 % 8 {
            _ if self.tame => Manner::Strict,
            5 => Manner::Partial,
            6 => Manner::Force,
            7 => Manner::Reserve { longest: Span::from_millis(bytes.number(0, 10_000)) },
            4 if capabilities.refund => return self.refund(limiter, place, now, cost, before),
            4 if L::State::KIND == Kind::Leases => return self.act(limiter, id, pace, now, holds, step),
            _ => Manner::Strict,
        };
        if capabilities.allows(manner) {
            let ask = Ask::new(place, self.asked, cost, manner);
            self.take(limiter, ask, now, before, holds);
        }
    }

    /// When the next request comes.
    fn moment(&self, pace: Span, step: u8, bytes: &mut Bytes<'_>) -> Time {
        let pace = pace.as_micros();
        let moment = match step % 8 {
            0 | 1 => self.asked,
            2 => self.asked.plus(Span::from_micros(bytes.number(0, 1000))),
            3 => self.asked.plus(Span::from_micros(pace)),
            4 => self.asked.plus(self.retry),
            5 if self.tame => self.asked.plus(Span::from_micros(pace / 4)),
            5 => self.asked.minus(Span::from_micros(bytes.number(0, 3 * pace))),
            6 if !self.tame => {
                Time::from_micros(bytes.number(Time::EARLIEST.as_micros(), Time::LATEST.as_micros()))
            }
            _ => self.asked.plus(Span::from_micros(bytes.number(0, 3 * pace))),
        };
        moment.clamp(Time::EARLIEST, Time::LATEST)
    }

    /// A limiter's own command.
    fn take<L: Limiter>(&mut self, limiter: &L, mut ask: Ask, now: Time, before: Gauge, holds: bool) {
        let (cost, manner, capabilities) = (ask.cost, ask.manner, limiter.capabilities());
        let stored = self.stored();
        let foreseen = ask.peek(&self.key, limiter);
        let taken = match ask.take(&mut self.key, limiter) {
            Ok(taken) => taken,
            Err(error) => {
                assert_eq!(error, Error::TooLong);
                assert_eq!(self.stored(), stored, "an error changes nothing");
                return;
            }
        };
        assert_eq!(ask.now(), now);
        let Taken { verdict, granted, gauge: after, .. } = taken;
        let recorded = capabilities.counts_refused && verdict != Verdict::NEVER
            || capabilities.bans && before.remaining > 0;
        if manner == Manner::Strict && (verdict.admits() || !recorded) {
            assert_eq!(foreseen.verdict, verdict, "as foreseen");
        }
        if manner != Manner::Strict || holds || now < self.heard {
            self.model = None;
        }
        self.heard = now;
        if let Some(model) = &mut self.model {
            assert_eq!(model.ask(now.as_micros(), cost), verdict.admits(), "as the model");
        }
        if let Verdict::Refuse { retry } = verdict {
            self.retry = retry.unwrap_or_default();
        }
        if !verdict.admits() && !recorded {
            assert_eq!(after, before, "a refusal charges nothing");
            return;
        }
        let state = state_of::<L>(self.key.any().expect("what was charged is there"));
        assert_eq!(state.last(), now);
        assert_eq!(limiter.gauge(state, now), after);
        knows_its_end(limiter, state, now);
        if L::State::KIND != Kind::Leases {
            // A ban may be shorter than the window whose strikes it ends.
            assert!(capabilities.books || capabilities.bans || after.reset >= before.reset);
        }
        if verdict.admits() && manner == Manner::Strict && !holds && !capabilities.books {
            assert!(after.remaining == before.remaining - granted || after.remaining == 0);
        }
        self.bounded();
    }

    /// `RL.REFUND`.
    fn refund<L: Limiter>(&mut self, limiter: &L, place: Place, now: Time, cost: u64, before: Gauge) {
        self.model = None;
        let mut ask = Ask::new(place, self.asked, cost, Manner::Strict);
        let refunded = ask.refund(&mut self.key, limiter).expect("no defect");
        assert_eq!(refunded, self.key.any().is_some());
        let look = Ask::new(ask.place, self.asked, 0, Manner::Strict).peek(&self.key, limiter);
        assert_eq!(ask.refunded(&self.key, limiter), look);
        let Some(kept) = self.key.any() else { return };
        assert_eq!(ask.now(), now);
        let state = state_of::<L>(kept);
        let after = limiter.gauge(state, now);
        assert!(after.remaining >= before.remaining && after.reset <= before.reset);
        knows_its_end(limiter, state, now);
    }

    /// `RL.RENEW` and `RL.RELEASE`.
    fn act<L: Limiter>(&mut self, limiter: &L, id: &[u8], ttl: Span, now: Time, held: bool, step: u8) {
        self.model = None;
        let action = if step < 0x80 { Action::Release(Ending::Well) } else { Action::Renew(ttl) };
        let acted = act(&mut self.key, action, id, self.asked).expect("no defect");
        assert_eq!(acted.held, held);
        let Some(kept) = self.key.any() else { return };
        assert_eq!(acted.now, now);
        let leases = kept.get::<Leases>().expect("its kind was found");
        let renewed = leases.held(id, now).map(|lease| lease.left);
        assert_eq!(renewed, (held && step >= 0x80).then_some(ttl));
        let state = state_of::<L>(kept);
        assert_eq!(limiter.gauge(state, now).reset, acted.reset);
        knows_its_end(limiter, state, now);
    }

    fn stored(&self) -> Option<Vec<u8>> {
        self.key.any().map(encoded_any)
    }

    /// A key holds no more than the operator's bounds, and takes no more memory than that needs.
    fn bounded(&self) {
        let Some(kept) = self.key.any() else { return };
        let bytes = with_kept!(kept, state => State::heap_bytes(state.as_ref()));
        assert!(bytes < 256 * 1024, "{bytes} bytes");
        if let Some(log) = kept.get::<Log>() {
            assert!(log.entries(log.start()) <= BOUNDS.log_entries);
        }
    }
}

fn state_of<L: Limiter>(kept: &AnyState) -> &L::State {
    kept.get().expect("its kind was found")
}
