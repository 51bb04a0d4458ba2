//! The keys that are refused most: the most frequent keys of a stream, in constant memory.
//!
//! The algorithm is Space-Saving. It has `most` entries, each with a key, a count and an error. A key that has an entry
//! raises its count. A new key takes a free entry. If there is none, it takes the entry with the least count, raises it,
//! and notes the count before as its error: it may have been counted that often for other keys.
//!
//! ```text
//! 2 entries, and the keys a a b a c
//!
//!          key  count  error
//! a a b a  a    3      0
//!          b    1      0
//! c        a    3      0
//!          c    2      1      between 1 and 2 times
//! ```
//!
//! For each entry, the true count <= count <= the true count + error. The counts add up to the length n of the stream. So
//! the least count, and with it each error, is at most n / `most`; and each key that occurred more often than that has an
//! entry.
//!
//! Counting a key that has an entry takes a hash and a comparison. The entry with the least count comes from a heap, which
//! holds old counts: an entry that comes first with an old count is moved to its place. So counting a new key takes
//! O(log(`most`)) on average, and O(`most` * log(`most`)) once in a while: about a millisecond for 10,000 entries.
//!
//! Source: Metwally, Agrawal and El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams",
//! ICDT 2005, section 3.

use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::hash::{BuildHasher, Hasher};
use core::mem::{replace, swap};

use crate::time::{Period, Time};

/// Longer keys are not counted. In bytes.
pub const MAX_COUNTED_KEY: usize = 256;

/// The most frequent keys of a stream. `S` makes the hash of a key.
pub struct Top<S> {
    hasher: S,
    most: usize,
    /// The first `heap.len()` slots are entries. The others keep their memory for reuse.
    slots: Vec<Slot>,
    /// The slot of each entry, under its count or an older one. The least comes first.
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    /// The first slot of each hash, or [`NONE`]. The length is a power of two.
    chains: Vec<u32>,
}

#[derive(Default)]
struct Slot {
    hash: u64,
    count: u64,
    error: u64,
    key: Vec<u8>,
    database: u32,
    /// The next slot of the chain, or [`NONE`].
    next: u32,
}

/// A frequent key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frequent<'t> {
    pub database: u32,
    pub key: &'t [u8],
    pub count: u64,
    /// By how much the count may be too high.
    pub error: u64,
}

/// A keyed hash, of one multiplication for eight bytes. Without the seed its values cannot be predicted.
///
/// It does not protect against a caller that knows the seed. Even then no chain is longer than the number of entries.
#[derive(Clone, Copy, Debug)]
pub struct Seed(pub u64);

/// A hash while it is made.
pub struct Folding(u64);

impl BuildHasher for Seed {
    type Hasher = Folding;

    fn build_hasher(&self) -> Folding {
        Folding(self.0)
    }
}

impl Hasher for Folding {
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        #[allow(clippy::cast_possible_truncation, reason = "both halves count")]
        let folded = product as u64 ^ (product >> 64) as u64;
        self.0 = folded;
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        let last = rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        self.write_u64(last);
        self.write_u64(bytes.len() as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The end of a chain.
const NONE: u32 = u32::MAX;

impl<S: BuildHasher> Top<S> {
    /// `most` is the number of entries.
    pub fn new(most: usize, hasher: S) -> Top<S> {
        Top {
            hasher,
            most,
            slots: Vec::new(),
            heap: BinaryHeap::with_capacity(most),
            chains: vec![NONE; most.next_power_of_two()],
        }
    }

    /// Counts a key. A key longer than [`MAX_COUNTED_KEY`] is not counted.
    pub fn count(&mut self, database: u32, key: &[u8]) {
        if key.len() > MAX_COUNTED_KEY || self.most == 0 {
            return;
        }
        let hash = self.hash(database, key);
        match self.find(hash, database, key) {
            Some(slot) => slot.count += 1,
            None => self.insert(hash, database, key),
        }
    }

    /// The most frequent keys, in descending order.
    pub fn sorted(&self) -> Vec<Frequent<'_>> {
        let entries = self.slots.iter().take(self.heap.len()).map(|slot| Frequent {
            database: slot.database,
            key: &slot.key,
            count: slot.count,
            error: slot.error,
        });
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(|entry| Reverse(entry.count));
        entries
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.chains.fill(NONE);
    }

    fn hash(&self, database: u32, key: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u64(database.into());
        hasher.write(key);
        hasher.finish()
    }

    /// The index of a hash's chain.
    #[allow(clippy::cast_possible_truncation, reason = "the low bits choose the chain")]
    fn chain(&self, hash: u64) -> usize {
        hash as usize & (self.chains.len() - 1)
    }

    /// The slot of a key.
    fn find(&mut self, hash: u64, database: u32, key: &[u8]) -> Option<&mut Slot> {
        let mut next = *self.chains.get(self.chain(hash))?;
        while let Some(slot) = self.slots.get(next as usize) {
            if slot.hash == hash && slot.database == database && slot.key == key {
                return self.slots.get_mut(next as usize);
            }
            next = slot.next;
        }
        None
    }

    /// Gives a new key a free slot, or the one with the least count.
    fn insert(&mut self, hash: u64, database: u32, key: &[u8]) {
        let slot = if self.heap.len() < self.most { self.free_slot() } else { self.least_slot() };
        let chain = self.chain(hash);
        if let Some((head, slot, taken)) = self
            .chains
            .get_mut(chain)
            .zip(slot)
            .and_then(|(head, slot)| Some((head, slot, self.slots.get_mut(slot as usize)?)))
        {
            taken.key.clear();
            taken.key.reserve_exact(key.len());
            taken.key.extend_from_slice(key);
            (taken.hash, taken.database, taken.error) = (hash, database, taken.count);
            taken.count += 1;
            taken.next = replace(head, slot);
        }
    }

    /// Takes a slot that no entry has. Its count is 0.
    fn free_slot(&mut self) -> Option<u32> {
        let used = self.heap.len();
        let slot = u32::try_from(used).ok()?;
        match self.slots.get_mut(used) {
            Some(slot) => slot.count = 0,
            None => self.slots.push(Slot::default()),
        }
        self.heap.push(Reverse((1, slot)));
        Some(slot)
    }

    /// Takes the slot with the least count out of its chain.
    fn least_slot(&mut self) -> Option<u32> {
        loop {
            let mut first = self.heap.peek_mut()?;
            let Reverse((known, slot)) = &mut *first;
            let count = self.slots.get(*slot as usize)?.count;
            if *known == count {
                let slot = *slot;
                drop(first);
                self.unlink(slot)?;
                return Some(slot);
            }
            *known = count;
        }
    }

    /// Takes a slot out of its chain.
    fn unlink(&mut self, slot: u32) -> Option<()> {
        let &Slot { hash, next: after, .. } = self.slots.get(slot as usize)?;
        let chain = self.chain(hash);
        let head = self.chains.get_mut(chain)?;
        if *head == slot {
            *head = after;
            return Some(());
        }
        let mut before = *head;
        loop {
            let other = self.slots.get_mut(before as usize)?;
            if other.next == slot {
                other.next = after;
                return Some(());
            }
            before = other.next;
        }
    }
}

/// The most frequent keys of the current window of time, and those of the window before.
pub struct Windows<S> {
    window: Period,
    /// The current window begins here.
    begins: Time,
    current: Top<S>,
    previous: Top<S>,
}

impl<S: BuildHasher + Clone> Windows<S> {
    /// Windows of this length, which begin at its multiples.
    pub fn new(window: Period, most: usize, hasher: S) -> Windows<S> {
        let [current, previous] = [Top::new(most, hasher.clone()), Top::new(most, hasher)];
        Windows { window, begins: Time::EPOCH, current, previous }
    }

    pub fn count(&mut self, now: Time, database: u32, key: &[u8]) {
        self.turn(now);
        self.current.count(database, key);
    }

    /// The current window at `now`.
    pub fn current(&mut self, now: Time) -> &Top<S> {
        self.turn(now);
        &self.current
    }

    /// The window before the current one at `now`.
    pub fn previous(&mut self, now: Time) -> &Top<S> {
        self.turn(now);
        &self.previous
    }

    /// Forgets both windows.
    pub fn clear(&mut self) {
        self.current.clear();
        self.previous.clear();
    }

    fn turn(&mut self, now: Time) {
        let window = self.window.span();
        // After a step back of at most a window, the current window stays. After a greater one, it becomes the previous
        // window.
        if now.plus(window) < self.begins || now >= self.begins.plus(window) {
            let begins = now.minus(self.window.elapsed(now));
            let adjoins = begins <= self.begins.plus(window);
            swap(&mut self.current, &mut self.previous);
            self.current.clear();
            if !adjoins {
                self.previous.clear();
            }
            self.begins = begins;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, hash_map::RandomState};
    use std::string::String;

    use super::*;
    use crate::testing::{T0, millis};
    use crate::time::Span;

    fn told<S: BuildHasher>(top: &Top<S>) -> Vec<(String, u64, u64)> {
        top.sorted()
            .iter()
            .map(|top| (String::from_utf8_lossy(top.key).into(), top.count, top.error))
            .collect()
    }

    fn counted(most: usize, keys: &str) -> Vec<(String, u64, u64)> {
        let mut top = Top::new(most, RandomState::new());
        keys.split(' ').for_each(|key| top.count(0, key.as_bytes()));
        told(&top)
    }

    #[test]
    fn a_new_key_takes_the_entry_with_the_least_count_and_notes_it_as_its_error() {
        assert_eq!(counted(2, "a a b a"), [("a".into(), 3, 0), ("b".into(), 1, 0)]);
        assert_eq!(counted(2, "a a b a c"), [("a".into(), 3, 0), ("c".into(), 2, 1)]);
        assert_eq!(counted(2, "a a b a c b b"), [("b".into(), 4, 2), ("a".into(), 3, 0)]);
        assert_eq!(counted(1, "a b c"), [("c".into(), 3, 2)]);
        assert_eq!(counted(0, "a b c"), []);
    }

    #[test]
    fn equal_keys_of_two_databases_are_two() {
        let mut top = Top::new(4, RandomState::new());
        for database in [0, 1, 1] {
            top.count(database, b"a");
        }
        let databases: Vec<_> = top.sorted().iter().map(|top| (top.database, top.count)).collect();
        assert_eq!(databases, [(1, 2), (0, 1)]);
    }

    #[test]
    fn keys_of_256_bytes_are_counted_and_longer_ones_are_not() {
        let mut top = Top::new(4, RandomState::new());
        top.count(0, &[b'a'; 256]);
        top.count(0, &[b'a'; 257]);
        assert_eq!(top.sorted().iter().map(|top| top.key.len()).collect::<Vec<_>>(), [256]);
    }

    #[test]
    fn counts_are_within_their_errors_and_these_within_the_bound() {
        // A generator of numbers that are close to a Zipf distribution: the quotient of two uniform ones.
        let mut seed = 1_u64;
        let mut uniform = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % 100_000 + 1
        };
        for most in [1, 2, 7, 100, 1000] {
            let mut top = Top::new(most, RandomState::new());
            let mut exact: HashMap<u64, u64> = HashMap::new();
            for n in 1..=100_000_u64 {
                let key = uniform() / uniform();
                *exact.entry(key).or_default() += 1;
                top.count(0, &key.to_le_bytes());
                if n % 9973 > 0 {
                    continue;
                }
                let bound = n / most as u64;
                assert_eq!(top.sorted().iter().map(|top| top.count).sum::<u64>(), n);
                assert!(top.sorted().is_sorted_by(|one, other| one.count >= other.count));
                let mut seen: HashMap<u64, u64> = HashMap::new();
                for entry in top.sorted() {
                    let key = u64::from_le_bytes(entry.key.try_into().unwrap());
                    let exact = exact[&key];
                    assert!(exact <= entry.count && entry.count <= exact + entry.error, "{exact} {entry:?}");
                    assert!(entry.error <= bound, "{entry:?}");
                    assert_eq!(seen.insert(key, entry.count), None, "an entry of its own for each key");
                }
                for (key, _) in exact.iter().filter(|(_, count)| **count > bound) {
                    assert!(seen.contains_key(key), "{key}");
                }
            }
        }
    }

    #[test]
    fn the_window_before_stays_for_one_window() {
        let mut windows = Windows::new(millis(1000), 4, RandomState::new());
        let at = |millis| T0.plus(Span::from_millis(millis));
        for millis in [0, 500, 999] {
            windows.count(at(millis), 0, b"a");
        }
        windows.count(at(1000), 0, b"b");
        assert_eq!(told(windows.current(at(1500))), [("b".into(), 1, 0)]);
        assert_eq!(told(windows.previous(at(1999))), [("a".into(), 3, 0)]);
        assert_eq!(told(windows.previous(at(2000))), [("b".into(), 1, 0)]);
        assert_eq!(told(windows.current(at(2000))), []);
        windows.count(at(2000), 0, b"c");
        assert_eq!(told(windows.previous(at(4000))), [], "nobody was refused from 3000 on");
        windows.count(at(4000), 0, b"d");
        windows.count(at(3999), 0, b"d");
        windows.count(at(3000), 0, b"d");
        assert_eq!(told(windows.current(at(0))), [], "the clock was set back");
        assert_eq!(told(windows.previous(at(0))), [("d".into(), 3, 0)]);
        windows.clear();
        assert_eq!(told(windows.previous(at(0))), []);
    }
}
