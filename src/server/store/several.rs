//! Several keys of one call that are open at once.
//!
//! # What may happen while a key is opened
//!
//! The server deletes an expired key when it is opened, and sends the event `expired`. When a missing key is opened for
//! reading, it sends `keymiss`. Modules that subscribe to these events run at once. They should not write then, but they
//! can: such a module may delete or overwrite a key that is already open. Its value is then freed, and both the pointer to
//! the value and the server's handle of the key dangle.
//!
//! - Keys that are only read are opened one by one: `SeveralKeys::peek` of the engine.
//! - Keys that are written must all be open. If a key other than the first is missing, it may have expired just now. So
//!   all keys are opened again, and the first handles are not used any more. The second time no key expires: expired keys
//!   have been deleted, and the clock stands still during a command. A missing key that is opened for writing causes no
//!   event.

use ratelimit_engine::slot::{Access, OfSlot, Slot};
use ratelimit_language::Error;
use ratelimit_value::Value;

use super::handle::Handle;
use super::slot::OpenKey;
use crate::server::entry::call::Call;

/// Opens the keys that are the arguments at these places, for writing. Their names differ.
pub fn open_several<'c, 'a, K: OfSlot<OpenKey<'c, 'a>>>(
    call: &'c Call<'a>,
    places: impl ExactSizeIterator<Item = usize> + Clone,
) -> Result<Vec<K>, Error> {
    if call.open.get() > 0 {
        return Err(Error::Internal);
    }
    let (keys, opened) = open_each::<K>(call, places.clone());
    if keys.iter().skip(1).all(|key| key.slot().value().is_some()) {
        return opened.map(|()| keys);
    }
    let (again, opened) = open_each::<K>(call, places);
    for (place, mut key) in keys.into_iter().enumerate() {
        let value = |key: &K| key.slot().value().map(Value::as_raw);
        if value(&key) != again.get(place).and_then(value) {
            key.slot_mut().handle.leak();
        }
    }
    opened.map(|()| again)
}

/// Opens the keys in turn until one is an error.
fn open_each<'c, 'a, K: OfSlot<OpenKey<'c, 'a>>>(
    call: &'c Call<'a>,
    places: impl ExactSizeIterator<Item = usize>,
) -> (Vec<K>, Result<(), Error>) {
    let mut keys = Vec::with_capacity(places.len());
    for place in places {
        // SAFETY: the names differ. `open_several` does not use the keys of the first time after it opened them again.
        let handle = unsafe { Handle::open_beside(call, place, Access::Write) };
        match handle.and_then(OpenKey::of) {
            Ok(open) => keys.push(K::of(open)),
            Err(error) => return (keys, Err(error)),
        }
    }
    (keys, Ok(()))
}
