//! What the engine needs of its surroundings: an open key, and a call with all that is around it.

use ratelimit_core::state::StoredLimit;
use ratelimit_language::Error;
use ratelimit_value::Value;

use crate::key::Key;

/// Whether a key is opened to be changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
    /// As `Write`, but a value of another type counts as none. [`Slot::put`] replaces it.
    Replace,
}

/// A key that is open until it is dropped, and its value.
pub trait Slot: Sized {
    /// The value; `None` if the key is missing.
    fn value(&self) -> Option<&Value>;

    fn value_mut(&mut self) -> Option<&mut Value>;

    /// Makes the key hold a value, without an expiry.
    fn put(&mut self, value: Value);

    /// Deletes the key. It can get a value again.
    fn unlink(&mut self);

    /// The key's expiry in ms since the epoch; `None` if it does not expire.
    fn expiry(&self) -> Option<u64>;

    fn expire_at(&mut self, millis: u64);

    /// The key has changed: clients that watch it are told, and callers that wait for its limits are tried.
    fn changed(&mut self);

    /// Sends an effect on the key to its copies.
    fn send(&mut self, effect: &[u8]);

    /// Sends effects on several keys to their copies, in one piece.
    fn send_all<'s>(effects: impl Iterator<Item = (&'s Self, &'s [u8])>)
    where
        Self: 's;

    /// Lends an empty buffer for an effect, so that no call allocates one.
    fn lend(&self) -> Vec<u8>;

    /// Gives the buffer back.
    fn give_back(&self, buffer: Vec<u8>);

    /// Frees a limit that was removed from a set.
    fn discard(limit: StoredLimit) {
        drop(limit);
    }
}

/// A call, and what surrounds it.
pub trait Host {
    type Slot<'c>: Slot
    where
        Self: 'c;

    /// The bytes of the argument at `place`. The command's name is at place 0.
    fn word(&self, place: usize) -> Result<&[u8], Error>;

    /// Opens the key that is the argument at `place`. A value that is none of limits is an error. So is a second key while one is
    /// open.
    fn open(&self, place: usize, access: Access) -> Result<Self::Slot<'_>, Error>;

    /// Opens several keys for writing at once. Their names differ.
    fn open_all(&self, places: impl Iterator<Item = usize> + Clone) -> Result<Vec<Self::Slot<'_>>, Error>;

    /// Opens the key of limits that is the argument at `place`.
    #[inline(always)]
    fn key(&self, place: usize, access: Access) -> Result<Key<Self::Slot<'_>>, Error> {
        self.open(place, access).map(Key::of)
    }
}
