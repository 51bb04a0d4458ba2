//! An open key, as the engine needs it.

use ratelimit_core::state::StoredLimit;
use ratelimit_value::Value;

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

    /// The key has changed: clients that watch it learn of it, and callers that wait for its limits are tried.
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

/// What keeps a slot open.
pub trait OfSlot<S> {
    fn of(slot: S) -> Self;

    fn slot(&self) -> &S;

    fn slot_mut(&mut self) -> &mut S;
}
