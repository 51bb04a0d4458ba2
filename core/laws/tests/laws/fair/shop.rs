//! A shop: leases of one limit, for which the callers of several tenants wait.

use std::collections::{BTreeMap, VecDeque};

use ratelimit_laws::fair::{Call, Limit, Outcome, Rule, Tenant, Wish};

use super::pair::Pair;

/// A tenant, all of whose calls are alike.
#[derive(Clone, Copy, Debug)]
pub struct Customer {
    pub tenant: Tenant,
    pub weight: u64,
    pub cost: u64,
}

/// A tenant of weight 1 whose calls cost 1.
pub fn plain(tenant: Tenant) -> Customer {
    Customer { tenant, weight: 1, cost: 1 }
}

pub struct Shop {
    pub pair: Pair,
    pub capacity: u64,
    ids: u64,
    /// The leases that are held, in the order of their grants: the id, and the index of the tenant.
    pub held: VecDeque<(u64, Customer)>,
    /// The tenants, in the order of their grants.
    pub grants: Vec<Tenant>,
    calls: BTreeMap<u64, Customer>,
}

/// A long time, in microseconds.
pub const YEARS: u64 = 1_000_000_000_000_000;

/// The tenant that holds all leases at first.
pub const BLOCKER: Tenant = 999;

impl Shop {
    pub fn new(capacity: u64, rule: Rule) -> Shop {
        let pair = Pair::new(vec![Limit::leases()], rule);
        Shop { pair, capacity, ids: 0, held: VecDeque::new(), grants: Vec::new(), calls: BTreeMap::new() }
    }

    /// A shop in which another tenant holds all leases until [`Shop::open`].
    pub fn closed(capacity: u64, rule: Rule) -> Shop {
        let mut shop = Shop::new(capacity, rule);
        shop.come(Customer { tenant: BLOCKER, weight: 1, cost: capacity });
        shop
    }

    /// Ends the lease of the tenant that holds all.
    pub fn open(&mut self) {
        self.grants.clear();
        self.end(0);
    }

    /// A caller comes. It waits if it is refused.
    pub fn come(&mut self, customer: Customer) {
        self.ids += 1;
        assert_ne!(self.call(customer, self.ids, true), Outcome::Refused(vec![0]));
    }

    /// A caller asks without waiting. Returns its lease.
    pub fn ask(&mut self, customer: Customer) -> Option<u64> {
        self.ids += 1;
        self.ask_again(customer, self.ids).then_some(self.ids)
    }

    /// A caller asks without waiting by an id of its own, which is no small number. Returns whether it is admitted.
    pub fn ask_again(&mut self, customer: Customer, id: u64) -> bool {
        self.call(customer, id, false) == Outcome::Admitted
    }

    fn call(&mut self, customer: Customer, id: u64, blocks: bool) -> Outcome {
        let Customer { tenant, weight, cost } = customer;
        self.calls.insert(id, customer);
        let wish =
            Wish { limit: 0, tenant, weight: Some(weight), cost, most: self.capacity, critical: false };
        let call = Call { wishes: vec![wish], id, ttl: YEARS, estimated: false };
        let outcome = self.pair.arrive(&call, blocks, YEARS);
        if outcome == Outcome::Admitted {
            self.note(id);
        }
        outcome
    }

    fn note(&mut self, id: u64) {
        let customer = self.calls[&id];
        self.held.push_back((id, customer));
        self.grants.push(customer.tenant);
    }

    /// Ends one of the held leases, and tries those that wait. Returns whose lease it was.
    pub fn end(&mut self, nth: usize) -> Customer {
        let (id, customer) = self.held.remove(nth).expect("a lease");
        assert!(self.pair.act(0, id, None));
        self.serve();
        customer
    }

    /// Lets time pass, in which hunger can end.
    pub fn pass(&mut self, micros: u64) {
        self.pair.pass(micros);
        self.serve();
    }

    fn serve(&mut self) {
        for id in self.pair.serve() {
            self.note(id);
        }
    }

    /// Ends the lease of this id.
    pub fn end_of(&mut self, id: u64) {
        let nth = self.held.iter().position(|(other, _)| *other == id).expect("a lease");
        self.end(nth);
    }

    /// The oldest lease ends again and again, and its caller comes again.
    pub fn turn_over(&mut self, times: usize) {
        for _ in 0..times {
            let customer = self.end(0);
            self.come(customer);
        }
    }

    /// What a tenant holds.
    pub fn holds(&self, tenant: Tenant) -> u64 {
        let of_tenant = self.held.iter().filter(|(_, customer)| customer.tenant == tenant);
        of_tenant.map(|(_, customer)| customer.cost).sum()
    }

    /// How many grants a tenant got.
    pub fn granted(&self, tenant: Tenant) -> usize {
        self.grants.iter().filter(|other| **other == tenant).count()
    }
}
