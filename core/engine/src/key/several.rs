//! Several keys of one call.

use std::ops::{Deref, DerefMut, Range};

use ratelimit_core::MAX_PAIRS;
use ratelimit_language::Error;

use super::Key;
use crate::host::Host;
use crate::slot::{Access, Slot};

/// The open keys of a call that takes several. A call with one key allocates nothing for them.
pub enum OpenKeys<S: Slot> {
    One([Key<S>; 1]),
    Several(Vec<Key<S>>),
}

impl<S: Slot> Deref for OpenKeys<S> {
    type Target = [Key<S>];

    fn deref(&self) -> &[Key<S>] {
        match self {
            OpenKeys::One(key) => key,
            OpenKeys::Several(keys) => keys,
        }
    }
}

impl<S: Slot> DerefMut for OpenKeys<S> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            OpenKeys::One(key) => key,
            OpenKeys::Several(keys) => keys,
        }
    }
}

/// The keys of a call that takes several. Their names differ.
pub struct SeveralKeys<'c, H> {
    pub call: &'c H,
    /// The places of the arguments that are keys.
    places: [Range<usize>; 2],
}

impl<'c, H: Host> SeveralKeys<'c, H> {
    /// The keys that are the arguments at these places. Two equal names are an error, and so are more than [`MAX_PAIRS`].
    #[inline(always)]
    pub fn new(call: &'c H, places: [Range<usize>; 2]) -> Result<Self, Error> {
        let keys = SeveralKeys { call, places };
        // This bounds the comparisons.
        if keys.count() > MAX_PAIRS {
            return Err(Error::TooManyPairs);
        }
        for key in 1..keys.count() {
            let name = keys.name(key)?;
            for other in 0..key {
                if keys.name(other)? == name {
                    return Err(Error::SameKeys);
                }
            }
        }
        Ok(keys)
    }

    #[inline(always)]
    pub fn count(&self) -> usize {
        self.places.iter().map(ExactSizeIterator::len).sum()
    }

    /// The place of the argument that is this key.
    #[inline(always)]
    pub fn place(&self, key: usize) -> usize {
        let [first, more] = &self.places;
        if key < first.len() { first.start + key } else { more.start + key - first.len() }
    }

    fn name(&self, key: usize) -> Result<&'c [u8], Error> {
        self.call.word(self.place(key))
    }

    /// Opens one of the keys for reading.
    pub fn peek(&self, key: usize) -> Result<Key<H::Slot<'c>>, Error> {
        Key::open(self.call, self.place(key), Access::Read)
    }

    /// Opens all keys for writing.
    pub fn open(&self) -> Result<OpenKeys<H::Slot<'c>>, Error> {
        if self.count() == 1 {
            return Key::open(self.call, self.place(0), Access::Write).map(|key| OpenKeys::One([key]));
        }
        self.call.open_all((0..self.count()).map(|key| self.place(key))).map(OpenKeys::Several)
    }
}
