//! The limits and lines of the core, as a server uses them.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use ratelimit_core::adapt::Ending;
use ratelimit_core::lease::{self, Action};
use ratelimit_core::limiter::{Concurrent, Limiter, TokenBucket};
use ratelimit_core::line::{Caller, Claim, Comer as Comes, Cost};
use ratelimit_core::state::{Leases, Pool, Share, Tenant as OfCaller, hash_of_id};
use ratelimit_core::{Ask, Length, LimitSet, Lines, Manner, Name, Period, Place, Span, Stand, Time, Verdict};
use ratelimit_laws::fair::{Call, Comer, Tenant, Wish};

pub struct Real {
    pub lines: Lines<u8>,
    /// Each has one limit.
    keys: Vec<LimitSet>,
    /// The interval of a bucket; `None` for leases.
    intervals: Vec<Option<u64>>,
    /// The callers that wait: by their numbers in the lines, those in the model and the calls.
    callers: BTreeMap<Caller, (u64, Call)>,
}

/// The clock of the lines, and that of the limits.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    pub steady: Time,
    pub wall: Time,
}

/// A limit that refuses a call: its index, and when it may have room.
type Refusal = (usize, Option<Span>);

fn name_of(tenant: Tenant) -> Vec<u8> {
    if tenant == 0 { Vec::new() } else { format!("tenant {tenant}").into_bytes() }
}

fn weight(wish: &Wish) -> Option<u32> {
    wish.weight.map(|weight| u32::try_from(weight).expect("a weight"))
}

/// What one limit answers.
struct Judged {
    admits: bool,
    retry: Option<Span>,
    claim: Claim,
}

impl Real {
    pub fn new(intervals: Vec<Option<u64>>) -> Real {
        let keys = intervals.iter().map(|_| LimitSet::default()).collect();
        Real { lines: Lines::new(), keys, intervals, callers: BTreeMap::new() }
    }

    fn name(&self, limit: usize) -> Name {
        match self.intervals[limit] {
            None => Name::of::<Leases>(Length::NONE),
            Some(interval) => bucket(1, interval).name(),
        }
    }

    /// Runs a part of a trial on a limit of its type.
    fn with_limiter<R>(&mut self, call: &Call, wish: &Wish, run: impl Run<R>) -> R {
        let key = &mut self.keys[wish.limit];
        if let Some(interval) = self.intervals[wish.limit] {
            return run.run(key, &bucket(wish.most, interval));
        }
        let name = name_of(wish.tenant);
        let tenant = (!name.is_empty()).then_some(OfCaller { name: &name, weight: weight(wish) });
        let ttl = Period::of(Span::from_micros(call.ttl)).expect("a ttl");
        let id = call.id.to_be_bytes();
        run.run(
            key,
            &Concurrent { limit: wish.most, ttl, id: &id, critical: wish.critical, tenant, adapt: None },
        )
    }

    /// The answer of a limit, as if no one else waited. The line learns what its tenants hold.
    fn judge(&mut self, call: &Call, wish: &Wish, clock: Clock) -> Judged {
        let (verdict, now) = self.with_limiter(call, wish, Judge(wish.cost, clock.wall));
        let name = self.name(wish.limit);
        let key = u8::try_from(wish.limit).expect("a few limits");
        let of_tenant = name_of(wish.tenant);
        let leases = self.keys[wish.limit].get::<Leases>(Length::NONE);
        let pool = self.intervals[wish.limit].is_none().then(|| {
            self.lines.follow(&key, name, leases, now, clock.steady);
            let share = leases.map_or(Share::NOTHING, |leases| leases.share(&of_tenant, now));
            Pool { most: wish.most, share, id: hash_of_id(&call.id.to_be_bytes()) }
        });
        let claim = Claim {
            tenant: &of_tenant[..],
            weight: weight(wish),
            cost: wish.cost,
            critical: wish.critical,
            pool,
        };
        let retry = match verdict {
            Verdict::Admit { .. } => None,
            Verdict::Refuse { retry } => retry,
        };
        Judged { admits: verdict.admits(), retry, claim: claim.into_owned() }
    }

    /// Judges a call by its limits and their lines.
    fn refusals(&mut self, call: &Call, comer: Comer, clock: Clock) -> (Vec<Refusal>, Vec<Claim>) {
        let comes = match comer {
            Comer::Passes => Comes::Passes,
            Comer::Arrives => Comes::Arrives,
            Comer::Waits(caller) => Comes::Waits(self.number(caller)),
        };
        let mut refusals = Vec::new();
        let mut claims = Vec::new();
        for wish in &call.wishes {
            let judged = self.judge(call, wish, clock);
            let key = u8::try_from(wish.limit).expect("a few limits");
            let claim = borrowed(&judged.claim);
            let ahead = self.lines.ahead(&key, self.name(wish.limit), &claim, comes, clock.steady);
            if !judged.admits {
                refusals.push((wish.limit, judged.retry));
            } else if ahead.is_some() {
                refusals.push((wish.limit, Some(Span::ZERO)));
            }
            claims.push(judged.claim);
        }
        (refusals, claims)
    }

    /// The number in the lines of a caller of the model.
    fn number(&self, caller: u64) -> Caller {
        let mut callers = self.callers.iter();
        *callers.find(|(_, (other, _))| *other == caller).expect("a caller that waits").0
    }

    fn grant(&mut self, call: &Call, claims: &[Claim], clock: Clock) {
        for (wish, claim) in call.wishes.iter().zip(claims) {
            self.with_limiter(call, wish, Charge(wish.cost, clock.wall));
            let key = u8::try_from(wish.limit).expect("a few limits");
            let cost = if call.estimated { Cost::Estimated } else { Cost::Known };
            self.lines.grant(&key, self.name(wish.limit), &borrowed(claim), cost, clock.steady);
            // What the tenant holds now may make another one the first. The server marks a key after each change.
            self.lines.mark(&key);
        }
    }

    /// Makes a call. Returns the limits that refuse it.
    pub fn call(&mut self, call: &Call, comer: Comer, clock: Clock) -> Vec<usize> {
        let (refusals, claims) = self.refusals(call, comer, clock);
        if refusals.is_empty() {
            self.grant(call, &claims, clock);
        }
        let refusing = refusals.iter().map(|(limit, _)| *limit).collect();
        match comer {
            Comer::Waits(caller) => {
                let caller = self.number(caller);
                if refusals.is_empty() {
                    self.leave_line(caller);
                } else {
                    let stands = self.stands(&refusals, call, &claims);
                    self.lines.stay(caller, clock.steady, stands);
                }
            }
            Comer::Arrives | Comer::Passes => (),
        }
        refusing
    }

    /// The caller that was just refused waits. `caller` is its number in the model.
    pub fn enter(&mut self, call: &Call, caller: u64, deadline: Time, clock: Clock) {
        let (refusals, claims) = self.refusals(call, Comer::Arrives, clock);
        let stands = self.stands(&refusals, call, &claims);
        let number = self.lines.enter(clock.steady, deadline, stands);
        self.callers.insert(number, (caller, call.clone()));
    }

    fn stands(&self, refusals: &[Refusal], call: &Call, claims: &[Claim]) -> Vec<Stand<u8>> {
        let stand = |(limit, retry): &Refusal| {
            let place = call.wishes.iter().position(|wish| wish.limit == *limit).expect("a wish");
            let key = u8::try_from(*limit).expect("a few limits");
            Stand { key, name: self.name(*limit), claim: claims[place].clone(), retry: *retry }
        };
        refusals.iter().map(stand).collect()
    }

    fn leave_line(&mut self, caller: Caller) {
        assert!(self.lines.leave(caller));
        self.callers.remove(&caller);
    }

    /// A caller of the model gives up.
    pub fn leave(&mut self, caller: u64) {
        let number = self.number(caller);
        self.leave_line(number);
    }

    /// These limits refused a call that does not wait. The tenant of a limit that did so alone may be hungry for this long.
    pub fn starve(&mut self, call: &Call, refusing: &[usize], hunger: Span, clock: Clock) {
        for wish in &call.wishes {
            let key = u8::try_from(wish.limit).expect("a few limits");
            let name = self.name(wish.limit);
            if refusing != [wish.limit] {
                self.lines.sate(&key, name, &name_of(wish.tenant));
            } else if wish.cost <= wish.most && self.intervals[wish.limit].is_none() {
                let leases = self.keys[wish.limit].get::<Leases>(Length::NONE);
                let is_shared = leases.is_some_and(Leases::has_tenants) || self.lines.is_fair(&key, name);
                if is_shared || wish.tenant != 0 {
                    let claim = self.judge(call, wish, clock).claim;
                    self.lines.starve(&key, name, &claim, clock.steady, hunger, 1000);
                }
            }
        }
    }

    /// Releases or renews a lease. Returns whether it was held.
    pub fn act(&mut self, limit: usize, id: u64, ttl: Option<u64>, clock: Clock) -> bool {
        let action = ttl.map_or(Action::Release(Ending::Well), |ttl| Action::Renew(Span::from_micros(ttl)));
        let outcome = lease::act(&mut self.keys[limit], action, &id.to_be_bytes(), clock.wall);
        let key = u8::try_from(limit).expect("a few limits");
        let held = outcome.expect("no defect").held;
        if held {
            self.lines.mark(&key);
        }
        if held || ttl.is_none() {
            self.lines.serve(&key, self.name(limit), hash_of_id(&id.to_be_bytes()), clock.steady);
        }
        held
    }

    /// What a tenant was granted by a bucket is settled.
    pub fn settle(&mut self, limit: usize, tenant: Tenant, granted: u64, used: u64) {
        let key = u8::try_from(limit).expect("a few limits");
        self.lines.correct(&key, self.name(limit), &name_of(tenant), granted, used);
    }

    /// How long others keep a call that does not wait from a limit.
    pub fn ahead(&mut self, call: &Call, wish: &Wish, clock: Clock) -> Option<Span> {
        let claim = self.judge(call, wish, clock).claim;
        let key = u8::try_from(wish.limit).expect("a few limits");
        self.lines.ahead(&key, self.name(wish.limit), &borrowed(&claim), Comes::Passes, clock.steady)
    }

    /// The next caller that is tried: its number in the model, and its call.
    pub fn due(&mut self, clock: Clock) -> Option<(u64, Call)> {
        let caller = self.lines.due(clock.steady)?;
        Some(self.callers.get(&caller).expect("a caller that waits").clone())
    }

    /// The next caller whose time has passed.
    pub fn timed_out(&mut self, clock: Clock) -> Option<(u64, Call)> {
        let caller = self.lines.timed_out(clock.steady)?;
        Some(self.callers.get(&caller).expect("a caller that waits").clone())
    }
}

fn bucket(capacity: u64, interval: u64) -> TokenBucket {
    let number = |number| NonZeroU64::new(number).expect("a number");
    let period = Period::of(Span::from_micros(interval)).expect("an interval");
    TokenBucket::new(number(capacity), number(1), period).expect("a short debt")
}

fn borrowed(claim: &Claim) -> Claim<&[u8]> {
    let Claim { tenant, weight, cost, critical, pool } = claim;
    Claim { tenant: &tenant[..], weight: *weight, cost: *cost, critical: *critical, pool: *pool }
}

/// A part of a trial on a limit of any type.
trait Run<R> {
    fn run<L: Limiter>(self, key: &mut LimitSet, limiter: &L) -> R;
}

/// Judges a cost at an instant. Returns the verdict, and when it was decided.
struct Judge(u64, Time);

impl Run<(Verdict, Time)> for Judge {
    fn run<L: Limiter>(self, key: &mut LimitSet, limiter: &L) -> (Verdict, Time) {
        let Judge(cost, at) = self;
        let mut ask = Ask::new(Place::of(Length::of(limiter.length())), at, cost, Manner::Strict);
        let (verdict, _) = ask.judge(key, limiter).expect("a short debt");
        (verdict, ask.now())
    }
}

/// Charges a cost at an instant.
struct Charge(u64, Time);

impl Run<()> for Charge {
    fn run<L: Limiter>(self, key: &mut LimitSet, limiter: &L) {
        let Charge(cost, at) = self;
        let mut ask = Ask::new(Place::of(Length::of(limiter.length())), at, cost, Manner::Strict);
        let judged = ask.judge(key, limiter).expect("a short debt");
        assert!(judged.0.admits());
        ask.charge(key, limiter, cost).expect("no defect");
        assert!(key.room() > 0);
    }
}
