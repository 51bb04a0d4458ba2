//! A fraction `k / n`, stored in 64 bits without its denominator `n`, and read back exactly.
//!
//! A token bucket with 3 tokens per second must store thirds of a token. The denominator follows from the parameters,
//! which come with each call; storing it would make every key larger. So `k / n` is rounded up to a multiple of 2^-64,
//! and rounded down when it is read:
//!
//! ```text
//! stored = ceil(k * 2^64 / n)           k/n <= stored/2^64 < k/n + 2^-64
//! read   = floor(stored * n / 2^64)     k   <= stored*n/2^64 < k + n * 2^-64 < k + 1, so read = k
//! ```
//!
//! While `n` stays the same, no number of reads and writes loses anything. When the parameters change `n`, the fraction
//! is rounded down to parts of the new `n`.

use core::num::NonZeroU64;

/// Returns quotient and remainder. Nearly always both numbers fit in 64 bits, and one instruction divides them. The
/// division of 128-bit numbers is a loop.
pub fn divide(number: u128, by: NonZeroU64) -> (u128, u64) {
    if let Ok(number) = u64::try_from(number) {
        return (u128::from(number / by), number % by);
    }
    let by = u128::from(by.get());
    // The remainder is below the divisor, so it fits.
    (number / by, u64::try_from(number % by).unwrap_or(0))
}

/// The quotient, rounded up.
pub fn divide_up(number: u128, by: NonZeroU64) -> u128 {
    let (quotient, rest) = divide(number, by);
    quotient + u128::from(rest > 0)
}

/// `k / n` with `k < n`, as a multiple of 2^-64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Fraction(u64);

impl Fraction {
    pub const ZERO: Fraction = Fraction(0);

    /// `k / n`, for `k < n`.
    pub fn of(k: u64, n: NonZeroU64) -> Fraction {
        if k == 0 {
            return Fraction::ZERO;
        }
        let stored = (u128::from(k) << 64).div_ceil(u128::from(n.get()));
        // Below 2^64, as k < n. If a caller breaks that rule, the result is the largest fraction.
        Fraction(u64::try_from(stored).unwrap_or(u64::MAX))
    }

    /// The numerator `k` for the denominator `n`, rounded down.
    pub fn parts(self, n: NonZeroU64) -> u64 {
        // The upper half of a product of two 64-bit numbers fits in 64 bits.
        ((u128::from(self.0) * u128::from(n.get())) >> 64) as u64
    }

    pub const fn to_bits(self) -> u64 {
        self.0
    }

    pub const fn from_bits(bits: u64) -> Fraction {
        Fraction(bits)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::n;

    #[test]
    fn two_thirds_are_two_of_three_and_one_of_two() {
        let two_thirds = Fraction::of(2, n(3));
        assert_eq!(two_thirds.parts(n(3)), 2);
        assert_eq!(two_thirds.parts(n(2)), 1, "another denominator rounds down");
        assert_eq!(two_thirds.parts(n(300)), 200);
    }

    proptest! {
        #[test]
        fn a_fraction_is_read_back_exactly(denominator in 1u64.., any in any::<u64>()) {
            let k = any % denominator;
            prop_assert_eq!(Fraction::of(k, n(denominator)).parts(n(denominator)), k);
        }
    }
}
