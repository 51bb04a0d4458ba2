//! Who waits for a limit or is hungry for it, by tenants. The rules and their proof are in `mod.rs`.
//!
//! A plain line is one of a single tenant, which has the empty name.

mod form;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Bound::{Excluded, Unbounded};

use super::claim::{Caller, Claim, Comer, Cost};
use super::order::{Load, Order, Place, Rank, Tag, shrink, stretch};
use super::sum::Entry;
use crate::state::{Leases, Moment, Share};
use crate::time::{Span, Time};

/// The most tenants of a rate whose last grants are remembered while they do not wait.
const MOST_IDLE: usize = 10_000;

/// The most tenants that are read anew in one step, because leases have expired or because too much was missed.
const AT_ONCE: usize = 64;

/// The shortest time after which a caller that was refused is tried again.
const LEAST_WAKE: Span = Span::from_millis(1);

/// The tenants of one line.
#[derive(Clone, Default, Debug)]
pub(super) struct Tenants {
    /// V: the largest tag that was granted.
    passed: Tag,
    /// Those that wait or are hungry.
    by_name: BTreeMap<Arc<[u8]>, Tenant>,
    /// Those of a rate that were granted something, and do not wait.
    idle: BTreeMap<Arc<[u8]>, Idle>,
    order: Order,
    /// When the hungers end.
    ends: BTreeSet<(Time, Arc<[u8]>)>,
    /// The hungry tenants by the ids of the calls that were refused to them.
    asked: BTreeSet<(u64, Arc<[u8]>)>,
    /// What is known of the table of leases. `None` for a plain line, and for a rate.
    table: Option<Table>,
    /// Those that hold something, by when their next lease expires.
    expiring: BTreeSet<(Moment, Arc<[u8]>)>,
    /// All tenants are read anew, in the order of their names: those after this one are still to be read.
    unread: Option<Arc<[u8]>>,
    /// Whether they must then be read once more.
    unread_again: bool,
    /// The number of callers that wait.
    callers: usize,
    /// The number of tenants that hold something.
    holders: usize,
}

#[derive(Clone, Debug)]
struct Tenant {
    /// S
    start: Tag,
    /// F: where the last grant or settlement ended.
    finish: Tag,
    /// Of a rate: how far settlements can still move S and F back.
    open: Tag,
    held: u64,
    /// When a lease of it expires next.
    next_end: Option<Moment>,
    /// Whether it is counted among those that hold something.
    is_holder: bool,
    /// The weight without that of a caller.
    weight: u32,
    /// That of the last grant.
    granted: u32,
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

/// A tenant of a rate that does not wait.
#[derive(Clone, Copy, Debug)]
struct Idle {
    finish: Tag,
    open: Tag,
    /// That of the last grant, which a settlement corrects.
    weight: u32,
}

impl Idle {
    const NEW: Idle = Idle { finish: 0, open: 0, weight: 1 };
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
    /// The id of the call that was refused last, as a hash.
    id: u64,
    ticket: Ticket,
    critical: bool,
    until: Time,
}

#[derive(Clone, Copy, Debug)]
struct Table {
    /// `None` if all tenants must be read.
    seen: Option<Seen>,
    /// Whether leases have tenants.
    is_shared: bool,
    /// The cost of all leases.
    held: u64,
    /// When the next lease expires.
    next_end: Option<Time>,
}

/// How far a table was read.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// The number of changes; `None` if no lease had a tenant.
    changes: Option<u64>,
    moment: Moment,
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
            open: idle.open.min(idle.finish.saturating_sub(passed)),
            held: 0,
            next_end: None,
            is_holder: false,
            weight: 1,
            granted: idle.weight,
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
    fn know(&mut self, share: Share) {
        (self.held, self.weight) = Tenant::noted(share);
    }

    fn knows(&self, share: Share) -> bool {
        (self.held, self.weight) == Tenant::noted(share)
    }

    fn noted(Share { held, weight }: Share) -> (u64, u32) {
        (held, if held > 0 { weight } else { 1 })
    }

    /// The weight for a call: its own, else that of the last refused call while the tenant is hungry, else the tenant's.
    fn weight_for(&self, own: Option<u32>) -> u32 {
        own.or(self.hunger.and_then(|hunger| hunger.ticket.weight)).unwrap_or(self.weight)
    }

    /// Its tag with this caller. The turn at a rate does not depend on the cost, which only counts once it is granted.
    fn tag_of(&self, ticket: Ticket) -> Tag {
        let cost = if ticket.most.is_some() { ticket.cost } else { 1 };
        self.start.saturating_add(stretch(cost, self.weight_for(ticket.weight)))
    }

    /// A call was granted to it. Returns its tag. `passed` is V before the grant.
    fn grant(&mut self, ticket: Ticket, cost: Cost, passed: Tag) -> Tag {
        let (tag, weight) = (self.tag_of(ticket), self.weight_for(ticket.weight));
        if ticket.most.is_some() {
            self.finish = tag;
            self.start = tag.max(passed);
        } else {
            self.finish = self.start.saturating_add(stretch(ticket.cost, weight));
            self.start = self.finish;
            if cost == Cost::Estimated {
                self.open = self.open.saturating_add(shrink(ticket.cost.saturating_sub(1), weight));
            }
        }
        self.weight = ticket.weight.unwrap_or(self.weight);
        self.granted = weight;
        tag
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
        let Hunger { caller, ticket, critical, until, .. } = self.hunger?;
        let place = if critical { Place::Critical(caller) } else { self.place_of(caller, ticket) };
        Some((place, caller, ticket, Some(until)))
    }
}

/// Moves S and F after a settlement of what was `granted`. What moves them back is at most `open`, to which the grant added as
/// much as the settlement takes from it.
fn correct<const N: usize>(places: [&mut Tag; N], open: &mut Tag, weight: u32, granted: u64, used: u64) {
    let rise = stretch(used.saturating_sub(granted), weight);
    let fall = shrink(granted.saturating_sub(used.max(1)), weight).min(*open);
    for place in places {
        *place = place.saturating_add(rise).saturating_sub(fall);
    }
    *open = open.saturating_sub(shrink(granted.saturating_sub(1), weight));
}

impl Ticket {
    fn of<T>(claim: &Claim<T>) -> Ticket {
        let most = claim.pool.map(|pool| pool.most);
        Ticket { cost: claim.cost, weight: claim.weight, most }
    }

    /// The most that may be held with it.
    fn most(self) -> u64 {
        self.most.unwrap_or(u64::MAX)
    }

    fn entry(self, tenant: Arc<[u8]>, caller: Caller, until: Option<Time>) -> Entry {
        Entry { tenant, caller, cost: self.cost, most: self.most(), until }
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

    /// The number of tenants that wait or are hungry, and how many of them hold something.
    pub(super) fn count(&self) -> (usize, usize) {
        (self.by_name.len(), self.holders)
    }

    /// The number of callers of a tenant that wait.
    pub(super) fn callers_of(&self, name: &[u8]) -> usize {
        self.by_name.get(name).map_or(0, |tenant| tenant.callers.len() + tenant.critical)
    }

    /// The number of callers that wait.
    pub(super) fn callers(&self) -> usize {
        self.callers
    }

    /// Whether it is a fair line: a tenant has a name, or holds leases.
    pub(super) fn is_fair(&self) -> bool {
        self.table.is_some_and(|table| table.is_shared)
            || self.by_name.last_key_value().is_some_and(|(name, _)| !name.is_empty())
    }

    /// The caller that is to be tried first.
    pub(super) fn first(&self) -> Option<Caller> {
        self.order.first(self.passed).map(|(_, entry)| entry.caller)
    }

    /// Adds a caller. If it `stays`, it only asks for something else.
    pub(super) fn arrive(&mut self, caller: Caller, claim: &Claim, stays: bool) {
        let ticket = Ticket::of(claim);
        self.callers += usize::from(!stays);
        let tenant = self.begin(claim);
        if claim.critical {
            tenant.critical += usize::from(!stays);
            let entry = ticket.entry(claim.tenant.clone(), caller, None);
            self.order.insert(Place::Critical(caller), entry);
        } else {
            tenant.callers.insert(caller, ticket);
        }
        self.place(&claim.tenant);
    }

    /// Removes a caller.
    pub(super) fn depart(&mut self, caller: Caller, critical: bool, name: &Arc<[u8]>) {
        let Some(tenant) = self.by_name.get_mut(name) else { return };
        self.callers = self.callers.saturating_sub(1);
        if critical {
            tenant.critical = tenant.critical.saturating_sub(1);
            self.order.remove(Place::Critical(caller));
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
        let id = claim.pool.map_or(0, |pool| pool.id);
        let tenant = self.begin(claim);
        let before = tenant.hunger;
        ticket.weight = ticket.weight.or(before.and_then(|before| before.ticket.weight));
        let caller = before.map_or(number, |before| before.caller);
        tenant.hunger = Some(Hunger { caller, id, ticket, critical: claim.critical, until });
        if let Some(before) = before {
            self.forget(&claim.tenant, before);
        }
        self.ends.insert((until, claim.tenant.clone()));
        self.asked.insert((id, claim.tenant.clone()));
        self.place(&claim.tenant);
        before.map(|before| before.until)
    }

    /// The tenant is not hungry any more. Returns when its hunger would have ended; `None` if it was not hungry.
    pub(super) fn sate(&mut self, name: &[u8]) -> Option<Time> {
        let (name, _) = self.by_name.get_key_value(name)?;
        let name = name.clone();
        let hunger = self.by_name.get_mut(&name)?.hunger.take()?;
        self.forget(&name, hunger);
        self.place(&name);
        Some(hunger.until)
    }

    fn forget(&mut self, name: &Arc<[u8]>, hunger: Hunger) {
        self.ends.remove(&(hunger.until, name.clone()));
        self.asked.remove(&(hunger.id, name.clone()));
    }

    /// A hungry tenant whose last refused call had this id.
    pub(super) fn who_asked(&self, id: u64) -> Option<&Arc<[u8]>> {
        let (of, name) = self.asked.range((id, Arc::from([]))..).next()?;
        (*of == id).then_some(name)
    }

    /// The hungry tenant whose hunger ends first.
    pub(super) fn first_hungry(&self) -> Option<&Arc<[u8]>> {
        self.ends.first().map(|(_, name)| name)
    }

    /// The tenant of a claim, and what the claim says of it. Returns the tenant, which waits or is hungry from now on.
    fn begin(&mut self, claim: &Claim) -> &mut Tenant {
        let (passed, idle) = (self.passed, self.idle.remove(&claim.tenant).unwrap_or(Idle::NEW));
        let expiring = &mut self.expiring;
        let tenant = self.by_name.entry(claim.tenant.clone()).or_insert_with_key(|name| {
            let mut tenant = Tenant::new(passed, idle);
            // When its leases expire is read with the next look at the table.
            if claim.pool.is_some_and(|pool| pool.share.held > 0) && !name.is_empty() {
                tenant.next_end = Some(Moment::FIRST);
                expiring.insert((Moment::FIRST, name.clone()));
            }
            tenant
        });
        claim.pool.into_iter().for_each(|pool| tenant.know(pool.share));
        tenant.is_of_rate = claim.pool.is_none();
        tenant
    }

    /// Calls `read` with the tenant of a claim, or with what it would be if it began to wait.
    fn with_tenant<T>(&self, claim: &Claim<&[u8]>, read: impl FnOnce(&Tenant) -> T) -> T {
        if let Some(tenant) = self.by_name.get(claim.tenant) {
            return read(tenant);
        }
        read(&self.newcomer(claim))
    }

    /// The tenant of a claim, as if it began to wait now.
    fn newcomer(&self, claim: &Claim<&[u8]>) -> Tenant {
        let idle = self.idle.get(claim.tenant).copied().unwrap_or(Idle::NEW);
        let mut tenant = Tenant::new(self.passed, idle);
        claim.pool.into_iter().for_each(|pool| tenant.know(pool.share));
        tenant
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
        if let Some((_, place)) = tenant.place.take() {
            self.order.remove(place);
        }
        let is_holder = tenant.is_present() && tenant.held > 0;
        self.holders = self.holders + usize::from(is_holder) - usize::from(tenant.is_holder);
        tenant.is_holder = is_holder;
        if !tenant.is_present() {
            if let Some(end) = tenant.next_end {
                self.expiring.remove(&(end, name.clone()));
            }
            let Tenant { finish, open, granted, is_of_rate, .. } = *tenant;
            self.by_name.remove(name);
            // No tenant of leases has a tag above V, so nothing would be remembered.
            if is_of_rate {
                self.remember(name.clone(), Idle { finish, open, weight: granted });
            }
        } else if let Some((place, caller, ticket, until)) = tenant.stands() {
            tenant.place = Some((until.is_some(), place));
            self.order.insert(place, ticket.entry(name.clone(), caller, until));
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

    /// A call was admitted, whether it waited or not.
    pub(super) fn grant(&mut self, claim: &Claim<&[u8]>, cost: Cost) {
        let (ticket, passed) = (Ticket::of(claim), self.passed);
        let mut tag = passed;
        if !self.change(claim.tenant, |tenant| tag = tenant.grant(ticket, cost, passed)) {
            let mut tenant = self.newcomer(claim);
            tag = tenant.grant(ticket, cost, passed);
            if claim.pool.is_none() {
                let Tenant { finish, open, granted, .. } = tenant;
                self.remember(claim.tenant.into(), Idle { finish, open, weight: granted });
            }
        }
        self.passed = passed.max(tag);
    }

    /// A tenant of a rate used more or less than was granted to it. It has an effect while the tenant is remembered.
    pub(super) fn correct(&mut self, name: &[u8], granted: u64, used: u64) {
        let is_present = self.change(name, |tenant| {
            let first = tenant.callers.values().next();
            let weight = first.map_or(tenant.granted, |first| tenant.weight_for(first.weight));
            let Tenant { start, finish, open, .. } = tenant;
            correct([start, finish], open, weight, granted, used);
        });
        if !is_present && let Some(Idle { finish, open, weight }) = self.idle.get_mut(name) {
            correct([finish], open, *weight, granted, used);
        }
    }

    /// Who comes before a call, or before a caller of the line. Hungers may be `over`: then they count no more.
    pub(super) fn ahead(&self, claim: &Claim<&[u8]>, comer: Comer, over: bool) -> Option<Ahead> {
        let (own, is_fair) = (self.by_name.get(claim.tenant), self.is_fair());
        let passes = comer == Comer::Passes && is_fair;
        let number = match comer {
            Comer::Waits(caller) => caller,
            // The call stands for the one that was refused. In a plain line, all who wait come before it.
            Comer::Passes if is_fair => {
                own.and_then(|tenant| tenant.hunger).map_or(Caller::MAX, |hunger| hunger.caller)
            }
            Comer::Passes | Comer::Arrives => Caller::MAX,
        };
        if passes && claim.pool.is_none() && self.order.anybody_waits() {
            return Some(Ahead::Caller);
        }
        // Of its own tenant, an earlier caller comes before it, but no later one, and no hunger.
        let earlier = own.filter(|_| !claim.critical).and_then(|own| own.callers.first_key_value());
        let earlier = earlier.filter(|(first, _)| **first < number);
        if !passes && earlier.is_some() {
            return Some(Ahead::Caller);
        }
        let skip = own.and_then(|own| own.place).filter(|(is_hungry, _)| *is_hungry || earlier.is_none());
        let rank = self.rank(claim, number);
        let before = self.order.before(rank, self.passed, skip.map(|(_, place)| place));
        let used = self.used(claim.cost);
        let leaves_room = earlier.is_none_or(|(_, own)| used <= own.most().saturating_sub(own.cost));
        let is_behind_caller =
            if passes { !(leaves_room && before.waiting_fit(used)) } else { before.each.waiting > 0 };
        if is_behind_caller {
            return Some(Ahead::Caller);
        }
        let is_behind_hunger = claim.pool.is_some() && !over && !before.all_fit(used);
        before.each.end.filter(|_| is_behind_hunger).map(Ahead::Hunger)
    }

    /// What would be held with this cost.
    fn used(&self, cost: u64) -> u64 {
        self.table.map_or(0, |table| table.held).saturating_add(cost)
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
        let own = self.by_name.get(claim.tenant).filter(|_| !claim.critical);
        let of_others = |entry: &Entry, critical: bool| critical || *entry.tenant != *claim.tenant;
        let others = self.order.count(self.rank(claim, Caller::MAX), self.passed, of_others);
        own.map_or(0, |own| own.callers.len()) + others
    }

    /// When the first caller, which was tried and refused, is tried again. `retry` is when its limit may admit it.
    pub(super) fn wake(&self, now: Time, retry: Option<Time>, is_kept: bool) -> Option<Time> {
        if !self.is_fair() {
            return retry;
        }
        // The room that is kept for hungry tenants is the limit's, so its retry does not matter.
        let retry = retry.filter(|_| !is_kept);
        // Each lease that expires, and each hunger that ends, may change the order or make room.
        let next_end = self.table.and_then(|table| table.next_end);
        let hunger = self.ends.first().map(|(end, _)| *end);
        let wake = retry.into_iter().chain(next_end).chain(hunger).min()?;
        Some(wake.max(now.plus(LEAST_WAKE)))
    }

    /// Whether room is kept for hungry tenants before the first caller.
    pub(super) fn is_kept(&self) -> bool {
        let Some((rank, first)) = self.order.first(self.passed) else { return false };
        let own = self.by_name.get(&first.tenant).and_then(|own| own.place);
        let before = self.order.before(rank, self.passed, own.map(|(_, place)| place));
        !before.all_fit(self.used(first.cost))
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
            (self.unread, self.unread_again) = (None, false);
            return;
        }
        let blank = Leases::default();
        let leases = leases.unwrap_or(&blank);
        let (moment, changes) = (leases.moment(at), leases.changes());
        let seen = self.table.and_then(|table| table.seen).filter(|seen| seen.moment <= moment);
        let missed = |seen: Seen| match (seen.changes, changes) {
            (Some(since), Some(_)) => Some(leases.changed(since)?.map(<[u8]>::to_vec).collect()),
            (None, None) => Some(Vec::new()),
            _ => None,
        };
        let changed: Option<Vec<Vec<u8>>> = seen.and_then(missed);
        if changed.is_none() {
            self.unread_again = self.unread.is_some();
            self.unread = self.unread.take().or_else(|| Some(Arc::from([])));
        }
        let next_end = leases.ends(1, at).map(|span| now.plus(span));
        let seen = Some(Seen { changes, moment });
        self.table = Some(Table { seen, is_shared, held: leases.cost(at), next_end });
        let unnamed = leases.share(&[], at);
        if self.by_name.get(&[][..]).is_some_and(|tenant| tenant.held != unnamed.held) {
            self.change(&[], |tenant| tenant.know(unnamed));
        }
        for name in changed.into_iter().flatten() {
            self.read(&name, leases, at);
        }
        let mut left = AT_ONCE;
        while left > 0 && self.expiring.first().is_some_and(|(end, _)| *end <= moment) {
            if let Some((_, name)) = self.expiring.first().cloned() {
                self.read(&name, leases, at);
            }
            left -= 1;
        }
        if let Some(after) = self.unread.take() {
            let names =
                self.by_name.range::<[u8], _>((Excluded(&*after), Unbounded)).map(|(name, _)| name.clone());
            let names: Vec<Arc<[u8]>> = names.take(left).collect();
            for name in &names {
                self.read(name, leases, at);
            }
            let is_done = names.len() < left;
            let again = is_done && core::mem::take(&mut self.unread_again);
            self.unread = match names.into_iter().last() {
                _ if again => Some(Arc::from([])),
                _ if is_done => None,
                last => last.or(Some(after)),
            };
        }
    }

    /// Whether tenants are still to be read, as they were too many for one step.
    pub(super) fn is_behind(&self) -> bool {
        let has_expired = |seen: Seen| self.expiring.first().is_some_and(|(end, _)| *end <= seen.moment);
        self.unread.is_some() || self.table.and_then(|table| table.seen).is_some_and(has_expired)
    }

    /// Reads what a tenant with a name holds, if it waits or is hungry.
    fn read(&mut self, name: &[u8], leases: &Leases, at: Time) {
        let Some((name, tenant)) = self.by_name.get_key_value(name).filter(|(name, _)| !name.is_empty())
        else {
            return;
        };
        let (name, old, (share, next_end)) = (name.clone(), tenant.next_end, leases.share_until(name, at));
        if tenant.knows(share) && old == next_end {
            return;
        }
        if old != next_end {
            if let Some(old) = old {
                self.expiring.remove(&(old, name.clone()));
            }
            self.expiring.extend(next_end.map(|next| (next, name.clone())));
        }
        self.change(&name, |tenant| {
            tenant.know(share);
            tenant.next_end = next_end;
        });
    }
}
