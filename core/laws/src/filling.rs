//! Progressive filling: weighted max-min fair shares in rational numbers.

#![allow(clippy::indexing_slicing, reason = "the shares are as many as the tenants")]

use num_rational::BigRational;
use num_traits::Zero;

use super::ratio;

/// What a tenant wants of a capacity, and its weight.
#[derive(Clone, Copy, Debug)]
pub struct Want {
    pub want: u64,
    pub weight: u64,
}

/// The fair share of each tenant.
///
/// All shares grow at once, each in proportion to its weight. A tenant that has what it wants stops. All others stop when
/// nothing is left. So no share can grow except at the expense of one that is not greater, relative to the weights.
pub fn fill(capacity: u64, tenants: &[Want]) -> Vec<BigRational> {
    let mut shares = vec![BigRational::zero(); tenants.len()];
    loop {
        let given: BigRational = shares.iter().sum();
        let left = ratio(capacity) - given;
        let grows = |index: &usize| shares[*index] < ratio(tenants[*index].want);
        let growing: Vec<usize> = (0..tenants.len()).filter(grows).collect();
        // How much each share grows per weight until one tenant has what it wants, or nothing is left.
        let sated = growing.iter().map(|index| {
            let Want { want, weight } = tenants[*index];
            (ratio(want) - &shares[*index]) / ratio(weight)
        });
        let weights: u64 = growing.iter().map(|index| tenants[*index].weight).sum();
        let Some(sated) = sated.min().filter(|_| !left.is_zero()) else { return shares };
        let level = sated.min(left / ratio(weights));
        for index in growing {
            shares[index] += ratio(tenants[index].weight) * &level;
        }
    }
}
