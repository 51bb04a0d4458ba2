//! What tenants hold beside their fair shares.
//!
//! Leases are whole, so they differ from the shares of progressive filling. Two laws bound the difference:
//!
//! - A tenant that waits would be above its share after its next lease. So it is less than one cost below it.
//! - No tenant holds more by its weight than one that waits would hold after its next lease.
//!
//! With equal weights, the second law keeps each tenant less than one cost above its share. With unequal weights a heavy tenant may
//! hold more. Of 75 slots, a weight of 51 beside fifty tenants of weight 1 gets 50. Its share is 37.9, but each of the others
//! reaches its level only with a whole slot.

use num_rational::BigRational;
use proptest::prelude::*;
use ratelimit_laws::fair::{Level, Rule};
use ratelimit_laws::{Want, fill, ratio};

use super::shop::*;

fn shares(capacity: u64, tenants: &[(u64, u64)]) -> Vec<BigRational> {
    let wants: Vec<Want> =
        tenants.iter().map(|(want, weight)| Want { want: *want, weight: *weight }).collect();
    fill(capacity, &wants)
}

#[test]
fn progressive_filling_gives_max_min_fair_shares() {
    let whole =
        |shares: Vec<BigRational>| -> Vec<String> { shares.iter().map(BigRational::to_string).collect() };
    assert_eq!(whole(shares(120, &[(1000, 1), (60, 1), (10, 1)])), ["55", "55", "10"]);
    assert_eq!(whole(shares(120, &[(1000, 1), (50, 1), (10, 1)])), ["60", "50", "10"]);
    assert_eq!(whole(shares(120, &[(1000, 6), (1000, 4), (1000, 2)])), ["60", "40", "20"]);
    assert_eq!(whole(shares(10, &[(100, 1), (5, 1), (1, 1)])), ["9/2", "9/2", "1"]);
    assert_eq!(whole(shares(10, &[(2, 1), (3, 5), (0, 7)])), ["2", "3", "0"]);
    assert_eq!(whole(shares(0, &[(2, 1)])), ["0"]);
    assert_eq!(whole(shares(10, &[])), [""; 0]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// No share can grow, except at the expense of one that is not greater by its weight.
    #[test]
    fn no_share_of_progressive_filling_can_grow(
        capacity in 0..200u64,
        tenants in prop::collection::vec((0..100u64, 1..12u64), 1..8),
    ) {
        let shares = shares(capacity, &tenants);
        let all: BigRational = shares.iter().sum();
        prop_assert!(all <= ratio(capacity));
        let level = |index: usize| &shares[index] / ratio(tenants[index].1);
        for (index, (want, _)) in tenants.iter().enumerate() {
            prop_assert!(shares[index] <= ratio(*want));
            if shares[index] < ratio(*want) {
                prop_assert_eq!(&all, &ratio(capacity));
                prop_assert!((0..tenants.len()).all(|other| level(other) <= level(index)));
            }
        }
    }

    #[test]
    fn who_waits_is_less_than_one_cost_below_its_share_and_envies_nobody(
        capacity in 1..80u64,
        tenants in prop::collection::vec((1..30u64, 1..12u64, 1..5u64), 1..6),
        equal in any::<bool>(),
    ) {
        let of = |(callers, weight, cost): (u64, u64, u64)| (callers, if equal { 3 } else { weight }, cost.min(capacity));
        let tenants: Vec<(u64, u64, u64)> = tenants.into_iter().map(of).collect();
        let mut shop = Shop::closed(capacity, Rule::Fair);
        for (tenant, (callers, weight, cost)) in (1..).zip(&tenants) {
            (0..*callers).for_each(|_| shop.come(Customer { tenant, weight: *weight, cost: *cost }));
        }
        shop.open();
        let wants: Vec<(u64, u64)> = tenants.iter().map(|(callers, weight, cost)| (callers * cost, *weight)).collect();
        let shares = shares(capacity, &wants);
        let held: Vec<u64> = (1..).zip(&tenants).map(|(tenant, _)| shop.holds(tenant)).collect();
        let waits = |index: usize| held[index] < wants[index].0;
        let most = tenants.iter().map(|(.., cost)| *cost).max().unwrap_or(0);
        for (index, (_, weight, cost)) in tenants.iter().enumerate() {
            if equal {
                prop_assert!(ratio(held[index]) < &shares[index] + ratio(most), "{held:?}, {shares:?}");
            }
            if waits(index) {
                prop_assert!(ratio(held[index] + cost) > shares[index], "{held:?}, {shares:?}");
                let next = Level::new((held[index] + cost).into(), (*weight).into());
                for (other, (_, weight, _)) in tenants.iter().enumerate() {
                    prop_assert!(Level::new(held[other].into(), (*weight).into()) <= next, "{held:?}");
                }
            } else {
                prop_assert!(ratio(held[index]) >= shares[index]);
            }
        }
    }
}

#[test]
fn a_heavy_tenant_can_hold_more_than_its_share() {
    let mut shop = Shop::closed(75, Rule::Fair);
    (0..75).for_each(|_| shop.come(Customer { tenant: 1, weight: 51, cost: 1 }));
    (2..52).for_each(|tenant| shop.come(plain(tenant)));
    shop.open();
    assert_eq!(shop.holds(1), 50);
    let tenants: Vec<(u64, u64)> = [(75, 51)].into_iter().chain((0..50).map(|_| (1, 1))).collect();
    assert_eq!(shares(75, &tenants)[0].to_string(), "3825/101");
}
