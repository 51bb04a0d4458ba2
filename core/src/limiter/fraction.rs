//! A fraction of one, kept exactly for every denominator that a limiter may have.
//!
//! A bucket that is refilled with 3 tokens per second holds thirds, one with 7 per 11 ms sevenths of something
//! else. To be exact a limiter must keep `k` of `n` parts; but `n` comes from the parameters, which come with each
//! call and may change, and storing it would make every key larger. So `k / n` is kept as the smallest multiple
//! of 2^-64 that is not below it, and read back by rounding down:
//!
//! ```text
//! kept = ceil(k * 2^64 / n)         k/n <= kept/2^64 < k/n + 2^-64
//! read = floor(kept * n / 2^64)     k   <= kept*n/2^64 < k + n * 2^-64 < k + 1, so read = k
//! ```
//!
//! As long as `n` stays the same nothing is ever lost, over any number of reads and writes. Under another `n` the
//! fraction rounds down to that one's parts.

use core::num::NonZeroU64;

/// Quotient and remainder. Nearly always both numbers fit 64 bits, for which a processor has an instruction; the
/// division of wider ones is a loop.
pub fn divide(number: u128, by: NonZeroU64) -> (u128, u64) {
    if let Ok(number) = u64::try_from(number) {
        return (u128::from(number / by), number % by);
    }
    let by = u128::from(by.get());
    // A remainder is below the divisor.
    (number / by, u64::try_from(number % by).unwrap_or(0))
}

/// The quotient, rounded up.
pub fn divide_up(number: u128, by: NonZeroU64) -> u128 {
    let (quotient, rest) = divide(number, by);
    quotient + u128::from(rest > 0)
}

/// `k / n` with `k < n < 2^64`, as a multiple of 2^-64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Fraction(u64);

impl Fraction {
    pub const ZERO: Fraction = Fraction(0);

    /// `k / n`, for `k < n`.
    pub fn of(k: u64, n: NonZeroU64) -> Fraction {
        if k == 0 {
            return Fraction::ZERO;
        }
        let kept = (u128::from(k) << 64).div_ceil(u128::from(n.get()));
        // k < n keeps this below 2^64; a caller that broke the rule gets the largest fraction.
        Fraction(u64::try_from(kept).unwrap_or(u64::MAX))
    }

    /// How many whole parts of `n` this is.
    pub fn parts(self, n: NonZeroU64) -> u64 {
        // The upper half of a product of two 64-bit numbers fits 64 bits.
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
        fn reading_gives_back_what_was_kept(denominator in 1u64.., any in any::<u64>()) {
            let k = any % denominator;
            prop_assert_eq!(Fraction::of(k, n(denominator)).parts(n(denominator)), k);
        }
    }
}
