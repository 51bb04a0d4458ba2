//! Lines: callers that wait for limits, and whose turn it is.
//!
//! A line belongs to a limit of a key. A caller stands in the lines of the limits that refuse it. Only the first caller of a line
//! is tried. In a *plain* line, in which no caller has a tenant, that is the one that arrived first; critical callers come
//! before the others.
//!
//! ```text
//! limit A refuses: 3, 5        limit B refuses: 4, 5
//!
//! A has room for two: 3 is admitted. Then 5 is tried: A admits it now, B has refused 4 before it.
//! So 5 leaves the line of A, and no caller waits for A because of B.
//! ```
//!
//! # Fair lines
//!
//! In a *fair* line the tenants of the callers take turns, each by its weight. Callers without a tenant have that of the empty
//! name. Within a tenant, the caller that arrived first is the first.
//!
//! A line has a level V, and each of its tenants has a start S and a finish F. The *tag* of a tenant is where its next grant would
//! put it. A grant raises V to the tag. When no tenant waits, all is forgotten.
//!
//! - **Leases** go first to critical callers, by arrival. Then to tenants that hold nothing and whose tag is at most V, because their
//!   turn has come: the least tag first. Then to the least *load*, which is (held + cost) / weight. If that is equal, to the least
//!   tag, and then by arrival. The tag is S + cost / weight, with the cost of the tenant's first caller. S is the greater of V and F
//!   when the tenant begins to wait, and again after each grant to it, which sets F to its tag. A caller that gives up, or stands in
//!   the line of another limit meanwhile, leaves S as it is.
//! - **A rate** goes to the least tag, and then by arrival. The tag is S + 1 / weight, whatever the cost: so a tenant that
//!   estimates too much does not come later because of its estimate. A grant of cost c moves S and F to S + c / weight. S is the
//!   greater of V and F when the tenant begins to wait.
//!
//! ```text
//! 15 leases, all held by a. 100 callers of a wait; then b arrives.
//!
//! a   (15 + 1) / 1 = 16      a lease ends: (14 + 1) / 1 = 15
//! b   ( 0 + 1) / 1 =  1      so b takes it
//! ```
//!
//! ## Settlements
//!
//! A call with `HOLD` is charged an estimate, which a settlement replaces by what was used: at least 1, since the turn itself counts.
//! If more was used, S and F rise by the difference. If less was used they fall, but not below what the grants since the tenant
//! began to wait have raised them by. `open` is how far they can still fall: a grant of an estimate c adds (c - 1) / weight to it, and
//! its settlement takes as much from it. So a tenant gains nothing by settling what was charged before it waited, what was charged to
//! others, or the same twice.
//!
//! ```text
//! a estimates 8 and uses 2, b uses 2     S of a: 0 -> 8 -> 2 -> 10 -> 4    both are granted as often
//! ```
//!
//! ## Callers that poll
//!
//! A call for leases that does not wait has no place in the line. So its tenant is *hungry* for some time after it was refused, and
//! stands in the order with the cost of that call. Another call is admitted if it leaves room for those who come before it:
//!
//! - for critical ones and for tenants that would hold less than its own, by their loads, *all together*;
//! - for each of the others *alone*.
//!
//! A call whose turn has come, at a tag of at most V, leaves room for critical ones together, and for each of the others alone.
//!
//! ```text
//! 10 leases, 4 held by ann; bob, cid and dan are hungry for one each
//!
//! ann asks   load 5: 4 + 1 + 3 = 8 fit       so ann gets a fifth lease, a sixth and a seventh
//!            load 8: 7 + 1 + 3 = 11 do not   so she gets no eighth
//! eve asks   load 1, as that of the three    each of them fits after her: 7 + 1 + 1 = 9
//! ```
//!
//! If room were kept for all of them together whatever they hold, a free lease would be kept for each of many tenants that poll, and
//! of fifty of them on ten leases, the leases would lie idle for a sixth of the time. If room were kept for each alone, two free
//! leases for two hungry tenants would go to a third one. Callers that wait leave the same room for the hungry ones before them.
//!
//! A hunger begins only if the limit has no room for the call. A refusal for the tenant's turn alone only makes a hunger last longer.
//! Otherwise tenants that call less often than once a hunger would keep a free lease for one another, and none would take it. It ends
//! when the call that was refused last is admitted, which its id tells, or given up.
//!
//! # Why no wake-up is lost
//!
//! Each line is in one of two states. It is *due*, so its first caller will be tried. Or its first caller has been tried
//! since it became the first, and the limit or the room that is kept refused it; it is then tried again at the line's *wake*, when
//! time has passed, or when something marks the line as due. A line becomes due whenever another caller becomes its first.
//!
//! What tenants hold is read from the table of leases when a call finds the key open: of those that changed or of which a lease
//! has expired since, in the order of these ends, and at most 256 in a step. The next [look](Lines::look) at the table, within
//! milliseconds, takes a further step. So a lease that ends may show the order late.
//! But whatever ends it marks the line, and a lease that expires wakes it. If the wrong caller is tried then, its trial puts the order
//! right, it finds others before it, and the line is due again.
//!
//! # Why no caller keeps another one waiting for ever
//!
//! **Plain lines.** Take the first of all critical callers, or the first of all callers if none is critical. It is the first of each
//! line in which it stands. So it is tried whenever one of its limits may have room, and no waiting caller keeps it from any of them.
//!
//! **Fair lines of leases.** The first to arrive is not the first. But only finitely many grants pass a tenant that holds nothing. Say
//! that its tag is T, which it keeps as it waits.
//!
//! - V reaches T after finitely many grants. While V is from v to v + 1/1000, a tenant that was granted something or began to wait
//!   since V reached v has an S of at least v. As a cost is at least 1 and a weight at most 1000, its tag is at least v + 1/1000. So
//!   a grant to it ends this span of V. Only tenants that waited before are granted something within the span, each once.
//! - From then on the tenant is among those whose tag is at most V. Others come before it only with a lower tag. Who begins to wait or
//!   is granted something has an S of at least V, and so a greater tag. Only tenants that waited before can pass it, each once.
//!
//! **Fair lines of rates.** The same holds for any tenant, although settlements move S back. For each tenant look at S - open. A
//! settlement does not lower it: what S falls by is taken from `open`, and more. A grant raises it by at least 1 / weight: S rises by
//! c / weight, and `open` by at most (c - 1) / weight. When the tenant began to wait, it was at least V, because `open` was at most
//! F - V. So after n grants, S is at least the V at which it began to wait, and n / 1000. A tenant with such an S is granted
//! something only finitely often before its tag is above T, and those that begin to wait within a span of V end it, as above.
//!
//! Then its oldest caller is the first. It stays the first until it is admitted, as leases end, while no critical caller arrives.
//!
//! Callers stand only in lines that refuse them. So the first of one line does not wait because of the first of another: it moves
//! on. A caller of two limits still waits until both have room at once: no room is reserved for it.
//!
//! **Two fair lines** may order the same callers differently, also in a circle, as who is a tenant's first changes when callers
//! move. Then each caller is first in one line and is refused by the other, and moves on, although both limits have room. So after
//! [`MOST_MOVES`] such moves in a row, the order keeps a caller from no limit any more.
//!
//! # Cost
//!
//! Each step takes time that is logarithmic in the number of callers, for each line that it names. Room for one caller
//! causes two trials: of the one that is admitted, and of the next one. A grant also marks the other lines of its key.
//! Callers that leave a line because of another limit cause a trial each.
//!
//! A fair line orders tenants, not callers. It moves a tenant when the tenant's tag, its first caller or what it holds changes. The
//! costs of those before a call are summed up in a tree (`tree.rs`). Hungers end by themselves, and many may end at once: at most
//! [`AT_ONCE`] are removed in a millisecond, and until the last one is, none of them counts.
//!
//! Nothing here reads a clock or decides on a request.

#[cfg(test)]
mod cases;
mod claim;
mod form;
mod order;
mod sum;
mod tenants;
mod tree;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::ops::Bound::{Excluded, Unbounded};

use crate::state::{Leases, Name};
use crate::time::{Span, Time};
pub use claim::{Caller, Claim, Comer, Cost};
#[doc(hidden)]
pub use form::{Sink, Turn, View};
use tenants::{Ahead, Tenants};

/// The most moves in a row to another line of a caller whose limits have room.
const MOST_MOVES: u32 = 16;

/// The most hungers that end in one millisecond. The others that have ended count no more.
const AT_ONCE: u32 = 16;
const MILLISECOND: Span = Span::from_millis(1);

/// Where a caller stands: in the line of a limit that refuses it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stand<K> {
    pub key: K,
    pub name: Name,
    pub claim: Claim,
    /// The time after which the limit may admit the caller, if it is the first; zero if only others keep it from the limit, `None` if
    /// time alone makes no room.
    pub retry: Option<Span>,
}

/// All lines.
///
/// Instants are those of a clock that is never set back.
#[derive(Clone, Debug)]
pub struct Lines<K> {
    last: Caller,
    callers: BTreeMap<Caller, Waiting<K>>,
    /// The lines of each key for which a caller waits.
    keys: BTreeMap<K, AtKey>,
    /// When the first caller of a line is tried again.
    wakes: BTreeSet<(Time, K, Name)>,
    deadlines: BTreeSet<(Time, Caller)>,
    /// The lines whose first callers are to be tried. Some of them may be empty by now.
    due: VecDeque<(K, Name)>,
    /// The line at which the last [`Lines::nudge`] ended.
    nudged: Option<(K, Name)>,
    /// The hungry tenants of all lines, by the ends of their hungers.
    hungers: BTreeSet<(Time, K, Name, Arc<[u8]>)>,
    /// When what a table of leases holds is to be looked at again, by its line.
    looks: BTreeSet<(Time, K, Name)>,
    /// Those hungers of lines that have ended, and are not removed yet.
    ending: VecDeque<(K, Name, Ends)>,
    /// Whether all hungers have ended that are there.
    all_over: bool,
    /// Whether there are hungers whose time has passed.
    is_late: bool,
    /// When hungers were removed last, and how many more may be in that millisecond.
    removed: (Time, u32),
}

/// Which hungers of a line have ended.
#[derive(Clone, Copy, Debug)]
enum Ends {
    All,
    /// Those of the tenants whose last refused calls had this id.
    OfId(u64),
}

#[derive(Clone, Debug)]
struct Waiting<K> {
    deadline: Time,
    /// In the order of their keys.
    stands: Vec<Spot<K>>,
    /// Where it stood before, and does not stand meanwhile. Its tenants wait there, too.
    away: Vec<Spot<K>>,
    /// How often in a row it was refused and moved to another line, although all its limits had room.
    moves: u32,
}

/// A caller in a line.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Spot<K> {
    key: K,
    name: Name,
    critical: bool,
    tenant: Arc<[u8]>,
}

#[derive(Clone, Debug, Default)]
struct AtKey {
    /// The number of callers that stand in one of the lines.
    callers: usize,
    lines: BTreeMap<Name, Line>,
}

#[derive(Clone, Debug, Default)]
struct Line {
    tenants: Tenants,
    /// The first caller, for which the wake or the mark below is.
    first: Option<Caller>,
    /// Whether room is kept for hungry tenants before the first caller.
    is_kept: bool,
    /// Whether all of its hungers have ended that are there.
    all_over: bool,
    /// When the first caller is tried again, if that is known.
    wake: Option<Time>,
    /// When its table is to be looked at again.
    look: Option<Time>,
    /// Whether the line is in the list of those that are due.
    is_due: bool,
}

impl<K> Default for Lines<K> {
    fn default() -> Self {
        Lines::new()
    }
}

impl<K> Lines<K> {
    pub const fn new() -> Lines<K> {
        Lines {
            last: 0,
            callers: BTreeMap::new(),
            keys: BTreeMap::new(),
            wakes: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            due: VecDeque::new(),
            nudged: None,
            hungers: BTreeSet::new(),
            looks: BTreeSet::new(),
            ending: VecDeque::new(),
            all_over: false,
            is_late: false,
            removed: (Time::EPOCH, AT_ONCE),
        }
    }

    /// The number of callers.
    pub fn len(&self) -> usize {
        self.callers.len()
    }

    /// Whether no caller waits, and no tenant is hungry.
    pub fn is_empty(&self) -> bool {
        self.callers.is_empty() && self.hungers.is_empty()
    }

    /// The number of hungry tenants.
    pub fn hungry(&self) -> usize {
        self.hungers.len()
    }
}

impl<K: Ord + Clone> Lines<K> {
    /// The number of callers that wait for limits of a key.
    pub fn at_key<Q: Ord + ?Sized>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        self.keys.get(key).map_or(0, |at| at.callers)
    }

    /// If others come before a call or a caller in the line of a limit, returns the time until the first of the line is tried
    /// again, or until the hunger ends for which room is kept. It is zero if the line is due, or if the time is not known.
    ///
    /// The line must [follow](Self::follow) the table of leases.
    pub fn ahead<Q: Ord + ?Sized>(
        &self,
        key: &Q,
        name: Name,
        claim: &Claim<&[u8]>,
        comer: Comer,
        now: Time,
    ) -> Option<Span>
    where
        K: Borrow<Q>,
    {
        if let Comer::Waits(caller) = comer
            && self.callers.get(&caller).is_some_and(|waiting| waiting.moves >= MOST_MOVES)
        {
            return None;
        }
        let line = self.find(key, name)?;
        Some(match line.tenants.ahead(claim, comer, self.counts_no_hunger(line))? {
            Ahead::Caller => line.wake.filter(|_| !line.is_due).map_or(Span::ZERO, |wake| wake.since(now)),
            Ahead::Hunger(end) => end.since(now),
        })
    }

    /// Whether the hungers of a line have ended, or some of them, and are still to be removed. A tenant that is still hungry is then
    /// passed over, for some milliseconds at most.
    fn counts_no_hunger(&self, line: &Line) -> bool {
        self.all_over || self.is_late || line.all_over
    }

    /// The number of callers and of other tenants in the line of a limit that come before one that arrives now.
    pub fn before<Q: Ord + ?Sized>(&self, key: &Q, name: Name, claim: &Claim<&[u8]>) -> usize
    where
        K: Borrow<Q>,
    {
        self.find(key, name).map_or(0, |line| line.tenants.before(claim))
    }

    /// Whether somebody waits for a limit or is hungry for it.
    pub fn has_line<Q: Ord + ?Sized>(&self, key: &Q, name: Name) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key, name).is_some()
    }

    fn find<Q: Ord + ?Sized>(&self, key: &Q, name: Name) -> Option<&Line>
    where
        K: Borrow<Q>,
    {
        self.keys.get(key)?.lines.get(&name)
    }

    /// Whether a limit has a line in which tenants take turns.
    pub fn is_fair<Q: Ord + ?Sized>(&self, key: &Q, name: Name) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key, name).is_some_and(|line| line.tenants.is_fair())
    }

    /// Tenants that wait for a limit of a key, or are hungry for it: the limit, the tenant and its weight, and the number of its
    /// callers that wait. Of each limit at most `most`, in the order of their names.
    pub fn tenants<Q: Ord + ?Sized>(
        &self,
        key: &Q,
        most: usize,
    ) -> impl Iterator<Item = (Name, &[u8], u32, usize)>
    where
        K: Borrow<Q>,
    {
        let lines = self.keys.get(key).into_iter().flat_map(|at| &at.lines);
        lines.flat_map(move |(of, line)| {
            line.tenants.iter().take(most).map(|(name, weight, callers)| (*of, name, weight, callers))
        })
    }

    /// The number of tenants that wait for a limit of a key or are hungry for it, and how many of them hold something.
    pub fn count_tenants<Q: Ord + ?Sized>(&self, key: &Q) -> (usize, usize)
    where
        K: Borrow<Q>,
    {
        let lines = self.keys.get(key).into_iter().flat_map(|at| at.lines.values());
        lines
            .map(|line| line.tenants.count())
            .fold((0, 0), |(all, holders), (more, hold)| (all + more, holders + hold))
    }

    /// The number of callers of a tenant that wait for limits of a key.
    pub fn callers_of_tenant<Q: Ord + ?Sized>(&self, key: &Q, tenant: &[u8]) -> usize
    where
        K: Borrow<Q>,
    {
        let lines = self.keys.get(key).into_iter().flat_map(|at| at.lines.values());
        lines.map(|line| line.tenants.callers_of(tenant)).sum()
    }

    /// The number of callers that wait for a limit.
    pub fn callers_of<Q: Ord + ?Sized>(&self, key: &Q, name: Name) -> usize
    where
        K: Borrow<Q>,
    {
        self.find(key, name).map_or(0, |line| line.tenants.callers())
    }

    /// Lets the line of leases read what the table holds at `at`, which is `now` on the clock of the lines. `None` if the key has no
    /// table.
    pub fn follow<Q: Ord + ?Sized>(
        &mut self,
        key: &Q,
        name: Name,
        leases: Option<&Leases>,
        at: Time,
        now: Time,
    ) where
        K: Borrow<Q>,
    {
        self.end_hungers(now);
        let Some(key) = self.key(key) else { return };
        if let Some(line) = self.line(&key, name) {
            line.tenants.follow(leases, at, now);
            // A step reads a bounded number of tenants, and leases that have ended are to be freed.
            let goes_on = line.tenants.is_behind() || leases.is_some_and(Leases::has_ended);
            let look = goes_on.then(|| line.look.unwrap_or(now.plus(MILLISECOND)));
            let old = core::mem::replace(&mut line.look, look);
            move_wake(&mut self.looks, &key, name, old, look);
            self.rearrange(&key, name, None);
            self.wake_earlier(&key, name, now);
        }
    }

    /// A call was admitted, whether it waited or not. Who was refused under its id is not hungry any more.
    pub fn grant<Q: Ord + ?Sized>(&mut self, key: &Q, name: Name, claim: &Claim<&[u8]>, cost: Cost, now: Time)
    where
        K: Borrow<Q>,
    {
        let Some(key) = self.key(key) else { return };
        let Some(line) = self.line(&key, name) else { return };
        line.tenants.grant(claim, cost);
        if let Some(pool) = claim.pool {
            self.end(&key, name, Ends::OfId(pool.id), now);
        }
        self.rearrange(&key, name, None);
    }

    /// A lease of this id was renewed, or released whether it was held or not: who was refused under it is not hungry any more.
    pub fn serve<Q: Ord + ?Sized>(&mut self, key: &Q, name: Name, id: u64, now: Time)
    where
        K: Borrow<Q>,
    {
        if let Some(key) = self.key(key) {
            self.end(&key, name, Ends::OfId(id), now);
        }
    }

    /// The tenant of a call is not hungry any more: another limit of the call refused it.
    pub fn sate<Q: Ord + ?Sized>(&mut self, key: &Q, name: Name, tenant: &[u8])
    where
        K: Borrow<Q>,
    {
        if let Some(key) = self.key(key) {
            self.end_hunger(&key, name, tenant);
        }
    }

    /// A tenant of a rate used more or less than what was granted.
    pub fn correct<Q: Ord + ?Sized>(&mut self, key: &Q, name: Name, tenant: &[u8], granted: u64, used: u64)
    where
        K: Borrow<Q>,
    {
        let Some(key) = self.key(key) else { return };
        if let Some(line) = self.line(&key, name) {
            line.tenants.correct(tenant, granted, used);
            self.rearrange(&key, name, None);
        }
    }

    /// The limit refused a call that does not wait. Its tenant is hungry for some time. If the limit has room, and only others that
    /// come before the call keep it off, a hunger lasts longer but none begins. At most `most` tenants are hungry: the oldest
    /// hungers end first.
    ///
    /// The line must [follow](Self::follow) the table of leases.
    pub fn starve(&mut self, key: &K, name: Name, claim: &Claim, now: Time, hunger: Span, most: usize) {
        self.end_hungers(now);
        let may_begin = |line: &Line| !line.all_over && line.tenants.may_starve(claim);
        if self.all_over || !self.find(key, name).is_none_or(may_begin) {
            return;
        }
        self.last += 1;
        let (number, until) = (self.last, now.plus(hunger));
        let line = self.keys.entry(key.clone()).or_default().lines.entry(name).or_default();
        if let Some(before) = line.tenants.starve(number, claim, until) {
            self.hungers.remove(&(before, key.clone(), name, claim.tenant.clone()));
        }
        self.hungers.insert((until, key.clone(), name, claim.tenant.clone()));
        self.make_due(key, name);
        self.rearrange(key, name, None);
        while self.hungers.len() > most && self.may_remove(now) {
            self.end_first_hunger();
        }
    }

    /// Ends all hungers.
    pub fn end_all_hungers(&mut self, now: Time) {
        self.all_over = true;
        self.end_hungers(now);
    }

    /// Ends the hungers for the limits of a key, whose value others removed.
    pub fn end_hungers_of<Q: Ord + ?Sized>(&mut self, key: &Q, now: Time)
    where
        K: Borrow<Q>,
    {
        let Some((key, names)) = self.lines_of(key) else { return };
        for name in names {
            self.line(&key, name).into_iter().for_each(|line| line.all_over = true);
            self.end(&key, name, Ends::All, now);
        }
    }

    /// Removes the hungers that have ended: at most [`AT_ONCE`] in a millisecond.
    pub fn end_hungers(&mut self, now: Time) {
        let all_over = self.all_over;
        while self.hungers.first().is_some_and(|(end, ..)| all_over || *end <= now) && self.may_remove(now) {
            self.end_first_hunger();
        }
        self.all_over &= !self.hungers.is_empty();
        self.is_late = self.hungers.first().is_some_and(|(end, ..)| *end <= now);
        for _ in 0..self.ending.len() {
            let Some((key, name, which)) = self.ending.pop_front() else { return };
            if !self.end(&key, name, which, now) {
                return;
            }
        }
    }

    /// Ends some hungers of a line. Those that may not be removed now are later. Returns whether all are removed.
    fn end(&mut self, key: &K, name: Name, which: Ends, now: Time) -> bool {
        loop {
            let Some(line) = self.line(key, name) else { return true };
            let tenant = match which {
                Ends::All => line.tenants.first_hungry(),
                Ends::OfId(id) => line.tenants.who_asked(id),
            };
            let Some(tenant) = tenant.cloned() else {
                if matches!(which, Ends::All) {
                    line.all_over = false;
                }
                return true;
            };
            if !self.may_remove(now) {
                self.ending.push_back((key.clone(), name, which));
                return false;
            }
            self.end_hunger(key, name, &tenant);
        }
    }

    /// Whether another hunger may be removed in this millisecond. If so, it is counted.
    fn may_remove(&mut self, now: Time) -> bool {
        let (began, left) = self.removed;
        let (began, left) = if now.since(began) < MILLISECOND { (began, left) } else { (now, AT_ONCE) };
        self.removed = (began, left.saturating_sub(1));
        left > 0
    }

    fn end_first_hunger(&mut self) {
        if let Some((_, key, name, tenant)) = self.hungers.first().cloned() {
            self.end_hunger(&key, name, &tenant);
        }
    }

    /// Ends the hunger of a tenant, if it is hungry.
    fn end_hunger(&mut self, key: &K, name: Name, tenant: &[u8]) {
        let end = self.line(key, name).and_then(|line| line.tenants.sate(tenant));
        if let Some(end) = end {
            self.hungers.remove(&(end, key.clone(), name, tenant.into()));
            self.make_due(key, name);
            self.rearrange(key, name, None);
        }
    }

    /// The key as the lines have it, and the names of its lines.
    fn lines_of<Q: Ord + ?Sized>(&self, key: &Q) -> Option<(K, Vec<Name>)>
    where
        K: Borrow<Q>,
    {
        let (key, at) = self.keys.get_key_value(key)?;
        Some((key.clone(), at.lines.keys().copied().collect()))
    }

    /// The key as the lines have it, if there is a line.
    fn key<Q: Ord + ?Sized>(&self, key: &Q) -> Option<K>
    where
        K: Borrow<Q>,
    {
        self.keys.get_key_value(key).map(|(key, _)| key.clone())
    }

    /// Whether a caller still waits.
    pub fn waits(&self, caller: Caller) -> bool {
        self.callers.contains_key(&caller)
    }

    /// The time that a caller has left.
    pub fn time_left(&self, caller: Caller, now: Time) -> Option<Span> {
        self.callers.get(&caller).map(|waiting| waiting.deadline.since(now))
    }

    /// Adds a caller that has been tried and refused.
    pub fn enter(&mut self, now: Time, deadline: Time, stands: Vec<Stand<K>>) -> Caller {
        self.last += 1;
        self.callers.insert(self.last, Waiting { deadline, stands: Vec::new(), away: Vec::new(), moves: 0 });
        self.deadlines.insert((deadline, self.last));
        self.stay(self.last, now, stands);
        self.last
    }

    /// After a caller was tried and refused: it stands in these lines, and leaves all others.
    pub fn stay(&mut self, caller: Caller, now: Time, mut stands: Vec<Stand<K>>) {
        let Some(waiting) = self.callers.get_mut(&caller) else { return };
        stands.sort_by(|a, b| (&a.key, a.name).cmp(&(&b.key, b.name)));
        let spot = |stand: &Stand<K>| Spot {
            key: stand.key.clone(),
            name: stand.name,
            critical: stand.claim.critical,
            tenant: stand.claim.tenant.clone(),
        };
        let new: Vec<Spot<K>> = stands.iter().map(spot).collect();
        let old = core::mem::replace(&mut waiting.stands, new.clone());
        let has_room = stands.iter().all(|stand| stand.retry == Some(Span::ZERO));
        waiting.moves = if has_room { waiting.moves + u32::from(old != new) } else { 0 };
        let is_at = |new: &Spot<K>, spot: &Spot<K>| (&new.key, new.name) == (&spot.key, spot.name);
        let is_elsewhere = |spot: &&Spot<K>| !new.iter().any(|new| is_at(new, spot));
        // A policy can change while a caller waits.
        let changes_tenant =
            |spot: &&Spot<K>| new.iter().any(|new| is_at(new, spot) && new.tenant != spot.tenant);
        let away: Vec<Spot<K>> = old.iter().chain(&waiting.away).filter(is_elsewhere).cloned().collect();
        let were_away = core::mem::replace(&mut waiting.away, away.clone());
        for key in keys_of(&new) {
            self.keys.entry(key.clone()).or_default().callers += 1;
        }
        // Two tenants of one caller may have the same place in the order, and who removes one would remove the other.
        for spot in old.iter().filter(changes_tenant) {
            let line = self.line(&spot.key, spot.name).into_iter();
            line.for_each(|line| line.tenants.depart(caller, spot.critical, &spot.tenant));
        }
        // A caller that stays is not taken out meanwhile: its tenant does not begin to wait anew.
        for (spot, stand) in new.iter().zip(&stands) {
            self.stand(caller, spot, stand, old.contains(spot), now);
        }
        for spot in old.iter().filter(|spot| !new.contains(spot) && !changes_tenant(spot)) {
            if is_elsewhere(&spot) {
                self.line(&spot.key, spot.name)
                    .into_iter()
                    .for_each(|line| line.tenants.go_away(&spot.tenant));
            }
            self.step_out(caller, spot);
        }
        were_away.iter().filter(|spot| !away.contains(spot)).for_each(|spot| self.quit(spot));
        for key in keys_of(&old) {
            self.forget_at(key);
        }
    }

    /// Removes a caller. Returns whether it waited.
    pub fn leave(&mut self, caller: Caller) -> bool {
        let Some(waiting) = self.callers.remove(&caller) else { return false };
        self.deadlines.remove(&(waiting.deadline, caller));
        waiting.stands.iter().for_each(|spot| self.step_out(caller, spot));
        waiting.away.iter().for_each(|spot| self.quit(spot));
        keys_of(&waiting.stands).for_each(|key| self.forget_at(key));
        true
    }

    /// Marks the lines of a key as due: one of its limits may have room.
    pub fn mark<Q: Ord + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        let Some((key, names)) = self.lines_of(key) else { return };
        for name in names {
            self.make_due(&key, name);
        }
    }

    /// Marks the lines of a key, whose value is another one from now on.
    pub fn replace<Q: Ord + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        let Some(at) = self.keys.get_mut(key) else { return };
        at.lines.values_mut().for_each(|line| line.tenants.forget_table());
        self.mark(key);
    }

    /// Marks all lines: the value of any key may be another one from now on.
    pub fn replace_all(&mut self) {
        let lines = self.keys.values_mut().flat_map(|at| at.lines.values_mut());
        lines.for_each(|line| line.tenants.forget_table());
        self.mark_all();
    }

    /// Marks all lines as due.
    pub fn mark_all(&mut self) {
        self.nudge(self.keys.values().map(|at| at.lines.len()).sum());
    }

    /// Marks the next `count` lines, in turn. This finds changes that no event reports.
    pub fn nudge(&mut self, count: usize) {
        for _ in 0..count {
            let Some((key, name)) = self.after_nudged().or_else(|| self.first_line()) else { return };
            self.make_due(&key, name);
            self.nudged = Some((key, name));
        }
    }

    /// The line after the one that was nudged last.
    fn after_nudged(&self) -> Option<(K, Name)> {
        let (key, name) = self.nudged.as_ref()?;
        let of_key = self.keys.get(key).and_then(|at| at.lines.range((Excluded(name), Unbounded)).next());
        if let Some((name, _)) = of_key {
            return Some((key.clone(), *name));
        }
        let (key, at) = self.keys.range((Excluded(key), Unbounded)).next()?;
        Some((key.clone(), *at.lines.keys().next()?))
    }

    fn first_line(&self) -> Option<(K, Name)> {
        let (key, at) = self.keys.first_key_value()?;
        Some((key.clone(), *at.lines.keys().next()?))
    }

    /// A caller whose deadline has passed. It still waits, but is not returned again.
    pub fn timed_out(&mut self, now: Time) -> Option<Caller> {
        let (deadline, _) = self.deadlines.first()?;
        if *deadline > now { None } else { self.deadlines.pop_first().map(|(_, caller)| caller) }
    }

    /// The first caller of the next line that is due. It must be tried: then it leaves, or it stays.
    pub fn due(&mut self, now: Time) -> Option<Caller> {
        self.end_hungers(now);
        if self.wakes.first().is_some_and(|(wake, ..)| *wake <= now)
            && let Some((_, key, name)) = self.wakes.pop_first()
        {
            self.line(&key, name).into_iter().for_each(|line| line.wake = None);
            self.make_due(&key, name);
        }
        while let Some((key, name)) = self.due.pop_front() {
            let Some(line) = self.line(&key, name) else { continue };
            line.is_due = false;
            if let Some(first) = line.tenants.first() {
                return Some(first);
            }
        }
        None
    }

    /// The next deadline.
    pub fn next_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// A limit whose table is to be looked at again: leases that have ended are to be freed, and its line [follows](Self::follow)
    /// in a further step.
    pub fn look(&mut self, now: Time) -> Option<(K, Name)> {
        if self.next_look()? > now {
            return None;
        }
        let (_, key, name) = self.looks.pop_first()?;
        self.line(&key, name).into_iter().for_each(|line| line.look = None);
        Some((key, name))
    }

    /// When [`Lines::look`] returns a limit.
    pub fn next_look(&self) -> Option<Time> {
        self.looks.first().map(|(look, ..)| *look)
    }

    /// When [`Lines::due`] returns a caller again; [`Time::EPOCH`] if it does now.
    pub fn next_due(&self) -> Option<Time> {
        if !self.due.is_empty() {
            return Some(Time::EPOCH);
        }
        let is_left = self.all_over || self.is_late || !self.ending.is_empty();
        let removes = is_left.then(|| self.removed.0.plus(MILLISECOND));
        self.wakes.first().map(|(wake, ..)| *wake).into_iter().chain(removes).min()
    }

    fn line(&mut self, key: &K, name: Name) -> Option<&mut Line> {
        self.keys.get_mut(key)?.lines.get_mut(&name)
    }

    fn make_due(&mut self, key: &K, name: Name) {
        if let Some(line) = self.line(key, name).filter(|line| !line.is_due && line.tenants.first().is_some())
        {
            line.is_due = true;
            self.due.push_back((key.clone(), name));
        }
    }

    /// Puts a caller that was tried in a line, in which it may stand already.
    fn stand(&mut self, caller: Caller, spot: &Spot<K>, stand: &Stand<K>, stays: bool, now: Time) {
        let Some(at) = self.keys.get_mut(&spot.key) else { return };
        let line = at.lines.entry(spot.name).or_default();
        line.tenants.arrive(caller, &stand.claim, stays);
        let retry = stand.retry.map(|retry| now.plus(retry));
        self.rearrange(&spot.key, spot.name, Some((caller, now, retry)));
    }

    /// Takes a caller out of a line.
    fn step_out(&mut self, caller: Caller, spot: &Spot<K>) {
        if let Some(line) = self.line(&spot.key, spot.name) {
            line.tenants.depart(caller, spot.critical, &spot.tenant);
            self.rearrange(&spot.key, spot.name, None);
        }
    }

    /// A caller that was away from a line comes back to it, or waits no longer.
    fn quit(&mut self, spot: &Spot<K>) {
        if let Some(line) = self.line(&spot.key, spot.name) {
            line.tenants.quit(&spot.tenant);
            self.rearrange(&spot.key, spot.name, None);
        }
    }

    /// After a change of a line: if it has another first caller, the line becomes due, unless the new first caller was `tried` just
    /// now. It then wakes when its limit may admit that caller. A line without tenants is removed.
    fn rearrange(&mut self, key: &K, name: Name, tried: Option<(Caller, Time, Option<Time>)>) {
        let no_hunger = self.all_over || self.is_late;
        let Some(at) = self.keys.get_mut(key) else { return };
        let Some(line) = at.lines.get_mut(&name) else { return };
        let first = line.tenants.first();
        let is_kept = !no_hunger && !line.all_over && line.tenants.is_kept();
        let was_kept = core::mem::replace(&mut line.is_kept, is_kept);
        let wake = match tried {
            Some((caller, now, retry)) if first == Some(caller) => line.tenants.wake(now, retry, is_kept),
            // The hungry tenant does not come before the first caller any more.
            _ if first == line.first && was_kept && !is_kept => return self.make_due(key, name),
            _ if first == line.first => return self.remove_if_empty(key, name),
            _ => None,
        };
        let is_tried = tried.is_some_and(|(caller, ..)| first == Some(caller));
        line.first = first;
        let old = core::mem::replace(&mut line.wake, wake);
        move_wake(&mut self.wakes, key, name, old, wake);
        if !is_tried {
            self.make_due(key, name);
        }
        self.remove_if_empty(key, name);
    }

    /// A line that did not know its table when its first caller came may wake earlier now that it does.
    fn wake_earlier(&mut self, key: &K, name: Name, now: Time) {
        let Some(line) = self.line(key, name) else { return };
        let Some(old) = line.wake.filter(|old| *old > now) else { return };
        let wake = line.tenants.wake(now, Some(old), line.is_kept).filter(|wake| *wake < old);
        if wake.is_some() {
            line.wake = wake;
            move_wake(&mut self.wakes, key, name, Some(old), wake);
        }
    }

    fn remove_if_empty(&mut self, key: &K, name: Name) {
        let Some(at) = self.keys.get_mut(key) else { return };
        if let Some(look) = at.lines.get(&name).filter(|line| line.tenants.is_empty()).map(|line| line.look) {
            at.lines.remove(&name);
            move_wake(&mut self.looks, key, name, look, None);
        }
        if at.callers == 0 && at.lines.is_empty() {
            self.keys.remove(key);
        }
    }

    /// Counts one caller fewer at a key, and forgets a key without callers.
    fn forget_at(&mut self, key: &K) {
        let Some(at) = self.keys.get_mut(key) else { return };
        at.callers = at.callers.saturating_sub(1);
        if at.callers == 0 && at.lines.is_empty() {
            self.keys.remove(key);
        }
    }
}

/// The keys of a caller's spots, each once.
fn keys_of<K: Ord>(spots: &[Spot<K>]) -> impl Iterator<Item = &K> {
    spots.chunk_by(|a, b| a.key == b.key).filter_map(|spots| spots.first()).map(|spot| &spot.key)
}

fn move_wake<K: Ord + Clone>(
    wakes: &mut BTreeSet<(Time, K, Name)>,
    key: &K,
    name: Name,
    old: Option<Time>,
    new: Option<Time>,
) {
    if old != new {
        let entry = |time| (time, key.clone(), name);
        if let Some(old) = old {
            wakes.remove(&entry(old));
        }
        wakes.extend(new.map(entry));
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec;

    use super::*;
    use crate::state::{Leases, Length};
    use crate::testing::T0;

    fn leases() -> Name {
        Name::of::<Leases>(Length::NONE)
    }

    fn at(millis: u64) -> Time {
        T0.plus(Span::from_millis(millis))
    }

    /// A stand in the line of a key's leases, which may have room in `millis` milliseconds.
    fn stand(key: &str, millis: u64) -> Stand<String> {
        let retry = Some(Span::from_millis(millis));
        Stand { key: key.into(), name: leases(), claim: Claim::plain(1, false).into_owned(), retry }
    }

    fn critical(key: &str, millis: u64) -> Stand<String> {
        Stand { claim: Claim::plain(1, true).into_owned(), ..stand(key, millis) }
    }

    /// Adds a caller at [`T0`] that waits for at most 9 s.
    fn enter(lines: &mut Lines<String>, stands: Vec<Stand<String>>) -> Caller {
        lines.enter(T0, at(9000), stands)
    }

    fn ahead(lines: &Lines<String>, key: &str, caller: Option<Caller>, now: Time) -> Option<Span> {
        let comer = caller.map_or(Comer::Passes, Comer::Waits);
        lines.ahead(key, leases(), &Claim::plain(1, false), comer, now)
    }

    /// Whether others come before a caller in the line of a key, or before one that arrives now.
    fn is_behind(lines: &Lines<String>, key: &str, caller: Option<Caller>) -> bool {
        ahead(lines, key, caller, T0).is_some()
    }

    #[test]
    fn who_is_refused_by_one_limit_leaves_the_line_of_the_other() {
        let mut lines = Lines::new();
        let first = enter(&mut lines, vec![stand("a", 50)]);
        let second = enter(&mut lines, vec![stand("b", 50)]);
        let both = enter(&mut lines, vec![stand("a", 50), stand("b", 50)]);
        assert_eq!((lines.at_key("a"), lines.at_key("b"), lines.at_key("c")), (2, 2, 0));
        assert!(is_behind(&lines, "a", Some(both)) && is_behind(&lines, "b", None));

        lines.mark("a");
        assert_eq!(lines.due(T0), Some(first));
        assert!(lines.leave(first));
        assert_eq!(lines.due(T0), Some(both));
        assert!(!is_behind(&lines, "a", Some(both)) && is_behind(&lines, "b", Some(both)));
        lines.stay(both, T0, vec![stand("b", 0)]);
        assert!(!is_behind(&lines, "a", None) && lines.at_key("a") == 0);
        assert_eq!(lines.due(T0), None);

        assert!(lines.leave(second));
        assert_eq!(lines.due(T0), Some(both));
    }

    #[test]
    fn a_tenant_keeps_its_start_while_its_caller_stands_in_another_line_only() {
        let of = |tenant: &'static [u8]| Claim { tenant, ..Claim::plain(1, false) };
        let mut lines = Lines::new();
        let both = enter(&mut lines, vec![stand("a", 50), stand("b", 50)]);
        let other = enter(&mut lines, vec![Stand { claim: of(b"other").into_owned(), ..stand("a", 50) }]);
        // The limit of a admits it for now. Then others are served, so who begins to wait comes later.
        lines.stay(both, T0, vec![stand("b", 50)]);
        (0..3).for_each(|_| lines.grant("a", leases(), &of(b"served"), Cost::Known, T0));
        lines.stay(both, T0, vec![stand("a", 50), stand("b", 50)]);
        assert!(!is_behind(&lines, "a", Some(both)));
        // A caller that leaves for good is counted nowhere.
        lines.stay(both, T0, vec![stand("b", 50)]);
        assert!(lines.leave(other) && lines.leave(both));
        assert!(!lines.has_line("a", leases()) && !lines.has_line("b", leases()));
    }

    #[test]
    fn a_caller_that_stays_for_another_tenant_stands_in_line() {
        let of = |tenant: &'static [u8]| Stand {
            claim: Claim { tenant, ..Claim::plain(1, false) }.into_owned(),
            ..stand("a", 50)
        };
        let mut lines = Lines::new();
        let caller = enter(&mut lines, vec![of(b"")]);
        for tenant in [&b"ann"[..], b"", b"bob"] {
            lines.stay(caller, T0, vec![of(tenant)]);
            lines.mark("a");
            assert_eq!((lines.due(T0), lines.at_key("a")), (Some(caller), 1));
        }
        assert!(lines.leave(caller));
        assert!(!lines.has_line("a", leases()));
    }

    #[test]
    fn a_caller_that_becomes_critical_or_ceases_to_be_keeps_the_start_of_its_tenant() {
        let of = |tenant: &'static [u8], critical| Stand {
            claim: Claim { tenant, ..Claim::plain(1, critical) }.into_owned(),
            ..stand("a", 50)
        };
        let served = Claim { tenant: &b"served"[..], ..Claim::plain(1, false) };
        let mut lines = Lines::new();
        let ann = enter(&mut lines, vec![of(b"ann", false)]);
        enter(&mut lines, vec![of(b"bob", false)]);
        // Who begins to wait from now on comes after both.
        (0..3).for_each(|_| lines.grant("a", leases(), &served, Cost::Known, T0));
        for critical in [true, false] {
            lines.stay(ann, T0, vec![of(b"ann", critical)]);
        }
        lines.mark("a");
        assert_eq!(lines.due(T0), Some(ann));
    }

    #[test]
    fn critical_callers_come_before_others_and_among_themselves_by_arrival() {
        let mut lines = Lines::new();
        let ordinary = enter(&mut lines, vec![stand("a", 50)]);
        let urgent = enter(&mut lines, vec![critical("a", 50)]);
        let later = enter(&mut lines, vec![critical("a", 50)]);
        for caller in [urgent, later, ordinary] {
            lines.mark("a");
            assert_eq!(lines.due(T0), Some(caller));
            assert!(lines.leave(caller));
        }
        assert!(lines.is_empty());
    }

    #[test]
    fn a_caller_that_moves_back_by_its_arrival_sets_the_wake_of_the_line() {
        let mut lines = Lines::new();
        let first = enter(&mut lines, vec![stand("b", 90)]);
        let second = enter(&mut lines, vec![stand("a", 50)]);
        assert_eq!(lines.next_due(), Some(at(50)));
        lines.stay(first, at(10), vec![stand("a", 20), stand("b", 80)]);
        assert_eq!(lines.next_due(), Some(at(30)));
        assert_eq!(ahead(&lines, "a", None, at(10)), Some(Span::from_millis(20)));
        // The second's own wake does not count any more.
        assert_eq!(lines.due(at(30)), Some(first));
        lines.stay(first, at(30), vec![stand("a", 70), stand("b", 60)]);
        assert_eq!(lines.due(at(50)), None);
        assert_eq!(lines.next_due(), Some(at(90)));
        // When the first leaves, the second is tried.
        assert!(lines.leave(first));
        assert_eq!(lines.next_due(), Some(Time::EPOCH));
        assert_eq!((lines.due(at(50)), lines.due(at(50))), (Some(second), None));
    }

    #[test]
    fn without_a_retry_a_line_wakes_only_when_it_is_marked() {
        let mut lines = Lines::new();
        let caller = enter(&mut lines, vec![Stand { retry: None, ..stand("a", 0) }]);
        assert_eq!((lines.next_due(), lines.due(at(8000))), (None, None));
        assert_eq!(ahead(&lines, "a", None, T0), Some(Span::ZERO));
        lines.mark("b");
        assert_eq!(lines.next_due(), None);
        lines.mark("a");
        lines.mark("a");
        assert_eq!((lines.due(T0), lines.due(T0)), (Some(caller), None));
    }

    #[test]
    fn nudges_mark_the_keys_in_turn() {
        let mut lines = Lines::new();
        let callers = ["a", "b", "c"].map(|key| enter(&mut lines, vec![stand(key, 50)]));
        for turn in [[0, 1], [2, 0], [1, 2]] {
            lines.nudge(2);
            let due = [lines.due(T0), lines.due(T0), lines.due(T0)];
            assert_eq!(due, [Some(callers[turn[0]]), Some(callers[turn[1]]), None]);
        }
        lines.mark_all();
        let due = [lines.due(T0), lines.due(T0), lines.due(T0)];
        assert_eq!(due, callers.map(Some));
        lines.nudge(1);
        assert_eq!(lines.due(T0), Some(callers[0]));
        // The key where the last nudge ended is gone.
        assert!(lines.leave(callers[0]));
        lines.nudge(9);
        assert_eq!([lines.due(T0), lines.due(T0), lines.due(T0)], [Some(callers[1]), Some(callers[2]), None]);
    }

    #[test]
    fn a_line_that_is_emptied_and_filled_again_is_marked_anew() {
        let mut lines = Lines::new();
        let caller = enter(&mut lines, vec![stand("a", 50)]);
        lines.mark("a");
        assert!(lines.leave(caller));
        assert_eq!((lines.len(), lines.at_key("a"), lines.next_deadline()), (0, 0, None));
        assert_eq!((lines.due(T0), lines.next_due()), (None, None));
        let caller = enter(&mut lines, vec![stand("a", 50)]);
        lines.mark("a");
        assert_eq!(lines.due(T0), Some(caller));
    }
}
