//! The laws of counters of frequent keys, on random streams.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher};

use proptest::prelude::*;
use ratelimit_core::top::{Seed, Top};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counts_of_frequent_keys_are_within_their_errors(
        most in 0..12usize,
        few in any::<bool>(),
        mask in prop::sample::select(vec![0, 1, 3]),
        seed in any::<u64>(),
        counts in prop::collection::vec((0..40u8, 0..40u8, 0..2u32), 0..400),
        clears in prop::collection::vec(0..400usize, 0..3),
    ) {
        let key = |(one, other, database): (u8, u8, u32)| {
            // The lesser of two numbers makes a skewed stream. Keys have several lengths.
            let number = if few { one % 4 } else { one.min(other) };
            (database, vec![number; usize::from(number)])
        };
        let keys: Vec<(u32, Vec<u8>)> = counts.into_iter().map(key).collect();
        count(Top::new(most, Weak { mask }), most, &keys, &clears)?;
        count(Top::new(most, Seed(seed)), most, &keys, &clears)?;
    }
}

/// Counts keys, and compares each state with the exact counts. Before the keys at `clears` all are forgotten.
fn count<S: BuildHasher>(
    mut top: Top<S>,
    most: usize,
    keys: &[(u32, Vec<u8>)],
    clears: &[usize],
) -> Result<(), TestCaseError> {
    let mut exact: HashMap<(u32, Vec<u8>), u64> = HashMap::new();
    for (i, (database, key)) in keys.iter().enumerate() {
        if clears.contains(&i) {
            top.clear();
            exact.clear();
            prop_assert!(top.sorted().is_empty());
        }
        top.count(*database, key);
        *exact.entry((*database, key.clone())).or_default() += 1;
        top_is_right(&top, most, &exact)?;
    }
    Ok(())
}

fn top_is_right<S: BuildHasher>(
    top: &Top<S>,
    most: usize,
    exact: &HashMap<(u32, Vec<u8>), u64>,
) -> Result<(), TestCaseError> {
    let length: u64 = if most == 0 { 0 } else { exact.values().sum() };
    let bound = length.checked_div(most as u64).unwrap_or(0);
    let entries = top.sorted();
    prop_assert_eq!(entries.len(), most.min(exact.len()));
    prop_assert_eq!(entries.iter().map(|entry| entry.count).sum::<u64>(), length);
    prop_assert!(entries.is_sorted_by(|one, other| one.count >= other.count));
    let mut seen = HashSet::new();
    for entry in entries {
        let exact = exact[&(entry.database, entry.key.to_vec())];
        prop_assert!(exact <= entry.count && entry.count <= exact + entry.error, "{} {:?}", exact, entry);
        prop_assert!(entry.error <= bound, "{:?}", entry);
        prop_assert!(seen.insert((entry.database, entry.key)), "an entry of its own for each key");
    }
    for ((database, key), _) in exact.iter().filter(|(_, count)| most > 0 && **count > bound) {
        prop_assert!(seen.contains(&(*database, &**key)));
    }
    Ok(())
}

/// A hash of few bits, so that keys share chains.
struct Weak {
    mask: u64,
}

struct WeakHasher {
    mask: u64,
    sum: u64,
}

impl BuildHasher for Weak {
    type Hasher = WeakHasher;

    fn build_hasher(&self) -> WeakHasher {
        WeakHasher { mask: self.mask, sum: 0 }
    }
}

impl Hasher for WeakHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.sum = bytes
            .iter()
            .fold(self.sum, |sum, byte| (sum + 1 + u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }

    fn finish(&self) -> u64 {
        self.sum & self.mask
    }
}
