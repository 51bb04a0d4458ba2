//! The order of a line, and whom it keeps from its limit.

#![allow(
    clippy::indexing_slicing,
    reason = "the limits of a model do not change, and each call names some of them"
)]

use num_rational::Ratio;

use super::call::{Call, Tenant, Waiting, Wish};
use super::limit::{Kind, Limit, units};

/// A level: what a tenant holds by its weight.
pub type Level = Ratio<u128>;

/// All limits, and the callers that wait for them.
#[derive(Clone, Debug)]
pub struct Fair {
    pub limits: Vec<Limit>,
    /// By arrival.
    pub waiting: Vec<Waiting>,
    pub arrivals: u64,
    /// The clock of lines and hunger, in microseconds. It is never set back.
    pub steady: u64,
    /// The clock of limits, in microseconds.
    pub wall: u64,
    /// How long a tenant is hungry.
    pub hunger: u64,
    /// The rule that orders tenants.
    pub rule: Rule,
    /// Whether a tenant becomes hungry that is refused for its turn only.
    pub hungry_for_turn: bool,
}

/// A rule that orders the tenants of leases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// The rule of fair lines.
    Fair,
    /// A simpler one: least held by weight.
    LeastHeld,
    /// A simpler one: least tag, whatever a tenant holds.
    LeastTag,
}

/// Where a call stands in a line. Lower ones come first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    class: u8,
    level: Level,
    tag: u128,
    arrival: u64,
}

/// Who stands in a line: a critical caller, the first caller of a tenant, or a hungry tenant.
#[derive(Clone, Debug)]
pub struct Standing {
    pub place: Place,
    /// `None` if the tenant is hungry.
    pub caller: Option<u64>,
    pub wish: Wish,
}

impl Fair {
    pub fn new(limits: Vec<Limit>) -> Fair {
        Fair {
            limits,
            waiting: Vec::new(),
            arrivals: 0,
            steady: 0,
            wall: 0,
            hunger: 1_000_000,
            rule: Rule::Fair,
            hungry_for_turn: false,
        }
    }

    pub fn find(&self, caller: u64) -> Option<&Waiting> {
        self.waiting.iter().find(|waiting| waiting.caller == caller)
    }

    /// The wishes for a limit of callers that wait, by arrival, also of those that stand only in another line meanwhile.
    fn wishes(&self, limit: usize) -> impl DoubleEndedIterator<Item = (&Waiting, &Wish)> {
        self.waiting.iter().filter_map(move |waiting| {
            waiting.call.wishes.iter().find(|wish| wish.limit == limit).map(|wish| (waiting, wish))
        })
    }

    /// The tenants that wait or are hungry.
    pub(super) fn active(&self, limit: usize) -> Vec<Tenant> {
        let waiting = self.wishes(limit).map(|(_, wish)| wish.tenant);
        waiting.chain(self.limits[limit].hungry.keys().copied()).collect()
    }

    /// The weight of a tenant: of its latest call that waits or is hungry, else the stored one.
    pub(super) fn weight(&self, limit: usize, tenant: Tenant) -> u64 {
        let of_waiting = self.wishes(limit).filter(|(_, wish)| wish.tenant == tenant);
        let of_waiting = of_waiting.filter_map(|(waiting, wish)| Some((waiting.caller, wish.weight?)));
        let of_hungry = self.limits[limit].hungry.get(&tenant);
        let of_hungry = of_hungry.and_then(|hunger| Some((hunger.asked, hunger.wish.weight?)));
        let latest = of_waiting.chain(of_hungry).max_by_key(|(arrival, _)| *arrival);
        let stored = || self.limits[limit].weights.get(&tenant).copied();
        latest.map(|(_, weight)| weight).or_else(stored).unwrap_or(1)
    }

    /// The place of a call, as if it were the first of its tenant.
    pub fn place(&self, wish: &Wish, weight: Option<u64>, arrival: u64) -> Place {
        let limit = &self.limits[wish.limit];
        let zero = Level::from_integer(0);
        if wish.critical {
            return Place { class: 0, level: zero, tag: 0, arrival };
        }
        let weight = weight.unwrap_or_else(|| self.weight(wish.limit, wish.tenant));
        let tag = limit.start(wish.tenant) + units(wish.cost, weight);
        let held = limit.held(wish.tenant, self.wall);
        let level = Level::new(u128::from(held + wish.cost), weight.into());
        let is_bucket = matches!(limit.kind, Kind::Bucket { .. });
        match self.rule {
            _ if is_bucket => Place { class: 1, level: zero, tag, arrival },
            Rule::LeastTag => Place { class: 1, level: zero, tag, arrival },
            Rule::Fair if held == 0 && tag <= limit.virtual_time => {
                Place { class: 1, level: zero, tag, arrival }
            }
            Rule::Fair => Place { class: 2, level, tag, arrival },
            Rule::LeastHeld => Place { class: 2, level, tag: 0, arrival },
        }
    }

    /// Who stands in the line of a limit, in order.
    pub fn line(&self, limit: usize) -> Vec<Standing> {
        let mut line = Vec::new();
        let mut tenants: Vec<Tenant> = Vec::new();
        for (waiting, wish) in self.wishes(limit).filter(|(waiting, _)| waiting.stands.contains(&limit)) {
            if wish.critical || !tenants.contains(&wish.tenant) {
                let place = self.place(wish, None, waiting.caller);
                line.push(Standing { place, caller: Some(waiting.caller), wish: wish.clone() });
            }
            if !wish.critical {
                tenants.push(wish.tenant);
            }
        }
        for (tenant, hunger) in &self.limits[limit].hungry {
            if !tenants.contains(tenant) {
                let wish = Wish { critical: false, ..hunger.wish.clone() };
                let place = self.place(&wish, None, hunger.began);
                line.push(Standing { place, caller: None, wish });
            }
        }
        line.sort_by(|a, b| a.place.cmp(&b.place));
        line
    }

    /// The caller that is tried when the line of a limit is due: the first that waits.
    pub fn first(&self, limit: usize) -> Option<u64> {
        self.line(limit).iter().find_map(|standing| standing.caller)
    }

    /// Whether others in the line of a limit keep a call from it. `caller` is `None` for a call that arrives now.
    pub fn is_kept(&self, wish: &Wish, caller: Option<u64>) -> bool {
        let limit = &self.limits[wish.limit];
        let line = self.line(wish.limit);
        let hunger = limit.hungry.get(&wish.tenant).filter(|_| {
            let is_own = |other: &Standing| other.wish.tenant == wish.tenant && other.caller.is_some();
            !line.iter().any(|other| is_own(other) && !other.wish.critical)
        });
        let arrival = caller.or_else(|| hunger.map(|hunger| hunger.began)).unwrap_or(u64::MAX);
        let weight = wish.weight.filter(|_| caller.is_none());
        let place = self.place(wish, weight, arrival);
        let used = limit.used(self.wall);
        let others = line.iter().filter(|other| caller.is_none() || other.caller != caller);
        others.into_iter().any(|other| {
            let is_own = !wish.critical && !other.wish.critical && other.wish.tenant == wish.tenant;
            if is_own {
                // First come, first served within a tenant. Its hunger keeps none of its calls away.
                return other.caller.is_some_and(|other| other < caller.unwrap_or(u64::MAX));
            }
            let strictly = other.wish.critical || matches!(limit.kind, Kind::Bucket { .. });
            other.place < place && (strictly || used + wish.cost + other.wish.cost > other.wish.most)
        })
    }

    /// The limits that refuse a call.
    pub fn refusing(&self, call: &Call, caller: Option<u64>) -> Vec<usize> {
        let refuses =
            |wish: &&Wish| !self.limits[wish.limit].has_room(wish, self.wall) || self.is_kept(wish, caller);
        call.wishes.iter().filter(refuses).map(|wish| wish.limit).collect()
    }
}
