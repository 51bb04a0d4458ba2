//! The server as the engine's host.

use ratelimit_engine::host::Host;
use ratelimit_engine::slot::Access;
use ratelimit_language::Error;

use super::entry::call::Call;
use super::store::several::open_several;
use super::store::slot::OpenKey;

impl<'a> Host for Call<'a> {
    type Slot<'c>
        = OpenKey<'c, 'a>
    where
        Self: 'c;

    fn word(&self, place: usize) -> Result<&[u8], Error> {
        Call::word(self, place)
    }

    #[inline(always)]
    fn open(&self, place: usize, access: Access) -> Result<OpenKey<'_, 'a>, Error> {
        OpenKey::open(self, place, access)
    }

    fn open_all(&self, places: impl Iterator<Item = usize> + Clone) -> Result<Vec<OpenKey<'_, 'a>>, Error> {
        open_several(self, places)
    }
}

/// A key of limits that is open on the server.
pub type Key<'c, 'a> = ratelimit_engine::key::Key<OpenKey<'c, 'a>>;
/// Several keys of a call on the server.
pub type SeveralKeys<'c, 'a> = ratelimit_engine::key::SeveralKeys<'c, Call<'a>>;
