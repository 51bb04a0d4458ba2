//! What belongs to a node, and to no key of it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ratelimit_core::Time;
use ratelimit_core::state::{Leases, MAX_TOKEN};
use ratelimit_language::Error;
use ratelimit_value::Value;

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
    /// The greatest fencing token that this node has given, or seen in what it applied and loaded.
    last_token: AtomicU64,
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
            last_token: AtomicU64::new(0),
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

    /// A fencing token that is greater than all that this node has given or seen. Because tokens are microseconds of the clock, it
    /// is usually greater than those that the node has not seen, too, unless its clock is behind. A token that a lease is given
    /// must be [noted](Self::pass_token), or the next call returns the same.
    ///
    /// # Errors
    ///
    /// A key was loaded with the greatest token that there is.
    pub fn next_token(&self, clock: Time) -> Result<u64, Error> {
        let token = (self.last_token.load(Relaxed) + 1).max(clock.as_micros());
        if token > MAX_TOKEN {
            return Err(Error::invalid(format_args!(
                "no fencing token is left: a key was loaded with {MAX_TOKEN}"
            )));
        }
        Ok(token)
    }

    /// A lease has this token, so that the next one is greater.
    pub fn pass_token(&self, token: u64) {
        self.last_token.fetch_max(token, Relaxed);
    }

    /// Raises the last token to that of a value which this node applied or loaded.
    pub fn pass_tokens(&self, value: &Value) {
        self.pass_token(value.leases().map_or(0, Leases::last_token));
    }

    pub fn top(&self) -> MutexGuard<'_, Top> {
        self.top.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
