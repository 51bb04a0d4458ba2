//! A key's life: a limiter, and requests of any manner, cost and instant, some by another limiter or of parameters
//! that changed. The laws hold at each step; and as long as the history is one that its model knows, it decides so too.

use crate::bytes::Bytes;
use crate::key::Key;
use crate::laws::{Case, reads_clock};
use crate::limit::concurrent::{release, renew};
use crate::limit::{
    AnyLimiter, Kept, Kind, Leases, Limiter, Manner, Row, State, Verdict, rule, with_limiter,
};
use crate::lines::{BOUNDS, FORMS, MOST, line, parse};
use crate::oracle::{Model, model};
use crate::time::{Span, Time};

/// The start of an hour, in 2023.
const T0: Time = Time::from_micros(1_700_002_800_000_000);

/// The most steps of a history; what is slow is the model.
const STEPS: usize = 60;

/// A first byte that chooses the form of the limiter, and whether the history stays on the model's ground; its
/// parameters; steps.
pub fn check(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let first = bytes.byte();
    let (form, tame) = (first % FORMS, (first / FORMS).is_multiple_of(2));
    let mut words = line(form, &mut bytes);
    let Some((_, limiter)) = parse(&words) else { return };
    let key = with_limiter!(&limiter, limiter => Key::of(limiter.fresh(T0)));
    let mut life = Life { key, model: model(&limiter), heard: T0, asked: T0, retry: Span::ZERO, tame };
    for _ in 0..STEPS {
        if bytes.is_empty() {
            break;
        }
        let step = bytes.byte();
        if !tame && step >= 0xf0 {
            words = line(if step == 0xff { bytes.byte() } else { form }, &mut bytes);
            life.model = None;
        }
        // Each lease is another one's, in a tame history.
        let words =
            if tame { words.replace("holder", &format!("holder{}x", bytes.0.len())) } else { words.clone() };
        let Some((row, limiter)) = parse(&words) else { continue };
        let gap = matches!(&limiter, AnyLimiter::SlidingLog(log) if log.gap > Span::ZERO);
        let id = if let AnyLimiter::Concurrent(leases) = &limiter { leases.id } else { b"" };
        with_limiter!(&limiter, limiter => life.step(row, limiter, id, gap, step, &mut bytes));
    }
}

struct Life {
    key: Key,
    model: Option<Box<dyn Model>>,
    /// The instant of the last request that the model was asked. A refused one leaves no trace in the state, which may
    /// then be asked about an earlier instant; the model may not.
    heard: Time,
    /// What the caller's clock shows.
    asked: Time,
    /// Of the last refusal.
    retry: Span,
    tame: bool,
}

impl Life {
    fn step<L: Limiter>(
        &mut self,
        row: &'static Row,
        limiter: &L,
        id: &[u8],
        gap: bool,
        step: u8,
        bytes: &mut Bytes<'_>,
    ) {
        if L::State::of(&self.key.state).is_none() {
            // Another mode, or another limiter: WRONGTYPE.
            return;
        }
        self.asked = self.moment(limiter.span(), step, bytes);
        let cost = bytes.number(1, MOST);
        let state = L::State::of(&self.key.state).expect("its kind was looked at");
        let (now, moved) = reads_clock(limiter, state, self.asked, cost);
        if let Some(change) = moved {
            self.model = None;
            self.key.change::<L::State>(now, |_, out| out.extend_from_slice(&change));
        }
        let state = L::State::of(&self.key.state).expect("its kind was looked at");
        let holds = Leases::of(&self.key.state).is_some_and(|leases| leases.held(id, now).is_some());
        let case = Case { row, limiter, state, now, holds, gap };
        case.obeys(cost);
        let manner = match step / 8 % 8 {
            _ if self.tame => Manner::Strict,
            5 => Manner::Partial,
            6 => Manner::Force,
            7 => Manner::Reserve { longest: Span::from_millis(bytes.number(0, 10_000)) },
            4 if row.allows.debt => return self.give_back(limiter, now, cost),
            4 if L::State::KIND == Kind::Leases => return self.leave(limiter.span(), id, now, step),
            _ => Manner::Strict,
        };
        if row.allows.manner(manner) && !(limiter.counts_refused() && manner != Manner::Strict) {
            self.ask(limiter, now, cost, manner, holds);
        }
    }

    /// When the next request comes.
    fn moment(&self, span: Span, step: u8, bytes: &mut Bytes<'_>) -> Time {
        let span = span.as_micros();
        let moment = match step % 8 {
            0 | 1 => self.asked,
            2 => self.asked.plus(Span::from_micros(bytes.number(0, 1000))),
            3 => self.asked.plus(Span::from_micros(span)),
            4 => self.asked.plus(self.retry),
            5 if self.tame => self.asked.plus(Span::from_micros(span / 4)),
            5 => self.asked.minus(Span::from_micros(bytes.number(0, 3 * span))),
            6 if !self.tame => {
                Time::from_micros(bytes.number(Time::EARLIEST.as_micros(), Time::LATEST.as_micros()))
            }
            _ => self.asked.plus(Span::from_micros(bytes.number(0, 3 * span))),
        };
        moment.clamp(Time::EARLIEST, Time::LATEST)
    }

    /// What a limiter's command does.
    fn ask<L: Limiter>(&mut self, limiter: &L, now: Time, cost: u64, manner: Manner, holds: bool) {
        let state = L::State::of(&self.key.state).expect("its kind was looked at");
        let before = limiter.gauge(state, now);
        let lag = now.since(self.asked);
        let (verdict, granted) = match manner {
            Manner::Strict if !L::BOOKS => (limiter.judge(state, now, cost).delayed(lag), cost),
            _ => match rule(limiter, state, now, lag, cost, manner) {
                Ok(ruled) => ruled,
                Err(_) => return,
            },
        };
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
        let counts = limiter.counts_refused() && verdict != Verdict::NEVER;
        if !verdict.admits() && !counts {
            return;
        }
        let until = |state: &L::State| now.plus(limiter.gauge(state, now).reset);
        let until = until(state);
        self.key.change::<L::State>(until, |state, out| {
            L::State::encode_change(&limiter.charge(state, now, granted), out);
        });
        let state = L::State::of(&self.key.state).expect("its kind was looked at");
        assert_eq!(state.last(), now);
        let after = limiter.gauge(state, now);
        if L::State::KIND != Kind::Leases {
            assert!(L::BOOKS || after.reset >= before.reset);
        }
        if verdict.admits() && manner == Manner::Strict && !holds && !L::BOOKS {
            assert!(after.remaining == before.remaining - granted || after.remaining == 0);
        }
        bounded(&self.key);
    }

    fn give_back<L: Limiter>(&mut self, limiter: &L, now: Time, cost: u64) {
        if limiter.counts_refused() {
            return;
        }
        self.model = None;
        let state = L::State::of(&self.key.state).expect("its kind was looked at");
        let before = limiter.gauge(state, now);
        self.key.change::<L::State>(now.plus(before.reset), |state, out| {
            let change = limiter.refund(state, now, cost).expect("what may be in debt is given back");
            L::State::encode_change(&change, out);
        });
        let state = L::State::of(&self.key.state).expect("its kind was looked at");
        let after = limiter.gauge(state, now);
        assert!(after.remaining >= before.remaining && after.reset <= before.reset);
    }

    /// `RL.RENEW` and `RL.RELEASE`.
    fn leave(&mut self, ttl: Span, id: &[u8], now: Time, step: u8) {
        self.model = None;
        let leases = Leases::of(&self.key.state).expect("its kind was looked at");
        let change = if step < 0x80 { release(leases, id, now) } else { renew(leases, id, ttl, now) };
        let held = leases.held(id, now).is_some();
        assert_eq!(change.is_some(), held);
        let Some(change) = change else { return };
        let mut told = Vec::new();
        Leases::encode_change(&change, &mut told);
        self.key.change::<Leases>(now, |_, out| out.extend_from_slice(&told));
        let leases = Leases::of(&self.key.state).expect("its kind was looked at");
        assert_eq!(leases.held(id, now).is_some(), step >= 0x80);
    }
}

/// What a key holds stays within the operator's bounds, and memory within what that takes.
fn bounded(key: &Key) {
    let bytes = with_kept_bytes(key);
    assert!(bytes < 256 * 1024, "{bytes} bytes");
    if let Some(log) = crate::limit::Log::of(&key.state) {
        assert!(log.entries(log.start()) <= BOUNDS.log_entries);
    }
}

fn with_kept_bytes(key: &Key) -> usize {
    crate::limit::with_kept!(&key.state, state => State::heap_bytes(state.as_ref()))
}
