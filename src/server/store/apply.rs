//! Applies a payload to a key.

use ratelimit_core::state::codec::Reader;
use ratelimit_core::{Length, LimitSet, State, with_state};
use ratelimit_language::Error;

use super::discard::discard;
use super::open_key::OpenKey;
use super::payload::{Effect, Payload};
use crate::server::entry::call::Call;
use ratelimit_value::Value;

impl Payload<'_> {
    /// Applies the effect to a key. A value of another kind is replaced.
    pub fn apply(self, call: &Call<'_>, place: usize) -> Result<(), Error> {
        let mut key = OpenKey::open_to_replace(call, place)?;
        if self.created {
            key.forget();
        }
        match self.effect {
            Effect::Gone => key.delete(),
            Effect::Whole(value) => key.set_value(value),
            Effect::Lone { kind, length, changes } => {
                with_state!(kind, S => apply_to_lone::<S>(&mut key, length, changes));
            }
            Effect::Set { changes } => apply_to_set(&mut key, changes),
        }
        if let Some(expiry) = self.expiry {
            key.set_expiry(expiry);
        }
        key.handle.signal();
        key.handle.mark();
        Ok(())
    }
}

fn apply_to_lone<S: State>(key: &mut OpenKey<'_, '_>, length: Length, mut changes: Reader<'_>) {
    if key.state_mut::<S>().is_none() {
        key.set_value(Value::new(length, S::blank()));
    }
    key.set_length(length);
    if let Some(state) = key.state_mut::<S>() {
        while let Some(change) = S::decode_change(&mut changes) {
            state.apply(change);
        }
    }
}

fn apply_to_set(key: &mut OpenKey<'_, '_>, mut changes: Reader<'_>) {
    if let Some(set) = key.make_set() {
        while let Some(change) = LimitSet::decode_change(&mut changes) {
            set.apply_and_take(change).into_iter().for_each(discard);
        }
        if set.is_empty() {
            return key.delete();
        }
    }
    key.make_lone();
}
