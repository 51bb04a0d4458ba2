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
    /// A key was deleted by a command of the server, or has expired.
    Gone(WaitedKey),
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

    /// A copy grants nothing.
    pub fn set_role(&self, role: Role) {
        self.role.set(role);
    }

    /// What was sent to copies since the last time.
    pub fn take_effects(&self) -> Vec<Effect> {
        take(&mut self.effects.borrow_mut())
    }

    pub(super) fn flush(&self) {
        let keys = take(&mut *self.keys.borrow_mut());
        self.effects.borrow_mut().extend(keys.into_keys().map(Effect::Gone));
        self.node.waiting.all_left(self.steady.get());
    }

    pub(super) fn has(&self, key: &dyn OfDatabase) -> bool {
        self.keys.borrow().contains_key(key)
    }

    /// Deletes a key, as a command of the server. Returns whether there was one.
    pub(super) fn delete(&self, key: &dyn OfDatabase) -> bool {
        let removed = self.keys.borrow_mut().remove_entry(key);
        let Some((key, stored)) = removed else { return false };
        if let Some(value) = &stored.value {
            self.node.waiting.left(&key, value, self.clock.get(), self.steady.get());
        }
        self.effects.borrow_mut().push(Effect::Gone(key));
        true
    }

    /// Whether a key has expired. As on a server, it is still there in the millisecond of its expiry.
    fn has_expired(&self, stored: &Stored) -> bool {
        stored.expiry.is_some_and(|millis| Time::from_millis(millis + 1) <= self.clock.get())
    }

    /// Deletes a key that has expired. A copy only hides it. Returns whether it has expired.
    pub(super) fn expire(&self, key: &dyn OfDatabase) -> bool {
        let has_expired = self.keys.borrow().get(key).is_some_and(|stored| self.has_expired(stored));
        if has_expired && self.role.get() == Role::Primary {
            self.delete(key);
        }
        has_expired
    }

    /// All keys that have not expired, with their bytes in a dump and their expiries.
    pub fn dump(&self) -> Vec<(WaitedKey, Vec<u8>, Option<u64>)> {
        let keys = self.keys.borrow();
        let lasting = keys.iter().filter(|(_, stored)| !self.has_expired(stored));
        let dumped = lasting.map(|(key, stored)| {
            (key.clone(), stored.value.as_ref().map(Value::encode).unwrap_or_default(), stored.expiry)
        });
        dumped.collect()
    }
}
