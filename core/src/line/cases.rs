//! Fair lines with a table of leases or a rate, in cases whose ends are known.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::adapt::Ending;
use crate::limiter::{Concurrent, Level, Limiter, release};
use crate::state::codec::Reader;
use crate::state::{Length, State, Tenant, hash_of_id};
use crate::testing::{T0, charged, millis};

const KEY: u8 = 0;
/// A line's clock and the table's show the same.
const TTL: u64 = 3_600_000;

/// What a call asks for.
#[derive(Clone, Copy)]
struct Wish {
    tenant: &'static str,
    weight: Option<u32>,
    cost: u64,
    critical: bool,
    /// What its tenant asks for by the same id again and again; `None` for a fresh id.
    job: Option<u64>,
}

fn of(tenant: &'static str) -> Wish {
    Wish { tenant, weight: None, cost: 1, critical: false, job: None }
}

/// A poll with one id of the tenant.
fn again(tenant: &'static str) -> Wish {
    Wish { job: Some(1), ..of(tenant) }
}

/// Leases, the callers that wait for them, and those that poll.
struct Pool {
    capacity: u64,
    leases: Leases,
    lines: Lines<u8>,
    now: Time,
    hunger: Span,
    waiting: BTreeMap<Caller, Wish>,
    /// The leases in the order of their grants.
    held: Vec<(u32, Wish)>,
    next: u32,
    /// The number of calls.
    calls: u64,
}

impl Pool {
    fn of(capacity: u64) -> Pool {
        Pool {
            capacity,
            leases: Leases::default(),
            lines: Lines::new(),
            now: T0,
            hunger: Span::from_millis(1000),
            waiting: BTreeMap::new(),
            held: Vec::new(),
            next: 0,
            calls: 0,
        }
    }

    /// Whether the limit and those before it leave room for a call, which is then granted.
    fn takes(&mut self, wish: Wish, comer: Comer) -> bool {
        let id = self.next.to_be_bytes();
        let tenant = Some(Tenant { name: wish.tenant.as_bytes(), weight: wish.weight });
        let tenant = tenant.filter(|tenant| !tenant.name.is_empty());
        let critical = wish.critical;
        let limiter = Concurrent { critical, tenant, ..Concurrent::plain(self.capacity, millis(TTL), &id) };
        let name = limiter.name();
        self.lines.follow(&KEY, name, Some(&self.leases), self.now, self.now);
        let claim = self.claim(wish);
        let claim = Claim { tenant: &*claim.tenant, ..claim_of(&claim) };
        let has_room = limiter.judge(&self.leases, self.now, wish.cost).admits();
        if !has_room || self.lines.ahead(&KEY, name, &claim, comer, self.now).is_some() {
            return false;
        }
        self.lines.grant(&KEY, name, &claim, Cost::Known, self.now);
        self.leases = charged(&limiter, Some(self.leases.clone()), self.now, wish.cost);
        self.held.push((self.next, wish));
        self.next += 1;
        self.lines.mark(&KEY);
        true
    }

    fn claim(&self, wish: Wish) -> Claim {
        let share = self.leases.share(wish.tenant.as_bytes(), self.now);
        let pool = Some(crate::state::Pool { most: self.capacity, share, id: self.id(wish) });
        let Wish { tenant, weight, cost, critical, .. } = wish;
        Claim { tenant: tenant.as_bytes().into(), weight, cost, critical, pool }
    }

    /// The id of a call, as a hash. A fresh one differs from all others.
    fn id(&self, Wish { tenant, job, .. }: Wish) -> u64 {
        let fresh = u64::from(self.next) << 32 | self.calls;
        hash_of_id(&[tenant.as_bytes(), &job.map_or(fresh, |job| u64::MAX - job).to_be_bytes()].concat())
    }

    fn stand(&self, wish: Wish) -> Vec<Stand<u8>> {
        let retry = Some(Span::from_millis(TTL));
        vec![Stand { key: KEY, name: name(), claim: self.claim(wish), retry }]
    }

    /// A call that waits if it must.
    fn wait(&mut self, wish: Wish) {
        self.calls += 1;
        if !self.takes(wish, Comer::Arrives) {
            let caller = self.lines.enter(self.now, Time::END, self.stand(wish));
            self.waiting.insert(caller, wish);
        }
        self.serve();
    }

    /// A call that does not wait. Returns whether it was admitted.
    fn poll(&mut self, wish: Wish) -> bool {
        self.calls += 1;
        let takes = self.takes(wish, Comer::Passes);
        if !takes {
            self.lines.starve(&KEY, name(), &self.claim(wish), self.now, self.hunger, 10_000);
        }
        self.serve();
        takes
    }

    fn serve(&mut self) {
        while let Some(caller) = self.lines.due(self.now) {
            let wish = self.waiting[&caller];
            if self.takes(wish, Comer::Waits(caller)) {
                self.lines.leave(caller);
                self.waiting.remove(&caller);
            } else {
                self.lines.stay(caller, self.now, self.stand(wish));
            }
        }
    }

    /// Ends the lease that was granted first, after the number of later ones, and returns whose it was.
    fn end(&mut self, place: usize) -> Wish {
        let (id, wish) = self.held.remove(place);
        let mut bytes = Vec::new();
        let change = release(&self.leases, &id.to_be_bytes(), Ending::Well, self.now).map(|change| {
            Leases::encode_change(&change, &mut bytes);
            Leases::decode_change(&mut Reader::new(&bytes)).expect("a change that was just encoded")
        });
        let mut leases = self.leases.clone();
        if let Some(change) = change {
            leases.apply(change);
        }
        self.leases = leases;
        self.lines.mark(&KEY);
        self.serve();
        wish
    }

    fn held_by(&self, tenant: &str) -> u64 {
        self.held.iter().filter(|(_, wish)| wish.tenant == tenant).map(|(_, wish)| wish.cost).sum()
    }
}

fn claim_of(claim: &Claim) -> Claim<&[u8]> {
    let Claim { tenant, weight, cost, critical, pool } = claim;
    Claim { tenant, weight: *weight, cost: *cost, critical: *critical, pool: *pool }
}

fn name() -> Name {
    Name::of::<Leases>(Length::NONE)
}

#[test]
fn a_call_that_does_not_wait_leaves_room_for_those_before_it() {
    let mut pool = Pool::of(3);
    assert!(pool.poll(of("a")) && pool.poll(of("a")) && pool.poll(of("a")));
    assert!(!pool.poll(of("b")) && !pool.poll(of("a")));
    pool.end(0);
    // The slot is kept for b, who polled in vain.
    assert!(!pool.poll(of("a")));
    assert!(pool.poll(of("b")));
    // Of two that hold as much, a was served less since it was refused for want of room.
    pool.end(0);
    assert!(pool.poll(of("a")));

    // A hunger ends by itself.
    assert!(!pool.poll(of("c")));
    pool.end(0);
    assert!(!pool.poll(of("a")));
    pool.now = pool.now.plus(Span::from_millis(1000));
    assert!(pool.poll(of("a")));

    // A waiting caller leaves the same room.
    pool.wait(of("a"));
    assert!(!pool.poll(of("c")));
    pool.end(0);
    assert_eq!((pool.waiting.len(), pool.held.len()), (1, 2));
    // It is tried when the hunger ends, and not at once, although the limit has room.
    let (caller, wish) = pool.waiting.first_key_value().map(|(caller, wish)| (*caller, *wish)).expect("one");
    let stands = vec![Stand { retry: Some(Span::ZERO), ..pool.stand(wish).remove(0) }];
    pool.lines.stay(caller, pool.now, stands);
    assert_eq!(pool.lines.next_due(), Some(pool.now.plus(pool.hunger)));
    pool.now = pool.now.plus(Span::from_millis(1000));
    pool.serve();
    assert_eq!((pool.waiting.len(), pool.held.len()), (0, 3));
    assert!(pool.lines.next_due().is_none());
}

#[test]
fn a_refusal_for_the_turn_begins_no_hunger_but_lets_one_last() {
    let mut pool = Pool::of(1);
    assert!(pool.poll(of("a")));
    for tenant in ["b", "c"] {
        assert!(!pool.poll(of(tenant)));
    }
    pool.end(0);
    pool.now = pool.now.plus(Span::from_millis(600));
    // The slot is kept for b. For want of its turn, c is hungry for longer, but d is not hungry.
    assert!(!pool.poll(of("c")) && !pool.poll(of("d")));
    assert_eq!(pool.lines.hungry(), 2);
    pool.now = pool.now.plus(Span::from_millis(600));
    assert!(!pool.poll(of("d")));
    assert_eq!(pool.lines.hungry(), 1);
    pool.now = pool.now.plus(Span::from_millis(400));
    assert!(pool.poll(of("d")));
}

#[test]
fn a_hunger_gives_no_place_before_those_that_wait_in_a_plain_line() {
    let mut pool = Pool::of(1);
    pool.wait(of("a"));
    assert!(!pool.poll(of("")));
    pool.wait(of(""));
    pool.end(0);
    assert_eq!(pool.held_by(""), 1);
    pool.wait(of(""));
    assert!(!pool.lines.is_fair(&KEY, name()) && pool.lines.hungry() == 1);
    // The lease ends, and before the first caller is tried another one calls.
    pool.leases = Leases::default();
    pool.lines.replace(&KEY);
    assert!(!pool.poll(of("")));
    assert_eq!(pool.waiting.len(), 0);
}

#[test]
fn of_two_that_were_refused_alike_the_first_comes_first() {
    let mut pool = Pool::of(1);
    pool.poll(of("a"));
    for tenant in ["b", "c", "b", "c"] {
        assert!(!pool.poll(of(tenant)));
    }
    pool.end(0);
    assert!(!pool.poll(of("c")) && !pool.poll(of("a")));
    assert!(pool.poll(of("b")));
    pool.end(0);
    assert!(!pool.poll(of("b")) && !pool.poll(of("a")));
    assert!(pool.poll(of("c")));
}

#[test]
fn a_call_passes_those_that_come_behind_it() {
    let mut pool = Pool::of(4);
    (0..4).for_each(|_| pool.wait(of("a")));
    pool.wait(Wish { cost: 2, ..of("a") });
    pool.end(0);
    // The slot is free, since a waits for two.
    assert!(pool.poll(of("b")));
    assert!(!pool.poll(of("b")));
    pool.end(0);
    assert!(pool.poll(of("b")));
    pool.end(0);
    assert_eq!((pool.held_by("a"), pool.held_by("b")), (1, 2));
    // Now b comes behind a, whose two would not fit any more.
    assert!(!pool.poll(of("b")));
    pool.end(0);
    assert_eq!((pool.held_by("a"), pool.held_by("b")), (2, 2));
}

#[test]
fn at_most_as_many_tenants_are_hungry_as_the_setting_allows() {
    let mut pool = Pool::of(1);
    pool.wait(of("a"));
    for (number, tenant) in ["b", "c", "d"].into_iter().enumerate() {
        let hunger = Span::from_millis(number as u64 + 1);
        pool.lines.starve(&KEY, name(), &pool.claim(of(tenant)), pool.now, hunger, 2);
    }
    assert_eq!(pool.lines.hungry(), 2);
    let hungry: Vec<_> = pool.lines.tenants(&KEY, usize::MAX).map(|(_, name, ..)| name.to_vec()).collect();
    assert_eq!(hungry, [b"c", b"d"]);
    pool.lines.end_hungers(pool.now.plus(Span::from_millis(2)));
    assert!(!pool.lines.is_empty() && pool.lines.has_line(&KEY, name()));
    pool.lines.end_hungers(pool.now.plus(Span::from_millis(3)));
    assert!(pool.lines.is_empty() && !pool.lines.has_line(&KEY, name()));
}

#[test]
fn before_a_caller_are_those_of_its_tenant_and_each_other_tenant_once() {
    let mut pool = Pool::of(2);
    for tenant in ["holds", "waits", "new", "other", "waits", "new"] {
        pool.wait(of(tenant));
    }
    let before = |wish| pool.lines.before(&KEY, name(), &claim_of(&pool.claim(wish)));
    assert_eq!(["newest", "holds", "waits", "new"].map(|tenant| before(of(tenant))), [2, 3, 3, 3]);
    assert_eq!(before(Wish { critical: true, ..of("holds") }), 0);
}

/// A rate that admits one request at a time, when it is asked to.
struct Rate {
    lines: Lines<u8>,
    waiting: BTreeMap<Caller, Wish>,
}

impl Rate {
    fn new() -> Rate {
        Rate { lines: Lines::new(), waiting: BTreeMap::new() }
    }

    fn name() -> Name {
        Name::of::<Level>(Length::of(Span::from_millis(1000)))
    }

    fn claim(wish: Wish) -> Claim<&'static [u8]> {
        let Wish { tenant, weight, cost, critical, .. } = wish;
        Claim { tenant: tenant.as_bytes(), weight, cost, critical, pool: None }
    }

    fn wait(&mut self, wish: Wish) {
        let claim = Self::claim(wish).into_owned();
        let stand = Stand { key: KEY, name: Self::name(), claim, retry: None };
        self.waiting.insert(self.lines.enter(T0, Time::END, vec![stand]), wish);
    }

    /// Admits the first caller of the line, and returns its tenant.
    fn admit(&mut self) -> &'static str {
        self.lines.mark(&KEY);
        let caller = self.lines.due(T0).expect("a caller that waits");
        let wish = self.waiting.remove(&caller).expect("a caller that waits");
        assert_eq!(self.lines.ahead(&KEY, Self::name(), &Self::claim(wish), Comer::Waits(caller), T0), None);
        self.lines.grant(&KEY, Self::name(), &Self::claim(wish), Cost::Estimated, T0);
        self.lines.leave(caller);
        wish.tenant
    }

    fn grants(&mut self, count: usize, tenant: &str) -> usize {
        (0..count).filter(|_| self.admit() == tenant).count()
    }
}

#[test]
fn a_weight_is_forgotten_when_its_tenant_neither_holds_nor_waits() {
    let mut rate = Rate::new();
    for _ in 0..20 {
        rate.wait(of("b"));
    }
    let heavy = Wish { weight: Some(4), ..of("a") };
    rate.wait(heavy);
    rate.wait(of("a"));
    // It keeps the weight of its last grant while it waits, and so gets four grants in five.
    (0..3).for_each(|_| rate.wait(of("a")));
    assert_eq!(rate.grants(6, "a"), 5);
    // Then it begins with a weight of 1.
    (0..5).for_each(|_| rate.wait(of("a")));
    assert_eq!(rate.grants(8, "a"), 4);

    let mut pool = Pool::of(6);
    pool.wait(Wish { weight: Some(5), ..of("a") });
    (0..5).for_each(|_| pool.wait(of("before")));
    (0..9).for_each(|_| pool.wait(of("a")));
    (0..9).for_each(|_| pool.wait(of("b")));
    // The lease of a with its weight ends first. After that, a and b take turns.
    (0..6).for_each(|_| _ = pool.end(0));
    assert_eq!((pool.held_by("a"), pool.held_by("b")), (3, 3));
}

#[test]
fn room_is_kept_for_all_hungry_tenants_that_would_hold_less() {
    let mut pool = Pool::of(10);
    (0..4).for_each(|_| assert!(pool.poll(of("ann"))));
    pool.wait(Wish { cost: 6, ..of("zed") });
    for tenant in ["bob", "cid", "dan"] {
        assert!(!pool.poll(again(tenant)));
    }
    pool.end(4);
    // With each call of ann, the three would still fit: 4 + 1 + 3, 5 + 1 + 3, 6 + 1 + 3. Then 7 + 1 + 3 are too many.
    assert_eq!([(); 4].map(|()| pool.poll(of("ann"))), [true, true, true, false]);
    // Who holds nothing leaves room for each of the others only: for bob, who came first, after 7 + 1 and 8 + 1, not after 9 + 1.
    assert!(pool.poll(of("eve")));
    assert_eq!(["cid", "dan", "bob"].map(|tenant| pool.poll(again(tenant))), [true, false, true]);
}

#[test]
fn a_hunger_ends_with_the_call_that_was_refused_last() {
    let mut pool = Pool::of(1);
    assert!(pool.poll(of("ann")) && !pool.poll(of("bob")) && !pool.poll(again("bob")));
    pool.end(0);
    assert!(pool.poll(again("bob")));
    assert_eq!(pool.lines.hungry(), 0);
    pool.end(0);
    // With a fresh id each time, the tenant stays hungry although it has what it asked for.
    assert!(pool.poll(of("ann")) && !pool.poll(of("bob")));
    pool.end(0);
    assert!(pool.poll(of("bob")));
    pool.end(0);
    assert!(!pool.poll(of("ann")));

    // Two tenants that were refused under one id, which is released.
    let mut pool = Pool::of(1);
    assert!(pool.poll(of("ann")));
    for tenant in ["bob", "cid"] {
        let claim = Claim { tenant: tenant.as_bytes().into(), ..pool.claim(again("any")) };
        pool.lines.starve(&KEY, name(), &claim, pool.now, pool.hunger, 10);
    }
    assert_eq!(pool.lines.hungry(), 2);
    pool.lines.serve(&KEY, name(), pool.id(again("other")), pool.now);
    assert_eq!(pool.lines.hungry(), 2);
    pool.lines.serve(&KEY, name(), pool.id(again("any")), pool.now);
    assert_eq!(pool.lines.hungry(), 0);
}

#[test]
fn many_hungers_end_at_once_and_are_removed_a_few_at_a_time() {
    let hunger = Span::from_millis(1000);
    let ends: [fn(&mut Pool); 3] = [
        |pool| pool.lines.end_all_hungers(pool.now),
        |pool| pool.lines.end_hungers_of(&KEY, pool.now),
        |pool| {
            pool.now = pool.now.plus(Span::from_millis(1000));
            pool.lines.end_hungers(pool.now);
        },
    ];
    for end in ends {
        let mut pool = Pool::of(1);
        pool.wait(of("ann"));
        for number in 0..1000u32 {
            let claim = Claim { tenant: number.to_be_bytes().as_slice().into(), ..pool.claim(of("")) };
            pool.lines.starve(&KEY, name(), &claim, pool.now, hunger, 10_000);
        }
        pool.wait(of("ann"));
        pool.end(0);
        // Those that hold nothing come before ann.
        assert!(pool.held.is_empty() && pool.lines.hungry() == 1000);
        end(&mut pool);
        // The others count no more, and none begins before they are gone.
        assert_eq!(pool.lines.hungry(), 1000 - AT_ONCE as usize);
        pool.serve();
        assert_eq!(pool.held.len(), 1);
        for step in 2..=1000_usize.div_ceil(AT_ONCE as usize) {
            assert_eq!(pool.lines.next_due(), Some(pool.now.plus(MILLISECOND)));
            pool.now = pool.now.plus(MILLISECOND);
            pool.serve();
            assert_eq!(pool.lines.hungry(), 1000_usize.saturating_sub(step * AT_ONCE as usize));
        }
        assert!(!pool.poll(of("bob")));
        assert_eq!(pool.lines.hungry(), 1);
    }
}

#[test]
fn a_line_reads_what_many_tenants_hold_in_steps() {
    const TENANTS: u32 = 150;
    let table = |tenants: core::ops::Range<u32>| {
        tenants.fold(Leases::default(), |leases, number| {
            let id = number.to_be_bytes();
            let tenant = Some(Tenant { name: &id, weight: None });
            let limiter = Concurrent { tenant, ..Concurrent::plain(600, millis(TTL), &id) };
            charged(&limiter, Some(leases), T0, 1)
        })
    };
    let mut pool = Pool::of(600);
    pool.hunger = Span::from_millis(24 * TTL);
    pool.leases = table(0..TENANTS);
    for number in 0..TENANTS {
        let claim = Claim { tenant: number.to_be_bytes().as_slice().into(), ..pool.claim(of("")) };
        pool.lines.starve(&KEY, name(), &claim, pool.now, pool.hunger, 10_000);
    }
    // The number of tenants that hold something as far as the line knows, after each step.
    let steps = |pool: &mut Pool| {
        pool.lines.follow(&KEY, name(), Some(&pool.leases), pool.now, pool.now);
        let mut known = vec![pool.lines.count_tenants(&KEY).1];
        while let Some(look) = pool.lines.next_look() {
            assert_eq!(look, pool.now.plus(MILLISECOND));
            assert_eq!(pool.lines.look(pool.now), None);
            pool.now = look;
            assert_eq!(pool.lines.look(pool.now), Some((KEY, name())));
            pool.lines.follow(&KEY, name(), Some(&pool.leases), pool.now, pool.now);
            known.push(pool.lines.count_tenants(&KEY).1);
            assert!(known.len() < 10, "{known:?}");
        }
        known
    };
    assert_eq!(steps(&mut pool), [64, 128, 150]);
    assert_eq!(steps(&mut pool), [150]);
    // Another table, and amid reading it one in which the first 25 hold nothing.
    pool.lines.replace(&KEY);
    pool.lines.follow(&KEY, name(), Some(&pool.leases), pool.now, pool.now);
    pool.leases = table(25..TENANTS);
    pool.lines.replace(&KEY);
    assert_eq!(steps(&mut pool).last(), Some(&125));
    // All leases expire in one instant.
    pool.now = T0.plus(Span::from_millis(TTL));
    assert_eq!(steps(&mut pool), [61, 0]);
    // A call does not put off the next step.
    pool.leases = table(0..TENANTS);
    pool.now = T0;
    pool.lines.replace(&KEY);
    (0..2).for_each(|_| {
        pool.lines.follow(&KEY, name(), Some(&pool.leases), pool.now, pool.now);
        pool.now = pool.now.plus(Span::from_micros(500));
    });
    assert_eq!(pool.lines.next_look(), Some(pool.now));
}

#[test]
fn what_was_used_beyond_an_estimate_counts_although_the_tenant_had_left_the_line() {
    let mut rate = Rate::new();
    ["a", "c"].into_iter().chain(["b"; 40]).for_each(|tenant| rate.wait(of(tenant)));
    assert_eq!([(); 3].map(|()| rate.admit()), ["a", "c", "b"]);
    rate.lines.correct(&KEY, Rate::name(), b"a", 1, 21);
    (0..20).for_each(|_| rate.wait(of("a")));
    assert_eq!(rate.grants(10, "a"), 0);
}

#[test]
fn a_line_wakes_when_a_lease_ends_of_which_it_learns_later() {
    let mut pool = Pool::of(1);
    pool.lines.enter(T0, Time::END, pool.stand(of("bob")));
    assert_eq!(pool.lines.next_due(), Some(T0.plus(Span::from_millis(TTL))));
    let tenant = Some(Tenant { name: b"ann", weight: None });
    let limiter = Concurrent { tenant, ..Concurrent::plain(1, millis(10_000), b"1") };
    pool.lines.follow(&KEY, name(), Some(&charged(&limiter, None, T0, 1)), T0, T0);
    assert_eq!(pool.lines.next_due(), Some(T0.plus(Span::from_millis(10_000))));
}
