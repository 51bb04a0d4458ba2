//! How states and changes are written as bytes: little-endian words of 64 bits, shorter ones where there are many,
//! and byte strings behind their length. The same bytes go into RDB, `DUMP`, the AOF and the replication stream.

use alloc::vec::Vec;

use crate::time::{Span, Time};

/// Reads what [`put`] and [`put_bytes`] wrote; `None` where there is too little left.
#[derive(Clone, Copy)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader(bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes are left.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The bytes between this reader and `later`, which is the same reader some bytes on.
    pub fn up_to(self, later: Reader<'a>) -> &'a [u8] {
        self.0.get(..self.len().saturating_sub(later.len())).unwrap_or(&[])
    }

    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    /// A word that may not be above `max`.
    pub fn word_up_to(&mut self, max: u64) -> Option<u64> {
        self.word().filter(|word| *word <= max)
    }

    /// An instant at which a call can be decided.
    pub fn instant(&mut self) -> Option<Time> {
        self.word_up_to(Time::LATEST.as_micros()).map(Time::from_micros)
    }

    /// An instant that a state can hold: a deadline, or when it is fully reset.
    pub fn horizon(&mut self) -> Option<Time> {
        self.word_up_to(Time::HORIZON.as_micros()).map(Time::from_micros)
    }

    /// A length of time that a caller can name, or zero.
    pub fn span(&mut self) -> Option<Span> {
        self.word_up_to(Span::CENTURY.as_micros()).map(Span::from_micros)
    }

    /// What [`put_short`] wrote.
    pub fn short(&mut self) -> Option<u64> {
        let mut word = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = u64::from(self.byte()?);
            word |= (byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(word);
            }
        }
        None
    }

    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk()?;
        let (bytes, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        self.0 = rest;
        Some(bytes)
    }
}

#[inline(always)]
pub fn put(out: &mut Vec<u8>, word: u64) {
    out.extend_from_slice(&word.to_le_bytes());
}

/// Several words at once.
#[inline(always)]
pub fn put_words<const N: usize>(out: &mut Vec<u8>, words: [u64; N]) {
    out.extend_from_slice(words.map(u64::to_le_bytes).as_flattened());
}

/// A word in as few bytes as it needs, seven bits in each, the lowest first; the eighth says that more follow.
pub fn put_short(out: &mut Vec<u8>, mut word: u64) {
    while word >= 0x80 {
        out.push((word & 0x7f | 0x80).to_le_bytes()[0]);
        word >>= 7;
    }
    out.push(word.to_le_bytes()[0]);
}

/// A byte string of at most 65,535 bytes; what is longer is cut.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend(bytes.iter().take(usize::from(length)));
}
