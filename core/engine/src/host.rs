//! A call and what surrounds it, as the engine needs them.

use ratelimit_language::Error;

use crate::slot::{Access, Slot};

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
}
