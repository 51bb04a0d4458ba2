//! The order of a line, and whom it keeps from its limit.

#![allow(
    clippy::indexing_slicing,
    reason = "the limits of a model do not change, and each call names some of them"
)]

use num_rational::Ratio;

use super::call::{Call, Comer, Tenant, Waiting, Wish};
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
}

/// What keeps a call from a limit that has room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// Callers that wait.
    ByCallers,
    /// Tenants that are hungry. The first of their hungers ends then.
    UntilHungerEnds(u64),
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
        Fair { limits, waiting: Vec::new(), arrivals: 0, steady: 0, wall: 0, hunger: 1_000_000 }
    }

    pub fn find(&self, caller: u64) -> Option<&Waiting> {
        self.waiting.iter().find(|waiting| waiting.caller == caller)
    }

    /// The wishes of callers that wait for a limit, by arrival, also of those that stand only in another line meanwhile.
    fn wishes(&self, limit: usize) -> impl Iterator<Item = (&Waiting, &Wish)> {
        let waiting = self.waiting.iter().filter(move |waiting| waiting.waits_for.contains(&limit));
        waiting.flat_map(move |waiting| {
            let wishes = waiting.call.wishes.iter().filter(move |wish| wish.limit == limit);
            wishes.map(move |wish| (waiting, wish))
        })
    }

    /// The tenants that wait or are hungry.
    pub(super) fn active(&self, limit: usize) -> Vec<Tenant> {
        let waiting = self.wishes(limit).map(|(_, wish)| wish.tenant);
        waiting.chain(self.limits[limit].hungry.keys().copied()).collect()
    }

    /// The callers that stand in the line of a limit, by arrival.
    pub(super) fn standing(&self, limit: usize) -> impl Iterator<Item = (&Waiting, &Wish)> {
        self.wishes(limit).filter(move |(waiting, _)| waiting.stands.contains(&limit))
    }

    /// The weight for a call: its own, else that of the last refused call while the tenant is hungry, else the stored one.
    pub(super) fn weight(&self, wish: &Wish) -> u64 {
        let limit = &self.limits[wish.limit];
        let of_hungry = || limit.hungry.get(&wish.tenant).and_then(|hunger| hunger.wish.weight);
        let held = || limit.weight(wish.tenant, self.wall);
        let known = || limit.known.get(&wish.tenant).copied();
        wish.weight.or_else(of_hungry).or_else(held).or_else(known).unwrap_or(1)
    }

    /// What the tenant of a call would hold with it, by its weight.
    fn level(&self, wish: &Wish) -> Level {
        let held = self.limits[wish.limit].held(wish.tenant, self.wall);
        Level::new(u128::from(held + wish.cost), self.weight(wish).into())
    }

    /// The place of a call, as if it were the first of its tenant.
    pub fn place(&self, wish: &Wish, arrival: u64) -> Place {
        let limit = &self.limits[wish.limit];
        let zero = Level::from_integer(0);
        if wish.critical {
            return Place { class: 0, level: zero, tag: 0, arrival };
        }
        let weight = self.weight(wish);
        let is_bucket = matches!(limit.kind, Kind::Bucket { .. });
        let tag = limit.start(wish.tenant) + units(if is_bucket { 1 } else { wish.cost }, weight);
        let held = limit.held(wish.tenant, self.wall);
        if is_bucket || held == 0 && tag <= limit.virtual_time {
            Place { class: 1, level: zero, tag, arrival }
        } else {
            Place { class: 2, level: self.level(wish), tag, arrival }
        }
    }

    /// Who stands in the line of a limit, in order.
    pub fn line(&self, limit: usize) -> Vec<Standing> {
        let mut line = Vec::new();
        let mut tenants: Vec<Tenant> = Vec::new();
        for (waiting, wish) in self.standing(limit) {
            if wish.critical || !tenants.contains(&wish.tenant) {
                let place = self.place(wish, waiting.caller);
                line.push(Standing { place, caller: Some(waiting.caller), wish: wish.clone() });
            }
            if !wish.critical {
                tenants.push(wish.tenant);
            }
        }
        for (tenant, hunger) in &self.limits[limit].hungry {
            let wish = hunger.wish.clone();
            if !tenants.contains(tenant) {
                line.push(Standing { place: self.place(&wish, hunger.began), caller: None, wish });
            }
        }
        line.sort_by(|a, b| a.place.cmp(&b.place));
        line
    }

    /// The caller that is tried when the line of a limit is due: the first that waits.
    pub fn first(&self, limit: usize) -> Option<u64> {
        self.line(limit).iter().find_map(|standing| standing.caller)
    }

    /// Whether others in the line of a limit keep a call from it, and who.
    pub fn kept(&self, wish: &Wish, comer: Comer) -> Option<Kept> {
        if comer.waiting().and_then(|caller| self.find(caller)).is_some_and(|waiting| waiting.moves >= 16) {
            return None;
        }
        let limit = &self.limits[wish.limit];
        let is_bucket = matches!(limit.kind, Kind::Bucket { .. });
        let passes = comer == Comer::Passes && self.is_fair(wish);
        if passes && is_bucket {
            return self.standing(wish.limit).next().map(|_| Kept::ByCallers);
        }
        // The call of a hungry tenant stands for the one that was refused, if tenants take turns.
        let hunger = limit.hungry.get(&wish.tenant).filter(|_| passes);
        let arrival = comer.waiting().or(hunger.map(|hunger| hunger.began)).unwrap_or(u64::MAX);
        let place = self.place(wish, arrival);
        let mut before = self.line(wish.limit);
        before.retain(|other| {
            let is_own = other.wish.tenant == wish.tenant;
            match other.caller {
                Some(caller) if comer.waiting() == Some(caller) => false,
                // First come, first served within a tenant.
                Some(caller) if is_own && !wish.critical && !other.wish.critical => caller < arrival,
                // Its hunger keeps none of its calls away.
                None if is_own => false,
                _ => other.place < place,
            }
        });
        let waiting: Vec<Standing> = before.iter().filter(|other| other.caller.is_some()).cloned().collect();
        if if passes { !self.leaves_room(wish, &place, &waiting) } else { !waiting.is_empty() } {
            return Some(Kept::ByCallers);
        }
        let ends = before.iter().filter(|other| other.caller.is_none());
        let ends = ends.filter_map(|other| limit.hungry.get(&other.wish.tenant)).map(|hunger| hunger.ends);
        let end = ends.min().filter(|_| !is_bucket && !self.leaves_room(wish, &place, &before));
        end.map(Kept::UntilHungerEnds)
    }

    /// Whether a call leaves room for those before it: together for the critical ones and for those that would hold less with
    /// their own costs than the call's tenant with this one; and for each of the others.
    fn leaves_room(&self, wish: &Wish, place: &Place, before: &[Standing]) -> bool {
        let own = self.level(wish);
        let compares = !wish.critical && place.class > 1;
        let (mut together, others): (Vec<&Standing>, Vec<&Standing>) =
            before.iter().partition(|other| other.wish.critical || compares && self.level(&other.wish) < own);
        together.sort_by_key(|other| {
            let level = if other.wish.critical { Level::from_integer(0) } else { self.level(&other.wish) };
            // The tag counts although the turn of some has come.
            let tag = if other.wish.critical { 0 } else { other.place.tag };
            (!other.wish.critical, level, tag, other.place.arrival)
        });
        let held = self.limits[wish.limit].used(self.wall) + wish.cost;
        let mut sum = held;
        let fit_together = together.iter().all(|other| {
            sum += other.wish.cost;
            sum <= other.wish.most
        });
        fit_together && others.iter().all(|other| held + other.wish.cost <= other.wish.most)
    }

    /// Whether a tenant with a name waits or is hungry, or held something at the last change.
    pub(super) fn is_fair(&self, wish: &Wish) -> bool {
        let holds = self.limits[wish.limit].held_leases(0).map(|lease| lease.tenant);
        self.active(wish.limit).into_iter().chain(holds).any(|tenant| tenant != 0)
    }

    /// The limits that refuse a call.
    pub fn refusing(&self, call: &Call, comer: Comer) -> Vec<usize> {
        let refuses = |wish: &&Wish| {
            !self.limits[wish.limit].has_room(wish, self.wall) || self.kept(wish, comer).is_some()
        };
        call.wishes.iter().filter(refuses).map(|wish| wish.limit).collect()
    }
}
