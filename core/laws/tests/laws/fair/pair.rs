//! The model and the core side by side: each call goes to both, and both answer the same.

use ratelimit_core::{Span, Time};
use ratelimit_laws::fair::{Call, Comer, Fair, Kept, Kind, Limit, Outcome, Rule, Tenant, Wish};

use super::real::{Clock, Real};

pub struct Pair {
    pub model: Fair,
    /// `None` for a rule that the core does not have.
    real: Option<Real>,
    /// How often a waiting caller was tried.
    pub tries: usize,
    /// The callers whose time passed.
    pub timed_out: usize,
    /// How often the first of a line left room to a hungry tenant.
    pub kept: usize,
}

impl Pair {
    pub fn new(limits: Vec<Limit>, rule: Rule) -> Pair {
        let interval = |limit: &Limit| match limit.kind {
            Kind::Leases { .. } => None,
            Kind::Bucket { interval, .. } => Some(interval),
        };
        let real = (rule == Rule::Fair).then(|| Real::new(limits.iter().map(interval).collect()));
        let mut model = Fair::new(limits);
        model.rule = rule;
        model.wall = 1_000_000_000_000;
        Pair { model, real, tries: 0, timed_out: 0, kept: 0 }
    }

    fn clock(&self) -> Clock {
        Clock { steady: Time::from_micros(self.model.steady), wall: Time::from_micros(self.model.wall) }
    }

    pub fn pass(&mut self, micros: u64) {
        self.model.pass(micros);
        let steady = self.clock().steady;
        self.real.iter_mut().for_each(|real| real.lines.end_hungers(steady));
    }

    /// Sets the clock of the limits, but not that of the lines.
    pub fn set_wall(&mut self, wall: u64) {
        self.model.wall = wall;
        self.model.tidy();
        self.real.iter_mut().for_each(|real| real.lines.mark_all());
    }

    /// A call arrives. If it waits, then for at most `timeout`.
    pub fn arrive(&mut self, call: &Call, blocks: bool, timeout: u64) -> Outcome {
        let clock = self.clock();
        let before = self.model.clone();
        let outcome = self.model.arrive(call, blocks);
        let Some(real) = &mut self.real else { return outcome };
        let hungers = |wish: &&Wish| match before.kept(wish, Comer::Passes)? {
            Kept::UntilHungerEnds(end) => Some(end - before.steady),
            Kept::ByCallers => None,
        };
        for (wish, left) in
            call.wishes.iter().filter(|_| !blocks).filter_map(|wish| Some((wish, hungers(&wish)?)))
        {
            let ahead = real.ahead(call, wish, clock);
            assert_eq!(ahead.map(Span::as_micros), Some(left), "{call:?} in {before:?}");
        }
        let refusing = real.call(call, if blocks { Comer::Arrives } else { Comer::Passes }, clock);
        let expected = match &outcome {
            Outcome::Admitted => Vec::new(),
            Outcome::Refused(limits) => limits.clone(),
            Outcome::Waits(caller) => self.model.find(*caller).expect("it waits").stands.clone(),
        };
        assert_eq!(refusing, expected, "{call:?} in {before:?}");
        let after = |micros| clock.steady.plus(Span::from_micros(micros));
        match &outcome {
            Outcome::Waits(caller) => real.enter(call, *caller, after(timeout), clock),
            Outcome::Refused(limits) if self.model.hunger > 0 => {
                real.starve(call, limits, Span::from_micros(self.model.hunger), clock);
            }
            Outcome::Refused(_) | Outcome::Admitted => (),
        }
        self.compare();
        outcome
    }

    /// Releases or renews a lease. Returns whether it was held.
    pub fn act(&mut self, limit: usize, id: u64, ttl: Option<u64>) -> bool {
        let clock = self.clock();
        let held = match ttl {
            None => self.model.release(limit, id),
            Some(ttl) => self.model.renew(limit, id, ttl),
        };
        if let Some(real) = &mut self.real {
            assert_eq!(real.act(limit, id, ttl, clock), held);
        }
        held
    }

    /// What a tenant was granted by a bucket is settled.
    pub fn settle(&mut self, limit: usize, tenant: Tenant, granted: u64, used: u64) {
        self.model.settle(limit, tenant, granted, used);
        self.real.iter_mut().for_each(|real| real.settle(limit, tenant, granted, used));
    }

    /// A caller gives up.
    pub fn leave(&mut self, caller: u64) {
        self.model.leave(caller);
        self.real.iter_mut().for_each(|real| real.leave(caller));
    }

    /// Tries callers until none is due. Returns the ids of the admitted calls, in order.
    pub fn serve(&mut self) -> Vec<u64> {
        if self.real.is_none() {
            return self.model.serve();
        }
        let mut admitted = Vec::new();
        let least = self.tries;
        while let Some((caller, call, is_late)) = self.next() {
            self.tries += 1;
            assert!(self.tries < least + 1000, "callers are tried again and again: {:?}", self.model);
            if self.try_again(caller, &call) {
                admitted.push(call.id);
            } else if is_late {
                self.timed_out += 1;
                self.leave(caller);
            }
        }
        self.is_at_rest();
        self.compare();
        admitted
    }

    /// The next caller that the core tries, and whether its time has passed.
    fn next(&mut self) -> Option<(u64, Call, bool)> {
        let clock = self.clock();
        let real = self.real.as_mut()?;
        if let Some((caller, call)) = real.timed_out(clock) {
            return Some((caller, call, true));
        }
        real.due(clock).map(|(caller, call)| (caller, call, false))
    }

    fn try_again(&mut self, caller: u64, call: &Call) -> bool {
        let clock = self.clock();
        let before = self.model.clone();
        let admitted = self.model.try_again(caller);
        let stands = self.model.find(caller).map_or(Vec::new(), |waiting| waiting.stands.clone());
        if let Some(real) = &mut self.real {
            let refusing = real.call(call, Comer::Waits(caller), clock);
            assert_eq!(refusing, stands, "{call:?} of {caller} in {before:?}");
        }
        admitted
    }

    /// No caller is due. The limit or kept room refuses the first one of each line.
    fn is_at_rest(&mut self) {
        for limit in 0..self.model.limits.len() {
            let Some(first) = self.model.first(limit) else { continue };
            let call = &self.model.find(first).expect("it waits").call;
            let refusing = self.model.refusing(call, Comer::Waits(first));
            assert!(refusing.contains(&limit), "{first} could leave the line of {limit}: {:?}", self.model);
            let wish = call.wishes.iter().find(|wish| wish.limit == limit).expect("a wish");
            self.kept += usize::from(self.model.limits[limit].has_room(wish, self.model.wall));
        }
    }

    fn compare(&self) {
        let Some(real) = &self.real else { return };
        assert_eq!(real.lines.len(), self.model.waiting.len());
        let hungry: usize = self.model.limits.iter().map(|limit| limit.hungry.len()).sum();
        assert_eq!(real.lines.hungry(), hungry, "{:?} {:?}", self.model, real.lines);
    }
}
