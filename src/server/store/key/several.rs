//! Several keys of one call.
//!
//! # What may happen while a key is opened
//!
//! The server deletes an expired key when it is opened, and sends the event `expired`. When a missing key is opened for
//! reading, it sends `keymiss`. Modules that subscribe to these events run at once. They should not write then, but they
//! can: such a module may delete or overwrite a key that is already open. Its value is then freed, and both the pointer to
//! the value and the server's handle of the key dangle.
//!
//! - Keys that are only read are opened one by one: [`SeveralKeys::peek`].
//! - Keys that are written must all be open. If a key other than the first is missing, it may have expired just now. So
//!   all keys are opened again, and the first handles are not used any more. The second time no key expires: expired keys
//!   have been deleted, and the clock stands still during a command. A missing key that is opened for writing causes no
//!   event.

use std::ops::{Deref, DerefMut, Range};

use ratelimit_core::MAX_PAIRS;
use ratelimit_language::Error;

use super::Key;
use crate::server::entry::call::Call;
use crate::server::store::handle::{Access, Handle};
use crate::server::store::open_key::OpenKey;
use ratelimit_value::Value;

/// The open keys of a call that takes several. A call with one key allocates nothing for them.
pub enum OpenKeys<'c, 'a> {
    One([Key<'c, 'a>; 1]),
    Several(Vec<Key<'c, 'a>>),
}

impl<'c, 'a> Deref for OpenKeys<'c, 'a> {
    type Target = [Key<'c, 'a>];

    fn deref(&self) -> &[Key<'c, 'a>] {
        match self {
            OpenKeys::One(key) => key,
            OpenKeys::Several(keys) => keys,
        }
    }
}

impl DerefMut for OpenKeys<'_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            OpenKeys::One(key) => key,
            OpenKeys::Several(keys) => keys,
        }
    }
}

/// The keys of a call that takes several. Their names differ.
pub struct SeveralKeys<'c, 'a> {
    call: &'c Call<'a>,
    /// The places of the arguments that are keys.
    places: [Range<usize>; 2],
}

impl<'c, 'a> SeveralKeys<'c, 'a> {
    /// The keys that are the arguments at these places. Two equal names are an error, and so are more than [`MAX_PAIRS`].
    #[inline(always)]
    pub fn new(call: &'c Call<'a>, places: [Range<usize>; 2]) -> Result<Self, Error> {
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

    fn name(&self, key: usize) -> Result<&'a [u8], Error> {
        self.call.word(self.place(key))
    }

    /// Opens one of the keys for reading.
    pub fn peek(&self, key: usize) -> Result<Key<'c, 'a>, Error> {
        Key::open(self.call, self.place(key), Access::Read)
    }

    /// Opens all keys for writing.
    pub fn open(&self) -> Result<OpenKeys<'c, 'a>, Error> {
        if self.count() == 1 {
            return Key::open(self.call, self.place(0), Access::Write).map(|key| OpenKeys::One([key]));
        }
        self.open_several().map(OpenKeys::Several)
    }

    fn open_several(&self) -> Result<Vec<Key<'c, 'a>>, Error> {
        if self.call.open.get() > 0 {
            return Err(Error::Internal);
        }
        let (keys, opened) = self.open_each();
        if keys.iter().skip(1).all(|key| key.open.value().is_some()) {
            return opened.map(|()| keys);
        }
        let (again, opened) = self.open_each();
        for (place, mut key) in keys.into_iter().enumerate() {
            let value = |key: &Key<'_, '_>| key.open.value().map(Value::as_raw);
            if value(&key) != again.get(place).and_then(value) {
                key.open.handle.leak();
            }
        }
        opened.map(|()| again)
    }

    /// Opens the keys in turn until one is an error.
    fn open_each(&self) -> (Vec<Key<'c, 'a>>, Result<(), Error>) {
        let mut keys = Vec::with_capacity(self.count());
        for place in (0..self.count()).map(|key| self.place(key)) {
            // SAFETY: the names differ. `open` does not use the keys of the first time after it opened them again.
            let handle = unsafe { Handle::open_beside(self.call, place, Access::Write) };
            match handle.and_then(OpenKey::of) {
                Ok(open) => keys.push(Key::of(open)),
                Err(error) => return (keys, Err(error)),
            }
        }
        (keys, Ok(()))
    }
}
