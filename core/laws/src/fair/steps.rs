//! What happens to the limits and their callers.

#![allow(
    clippy::indexing_slicing,
    reason = "the limits of a model do not change, and each call names some of them"
)]

use super::call::{Call, Comer, Outcome, Tenant, Waiting, Wish};
use super::limit::{Hunger, Kind, Lease, units, whole_units};
use super::order::Fair;

impl Fair {
    /// Lets time pass.
    pub fn pass(&mut self, micros: u64) {
        self.steady += micros;
        self.wall += micros;
        self.tidy();
    }

    /// Ends the hunger whose time has passed, and forgets what no line needs any more.
    pub fn tidy(&mut self) {
        for index in 0..self.limits.len() {
            let steady = self.steady;
            self.limits[index].hungry.retain(|_, hunger| hunger.ends > steady);
            let active: Vec<Tenant> = self.active(index);
            let limit = &mut self.limits[index];
            limit.starts.retain(|tenant, _| active.contains(tenant));
            limit.known.retain(|tenant, _| active.contains(tenant));
            if active.is_empty() {
                limit.virtual_time = 0;
                limit.finishes.clear();
                limit.open.clear();
                limit.granted.clear();
            }
            let held: Vec<Tenant> = limit.held_leases(0).map(|lease| lease.tenant).collect();
            limit.weights.retain(|tenant, _| held.contains(tenant));
        }
    }

    /// A call arrives.
    pub fn arrive(&mut self, call: &Call, blocks: bool) -> Outcome {
        self.move_limits(call);
        let refusing = self.refusing(call, if blocks { Comer::Arrives } else { Comer::Passes });
        if refusing.is_empty() {
            self.grant(call);
            return Outcome::Admitted;
        }
        if blocks && call.wishes.iter().all(|wish| wish.cost <= wish.most) {
            self.arrivals += 1;
            let caller = self.arrivals;
            let call = call.clone();
            let waiting = Waiting { caller, call, stands: Vec::new(), waits_for: Vec::new(), moves: 0 };
            self.waiting.push(waiting);
            self.stay(caller, &refusing);
            return Outcome::Waits(caller);
        }
        call.wishes.iter().for_each(|wish| self.starve(wish, call.id, &refusing));
        self.tidy();
        Outcome::Refused(refusing)
    }

    /// A tenant begins to wait or to be hungry, if it does neither yet.
    fn begin(&mut self, wish: &Wish) {
        let limit = &mut self.limits[wish.limit];
        let start = limit.start(wish.tenant);
        if !limit.starts.contains_key(&wish.tenant) {
            limit.close(wish.tenant);
        }
        limit.starts.insert(wish.tenant, start);
    }

    /// A call without a wait was refused by these limits.
    fn starve(&mut self, wish: &Wish, id: u64, refusing: &[usize]) {
        let limit = &self.limits[wish.limit];
        let fits = wish.cost <= wish.most;
        let is_leases = matches!(limit.kind, Kind::Leases { .. });
        let for_room = !limit.has_room(wish, self.wall);
        // Else tenants that ask less often than once a hunger would keep a free slot for one another, and no one would use it.
        let is_new = for_room || limit.hungry.contains_key(&wish.tenant);
        if refusing == [wish.limit]
            && fits
            && is_leases
            && is_new
            && self.hunger > 0
            && (wish.tenant != 0 || self.is_fair(wish))
        {
            self.begin(wish);
            self.arrivals += 1;
            let (asked, ends) = (self.arrivals, self.steady + self.hunger);
            let hungry = &mut self.limits[wish.limit].hungry;
            let before = hungry.get(&wish.tenant);
            let began = before.map_or(asked, |hunger| hunger.began);
            // Without a weight, that of the calls before counts on.
            let weight = wish.weight.or(before.and_then(|hunger| hunger.wish.weight));
            let wish = Wish { weight, ..wish.clone() };
            hungry.insert(wish.tenant, Hunger { began, asked, ends, id, wish });
        } else if refusing.iter().any(|limit| *limit != wish.limit) {
            self.limits[wish.limit].hungry.remove(&wish.tenant);
        }
    }

    /// Each trial of a call moves its limits if the clock was set back.
    fn move_limits(&mut self, call: &Call) {
        for wish in &call.wishes {
            self.limits[wish.limit].move_to(self.wall);
        }
        self.tidy();
    }

    /// Charges all limits of a call that is admitted.
    fn grant(&mut self, call: &Call) {
        for wish in &call.wishes {
            let weight = self.weight(wish);
            let wall = self.wall;
            let limit = &mut self.limits[wish.limit];
            let is_bucket = matches!(limit.kind, Kind::Bucket { .. });
            let stored = wish.weight.or_else(|| limit.weight(wish.tenant, wall)).unwrap_or(1);
            let start = limit.start(wish.tenant);
            if is_bucket && !limit.starts.contains_key(&wish.tenant) {
                limit.close(wish.tenant);
            }
            let tag = start + units(if is_bucket { 1 } else { wish.cost }, weight);
            let finish = start + units(wish.cost, weight);
            limit.finishes.insert(wish.tenant, finish);
            limit.virtual_time = limit.virtual_time.max(tag);
            if let Some(start) = limit.starts.get_mut(&wish.tenant) {
                *start = if is_bucket { finish } else { limit.virtual_time.max(tag) };
            }
            if is_bucket {
                limit.granted.insert(wish.tenant, weight);
                if call.estimated {
                    *limit.open.entry(wish.tenant).or_default() += whole_units(wish.cost - 1, weight);
                }
            } else {
                limit.hungry.retain(|_, hunger| hunger.id != call.id);
            }
            let now = limit.change_at(wall);
            match &mut limit.kind {
                Kind::Leases { leases, .. } => {
                    let (id, ends) = (call.id, now + call.ttl);
                    leases.push(Lease { id, tenant: wish.tenant, cost: wish.cost, ends });
                }
                Kind::Bucket { interval, full, .. } => *full = now.max(*full) + *interval * wish.cost,
            }
            if is_bucket {
                limit.known.extend(wish.weight.map(|weight| (wish.tenant, weight)));
            } else {
                limit.weights.insert(wish.tenant, stored);
            }
        }
        self.tidy();
    }

    /// Tries a caller that waits. Returns whether it was admitted.
    pub fn try_again(&mut self, caller: u64) -> bool {
        let Some(call) = self.find(caller).map(|waiting| waiting.call.clone()) else { return false };
        self.move_limits(&call);
        let refusing = self.refusing(&call, Comer::Waits(caller));
        if refusing.is_empty() {
            self.grant(&call);
            self.leave(caller);
            return true;
        }
        self.stay(caller, &refusing);
        false
    }

    /// A caller stands in the lines of the limits that refuse it.
    fn stay(&mut self, caller: u64, refusing: &[usize]) {
        let Some(nth) = self.waiting.iter().position(|waiting| waiting.caller == caller) else { return };
        for wish in self.waiting[nth].call.wishes.clone() {
            let waits = refusing.contains(&wish.limit) || self.waiting[nth].waits_for.contains(&wish.limit);
            if waits {
                self.begin(&wish);
            }
            let waiting = &mut self.waiting[nth];
            waiting.waits_for.retain(|limit| *limit != wish.limit);
            waiting.waits_for.extend(waits.then_some(wish.limit));
        }
        let has_room = refusing.iter().all(|limit| {
            let wish = self.waiting[nth].call.wishes.iter().find(|wish| wish.limit == *limit);
            wish.is_some_and(|wish| self.limits[*limit].has_room(wish, self.wall))
        });
        let waiting = &mut self.waiting[nth];
        let before = core::mem::replace(&mut waiting.stands, refusing.to_vec());
        let moves = before.len() != refusing.len() || refusing.iter().any(|limit| !before.contains(limit));
        waiting.moves = if has_room { waiting.moves + u32::from(moves) } else { 0 };
        self.tidy();
    }

    /// A caller gives up.
    pub fn leave(&mut self, caller: u64) {
        self.waiting.retain(|waiting| waiting.caller != caller);
        self.tidy();
    }

    /// A lease ends. Returns whether it was held.
    pub fn release(&mut self, limit: usize, id: u64) -> bool {
        self.limits[limit].hungry.retain(|_, hunger| hunger.id != id);
        self.change(limit, id, |_, lease| lease.ends = 0)
    }

    /// A lease lasts for `ttl` from now on. Returns whether it was held.
    pub fn renew(&mut self, limit: usize, id: u64, ttl: u64) -> bool {
        let is_held = self.change(limit, id, |now, lease| lease.ends = now + ttl);
        self.limits[limit].hungry.retain(|_, hunger| !is_held || hunger.id != id);
        self.tidy();
        is_held
    }

    /// What was granted by a bucket is settled.
    pub fn settle(&mut self, limit: usize, tenant: Tenant, granted: u64, used: u64) {
        let first =
            self.standing(limit).map(|(_, wish)| wish).find(|wish| wish.tenant == tenant && !wish.critical);
        let of_first = first.map(|wish| self.weight(wish));
        let limit = &mut self.limits[limit];
        let Some(finish) = limit.finishes.get_mut(&tenant) else { return };
        let weight = of_first.unwrap_or_else(|| limit.granted.get(&tenant).copied().unwrap_or(1));
        let open = limit.open.entry(tenant).or_default();
        let rise = units(used.saturating_sub(granted), weight);
        let fall = whole_units(granted.saturating_sub(used.max(1)), weight).min(*open);
        *open = open.saturating_sub(whole_units(granted.saturating_sub(1), weight));
        *finish = *finish + rise - fall;
        if let Some(start) = limit.starts.get_mut(&tenant) {
            *start = *start + rise - fall;
        }
    }

    /// Changes a lease that is held.
    fn change(&mut self, limit: usize, id: u64, change: impl FnOnce(u64, &mut Lease)) -> bool {
        let wall = self.wall;
        let limit = &mut self.limits[limit];
        limit.move_to(wall);
        let is_held = limit.held_leases(wall).any(|lease| lease.id == id);
        if is_held {
            let now = limit.change_at(wall);
            if let Kind::Leases { leases, .. } = &mut limit.kind
                && let Some(lease) = leases.iter_mut().find(|lease| lease.id == id)
            {
                change(now, lease);
            }
        }
        self.tidy();
        is_held
    }

    /// Tries the first caller of each line until none of them changes. Returns the ids of those that were admitted, in
    /// order.
    pub fn serve(&mut self) -> Vec<u64> {
        let mut admitted = Vec::new();
        let mut limit = 0;
        let mut unchanged = 0;
        while unchanged < self.limits.len() {
            unchanged += 1;
            if let Some(Waiting { caller, call, stands, .. }) =
                self.first(limit).and_then(|first| self.find(first)).cloned()
            {
                admitted.extend(self.try_again(caller).then_some(call.id));
                let still = self.find(caller).map(|waiting| &waiting.stands);
                unchanged = if still == Some(&stands) { unchanged } else { 0 };
            }
            limit = (limit + 1) % self.limits.len();
        }
        admitted
    }
}
