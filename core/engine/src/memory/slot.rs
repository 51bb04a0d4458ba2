//! An open key of a node in memory. Its value is out of the map while it is open, so that several keys can be open at once, and no
//! key twice.

use ratelimit_value::Value;

use super::state::{Effect, Memory, Stored};
use crate::slot::Slot;
use crate::waiting::WaitedKey;

pub(super) struct OpenKey<'m> {
    memory: &'m Memory,
    key: WaitedKey,
    value: Option<Value>,
    expiry: Option<u64>,
}

impl<'m> OpenKey<'m> {
    pub(super) fn open(memory: &'m Memory, name: &[u8]) -> OpenKey<'m> {
        let key = WaitedKey { database: memory.database.get(), name: name.into() };
        memory.open.set(memory.open.get() + 1);
        let is_hidden = memory.expire(&key) && memory.hides_expired();
        let mut keys = memory.keys.borrow_mut();
        let stored = if is_hidden { None } else { keys.get_mut::<WaitedKey>(&key) };
        let (value, expiry) = stored.map_or((None, None), |stored| {
            debug_assert!(stored.value.is_some(), "a key is opened twice");
            (stored.value.take(), stored.expiry)
        });
        OpenKey { memory, key, value, expiry }
    }

    /// The value leaves its key by this module, so no hunger ends.
    fn leave(&mut self) {
        if self.value.take().is_some() {
            self.memory.node.waiting.replaced(&self.key);
        }
        self.expiry = None;
    }
}

impl Slot for OpenKey<'_> {
    fn value(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    fn value_mut(&mut self) -> Option<&mut Value> {
        self.value.as_mut()
    }

    fn put(&mut self, value: Value) {
        self.leave();
        self.value = Some(value);
    }

    fn unlink(&mut self) {
        self.leave();
    }

    fn expiry(&self) -> Option<u64> {
        self.expiry
    }

    fn expire_at(&mut self, millis: u64) {
        self.expiry = Some(millis);
    }

    fn changed(&mut self) {
        self.memory.node.waiting.changed(&self.key);
    }

    fn send(&mut self, effect: &[u8]) {
        let effect = Effect::Apply(vec![(self.key.clone(), effect.to_vec())]);
        self.memory.effects.borrow_mut().push(effect);
    }

    fn send_all<'s>(effects: impl Iterator<Item = (&'s Self, &'s [u8])>)
    where
        Self: 's,
    {
        let mut memory = None;
        let payloads = effects.map(|(key, effect)| {
            memory = Some(key.memory);
            (key.key.clone(), effect.to_vec())
        });
        let effect = Effect::Apply(payloads.collect());
        if let Some(memory) = memory {
            memory.effects.borrow_mut().push(effect);
        }
    }

    fn lend(&self) -> Vec<u8> {
        self.memory.buffer.take()
    }

    fn give_back(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.memory.buffer.set(buffer);
    }
}

impl Drop for OpenKey<'_> {
    fn drop(&mut self) {
        self.memory.open.set(self.memory.open.get() - 1);
        let mut keys = self.memory.keys.borrow_mut();
        let (value, expiry) = (self.value.take(), self.expiry);
        if value.is_some() {
            keys.insert(self.key.clone(), Stored { value, expiry });
        } else if keys.get::<WaitedKey>(&self.key).is_some_and(|stored| stored.value.is_none()) {
            // What is only hidden stays.
            keys.remove::<WaitedKey>(&self.key);
        }
    }
}
