//! Who waits for a limit or is hungry for it, by tenants. The rules and their proof are in `mod.rs`.
//!
//! A plain line is one of a single tenant, which has the empty name.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;

use super::claim::{Caller, Claim, Comer};
use super::order::{Entry, Load, Order, Place, Rank, Tag, stretch};
use crate::state::{Leases, News, Seen, Share};
use crate::time::{Span, Time};

/// The most tenants of a rate whose last grants are remembered while they do not wait.
const MOST_IDLE: usize = 10_000;

/// The shortest time after which a caller that was refused is tried again.
const LEAST_WAKE: Span = Span::from_millis(1);

/// The tenants of one line.
#[derive(Default, Debug)]
pub(super) struct Tenants {
    /// V: the largest tag that was granted.
    passed: Tag,
    /// Those that wait or are hungry.
    by_name: BTreeMap<Arc<[u8]>, Tenant>,
    /// Those of a rate that were granted something, and do not wait.
    idle: BTreeMap<Arc<[u8]>, Idle>,
    waiting: Order,
    hungry: Order,
    /// When the hungers end.
    ends: BTreeSet<(Time, Arc<[u8]>)>,
    /// What is known of the table of leases. `None` for a plain line, and for a rate.
    table: Option<Table>,
}

#[derive(Debug)]
struct Tenant {
    /// S
    start: Tag,
    /// F: the tag of the last grant.
    finish: Tag,
    held: u64,
    /// The weight without that of a caller.
    weight: u32,
    /// Those in the line that are not critical.
    callers: BTreeMap<Caller, Ticket>,
    is_of_rate: bool,
    /// The number of critical callers in the line.
    critical: usize,
    /// The number of callers that stood in the line, and stand only in other lines meanwhile.
    away: usize,
    hunger: Option<Hunger>,
    /// Where it stands, and whether that is among the hungry ones.
    place: Option<(bool, Place)>,
}

#[derive(Clone, Copy, Debug)]
struct Idle {
    finish: Tag,
    /// That of the last grant, which a settlement corrects.
    weight: u32,
}

impl Idle {
    const NEW: Idle = Idle { finish: 0, weight: 1 };
}

/// What a caller asks for.
#[derive(Clone, Copy, Debug)]
struct Ticket {
    cost: u64,
    weight: Option<u32>,
    /// Of leases: the most that may be held with its own.
    most: Option<u64>,
}

/// A call that was refused and did not wait.
#[derive(Clone, Copy, Debug)]
struct Hunger {
    /// When it began, among the callers.
    caller: Caller,
    ticket: Ticket,
    critical: bool,
    until: Time,
}

#[derive(Clone, Copy, Debug)]
struct Table {
    /// `None` if all of it must be read.
    seen: Option<Seen>,
    /// Whether leases have tenants.
    is_shared: bool,
    /// The cost of all leases.
    held: u64,
    /// When the next lease expires.
    next_end: Option<Time>,
}

/// Who comes before a caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ahead {
    /// One that waits.
    Caller,
    /// A tenant that is hungry until then.
    Hunger(Time),
}

impl Tenant {
    fn new(passed: Tag, idle: Idle) -> Tenant {
        Tenant {
            start: passed.max(idle.finish),
            finish: idle.finish,
            held: 0,
            weight: 1,
            callers: BTreeMap::new(),
            is_of_rate: false,
            critical: 0,
            away: 0,
            hunger: None,
            place: None,
        }
    }

    /// Whether it waits or is hungry.
    fn is_present(&self) -> bool {
        !self.callers.is_empty() || self.critical > 0 || self.away > 0 || self.hunger.is_some()
    }

    /// Notes what it holds now. Its weight is that of its leases.
    fn know(&mut self, Share { held, weight }: Share) {
        (self.held, self.weight) = (held, if held > 0 { weight } else { 1 });
    }

    /// The weight for a call: its own, else that of the last refused call while the tenant is hungry, else the tenant's.
    fn weight_for(&self, own: Option<u32>) -> u32 {
        own.or(self.hunger.and_then(|hunger| hunger.ticket.weight)).unwrap_or(self.weight)
    }

    /// Its tag with this caller.
    fn tag_of(&self, ticket: Ticket) -> Tag {
        self.start.saturating_add(stretch(ticket.cost, self.weight_for(ticket.weight)))
    }

    fn place_of(&self, caller: Caller, ticket: Ticket) -> Place {
        let tag = self.tag_of(ticket);
        let held = self.held.saturating_add(ticket.cost);
        let load = Load { held, weight: self.weight_for(ticket.weight) };
        match ticket.most {
            None => Place::Tag(tag, caller),
            Some(_) if self.held == 0 => Place::Without(load, tag, caller),
            Some(_) => Place::With(load, tag, caller),
        }
    }

    /// Where it stands: with its first caller, or else with its hunger.
    fn stands(&self) -> Option<(Place, Caller, Ticket, Option<Time>)> {
        if let Some((caller, ticket)) = self.callers.first_key_value() {
            return Some((self.place_of(*caller, *ticket), *caller, *ticket, None));
        }
        let Hunger { caller, ticket, critical, until } = self.hunger?;
        let place = if critical { Place::Critical(caller) } else { self.place_of(caller, ticket) };
        Some((place, caller, ticket, Some(until)))
    }
}

impl Ticket {
    fn of<T>(claim: &Claim<T>) -> Ticket {
        let most = claim.pool.map(|pool| pool.most);
        Ticket { cost: claim.cost, weight: claim.weight, most }
    }

    fn entry(self, tenant: Arc<[u8]>, caller: Caller, until: Option<Time>) -> Entry {
        Entry { tenant, caller, cost: self.cost, most: self.most.unwrap_or(u64::MAX), until }
    }
}

impl Tenants {
    /// Whether no tenant waits or is hungry.
    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Those that wait or are hungry: name, weight, and the number of callers that wait.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], u32, usize)> {
        self.by_name.iter().map(|(name, tenant)| {
            let first = tenant.callers.values().next().and_then(|ticket| ticket.weight);
            (&**name, tenant.weight_for(first), tenant.callers.len() + tenant.critical)
        })
    }

    /// Whether it is a fair line: a tenant has a name, or holds leases.
    pub(super) fn is_fair(&self) -> bool {
        self.table.is_some_and(|table| table.is_shared)
            || self.by_name.last_key_value().is_some_and(|(name, _)| !name.is_empty())
    }

    /// The caller that is to be tried first.
    pub(super) fn first(&self) -> Option<Caller> {
        self.waiting.first(self.passed).map(|(_, entry)| entry.caller)
    }

    /// Adds a caller. If it `stays`, it only asks for something else.
    pub(super) fn arrive(&mut self, caller: Caller, claim: &Claim, stays: bool) {
        let ticket = Ticket::of(claim);
        let tenant = self.begin(claim);
        if claim.critical {
            tenant.critical += usize::from(!stays);
            let entry = ticket.entry(claim.tenant.clone(), caller, None);
            self.waiting.insert(Place::Critical(caller), entry);
        } else {
            tenant.callers.insert(caller, ticket);
        }
        self.place(&claim.tenant);
    }

    /// Removes a caller.
    pub(super) fn depart(&mut self, caller: Caller, critical: bool, name: &Arc<[u8]>) {
        let Some(tenant) = self.by_name.get_mut(name) else { return };
        if critical {
            tenant.critical = tenant.critical.saturating_sub(1);
            self.waiting.remove(Place::Critical(caller));
        } else {
            tenant.callers.remove(&caller);
        }
        self.place(name);
    }

    /// A caller leaves the line for others. Its tenant waits until it comes back or [quits](Self::quit).
    pub(super) fn go_away(&mut self, name: &Arc<[u8]>) {
        self.by_name.get_mut(name).into_iter().for_each(|tenant| tenant.away += 1);
    }

    pub(super) fn quit(&mut self, name: &[u8]) {
        self.change(name, |tenant| tenant.away = tenant.away.saturating_sub(1));
    }

    /// Whether a refused call may make its tenant hungry. If the limit has room for the call, the tenant must be hungry already.
    pub(super) fn may_starve(&self, claim: &Claim) -> bool {
        let is_full =
            |table: Table| claim.pool.is_none_or(|pool| table.held.saturating_add(claim.cost) > pool.most);
        self.table.is_none_or(is_full)
            || self.by_name.get(&claim.tenant).is_some_and(|tenant| tenant.hunger.is_some())
    }

    /// The tenant is hungry from now on, with what was refused to it. If it was already, it keeps its place. Returns when that
    /// hunger would have ended.
    pub(super) fn starve(&mut self, number: Caller, claim: &Claim, until: Time) -> Option<Time> {
        let mut ticket = Ticket::of(claim);
        let tenant = self.begin(claim);
        let before = tenant.hunger;
        ticket.weight = ticket.weight.or(before.and_then(|before| before.ticket.weight));
        let caller = before.map_or(number, |before| before.caller);
        tenant.hunger = Some(Hunger { caller, ticket, critical: claim.critical, until });
        let before = before.map(|before| before.until);
        self.move_end(&claim.tenant, before, Some(until));
        self.place(&claim.tenant);
        before
    }

    /// The tenant is not hungry any more. Returns when its hunger would have ended; `None` if it was not hungry.
    pub(super) fn sate(&mut self, name: &[u8]) -> Option<Time> {
        let (name, _) = self.by_name.get_key_value(name)?;
        let name = name.clone();
        let hunger = self.by_name.get_mut(&name)?.hunger.take()?;
        self.move_end(&name, Some(hunger.until), None);
        self.place(&name);
        Some(hunger.until)
    }

    /// The tenant of a claim, and what the claim says of it. Returns the tenant, which waits or is hungry from now on.
    fn begin(&mut self, claim: &Claim) -> &mut Tenant {
        let (passed, idle) = (self.passed, self.idle.remove(&claim.tenant).unwrap_or(Idle::NEW));
        let tenant = self.by_name.entry(claim.tenant.clone());
        let tenant = tenant.or_insert_with(|| Tenant::new(passed, idle));
        claim.pool.into_iter().for_each(|pool| tenant.know(pool.share));
        tenant.is_of_rate = claim.pool.is_none();
        tenant
    }

    /// Calls `read` with the tenant of a claim, or with what it would be if it began to wait.
    fn with_tenant<T>(&self, claim: &Claim<&[u8]>, read: impl FnOnce(&Tenant) -> T) -> T {
        if let Some(tenant) = self.by_name.get(claim.tenant) {
            return read(tenant);
        }
        let idle = self.idle.get(claim.tenant).copied().unwrap_or(Idle::NEW);
        let mut tenant = Tenant::new(self.passed, idle);
        claim.pool.into_iter().for_each(|pool| tenant.know(pool.share));
        read(&tenant)
    }

    /// Changes a tenant that waits or is hungry, and puts it where it then stands. Returns whether there is one.
    fn change(&mut self, name: &[u8], change: impl FnOnce(&mut Tenant)) -> bool {
        let Some((name, _)) = self.by_name.get_key_value(name) else { return false };
        let name = name.clone();
        if let Some(tenant) = self.by_name.get_mut(&name) {
            change(tenant);
        }
        self.place(&name);
        true
    }

    /// Puts a tenant where it stands now, and forgets it if it neither waits nor is hungry.
    fn place(&mut self, name: &Arc<[u8]>) {
        let Some(tenant) = self.by_name.get_mut(name) else { return };
        if let Some((is_hungry, place)) = tenant.place.take() {
            if is_hungry { &mut self.hungry } else { &mut self.waiting }.remove(place);
        }
        if !tenant.is_present() {
            let Tenant { finish, weight, is_of_rate, .. } = *tenant;
            self.by_name.remove(name);
            // No tenant of leases has a tag above V, so nothing would be remembered.
            if is_of_rate {
                self.remember(name.clone(), Idle { finish, weight });
            }
        } else if let Some((place, caller, ticket, until)) = tenant.stands() {
            tenant.place = Some((until.is_some(), place));
            let entry = ticket.entry(name.clone(), caller, until);
            if until.is_some() { &mut self.hungry } else { &mut self.waiting }.insert(place, entry);
        }
    }

    fn remember(&mut self, name: Arc<[u8]>, idle: Idle) {
        if self.idle.len() >= MOST_IDLE {
            let passed = self.passed;
            self.idle.retain(|_, idle| idle.finish > passed);
        }
        if self.idle.len() < MOST_IDLE {
            self.idle.insert(name, idle);
        }
    }

    fn move_end(&mut self, name: &Arc<[u8]>, old: Option<Time>, new: Option<Time>) {
        if let Some(old) = old {
            self.ends.remove(&(old, name.clone()));
        }
        self.ends.extend(new.map(|new| (new, name.clone())));
    }

    /// A call was admitted, whether it waited or not.
    pub(super) fn grant(&mut self, claim: &Claim<&[u8]>) {
        let tag = self.with_tenant(claim, |tenant| tenant.tag_of(Ticket::of(claim)));
        self.passed = self.passed.max(tag);
        let passed = self.passed;
        let is_present = self.change(claim.tenant, |tenant| {
            (tenant.start, tenant.finish) = (passed, tag);
            tenant.weight = claim.weight.unwrap_or(tenant.weight);
        });
        if !is_present && claim.pool.is_none() {
            self.remember(claim.tenant.into(), Idle { finish: tag, weight: claim.weight.unwrap_or(1) });
        }
    }

    /// A tenant used more or less than was granted to it. It has an effect while the tenant is remembered.
    pub(super) fn correct(&mut self, name: &[u8], granted: u64, used: u64) {
        let corrected = |finish: Tag, weight: u32| {
            let more = finish.saturating_add(stretch(used.saturating_sub(granted), weight));
            more.saturating_sub(stretch(granted.saturating_sub(used), weight))
        };
        let is_present = self.change(name, |tenant| {
            tenant.finish = corrected(tenant.finish, tenant.weight);
            tenant.start = tenant.start.max(tenant.finish);
        });
        if !is_present && let Some(idle) = self.idle.get_mut(name) {
            idle.finish = corrected(idle.finish, idle.weight);
        }
    }

    /// Who comes before a call, or before a caller of the line.
    pub(super) fn ahead(&self, claim: &Claim<&[u8]>, comer: Comer) -> Option<Ahead> {
        let (own, is_fair) = (self.by_name.get(claim.tenant), self.is_fair());
        let number = match comer {
            Comer::Waits(caller) => caller,
            // The call stands for the one that was refused. In a plain line, all who wait come before it.
            Comer::Passes if is_fair => {
                own.and_then(|tenant| tenant.hunger).map_or(Caller::MAX, |hunger| hunger.caller)
            }
            Comer::Passes | Comer::Arrives => Caller::MAX,
        };
        let ticket = Ticket::of(claim);
        let rank = self.rank(claim, number);
        let own = own.and_then(|tenant| tenant.callers.first_key_value()).filter(|_| !claim.critical);
        let is_behind_own = own.is_some_and(|(first, _)| *first < number);
        let of_another = |entry: &Entry| *entry.tenant != *claim.tenant;
        let waiting = || self.waiting.iter(self.passed).take_while(|(other, _)| *other < rank);
        let hungry = self.hungry.iter(self.passed).take_while(|(other, _)| *other < rank);
        let mut hungry = hungry.map(|(_, entry)| entry).filter(|entry| of_another(entry));
        let is_in_the_way = self.beside(claim.cost);
        let is_behind_caller = match (comer, ticket.most) {
            (Comer::Passes, Some(_)) if is_fair => {
                let most = |own: &Ticket| own.most.unwrap_or(u64::MAX);
                own.is_some_and(|(_, own)| is_in_the_way(own.cost, most(own)))
                    || waiting().any(|(_, entry)| is_in_the_way(entry.cost, entry.most))
            }
            (Comer::Passes, None) if is_fair => !self.waiting.is_empty(),
            // A later caller of the same tenant is not before this one, which would be the tenant's first.
            _ => {
                let critical = |other: Rank| matches!(other, Rank::Critical(_));
                is_behind_own || waiting().any(|(other, entry)| of_another(entry) || critical(other))
            }
        };
        if is_behind_caller {
            return Some(Ahead::Caller);
        }
        let hungry = hungry.find(|entry| is_in_the_way(entry.cost, entry.most));
        hungry.and_then(|entry| entry.until).map(Ahead::Hunger)
    }

    /// The rank of a caller of this number, if it is the first of its tenant.
    fn rank(&self, claim: &Claim<&[u8]>, number: Caller) -> Rank {
        if claim.critical {
            return Rank::Critical(number);
        }
        self.with_tenant(claim, |tenant| tenant.place_of(number, Ticket::of(claim))).rank(self.passed)
    }

    /// The number of callers and tenants that come before a call that would wait.
    pub(super) fn before(&self, claim: &Claim<&[u8]>) -> usize {
        let rank = self.rank(claim, Caller::MAX);
        let own = self.by_name.get(claim.tenant).filter(|_| !claim.critical);
        let waiting = self.waiting.iter(self.passed).take_while(|(other, _)| *other < rank);
        let is_own = |place: Rank, entry: &Entry| {
            *entry.tenant == *claim.tenant && !matches!(place, Rank::Critical(_))
        };
        own.map_or(0, |own| own.callers.len())
            + waiting.filter(|(place, entry)| !is_own(*place, entry)).count()
    }

    /// When the first caller, which was tried and refused, is tried again. `retry` is when its limit may admit it.
    pub(super) fn wake(&self, now: Time, retry: Option<Time>) -> Option<Time> {
        if !self.is_fair() {
            return retry;
        }
        // The room that is kept for a hungry tenant is the limit's, so its retry does not matter.
        let retry = retry.filter(|_| !self.is_kept());
        // Each lease that expires, and each hunger that ends, may change the order or make room.
        let next_end = self.table.and_then(|table| table.next_end);
        let hunger = self.ends.first().map(|(end, _)| *end);
        let wake = retry.into_iter().chain(next_end).chain(hunger).min()?;
        Some(wake.max(now.plus(LEAST_WAKE)))
    }

    /// Whether room is kept for a hungry tenant before the first caller.
    pub(super) fn is_kept(&self) -> bool {
        let Some((rank, first)) = self.waiting.first(self.passed) else { return false };
        let is_in_the_way = self.beside(first.cost);
        let mut before = self.hungry.iter(self.passed).take_while(|(other, _)| *other < rank);
        before.any(|(_, entry)| entry.tenant != first.tenant && is_in_the_way(entry.cost, entry.most))
    }

    /// Whether a cost, with its own limit, would not fit beside this cost.
    fn beside(&self, cost: u64) -> impl Fn(u64, u64) -> bool + use<> {
        let held = self.table.map_or(0, |table| table.held).saturating_add(cost);
        move |cost, most| held.saturating_add(cost) > most
    }

    /// Forgets what was read of the table, because it is another one.
    pub(super) fn forget_table(&mut self) {
        self.table.iter_mut().for_each(|table| table.seen = None);
    }

    /// Learns what the tenants hold at `at` on the clock of the table. `now` is the same instant on the line's clock.
    pub(super) fn follow(&mut self, leases: Option<&Leases>, at: Time, now: Time) {
        let is_shared = leases.is_some_and(Leases::has_tenants);
        if !is_shared && !self.is_fair() {
            // A call with a tenant may soon be compared with the tenant of the empty name.
            self.table = leases.map(|leases| {
                let next_end = leases.ends(1, at).map(|span| now.plus(span));
                Table { seen: None, is_shared, held: leases.cost(at), next_end }
            });
            let share = leases.map_or(Share::NOTHING, |leases| leases.share(&[], at));
            self.change(&[], |tenant| tenant.know(share));
            return;
        }
        let blank = Leases::default();
        let leases = leases.unwrap_or(&blank);
        let (by_name, mut changed, mut anew) = (&mut self.by_name, BTreeSet::new(), false);
        let mut change = |name: &[u8], know: &dyn Fn(&mut Tenant)| {
            let Some(name) = by_name.get_key_value(name).map(|(name, _)| name.clone()) else { return };
            by_name.get_mut(&name).into_iter().for_each(know);
            changed.insert(name);
        };
        let seen = leases.tell(self.table.and_then(|table| table.seen), at, |news| match news {
            News::All => anew = true,
            News::Share(name, share) => change(name, &|tenant| tenant.know(share)),
            News::Ended(name, cost) => change(name, &|tenant| {
                tenant.know(Share { held: tenant.held.saturating_sub(cost), weight: tenant.weight });
            }),
        });
        if anew {
            let shares = leases.shares(at);
            for (name, tenant) in by_name.iter_mut() {
                let nothing = || if name.is_empty() { leases.share(name, at) } else { Share::NOTHING };
                tenant.know(shares.get(&**name).copied().unwrap_or_else(nothing));
                changed.insert(name.clone());
            }
        }
        let next_end = leases.ends(1, at).map(|span| now.plus(span));
        self.table = Some(Table { seen: Some(seen), is_shared, held: leases.cost(at), next_end });
        for name in changed {
            self.place(&name);
        }
    }
}
