//! A key's life: a limiter, and requests of any manner, cost and instant, some to another limiter or under other
//! parameters. The laws hold at each step. As long as the history is one that the limiter's model knows, it decides as
//! the model does.

use ratelimit_core::state::Log;
use ratelimit_core::{
    Answer, AnyLimiter, Kind, LimitState, Limiter, MAX_COUNT, Manner, Span, State, Time, Verdict,
    with_limiter,
};
use ratelimit_engine::reply::Reply;
use ratelimit_language::Error;
use ratelimit_laws::{Case, T0, charged, encoded, knows_its_end, reads_clock, refunded};

use crate::bytes::Bytes;
use crate::lines::{BOUNDS, FORM_COUNT, line, parse};
use crate::nodes::{KEY, Nodes};
use crate::oracle::{Model, model};

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
    let mut life = Life { nodes: Nodes::default(), at: T0, model, heard: T0, retry: Span::ZERO, tame };
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
        if !tame && step / 8 % 8 == 3 {
            let other = line(if step < 0x80 { form } else { bytes.byte() }, &mut bytes);
            life.joint([&words, &other], step, &mut bytes);
            continue;
        }
        let gap = matches!(&limiter, AnyLimiter::SlidingLog(log) if log.gap > Span::ZERO);
        let ttl = if let AnyLimiter::Concurrent(leases) = &limiter { Some(leases.ttl.span()) } else { None };
        with_limiter!(&limiter, limiter => life.step(limiter, &words, ttl, gap, step, &mut bytes));
    }
}

/// What a call replies.
type Told = Result<(Option<Answer>, Option<u64>), Error>;

struct Life {
    nodes: Nodes,
    /// What the caller's clock shows.
    at: Time,
    model: Option<Box<dyn Model>>,
    /// The instant of the last request that the model was asked. A refused request leaves no trace in the state, which
    /// can then be asked about an earlier instant; the model cannot.
    heard: Time,
    /// Of the last refusal.
    retry: Span,
    tame: bool,
}

impl Life {
    /// `words` name the limiter. `ttl` is the time to live of the lease that is asked for.
    fn step<L: Limiter>(
        &mut self,
        limiter: &L,
        words: &str,
        ttl: Option<Span>,
        gap: bool,
        step: u8,
        bytes: &mut Bytes<'_>,
    ) {
        let pace = ttl.unwrap_or(limiter.length());
        self.at = self.moment(pace, step, bytes);
        // In a wild history the callers' clocks have nothing to do with the server's, and no key expires.
        if self.tame {
            self.nodes.set_clock(self.at);
        }
        let at = self.at;
        let cost = bytes.number(1, MAX_COUNT);
        let stored = self.stored(limiter).unwrap_or_else(|| limiter.fresh(at));
        let (now, moved) = reads_clock(limiter, &stored, at, cost);
        if moved.is_some() {
            self.model = None;
        }
        let state = moved.as_ref().unwrap_or(&stored);
        let holds = limiter.is_held(state, now);
        let case = Case { limiter, state, now, holds, gap, changed: !self.tame };
        case.obeys(cost);
        let capabilities = limiter.capabilities();
        let manner = match step / 8 % 8 {
            _ if self.tame => Manner::Strict,
            5 => Manner::Partial,
            6 => Manner::Force,
            7 => Manner::Reserve { longest: Span::from_millis(bytes.number(0, 10_000)) },
            4 if capabilities.refund => return self.refund(&case, words, cost),
            4 if L::State::KIND == Kind::Leases => return self.act(&case, pace, step >= 0x80),
            _ => Manner::Strict,
        };
        if capabilities.allows(manner) {
            self.take(&case, words, cost, manner);
        }
    }

    /// Makes a call. Returns the five integers, a sixth or the only one, or an error.
    fn ask(&self, command: &str, words: &str) -> Told {
        match self.nodes.line(&format!("RL.{command} {KEY} {words}")) {
            Reply::Answer(answer) | Reply::Answers(answer, _) => Ok((Some(answer), None)),
            Reply::Six(answer, number) | Reply::SixAndEach(answer, number, _) => {
                Ok((Some(answer), Some(number)))
            }
            Reply::Integer(number) => Ok((None, Some(number))),
            Reply::Error(error) => Err(error),
            _ => panic!("another reply"),
        }
    }

    fn stored<L: Limiter>(&self, limiter: &L) -> Option<L::State> {
        let (set, _) = self.nodes.limits()?;
        set.get(set.find(limiter.name())?.stored).cloned()
    }

    /// After a change at `now`, a key expires some slack after it is fully reset. Its logs are within the operator's bounds.
    fn expires(&self, now: Time) {
        let Some((set, expiry)) = self.nodes.limits() else { return };
        let full = now.max(T0).plus(set.until().since(now));
        let [least, most] = [2500, 86_400_001].map(Span::from_millis);
        assert!(expiry >= full.plus(least), "{expiry:?} after {full:?}");
        assert!(expiry <= full.plus(most) || set.until() == Time::HORIZON, "{expiry:?} after {full:?}");
        for log in set.limits().filter_map(|limit| limit.state.get::<Log>()) {
            assert!(log.entries(log.start()) <= BOUNDS.log_entries);
        }
    }

    /// When the next request comes.
    fn moment(&self, pace: Span, step: u8, bytes: &mut Bytes<'_>) -> Time {
        let pace = pace.as_micros();
        let moment = match step % 8 {
            0 | 1 => self.at,
            2 => self.at.plus(Span::from_micros(bytes.number(0, 1000))),
            3 => self.at.plus(Span::from_micros(pace)),
            4 => self.at.plus(self.retry),
            5 if self.tame => self.at.plus(Span::from_micros(pace / 4)),
            5 => self.at.minus(Span::from_micros(bytes.number(0, 3 * pace))),
            6 if !self.tame => {
                Time::from_micros(bytes.number(Time::EARLIEST.as_micros(), Time::LATEST.as_micros()))
            }
            _ => self.at.plus(Span::from_micros(bytes.number(0, 3 * pace))),
        };
        moment.clamp(Time::EARLIEST, Time::LATEST)
    }

    /// A limiter's own command.
    fn take<L: Limiter>(&mut self, case: &Case<'_, L>, words: &str, cost: u64, manner: Manner) {
        let Case { limiter, state, now, holds, .. } = *case;
        let capabilities = limiter.capabilities();
        let (before, lag) = (limiter.gauge(state, now), now.since(self.at));
        let was_stored = self.stored(limiter).is_some();
        let at = self.at.as_micros();
        let foreseen = self.ask("PEEK", &format!("{words} COST {cost} AT {at}"));
        let (command, parameters) = words.split_once(' ').expect("a limiter and its parameters");
        let told = self.ask(command, &format!("{parameters} COST {cost} AT {at}{}", option(manner)));
        let (Answer { verdict, gauge }, granted) = match told {
            Ok((answer, granted)) => (answer.expect("an answer"), granted.unwrap_or(cost)),
            Err(error) => return assert_eq!(error, Error::TooLong),
        };
        let recorded = capabilities.counts_refused && verdict != Verdict::NEVER
            || capabilities.bans && before.remaining > 0;
        if manner == Manner::Strict && (verdict.admits() || !recorded) {
            let foreseen = foreseen.expect("a look").0;
            assert_eq!(foreseen.map(|answer| answer.verdict), Some(verdict), "as foreseen");
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
        let stored = self.stored(limiter);
        if !verdict.admits() && !recorded {
            assert_eq!(gauge, before.delayed(lag), "a refusal charges nothing");
            return assert_eq!(stored.map(|stored| encoded(&stored)), was_stored.then(|| encoded(state)));
        }
        let stored = stored.expect("what was charged is there");
        let expected = charged(limiter, state, now, granted);
        assert_eq!(encoded(&stored), encoded(&expected), "a key has the change of its limiter");
        assert_eq!(stored.last(), now);
        let after = limiter.gauge(&stored, now);
        assert_eq!(gauge, after.delayed(lag));
        knows_its_end(limiter, &stored, now);
        if L::State::KIND != Kind::Leases {
            // A ban may be shorter than the window whose strikes it ends.
            assert!(capabilities.books || capabilities.bans || after.reset >= before.reset);
        }
        if verdict.admits() && manner == Manner::Strict && !holds && !capabilities.books {
            assert!(after.remaining == before.remaining - granted || after.remaining == 0);
        }
        self.expires(now);
    }

    /// `RL.MULTI`.
    fn joint(&mut self, limits: [&str; 2], step: u8, bytes: &mut Bytes<'_>) {
        let [Some(first), Some(_)] = limits.map(parse) else { return };
        self.model = None;
        self.at = self.moment(with_limiter!(&first, limiter => limiter.length()), step, bytes);
        let (cost, at, [first, second]) = (bytes.number(0, MAX_COUNT), self.at.as_micros(), limits);
        _ = self.ask("MULTI 1", &format!("AT {at} COST {cost} LIMIT {first} LIMIT {second}"));
    }

    /// `RL.REFUND`.
    fn refund<L: Limiter>(&mut self, case: &Case<'_, L>, words: &str, cost: u64) {
        let Case { limiter, state, now, .. } = *case;
        let at = self.at.as_micros();
        self.model = None;
        let was_stored = self.stored(limiter).is_some();
        let told = self.ask("REFUND", &format!("{words} COST {cost} AT {at}"));
        let look = self.ask("PEEK", &format!("{words} COST 0 AT {at}"));
        let [told, look] = [told, look].map(|told| told.expect("an answer").0.map(|answer| answer.gauge));
        assert_eq!(told, look, "the caller's next look");
        let stored = self.stored(limiter);
        if !was_stored {
            return assert!(stored.is_none());
        }
        let expected = refunded(limiter, state, now, cost).expect("a limiter that has refunds");
        let (before, after) = (limiter.gauge(state, now), limiter.gauge(&expected, now));
        assert!(after.remaining >= before.remaining && after.reset <= before.reset);
        knows_its_end(limiter, &expected, now);
        match stored {
            Some(stored) => assert_eq!(encoded(&stored), encoded(&expected)),
            None => assert!(expected.until(limiter.length()) <= self.at, "only what is full is deleted"),
        }
        self.expires(now);
    }

    /// `RL.RENEW` and `RL.RELEASE`.
    fn act<L: Limiter>(&mut self, case: &Case<'_, L>, ttl: Span, renews: bool) {
        let Case { limiter, now, holds, .. } = *case;
        self.model = None;
        let was_stored = self.stored(limiter).is_some();
        let (id, at) = (limiter.lease_id().expect("the id of a lease"), self.at.as_micros());
        let (command, begin) =
            if renews { ("RENEW", format!("{}ms ", ttl.as_millis_up())) } else { ("RELEASE", String::new()) };
        let words = format!("{begin}{} AT {at}", id.escape_ascii());
        let acted = self.ask(command, &words);
        assert_eq!(acted, Ok((None, Some(holds.into()))));
        if holds {
            self.expires(now);
        }
        let Some(stored) = self.stored(limiter) else {
            return assert!(!was_stored || holds && !renews);
        };
        assert!(!holds || stored.last() == now);
        let left = limiter.leases(&stored).and_then(|leases| leases.held(id, now)).map(|lease| lease.left);
        assert_eq!(left, (holds && renews).then_some(ttl));
        knows_its_end(limiter, &stored, now);
    }
}

fn option(manner: Manner) -> String {
    match manner {
        Manner::Strict => String::new(),
        Manner::Partial => " PARTIAL".into(),
        Manner::Force => " FORCE".into(),
        Manner::Reserve { longest } => format!(" RESERVE MAXWAIT {}ms", longest.as_millis_up()),
    }
}
