//! The encoding of states and changes.
//!
//! Numbers are little-endian words of 64 bits, or of variable length where there are many. Byte strings follow their
//! lengths. The same bytes are used in RDB files, `DUMP`, the AOF and the replication stream.

use alloc::vec::Vec;

use crate::time::{Span, Time};

/// Reads what the `put` functions wrote. Each method returns `None` if too few bytes remain or the value is malformed.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    is_newer: bool,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, is_newer: false }
    }

    /// What this version does not know, and a newer one can have written: a kind, or a flag. Returns `None`.
    #[cold]
    pub fn newer<T>(&mut self) -> Option<T> {
        self.is_newer = true;
        None
    }

    /// Whether what could not be read is of a newer version, rather than malformed.
    pub fn is_newer(&self) -> bool {
        self.is_newer
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The number of remaining bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes between this reader and `later`, a copy of it that has read further.
    pub fn up_to(self, later: Reader<'a>) -> &'a [u8] {
        self.bytes.get(..self.len().saturating_sub(later.len())).unwrap_or(&[])
    }

    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    pub fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(u64::from_le_bytes(*word))
    }

    /// A word of at most `max`.
    pub fn word_up_to(&mut self, max: u64) -> Option<u64> {
        self.word().filter(|word| *word <= max)
    }

    /// An instant at which a call can be decided: at most [`Time::LATEST`].
    pub fn instant(&mut self) -> Option<Time> {
        self.word_up_to(Time::LATEST.as_micros()).map(Time::from_micros)
    }

    /// A deadline, or the instant of a full reset: at most [`Time::HORIZON`].
    pub fn horizon(&mut self) -> Option<Time> {
        self.word_up_to(Time::HORIZON.as_micros()).map(Time::from_micros)
    }

    /// A duration of at most [`Span::CENTURY`].
    pub fn span(&mut self) -> Option<Span> {
        self.word_up_to(Span::CENTURY.as_micros()).map(Span::from_micros)
    }

    /// A word that [`put_short`] wrote. The same word in more bytes, or with more than 64 bits, is malformed.
    pub fn short(&mut self) -> Option<u64> {
        let mut word = u64::from(self.byte()?);
        if word < 0x80 {
            return Some(word);
        }
        word &= 0x7f;
        for shift in (7..u64::BITS).step_by(7) {
            let byte = u64::from(self.byte()?);
            word |= (byte & 0x7f) << shift;
            match byte {
                0 => return None,
                // The tenth byte has one bit of the word.
                1..0x80 => return (shift < 63 || byte == 1).then_some(word),
                _ => {}
            }
        }
        None
    }

    /// A word of at most `max` that [`put_short`] wrote.
    pub fn short_up_to(&mut self, max: u64) -> Option<u64> {
        self.short().filter(|word| *word <= max)
    }

    /// The next `length` bytes.
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(bytes)
    }

    /// A byte string that [`put_bytes`] wrote.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.bytes.split_first_chunk()?;
        let (bytes, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        self.bytes = rest;
        Some(bytes)
    }
}

/// Writes a word.
#[inline(always)]
pub fn put(out: &mut Vec<u8>, word: u64) {
    out.extend_from_slice(&word.to_le_bytes());
}

/// Writes several words.
#[inline(always)]
pub fn put_words<const N: usize>(out: &mut Vec<u8>, words: [u64; N]) {
    out.extend_from_slice(words.map(u64::to_le_bytes).as_flattened());
}

/// Writes a word in as few bytes as it needs. Each byte holds seven bits, the lowest first. Its eighth bit is set if
/// more bytes follow.
pub fn put_short(out: &mut Vec<u8>, mut word: u64) {
    while word >= 0x80 {
        out.push((word & 0x7f | 0x80).to_le_bytes()[0]);
        word >>= 7;
    }
    out.push(word.to_le_bytes()[0]);
}

/// Writes a byte string. One longer than 65,535 bytes is truncated.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend(bytes.iter().take(usize::from(length)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_word_is_written_in_one_way() {
        for word in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, 1 << 62, 1 << 63, u64::MAX] {
            let mut bytes = Vec::new();
            put_short(&mut bytes, word);
            assert_eq!(Reader::new(&bytes).short(), Some(word));
            // The same with a zero more at its end.
            if let Some(last) = bytes.last_mut() {
                *last |= 0x80;
            }
            bytes.push(0);
            assert_eq!(Reader::new(&bytes).short(), None, "{word}");
        }
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 3]).short(), None);
    }
}
