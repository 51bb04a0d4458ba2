//! How a call is tried, by the lines and tables as a server uses them, and by the model beside them.

use ratelimit_core::limiter::Limiter;
use ratelimit_core::line::{Claim, Comer as Comes, Cost};
use ratelimit_core::state::{Leases, Pool, hash_of_id};
use ratelimit_core::{Span, Stand, Time, Verdict};

use super::event::{Broken, CAPACITY, Effect, ORDER, ROOM, holds};
use super::node::{Asked, HUNGER, Hold, Lease, Node, TICK, TTL, Waits, Works, key_of, name_of};
use super::rules;
use super::size::{Manner, POOL, RATE};
use crate::fair::{Call, Outcome};

/// A limit that refuses a call, and when it may have room.
type Refusal = (usize, Option<Span>);

impl Node {
    /// What a limit answers, as if no one else waited. The line learns what its tenants hold.
    fn judge(&mut self, call: Asked, limit: usize) -> (Verdict, Claim) {
        let ask = *self.ask(call);
        let (tenant, cost) = (self.tenant(call, limit), ask.costs[limit]);
        let (verdict, pool) = if limit == POOL {
            let blank = Leases::default();
            let leases = self.pool.as_ref().unwrap_or(&blank);
            let verdict = self.with_pool(call, |pool| pool.judge(leases, self.now, cost));
            self.lines.follow(&0, Node::name(POOL), Some(leases), self.now, self.now);
            let (most, share) = (self.size.capacities[POOL], leases.share(tenant, self.now));
            (verdict, Some(Pool { most, share, id: hash_of_id(&call.id.to_be_bytes()) }))
        } else {
            let bucket = self.bucket();
            let level = self.rate.unwrap_or_else(|| bucket.fresh(self.now));
            (bucket.judge(&level, self.now, cost), None)
        };
        let claim = Claim {
            tenant,
            weight: ask.weight.filter(|_| ask.fair == limit),
            cost,
            critical: ask.critical,
            pool,
        };
        (verdict, claim.into_owned())
    }

    /// Judges a call by its limits and their lines.
    fn refusals(&mut self, call: Asked, comes: Comes) -> (Vec<Refusal>, Vec<Stand<u8>>) {
        let (mut refusals, mut stands) = (Vec::new(), Vec::new());
        for limit in self.asked(call) {
            let (verdict, claim) = self.judge(call, limit);
            let (key, name) = (key_of(limit), Node::name(limit));
            let ahead = self.lines.ahead(&key, name, &borrowed(&claim), comes, self.now);
            let retry = match verdict {
                Verdict::Refuse { retry } => Some(retry),
                Verdict::Admit { .. } => ahead.map(|_| Some(Span::ZERO)),
            };
            refusals.extend(retry.map(|retry| (limit, retry)));
            stands.push(Stand { key, name, claim, retry: retry.flatten() });
        }
        (refusals, stands)
    }

    /// Tries a call. If it is admitted it is charged, and works.
    pub(super) fn takes(
        &mut self,
        call: Asked,
        comes: Comes,
        effect: &mut Effect,
    ) -> Result<Vec<Stand<u8>>, Broken> {
        let (refusals, mut stands) = self.refusals(call, comes);
        if refusals.is_empty() {
            for stand in stands {
                self.grant(call, &stand, effect)?;
            }
            let ask = self.ask(call);
            let lease = (ask.costs[POOL] > 0).then(|| Lease {
                id: call.id,
                cost: ask.costs[POOL],
                ends: self.now.plus(TTL),
            });
            let hold = Hold { granted: ask.costs[RATE], ends: self.now.plus(TTL) };
            let hold = (ask.holds && self.settlements > 0).then_some(hold);
            self.works.push(Works { tenant: call.tenant, lease, hold });
            self.tidy();
            rules::capacity(self)?;
            return Ok(Vec::new());
        }
        stands.retain(|stand| refusals.iter().any(|(limit, _)| key_of(*limit) == stand.key));
        Ok(stands)
    }

    fn grant(&mut self, call: Asked, stand: &Stand<u8>, effect: &mut Effect) -> Result<(), Broken> {
        let limit = usize::from(stand.key);
        self.charge(call, limit);
        let ask = *self.ask(call);
        let cost = if ask.holds { Cost::Estimated } else { Cost::Known };
        self.lines.grant(&stand.key, stand.name, &borrowed(&stand.claim), cost, self.now);
        self.lines.mark(&stand.key);
        effect.granted |= 1 << limit;
        effect.critical |= ask.critical;
        if ask.fair == limit {
            effect.grants[limit][usize::from(call.tenant)] += 1;
        }
        if limit == RATE {
            let left = self.tokens.checked_sub(ask.costs[RATE]);
            self.tokens = left.ok_or_else(|| Broken::new(CAPACITY, "the rate admits more than it may"))?;
        }
        Ok(())
    }

    /// Who neither holds a lease nor something to settle is idle again.
    pub fn tidy(&mut self) {
        let settles = self.settlements > 0;
        self.works.iter_mut().filter(|_| !settles).for_each(|works| works.hold = None);
        self.works.retain(|works| works.lease.is_some() || works.hold.is_some());
    }

    /// A caller that was idle makes a call.
    pub(super) fn call(&mut self, ask: u8, tenant: u8, effect: &mut Effect) -> Result<(), Broken> {
        let manner = self.size.asks[usize::from(ask)].manner;
        let again = self.refused(tenant).filter(|_| manner == Manner::Polls);
        let id = again.unwrap_or_else(|| self.fresh());
        let call = Asked { ask, tenant, id };
        let waits = manner == Manner::Waits;
        let of_model = self.of_model(call);
        let expected = self.model.arrive(&of_model, waits);
        let stands = self.takes(call, if waits { Comes::Arrives } else { Comes::Passes }, effect)?;
        let refusing = limits_of(&stands);
        let property = if waits { ORDER } else { ROOM };
        match &expected {
            Outcome::Admitted => self.agrees(property, call, &[], &refusing)?,
            Outcome::Refused(limits) => self.agrees(property, call, limits, &refusing)?,
            Outcome::Waits(number) => {
                let limits = self.model.find(*number).map_or(Vec::new(), |waiting| waiting.stands.clone());
                self.agrees(property, call, &limits, &refusing)?;
            }
        }
        effect.tell(|| {
            let weight = self.ask(call).weight.map(|weight| format!(", by a weight of {weight}"));
            format!(
                "{} asks for {}{}{}{}: {}",
                text(tenant),
                costs(&of_model),
                weight.unwrap_or_default(),
                if waits { ", and can wait" } else { "" },
                if self.ask(call).critical { ", and is critical" } else { "" },
                if refusing.is_empty() {
                    "admitted"
                } else if waits {
                    "waits"
                } else {
                    "refused"
                },
            )
        });
        if let Outcome::Waits(number) = expected {
            let caller = self.lines.enter(self.now, Time::END, stands);
            self.waiting.push(Waits { caller, number, call });
        } else if !refusing.is_empty() {
            self.starve(call, &refusing);
        }
        self.serve(effect)
    }

    /// The id of the call that was refused last, if the tenant is hungry.
    pub(super) fn refused(&self, tenant: u8) -> Option<u64> {
        self.model.limits[POOL].hungry.get(&(1 + u32::from(tenant))).map(|hunger| hunger.id)
    }

    fn fresh(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    /// These limits refused a call that does not wait.
    fn starve(&mut self, call: Asked, refusing: &[usize]) {
        for limit in self.asked(call) {
            let (key, name) = (key_of(limit), Node::name(limit));
            if refusing != [limit] {
                self.lines.sate(&key, name, self.tenant(call, limit));
            } else if limit == POOL {
                let (_, claim) = self.judge(call, limit);
                let has_tenants = self.pool.as_ref().is_some_and(Leases::has_tenants);
                if has_tenants || self.lines.is_fair(&key, name) || !claim.tenant.is_empty() {
                    self.lines.starve(&key, name, &claim, self.now, HUNGER, 1000);
                }
            }
        }
    }

    /// The lines refuse a call where the model does.
    pub(super) fn agrees(
        &self,
        property: &'static str,
        call: Asked,
        expected: &[usize],
        refusing: &[usize],
    ) -> Result<(), Broken> {
        holds(expected == refusing, property, || {
            let title = |limits: &[usize]| match limits {
                [] => "nothing",
                [POOL] => "the pool",
                [_] => "the rate",
                _ => "both limits",
            };
            format!(
                "{} asks for {}: {} refuses it, and {} should",
                text(call.tenant),
                costs(&self.of_model(call)),
                title(refusing),
                title(expected)
            )
        })
    }
}

/// The ticks that are left until an instant.
pub fn ticks(end: Time, now: Time) -> u64 {
    end.since(now).as_micros().div_ceil(TICK.as_micros())
}

pub fn text(tenant: u8) -> &'static str {
    str::from_utf8(name_of(tenant)).unwrap_or_default()
}

pub fn costs(call: &Call) -> String {
    let wish = |limit: usize| call.wishes.iter().find(|wish| wish.limit == limit).map(|wish| wish.cost);
    match (wish(POOL), wish(RATE)) {
        (Some(pool), None) => format!("{pool} of the pool"),
        (None, Some(rate)) => format!("{rate} of the rate"),
        (pool, rate) => format!("{} of the pool and {} of the rate", pool.unwrap_or(0), rate.unwrap_or(0)),
    }
}

pub fn limits_of(stands: &[Stand<u8>]) -> Vec<usize> {
    stands.iter().map(|stand| usize::from(stand.key)).collect()
}

fn borrowed(claim: &Claim) -> Claim<&[u8]> {
    let Claim { tenant, weight, cost, critical, pool } = claim;
    Claim { tenant: &tenant[..], weight: *weight, cost: *cost, critical: *critical, pool: *pool }
}
