//! Applies a payload to a key.

use ratelimit_core::state::codec::Reader;
use ratelimit_core::{Length, LimitSet, State, with_state};
use ratelimit_language::Error;
use ratelimit_value::Value;

use super::content::Content;
use super::payload::{Effect, Payload};
use crate::host::Host;
use crate::slot::{Access, Slot};

impl Payload<'_> {
    /// Applies the effect to a key. A value of another kind is replaced.
    pub fn apply(self, call: &impl Host, place: usize) -> Result<(), Error> {
        let mut key = call.open(place, Access::Replace)?;
        if self.created {
            key.unlink();
        }
        match self.effect {
            Effect::Gone => key.unlink(),
            Effect::Whole(value) => key.put(value),
            Effect::Lone { kind, length, changes } => {
                with_state!(kind, S => apply_to_lone::<S>(&mut key, length, changes));
            }
            Effect::Set { changes } => apply_to_set(&mut key, changes),
        }
        if let Some(expiry) = self.expiry {
            key.set_expiry(expiry);
        }
        key.changed();
        if let Some(value) = key.value() {
            call.node().pass_tokens(value);
        }
        Ok(())
    }
}

fn apply_to_lone<S: State>(key: &mut impl Slot, length: Length, mut changes: Reader<'_>) {
    if key.state_mut::<S>().is_none() {
        key.put(Value::new(length, S::blank()));
    }
    key.set_length(length);
    if let Some(state) = key.state_mut::<S>() {
        while let Some(change) = S::decode_change(&mut changes) {
            state.apply(change);
        }
    }
}

fn apply_to_set<O: Slot>(key: &mut O, mut changes: Reader<'_>) {
    if let Some(set) = key.make_set() {
        while let Some(change) = LimitSet::decode_change(&mut changes) {
            set.apply_and_take(change).into_iter().for_each(O::discard);
        }
        if set.is_empty() {
            return key.unlink();
        }
    }
    key.make_lone();
}
