//! What a slot holds: a lone limit, which becomes a set when a second limit joins, or a set, which becomes a lone limit again.

use ratelimit_core::{Length, LimitSet, Name, State, Time};
use ratelimit_value::Value;

use crate::slot::Slot;

pub(super) trait Content: Slot {
    #[inline(always)]
    fn state_mut<S: State>(&mut self) -> Option<&mut S> {
        self.value_mut().and_then(Value::state_mut::<S>)
    }

    #[inline(always)]
    fn set(&self) -> Option<&LimitSet> {
        self.value().and_then(Value::state::<LimitSet>)
    }

    /// The name of a lone limit, and the instant at which it is fully reset.
    fn lone_limit(&self) -> Option<(Name, Time)> {
        self.value().and_then(Value::lone_limit)
    }

    /// Sets the length of time in the name of a lone limit.
    #[inline(always)]
    fn set_length(&mut self, length: Length) {
        if let Some(value) = self.value_mut() {
            value.set_length(length);
        }
    }

    /// Sets the expiry of the key, if it is not missing.
    fn set_expiry(&mut self, millis: u64) {
        if let Some(value) = self.value_mut() {
            value.set_expiry(millis);
            self.expire_at(millis);
        }
    }

    /// Makes the key hold a set: of the lone limit that it holds, or of none.
    fn make_set(&mut self) -> Option<&mut LimitSet> {
        if self.set().is_none() {
            let lone = self.value_mut().and_then(|value| Some((value.lone_limit()?.0, value.take_state()?)));
            let set = lone.map_or_else(LimitSet::blank, |(name, state)| LimitSet::of_one(name, state));
            self.put(Value::new(Length::NONE, set));
        }
        self.state_mut()
    }

    /// Makes the limit of a set of one lone.
    fn make_lone(&mut self) {
        if let Some(limit) = self.state_mut().and_then(LimitSet::take_only) {
            self.put(Value::of_limit(limit));
        }
    }
}

impl<S: Slot> Content for S {}
