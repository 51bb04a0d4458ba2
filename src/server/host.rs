//! The server as the engine's host.

use ratelimit_engine::host::{Access, Host};
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
