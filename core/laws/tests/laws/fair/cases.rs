//! Cases with numbers that a reader can check by hand.

use ratelimit_laws::fair::{Call, Limit, Outcome, Rule, Wish};

use super::pair::Pair;
use super::shop::*;

/// All callers wait for a capacity that another tenant holds, which then ends its lease. Returns what each tenant holds.
fn ends_at(capacity: u64, tenants: &[(u64, u64)]) -> Vec<u64> {
    let mut shop = Shop::closed(capacity, Rule::Fair);
    for (tenant, (callers, weight)) in (1..).zip(tenants) {
        (0..*callers).for_each(|_| shop.come(Customer { tenant, weight: *weight, cost: 1 }));
    }
    shop.open();
    (1..).zip(tenants).map(|(tenant, _)| shop.holds(tenant)).collect()
}

#[test]
fn capacity_goes_to_tenants_and_not_to_callers() {
    assert_eq!(ends_at(120, &[(1000, 1), (60, 1), (10, 1)]), [55, 55, 10]);
    assert_eq!(ends_at(120, &[(1000, 1), (50, 1), (10, 1)]), [60, 50, 10]);
    assert_eq!(ends_at(120, &[(200, 6), (200, 4), (200, 2)]), [60, 40, 20]);
}

#[test]
fn a_tenant_that_holds_everything_gives_up_what_is_not_its_share() {
    let mut shop = Shop::new(120, Rule::Fair);
    (0..300).for_each(|_| shop.come(plain(1)));
    assert_eq!(shop.holds(1), 120);
    for (tenant, callers) in [(2, 60), (3, 10)] {
        (0..callers).for_each(|_| shop.come(plain(tenant)));
    }
    shop.turn_over(2000);
    assert_eq!([1, 2, 3].map(|tenant| shop.holds(tenant)), [55, 55, 10]);
}

#[test]
fn grants_are_in_the_ratio_of_the_weights() {
    let grants = |capacity, weights: &[u64]| {
        let tenants: Vec<(u64, u64)> = weights.iter().map(|weight| (20, *weight)).collect();
        ends_at(capacity, &tenants)
    };
    assert_eq!(grants(10, &[5, 3, 2]), [5, 3, 2]);
    assert_eq!(grants(8, &[3, 1]), [6, 2]);
}

#[test]
fn rates_are_granted_in_the_ratio_of_the_weights() {
    let grants = |count: usize, weights: &[u64]| {
        let mut pair = Pair::new(vec![Limit::bucket(1_000_000)], Rule::Fair);
        let call = |tenant, weight| {
            let wish = Wish { limit: 0, tenant, weight: Some(weight), cost: 1, most: 1, critical: false };
            Call { wishes: vec![wish], id: tenant.into(), ttl: 1, estimated: false }
        };
        assert_eq!(pair.arrive(&call(99, 1), true, YEARS), Outcome::Admitted);
        for (tenant, weight) in (0..).zip(weights) {
            for _ in 0..20 {
                assert_ne!(pair.arrive(&call(tenant, *weight), true, YEARS), Outcome::Admitted);
            }
        }
        let mut grants = vec![0; weights.len()];
        for _ in 0..count {
            assert_eq!(pair.serve(), []);
            pair.pass(1_000_000);
            let [id] = pair.serve()[..] else { panic!("one grant a second") };
            grants[usize::try_from(id).expect("a tenant")] += 1;
        }
        grants
    };
    assert_eq!(grants(10, &[5, 3, 2]), [5, 3, 2]);
    assert_eq!(grants(8, &[3, 1]), [6, 2]);
}

#[test]
fn a_tenant_that_was_served_a_hundred_times_does_not_pay_for_it() {
    let mut shop = Shop::new(1, Rule::Fair);
    (0..200).for_each(|_| shop.come(plain(1)));
    (0..100).for_each(|_| _ = shop.end(0));
    (0..100).for_each(|_| shop.come(plain(2)));
    shop.grants.clear();
    (0..20).for_each(|_| _ = shop.end(0));
    assert_eq!([shop.granted(1), shop.granted(2)], [10, 10]);
    assert!(shop.grants[..2].contains(&2));
}

#[test]
fn the_next_lease_goes_to_the_newcomer() {
    let mut shop = Shop::new(15, Rule::Fair);
    (0..115).for_each(|_| shop.come(plain(1)));
    shop.come(plain(2));
    shop.grants.clear();
    shop.end(0);
    assert_eq!(shop.grants, [2]);
}

#[test]
fn who_waits_for_its_own_quota_keeps_nobody_from_the_pool() {
    let mut pair = Pair::new(vec![Limit::leases(), Limit::leases()], Rule::Fair);
    let wish = |limit, tenant, most| Wish { limit, tenant, weight: None, cost: 1, most, critical: false };
    let mut ids = 0;
    // The pool has the number 0. The quota of the tenant 1 has the number 1.
    let mut come = |pair: &mut Pair, tenant| {
        ids += 1;
        let quota = (tenant == 1).then(|| wish(1, 0, 2));
        let wishes = [Some(wish(0, tenant, 3)), quota].into_iter().flatten().collect();
        pair.arrive(&Call { wishes, id: ids, ttl: YEARS, estimated: false }, true, YEARS)
    };
    assert_eq!(
        [1, 1, 1].map(|tenant| come(&mut pair, tenant)),
        [Outcome::Admitted, Outcome::Admitted, Outcome::Waits(1)]
    );
    assert_eq!(pair.model.waiting[0].stands, [1]);
    assert_eq!(come(&mut pair, 2), Outcome::Admitted);
    // The pool is full now, and the first of the tenant 2 waits for it.
    assert_eq!(come(&mut pair, 2), Outcome::Waits(2));
    assert!(pair.act(0, 4, None));
    assert_eq!(pair.serve(), [5]);
    // A lease of the quota and the pool ends.
    assert!(pair.act(0, 1, None) && pair.act(1, 1, None));
    assert_eq!(pair.serve(), [3]);
}
