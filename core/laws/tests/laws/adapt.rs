//! Limits that find themselves: that they do as their model, and what a fleet comes to with them.

use num_traits::Signed;
use ratelimit_core::adapt::{Adapt, Adapted, Ended, Ending, ONE, Rule, Settings};
use ratelimit_core::lease::{Action, act};
use ratelimit_core::limiter::Concurrent;
use ratelimit_core::state::codec::Reader;
use ratelimit_core::{Ask, Length, LimitSet, Manner, Period, Place, Span, State, Time, Verdict};
use ratelimit_dice::Dice;
use ratelimit_laws::fleet::{Backend, Found, SECOND, Service, World};
use ratelimit_laws::{FoundAnswer, FoundLimit, FoundTable, ratio};

/// A limit, its model, and the leases that are held: when they were taken, and their costs.
struct Pair {
    limit: Adapted,
    model: FoundLimit,
    leases: Vec<(u64, u64)>,
    now: u64,
}

impl Pair {
    fn new(rule: Rule, dice: &mut Dice) -> Pair {
        let settings = settings(rule, dice);
        let start = u32::try_from(dice.below(100)).expect("below 100");
        let (limit, model) = (Adapted::new(Adapt { settings, start }), FoundLimit::new(settings, start));
        Pair { limit, model, leases: Vec::new(), now: (1 << 41) - (1 << 34) }
    }

    /// A lease is taken if there is room.
    fn take(&mut self, dice: &mut Dice) {
        let cost = 1 + dice.below(3);
        if self.held() + cost <= self.model.counts() {
            self.leases.push((self.now, cost));
        }
    }

    fn end(&mut self, dice: &mut Dice) {
        if self.leases.is_empty() {
            return;
        }
        let held = self.held();
        let (taken, cost) = self.leases.swap_remove(dice.index(self.leases.len()));
        let ending = match dice.below(40) {
            0 => Ending::Failed,
            1 => Ending::Unknown,
            _ => Ending::Well,
        };
        self.model.ends(taken, self.now, cost, held, ending);
        let [taken, now] = [taken, self.now].map(wrapped);
        self.limit.learn(&Ended { taken, now, cost, held }, ending);
    }

    fn held(&self) -> u64 {
        self.leases.iter().map(|(_, cost)| cost).sum()
    }
}

/// The clock of the limit, which wraps within the test.
fn wrapped(at: u64) -> u64 {
    at.wrapping_add(u64::MAX - (1 << 41))
}

fn settings(rule: Rule, dice: &mut Dice) -> Settings {
    let mut below = |most: u64| u32::try_from(dice.below(most)).expect("a small number");
    let reserved = below(3);
    let floor = reserved + 1 + below(3);
    let slow = u64::from(below(2) * below(900_000));
    let backoff = u8::try_from(1 + below(90)).expect("at most 90");
    Settings { rule, ceiling: floor + below(100), floor, reserved, backoff, slow }
}

/// A million steps. Returns how often the limit changed.
fn compare(rule: Rule, check: impl Fn(&Pair)) -> u64 {
    let mut dice = Dice::new(7);
    let mut pair = Pair::new(rule, &mut dice);
    let (mut changes, mut by_time) = (0, 0);
    for step in 0..1_000_000_u32 {
        // Now and then no lease ends for so long that a probe ends by time.
        pair.now += if dice.one_in(5000) { dice.below(100_000_000) } else { dice.below(100_000) };
        let before = pair.limit.exact;
        pair.model.pass(pair.now);
        by_time += u64::from(pair.limit != pair.limit.after(wrapped(pair.now)));
        pair.limit = pair.limit.after(wrapped(pair.now));
        match dice.below(2000) {
            0 => {
                let settings = settings(rule, &mut dice);
                pair.limit = pair.limit.adopt(settings);
                pair.model.adopt(settings);
            }
            1..1000 => pair.take(&mut dice),
            _ => pair.end(&mut dice),
        }
        changes += u64::from(before != pair.limit.exact);
        assert_eq!(pair.limit.limit(), pair.model.counts(), "step {step}");
        check(&pair);
    }
    assert!(rule == Rule::Failures || by_time > 10, "{by_time} probes ended by time");
    changes
}

#[test]
fn a_million_leases_change_a_limit_by_failures_as_they_change_the_model() {
    let changes = compare(Rule::Failures, |pair| {
        assert_eq!(pair.limit.exact % ONE, 0);
        assert_eq!(pair.limit.credit, pair.model.credit);
    });
    assert!(changes > 10_000, "{changes}");
}

#[test]
fn a_million_leases_change_a_limit_by_latency_as_they_change_the_model() {
    let changes = compare(Rule::Latency, |pair| {
        let exact = ratio(pair.limit.exact) / ratio(ONE);
        let off = (&exact - &pair.model.limit).abs() / &pair.model.limit;
        assert!(off <= ratio(1) / ratio(1_000_000), "{exact} {}", pair.model.limit);
        assert_eq!(pair.limit.latency.windows, pair.model.windows);
    });
    assert!(changes > 10_000, "{changes}");
}

/// A key, its model, and a copy that was made from its bytes at some time and got the same calls since.
#[derive(Default)]
struct Keys {
    set: LimitSet,
    copy: LimitSet,
    model: FoundTable,
    at: u64,
}

impl Keys {
    fn step(&mut self, rule: Rule, dice: &mut Dice) {
        let at = Time::from_micros(self.at);
        let id = dice.below(30);
        let name = id.to_be_bytes();
        if dice.below(9) < 5 {
            let (cost, ttl) = (1 + dice.below(3), 1 + dice.below(4_000_000));
            // A few parameters, so that the limit has time to move.
            let settings = settings(rule, &mut Dice::new(self.at >> 29 & 3));
            let adapt = (!dice.one_in(8)).then_some(Adapt { settings, start: settings.ceiling / 2 + 1 });
            let critical = dice.one_in(3);
            let limit = u64::from(settings.ceiling - if critical { 0 } else { settings.reserved });
            let period = Period::of(Span::from_micros(ttl)).expect("above zero");
            let limiter = Concurrent { critical, adapt, ..Concurrent::plain(limit, period, &name) };
            let theirs = self.model.take(
                self.at,
                (id, cost, ttl),
                limit,
                adapt.map(|adapt| (adapt.settings, adapt.start)),
            );
            for set in [&mut self.set, &mut self.copy] {
                let mut ask = Ask::new(Place::of(Length::NONE), at, cost, Manner::Strict);
                let taken = ask.take(set, &limiter).expect("leases cannot be too long");
                let verdict = match taken.verdict {
                    Verdict::Admit { .. } => Ok(()),
                    Verdict::Refuse { retry } => Err(retry.map(|retry| retry.minus(ask.lag()).as_micros())),
                };
                let answer: FoundAnswer = (verdict, taken.gauge.limit, taken.gauge.remaining);
                assert_eq!(answer, theirs);
            }
        } else {
            let ending = [Ending::Well, Ending::Well, Ending::Well, Ending::Unknown, Ending::Failed];
            let ending = *dice.pick(&ending);
            let theirs = self.model.release(self.at, id, ending);
            for set in [&mut self.set, &mut self.copy] {
                let acted = act(set, Action::Release(ending), &name, at).expect("a change that can be read");
                assert_eq!(acted.held, theirs);
            }
        }
    }

    fn restart(&mut self) {
        let mut bytes = Vec::new();
        self.set.encode(&mut bytes);
        self.copy = LimitSet::decode(&mut Reader::new(&bytes)).expect("what was just encoded");
    }

    fn check_copy(&self) {
        let bytes = [&self.set, &self.copy].map(|set| {
            let mut bytes = Vec::new();
            set.encode(&mut bytes);
            bytes
        });
        assert_eq!(bytes[0], bytes[1]);
    }
}

#[test]
fn a_key_answers_random_calls_as_the_model_does() {
    // For a million of each rule, RATELIMIT_CALLS=1000000.
    let calls = std::env::var("RATELIMIT_CALLS").ok().and_then(|calls| calls.parse().ok()).unwrap_or(100_000);
    for rule in [Rule::Failures, Rule::Latency] {
        let mut dice = Dice::new(11);
        let mut keys = Keys { at: 1 << 51, ..Keys::default() };
        let (mut lowered, mut windows) = (false, 0);
        for step in 0..calls {
            keys.at = match dice.below(50_000) {
                0 => keys.at + 3_500_000_000 + dice.below(200_000_000),
                1..100 => keys.at - dice.below(5_000_000),
                _ => keys.at + dice.below(200_000),
            };
            keys.step(rule, &mut dice);
            if let Some(limit) = &keys.model.limit {
                lowered |= limit.lowered.is_some();
                windows = windows.max(limit.windows);
            }
            if step % 1000 == 0 {
                keys.check_copy();
                keys.restart();
            }
        }
        assert!(lowered && (rule == Rule::Failures || windows > 30), "{windows}");
    }
}

/// 20 processes ask a backend of 50 workers for half as much again as it can serve.
fn world() -> World {
    World {
        backend: Backend { service: Service::Fixed(SECOND / 10), workers: 50, crowded: None, slow: 0..0 },
        fleet: vec![(0, 20)],
        rate: 37.5,
        deadline: SECOND,
        seconds: 3600,
        reports: true,
        seed: 1,
    }
}

#[test]
fn by_failures_a_limit_stays_where_requests_are_just_not_slow() {
    let trial = world().run(&mut Found::by(Rule::Failures, 1000, SECOND * 15 / 100));
    // 75 requests on 50 workers take 1.5 times as long as 50.
    let (least, most) = trial.range(100..3600);
    assert!(least >= 75.0 * 0.8 && most <= 75.0 * 1.2, "{least} to {most}");
    assert!(trial.goodput(100..3600) >= 499.0);
}

#[test]
fn by_latency_a_limit_stays_near_the_number_of_workers_for_an_hour() {
    for (workers, knee, seconds) in [(50, 50.0, 3600), (150, 150.0, 1200)] {
        let backend = Backend { workers, ..world().backend };
        let trial = World { backend, rate: 0.75 * knee, seconds: seconds as u64, ..world() }
            .run(&mut Found::by(Rule::Latency, 1000, 0));
        let (_, most) = trial.range(300..seconds);
        assert!(most <= knee * 1.2 + 4.0, "{workers} workers: {most}");
        // Half of the limit counts in a probe.
        let probes = trial.limits[300..].iter().filter(|limit| **limit < knee * 0.8 - 4.0).count();
        assert!(probes <= seconds / 60 * 2, "{workers} workers: {probes}");
        assert!(trial.goodput(300..seconds) >= 0.98 * 10.0 * knee);
    }
}

#[test]
fn by_latency_a_limit_returns_after_a_backend_was_slow() {
    let backend = Backend { slow: 300..600, ..world().backend };
    let trial = World { backend, seconds: 900, ..world() }.run(&mut Found::by(Rule::Latency, 1000, 0));
    for seconds in [100..300, 360..600, 660..900] {
        let mut limits = trial.limits[seconds].to_vec();
        limits.sort_by(f64::total_cmp);
        let median = limits[limits.len() / 2];
        assert!((40.0..=64.0).contains(&median), "{median}");
    }
}

#[test]
fn without_a_signal_a_limit_grows_to_the_ceiling() {
    let trial = World { reports: false, seconds: 900, ..world() }.run(&mut Found::by(Rule::Failures, 100, 0));
    assert_eq!(trial.limits.last(), Some(&100.0));
}
