//! The record: the last calls of policies on this node, which `RL.POLICY TRY` replays by other limits.
//!
//! It belongs to the node: it is neither saved nor replicated. `memory/replay.rs` replays it.

use std::collections::VecDeque;
use std::sync::Arc;

use ratelimit_core::state::hash_of_id;
use ratelimit_core::{Span, Time};
use ratelimit_language::{Bounds, Policy};

use crate::count::Outcome;

/// The longest key of a call that is kept.
const LONGEST_KEY: u16 = 256;
/// The most calls of a chunk, and the bytes of keys that end one: what is allocated and freed at a time.
const MOST_OF_CHUNK: usize = 1024;
const BYTES_OF_CHUNK: usize = 64 << 10;
/// How many chunks are freed at a time.
const FREED: usize = 8;

/// What a call did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deed {
    Admitted,
    Refused,
    Refund,
    Settlement,
}

impl From<Outcome> for Deed {
    fn from(outcome: Outcome) -> Deed {
        match outcome {
            Outcome::Admitted => Deed::Admitted,
            Outcome::Refused => Deed::Refused,
        }
    }
}

/// A call of a policy.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The instant at which it was judged.
    pub at: Time,
    /// The hashes of the policy's name, and of the id of its hold.
    pub policy: u64,
    pub hold: u64,
    /// For how long it holds its charge; 0 if it does not.
    pub ttl: Span,
    /// The cost, if the call gave one.
    pub cost: Option<u64>,
    pub database: i32,
    /// Where its keys begin among those of the chunk, and their number.
    from: u32,
    pub keys: u8,
    pub is_forced: bool,
    pub deed: Deed,
}

/// Some calls in their order. The keys stand one after the other, each behind its length.
#[derive(Default)]
pub struct Chunk {
    pub entries: Vec<Entry>,
    keys: Vec<u8>,
}

impl Chunk {
    fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.keys.capacity()
    }

    /// The keys of one of its entries.
    pub fn keys(&self, entry: &Entry) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.keys.get(entry.from as usize..).unwrap_or(&[]);
        (0..entry.keys).map_while(move |_| {
            let (length, behind) = rest.split_first_chunk()?;
            let (key, behind) = behind.split_at_checked(u16::from_le_bytes(*length).into())?;
            rest = behind;
            Some(key)
        })
    }
}

/// The last calls of a node.
pub struct Record {
    /// The full chunks, the oldest first. A replay shares them.
    full: VecDeque<Arc<Chunk>>,
    last: Chunk,
    /// Chunks that are forgotten, and freed a few at a time.
    forgotten: Vec<Arc<Chunk>>,
    calls: usize,
    bytes: usize,
    /// How many calls were not kept, since a key is too long.
    too_long: u64,
}

impl Record {
    pub(crate) const NONE: Record = Record {
        full: VecDeque::new(),
        last: Chunk { entries: Vec::new(), keys: Vec::new() },
        forgotten: Vec::new(),
        calls: 0,
        bytes: 0,
        too_long: 0,
    };

    /// Adds a call. At most `most` calls are kept.
    pub fn add<'k>(&mut self, most: usize, call: &Called<'_>, keys: impl Iterator<Item = &'k [u8]>) {
        let whole = (most / 16).clamp(1, MOST_OF_CHUNK);
        if self.last.entries.is_empty() {
            self.begin_chunk(most, whole);
        }
        let begin = self.last.keys.len();
        let mut count = 0;
        for key in keys {
            let Some(length) = u16::try_from(key.len()).ok().filter(|length| *length <= LONGEST_KEY) else {
                self.last.keys.truncate(begin);
                self.too_long += 1;
                return;
            };
            self.last.keys.reserve(size_of::<u16>() + key.len());
            self.last.keys.extend_from_slice(&length.to_le_bytes());
            self.last.keys.extend_from_slice(key);
            count += 1;
        }
        let Called { at, policy, hold, cost, database, is_forced, deed } = *call;
        let (hold, ttl) = hold.map_or((0, Span::ZERO), |(id, ttl)| (hash_of_id(id), ttl));
        let (policy, from) = (hash_of_id(policy), u32::try_from(begin).unwrap_or(u32::MAX));
        self.last.entries.push(Entry {
            at,
            policy,
            hold,
            ttl,
            cost,
            database,
            from,
            keys: count,
            is_forced,
            deed,
        });
        self.calls += 1;
        if self.last.entries.len() >= whole || self.last.keys.len() >= BYTES_OF_CHUNK {
            self.end_chunk();
        }
    }

    #[cold]
    fn begin_chunk(&mut self, most: usize, whole: usize) {
        self.keep(most - whole);
        self.last.entries.reserve_exact(whole);
    }

    #[cold]
    fn end_chunk(&mut self) {
        let mut chunk = std::mem::take(&mut self.last);
        // One that ends early, such as by a replay, keeps no room that it does not use.
        chunk.entries.shrink_to_fit();
        chunk.keys.shrink_to_fit();
        self.bytes += chunk.bytes();
        self.full.push_back(Arc::new(chunk));
    }

    /// Forgets the oldest calls, so that at most `most` are kept, and frees some of what is forgotten.
    pub fn keep(&mut self, most: usize) {
        if most == 0 {
            self.calls -= self.last.entries.len();
            self.last = Chunk::default();
        }
        while self.calls > most
            && let Some(oldest) = self.full.pop_front()
        {
            self.calls -= oldest.entries.len();
            self.bytes -= oldest.bytes();
            self.forgotten.push(oldest);
        }
        self.forgotten.truncate(self.forgotten.len().saturating_sub(FREED));
    }

    /// How many calls are kept, their bytes, and how many calls were not kept.
    pub fn counts(&self) -> [(&'static str, u64); 3] {
        let bytes = self.bytes + self.last.bytes();
        [
            ("record_calls", self.calls as u64),
            ("record_bytes", bytes as u64),
            ("record_too_long", self.too_long),
        ]
    }

    /// The calls so far, which stay as they are.
    pub(crate) fn share(&mut self) -> Vec<Arc<Chunk>> {
        if !self.last.entries.is_empty() {
            self.end_chunk();
        }
        self.full.iter().cloned().collect()
    }
}

/// A call of a policy that has ended.
pub struct Called<'a> {
    pub at: Time,
    /// The policy's name.
    pub policy: &'a [u8],
    /// The id of its hold, and how long it lasts.
    pub hold: Option<(&'a [u8], Span)>,
    pub cost: Option<u64>,
    pub database: i32,
    pub is_forced: bool,
    pub deed: Deed,
}

/// A replay that is asked for. It needs nothing of the node any more.
pub struct Wanted {
    /// The hash of the policy's name.
    pub name: u64,
    pub chunks: Vec<Arc<Chunk>>,
    /// The policy as it is, and the limits to try.
    pub now: Policy,
    pub then: Policy,
    /// How long before the newest call the replay begins; with the oldest one if `None`.
    pub last: Option<Span>,
    /// The database and the name of the only key that is counted.
    pub key: Option<(i32, Box<[u8]>)>,
    pub bounds: Bounds,
    pub most_holds: u64,
}
