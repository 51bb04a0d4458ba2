//! What a node in memory has: keys, clocks, dice, and what it sends to copies.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::mem::take;

use ratelimit_core::line::Caller;
use ratelimit_core::{Span, Time};
use ratelimit_value::Value;

use crate::node::Node;
use crate::policies;
use crate::reply::Reply;
use crate::waiting::{OfDatabase, WaitedKey};

/// What a node sends to its copies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Payloads of `RL.APPLY`, all from one call.
    Apply(Vec<(WaitedKey, Vec<u8>)>),
    /// The policies have changed.
    Policies(policies::Effect),
    /// A key was deleted by a command of the server, has expired or was evicted.
    Gone(WaitedKey),
    /// Another command of the server, as it came.
    Server { database: i32, words: Vec<Vec<u8>> },
}

/// What a node is in its deployment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    Primary,
    /// It applies effects. Keys that have expired are hidden, and stay until their deletion arrives.
    Copy,
}

/// A node in memory.
pub struct Memory {
    pub(super) node: Node,
    pub(super) keys: RefCell<BTreeMap<WaitedKey, Stored>>,
    /// The number of open keys.
    pub(super) open: Cell<usize>,
    pub(super) clock: Cell<Time>,
    /// A clock that is never set back.
    pub(super) steady: Cell<Time>,
    pub(super) dice: Cell<u64>,
    pub(super) database: Cell<i32>,
    pub(super) role: Cell<Role>,
    /// Whether a call of the primary or the log runs, for which no key expires.
    pub(super) is_obeying: Cell<bool>,
    /// Whether writes are paused: no caller is tried until that ends.
    pub(super) is_paused: Cell<bool>,
    /// Whether the calls are those of a transaction or a script, in which no caller can wait.
    pub(super) is_in_unit: Cell<bool>,
    pub(super) buffer: Cell<Vec<u8>>,
    pub(super) effects: RefCell<Vec<Effect>>,
    pub(super) waiters: RefCell<BTreeMap<Caller, Waiter>>,
    pub(super) ended: RefCell<Vec<(Caller, Reply)>>,
}

/// What a key holds; no value while the key is open.
pub(super) struct Stored {
    pub(super) value: Option<Value>,
    /// In ms since the epoch.
    pub(super) expiry: Option<u64>,
}

/// A key with its bytes in a dump and its expiry.
pub type Dumped = (WaitedKey, Vec<u8>, Option<u64>);

impl Stored {
    fn dump(&self, key: &WaitedKey) -> Dumped {
        (key.clone(), self.value.as_ref().map(Value::encode).unwrap_or_default(), self.expiry)
    }
}

/// A caller that waits, and its call, which runs again.
#[derive(Clone)]
pub(super) struct Waiter {
    pub(super) words: Vec<Vec<u8>>,
    pub(super) database: i32,
}

impl Memory {
    /// A node without keys. Its dice fall by `seed`.
    pub fn new(seed: u64) -> Memory {
        Memory {
            node: Node::new(),
            keys: RefCell::default(),
            open: Cell::new(0),
            clock: Cell::new(Time::from_micros(0)),
            // Never the epoch, which stands for due now.
            steady: Cell::new(Time::from_micros(1)),
            dice: Cell::new(seed),
            database: Cell::new(0),
            role: Cell::new(Role::Primary),
            is_obeying: Cell::new(false),
            is_paused: Cell::new(false),
            is_in_unit: Cell::new(false),
            buffer: Cell::default(),
            effects: RefCell::default(),
            waiters: RefCell::default(),
            ended: RefCell::default(),
        }
    }

    pub fn node(&self) -> &Node {
        &self.node
    }

    pub fn clock(&self) -> Time {
        self.clock.get()
    }

    /// Sets the wall clock, forward or back.
    pub fn set_clock(&self, clock: Time) {
        self.clock.set(clock);
    }

    /// Moves the clock that is never set back.
    pub fn pass(&self, span: Span) {
        self.steady.set(self.steady.get().plus(span));
    }

    pub fn now(&self) -> Time {
        self.steady.get()
    }

    /// A copy grants nothing: a node that becomes one ends all waits without a reply.
    pub fn set_role(&self, role: Role) {
        self.role.set(role);
        if role == Role::Copy {
            let callers: Vec<Caller> = self.waiters.borrow().keys().copied().collect();
            for caller in callers {
                self.hang_up(caller);
            }
        }
    }

    /// Pauses writes, or ends the pause.
    pub fn pause(&self, is_paused: bool) {
        self.is_paused.set(is_paused);
    }

    pub fn is_paused(&self) -> bool {
        self.is_paused.get()
    }

    pub fn is_in_unit(&self) -> bool {
        self.is_in_unit.get()
    }

    /// Begins or ends a transaction.
    pub fn set_in_unit(&self, is_in_unit: bool) {
        self.is_in_unit.set(is_in_unit);
    }

    /// What was sent to copies since the last time.
    pub fn take_effects(&self) -> Vec<Effect> {
        take(&mut self.effects.borrow_mut())
    }

    /// Forgets all keys.
    pub(crate) fn forget(&self) {
        self.keys.borrow_mut().clear();
    }

    pub(super) fn flush(&self) {
        let keys = take(&mut *self.keys.borrow_mut());
        self.effects.borrow_mut().extend(keys.into_keys().map(Effect::Gone));
        self.node.waiting.all_left(self.steady.get());
    }

    pub(super) fn has(&self, key: &dyn OfDatabase) -> bool {
        self.keys.borrow().contains_key(key)
    }

    /// Deletes a key, as a command of the server does, or evicts it. Returns whether there was one.
    pub fn delete(&self, key: &dyn OfDatabase) -> bool {
        let Some((key, _)) = self.remove(key) else { return false };
        self.effects.borrow_mut().push(Effect::Gone(key));
        true
    }

    /// Takes a value from its key, and sends nothing.
    pub(super) fn remove(&self, key: &dyn OfDatabase) -> Option<(WaitedKey, Stored)> {
        let (key, stored) = self.keys.borrow_mut().remove_entry(key)?;
        if let Some(value) = &stored.value {
            self.node.waiting.left(&key, value, self.clock.get(), self.steady.get());
        }
        Some((key, stored))
    }

    /// Whether a key has expired. As on a server, it is still there in the millisecond of its expiry.
    fn has_expired(&self, stored: &Stored) -> bool {
        !self.is_obeying.get()
            && stored.expiry.is_some_and(|millis| Time::from_millis(millis + 1) <= self.clock.get())
    }

    /// Whether keys that have expired are only hidden: on a copy, and while writes are paused.
    pub(super) fn hides_expired(&self) -> bool {
        self.role.get() == Role::Copy || self.is_paused.get()
    }

    /// Deletes a key that has expired, or only hides it. Returns whether it has expired.
    pub(super) fn expire(&self, key: &dyn OfDatabase) -> bool {
        let has_expired = self.keys.borrow().get(key).is_some_and(|stored| self.has_expired(stored));
        if has_expired && !self.hides_expired() {
            self.delete(key);
        }
        has_expired
    }

    /// Deletes all keys that have expired, as a server does now and then.
    pub fn expire_all(&self) {
        let keys: Vec<WaitedKey> = self.keys.borrow().keys().cloned().collect();
        for key in &keys {
            self.expire(key);
        }
    }

    /// All keys that have not expired, with their bytes in a dump and their expiries.
    pub fn dump(&self) -> Vec<Dumped> {
        let keys = self.keys.borrow();
        let lasting = keys.iter().filter(|(_, stored)| !self.has_expired(stored));
        lasting.map(|(key, stored)| stored.dump(key)).collect()
    }

    /// All keys, also those that have expired and are still there.
    pub fn all(&self) -> Vec<Dumped> {
        self.keys.borrow().iter().map(|(key, stored)| stored.dump(key)).collect()
    }

    /// The bytes of a key and its expiry, also if it has expired and is still there.
    pub fn stored(&self, key: &dyn OfDatabase) -> Option<(Vec<u8>, Option<u64>)> {
        let keys = self.keys.borrow();
        let (key, stored) = keys.get_key_value(key)?;
        let (_, bytes, expiry) = stored.dump(key);
        Some((bytes, expiry))
    }

    /// Replaces all keys by those of a copy. Returns whether all could be read.
    pub fn load(&self, keys: &[Dumped]) -> bool {
        let read = keys.iter().map(|(key, bytes, expiry)| {
            let value = Some(Value::decode(bytes)?);
            Some((key.clone(), Stored { value, expiry: *expiry }))
        });
        let Some(read) = read.collect::<Option<BTreeMap<_, _>>>() else { return false };
        read.values()
            .filter_map(|stored| stored.value.as_ref())
            .for_each(|value| self.node.pass_tokens(value));
        self.flush();
        self.effects.borrow_mut().clear();
        *self.keys.borrow_mut() = read;
        true
    }
}
