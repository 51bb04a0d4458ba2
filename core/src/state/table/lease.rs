//! A lease in a table: its id, its deadline, its cost, and what else the table keeps with each.

use alloc::boxed::Box;

use crate::state::codec::Reader;
use crate::state::timeline::Tick;

/// The longest id, in bytes.
pub const MAX_ID: usize = 256;

/// A lease that was taken. `K` is what else the table keeps with each.
#[derive(Clone, Debug)]
pub(crate) struct Lease<K = ()> {
    /// The lease is held before this tick: `era` and `micros`. Two fields leave no gap in the struct.
    era: u32,
    pub(crate) cost: u32,
    micros: u64,
    /// The hash of the id. Leases are found by it first, so ids are seldom compared.
    hash: u64,
    pub(crate) id: Box<[u8]>,
    pub(crate) kept: K,
}

impl<K> Lease<K> {
    pub(crate) fn new(id: &[u8], deadline: Tick, cost: u32, kept: K) -> Lease<K> {
        Lease::hashed(Key { deadline, hash: hash(id), id }, cost, kept)
    }

    pub(super) fn hashed(key: Key<'_>, cost: u32, kept: K) -> Lease<K> {
        let Tick { era, micros } = key.deadline;
        Lease { era, cost, micros, hash: key.hash, id: Box::from(key.id), kept }
    }

    pub(crate) fn deadline(&self) -> Tick {
        Tick { era: self.era, micros: self.micros }
    }

    pub(super) fn set_deadline(&mut self, deadline: Tick) {
        (self.era, self.micros) = (deadline.era, deadline.micros);
    }

    pub(super) fn key(&self) -> Key<'_> {
        Key { deadline: self.deadline(), hash: self.hash, id: &self.id }
    }

    pub(super) fn is_of(&self, hash: u64, id: &[u8]) -> bool {
        self.hash == hash && self.id.as_ref() == id
    }
}

/// What the orders of the trees depend on.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    pub(super) deadline: Tick,
    /// The hash of the id.
    pub(super) hash: u64,
    pub(super) id: &'a [u8],
}

/// A hash that differs for most ids. Ids of equal hashes only take longer to find, so it needs no secret.
pub fn hash(id: &[u8]) -> u64 {
    let (words, rest) = id.as_chunks::<8>();
    let rest = rest.iter().fold(id.len() as u64, |word, byte| word << 8 | u64::from(*byte));
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    words.chain([rest]).fold(0, |hash: u64, word| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    })
}

/// Reads an id.
pub(crate) fn decode_id<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    reader.bytes().filter(|id| (1..=MAX_ID).contains(&id.len()))
}
