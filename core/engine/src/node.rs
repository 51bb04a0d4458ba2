//! What belongs to a node, and to no key of it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::count::Counts;
use crate::policies::Policies;
use crate::record::Record;
use crate::settings::Settings;
use crate::top::Top;
use crate::waiting::Waiting;

/// A node. Its host has one, and passes it to each call.
///
/// No lock of it is held while a command opens keys, or while a function of the server is called that may run other code: that of
/// another module may call a command of this one. Clocks and dice run none.
pub struct Node {
    pub settings: Settings,
    pub counts: Counts,
    pub waiting: Waiting,
    policies: Mutex<Policies>,
    /// The table of policies that another node is sending, until it is whole.
    next_policies: Mutex<Option<Policies>>,
    top: Mutex<Top>,
    record: Mutex<Record>,
}

impl Node {
    #[allow(clippy::new_without_default, reason = "a node of the server is a static")]
    pub const fn new() -> Node {
        Node {
            settings: Settings::new(),
            counts: Counts::new(),
            waiting: Waiting::new(),
            policies: Mutex::new(Policies::NONE),
            next_policies: Mutex::new(None),
            top: Mutex::new(Top::NONE),
            record: Mutex::new(Record::NONE),
        }
    }

    pub fn policies(&self) -> MutexGuard<'_, Policies> {
        // No panic leaves the policies half changed.
        self.policies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The table of policies that another node is sending, as far as it has come.
    pub fn next_policies(&self) -> MutexGuard<'_, Option<Policies>> {
        self.next_policies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last calls of policies.
    pub fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn top(&self) -> MutexGuard<'_, Top> {
        self.top.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
