//! No tenant that holds nothing starves while others' leases end, however many tenants come.

use std::collections::BTreeMap;

use ratelimit_laws::fair::{Rule, Tenant, units};

use super::dice::Dice;
use super::shop::*;

/// A tenant waits, or asks again and again, and holds nothing. Others come, wait, ask, and end their leases. Checks how many
/// grants each of them gets meanwhile. Returns their number.
fn others_before(dice: &mut Dice, poor: Customer, capacity: u64, waits: bool, newcomers: u64) -> usize {
    let mut shop = Shop::new(capacity, Rule::Fair);
    // Each tenant has its own weight and cost.
    let of = |tenant: Tenant| {
        let weight = if tenant.is_multiple_of(3) { 1 + u64::from(tenant) % 7 } else { 1 };
        Customer { tenant, weight, cost: 1 + u64::from(tenant) * 7 % capacity.min(4) }
    };
    let regular = |dice: &mut Dice| of(2 + Tenant::try_from(dice.below(8)).expect("a few"));
    let mut tenants: Tenant = 10;
    while shop.pair.model.waiting.len() < 12 {
        shop.come(regular(dice));
    }
    if waits {
        shop.come(poor);
    } else {
        shop.ask(poor);
    }
    if shop.granted(1) > 0 {
        return 0;
    }
    shop.grants.clear();
    let mut customers: BTreeMap<Tenant, Customer> = (2..10).map(|tenant| (tenant, of(tenant))).collect();
    while shop.granted(1) == 0 {
        assert!(shop.grants.len() < 20_000, "{poor:?} starves");
        if dice.happens(newcomers, 10) {
            tenants += 1;
            let customer = of(tenants);
            customers.insert(tenants, customer);
            if dice.happens(1, 2) { shop.come(customer) } else { _ = shop.ask(customer) }
        }
        if shop.held.is_empty() || dice.happens(1, 3) {
            shop.come(regular(dice));
        } else {
            let nth = dice.below(shop.held.len() as u64);
            shop.end(usize::try_from(nth).expect("small"));
        }
        shop.pass(100_000);
        if !waits {
            shop.ask(poor);
        }
    }
    let cost = units(poor.cost, poor.weight);
    for (tenant, customer) in &customers {
        let most = cost.div_ceil(units(customer.cost, customer.weight)) + 2;
        let granted = shop.granted(*tenant) as u128;
        assert!(granted <= most, "{granted} of at most {most} to {customer:?} before {poor:?}");
    }
    shop.grants.len() - 1
}

#[test]
fn each_other_tenant_gets_only_what_its_weight_allows_before_one_that_holds_nothing() {
    let mut dice = Dice::new(2);
    let mut grants = 0;
    for round in 0..200 {
        let capacity = 1 + dice.below(10);
        let poor = Customer { tenant: 1, weight: 1 + dice.below(3), cost: 1 + dice.below(capacity) };
        grants += others_before(&mut dice, poor, capacity, round % 2 == 0, round % 4);
    }
    assert!(grants > 1000, "{grants}");
}
