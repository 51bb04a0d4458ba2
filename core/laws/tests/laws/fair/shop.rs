//! A node in memory whose callers take leases of the key `pool` for their tenants, or tokens of the key `share`.

use std::collections::{BTreeMap, VecDeque};

use ratelimit_core::Span;
use ratelimit_core::line::Caller;
use ratelimit_engine::memory::{Called, Memory};
use ratelimit_engine::reply::Reply;
use ratelimit_laws::set;

use super::super::T0;

/// A tenant, all of whose calls are alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Customer {
    pub tenant: u64,
    pub weight: u64,
    pub cost: u64,
}

/// A tenant of weight 1 whose calls cost 1.
pub fn plain(tenant: u64) -> Customer {
    Customer { tenant, weight: 1, cost: 1 }
}

/// A granted call: its id, and whose it is.
pub type Grant = (u64, Customer);

pub struct Shop {
    pub memory: Memory,
    pub capacity: u64,
    ids: u64,
    waiting: BTreeMap<Caller, Grant>,
    /// The leases that are held, in the order of their grants.
    pub held: VecDeque<Grant>,
    /// The tenants, in the order of their grants.
    pub grants: Vec<u64>,
}

/// A line wakes at most once in a millisecond.
const MOMENT: Span = Span::from_millis(2);

impl Shop {
    pub fn new(capacity: u64) -> Shop {
        let memory = Memory::new(0);
        memory.set_clock(T0);
        for (name, value) in [
            ("max-block", 86_400_000),
            ("max-waiters-per-key", 10_000),
            ("max-tenants", 10_000),
            ("hunger", 1000),
        ] {
            assert!(set(&memory, name, value));
        }
        Shop { memory, capacity, ids: 0, waiting: BTreeMap::new(), held: VecDeque::new(), grants: Vec::new() }
    }

    /// A shop in which another tenant holds all leases until [`Shop::open`].
    pub fn closed(capacity: u64) -> Shop {
        let mut shop = Shop::new(capacity);
        shop.come(Customer { tenant: 999, weight: 1, cost: capacity });
        shop
    }

    /// Ends the lease of the tenant that holds all.
    pub fn open(&mut self) {
        self.grants.clear();
        self.end(0);
    }

    pub fn id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    /// Makes a call. Returns its reply, or notes that its caller waits.
    pub fn call(&mut self, line: &str, grant: Grant) -> Option<Reply> {
        let called = self.memory.call(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        self.memory.take_effects();
        match called {
            Called::Replied(Reply::Error(error)) => panic!("{line}: {error}"),
            Called::Replied(reply) => Some(reply),
            Called::Waits(caller) => {
                self.waiting.insert(caller, grant);
                None
            }
        }
    }

    fn lease(&mut self, id: u64, customer: Customer, option: &str) -> bool {
        let (Customer { tenant, weight, cost }, capacity) = (customer, self.capacity);
        let line = format!(
            "RL.CONCURRENT pool {capacity} 9d {id} TENANT t{tenant} WEIGHT {weight} COST {cost}{option}"
        );
        let admitted = self.call(&line, (id, customer)).is_some_and(|reply| reply.is_admission());
        if admitted {
            self.note((id, customer));
        }
        admitted
    }

    /// A caller comes. It waits if it must.
    pub fn come(&mut self, customer: Customer) {
        let id = self.id();
        self.lease(id, customer, " BLOCK 1d");
    }

    /// A caller asks without waiting. Returns whether it is admitted.
    pub fn ask(&mut self, id: u64, customer: Customer) -> bool {
        self.lease(id, customer, "")
    }

    fn note(&mut self, grant: Grant) {
        self.held.push_back(grant);
        self.grants.push(grant.1.tenant);
    }

    /// Ends one of the held leases, and serves those that wait. Returns whose lease it was.
    pub fn end(&mut self, nth: usize) -> Customer {
        let (id, customer) = self.held.remove(nth).expect("a lease");
        let reply = self.call(&format!("RL.RELEASE pool {id}"), (id, customer));
        assert!(matches!(reply, Some(Reply::Integer(1))), "{id} is not held");
        self.pass(MOMENT);
        customer
    }

    /// Ends the lease of this id.
    pub fn end_of(&mut self, id: u64) {
        let nth = self.held.iter().position(|(other, _)| *other == id).expect("a lease");
        self.end(nth);
    }

    /// Lets time pass, in which callers are served. Returns their calls.
    pub fn pass(&mut self, span: Span) -> Vec<Grant> {
        let ended = self.memory.advance(span);
        self.memory.take_effects();
        let grants: Vec<Grant> = ended
            .iter()
            .map(|ended| {
                assert!(ended.reply.is_admission(), "a caller waits in vain");
                self.waiting.remove(&ended.caller).expect("a caller that waits")
            })
            .collect();
        for grant in &grants {
            self.note(*grant);
        }
        grants
    }

    /// The oldest lease ends, and its caller comes again.
    pub fn turn_over(&mut self) {
        let customer = self.end(0);
        self.come(customer);
    }

    pub fn waits(&self) -> usize {
        self.waiting.len()
    }

    /// What a tenant holds.
    pub fn holds(&self, tenant: u64) -> u64 {
        let of_tenant = self.held.iter().filter(|(_, customer)| customer.tenant == tenant);
        of_tenant.map(|(_, customer)| customer.cost).sum()
    }

    /// How many grants a tenant got.
    pub fn granted(&self, tenant: u64) -> usize {
        self.grants.iter().filter(|other| **other == tenant).count()
    }
}
