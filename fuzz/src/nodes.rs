//! A node in memory and its replica, which hold the same after each call.

use ratelimit_core::{LimitSet, Time};
use ratelimit_engine::memory::{Called, Dumped, Memory, Role};
use ratelimit_engine::reply::Reply;
use ratelimit_laws::{T0, set};
use ratelimit_value::Value;

use crate::lines::BOUNDS;

/// The key of the calls.
pub const KEY: &str = "key";

pub struct Nodes {
    primary: Memory,
    replica: Memory,
    /// Who loads a copy whenever something has changed.
    copy: Memory,
    /// Whether each effect is applied twice, which is once.
    pub repeats: bool,
}

impl Default for Nodes {
    fn default() -> Nodes {
        let [primary, replica, copy] = [0; 3].map(Memory::new);
        replica.set_role(Role::Copy);
        // No caller that was refused keeps others from a lease.
        for (name, value) in
            [("max-leases", BOUNDS.leases), ("max-log-entries", BOUNDS.log_entries), ("hunger", 0)]
        {
            assert!(set(&primary, name, value));
        }
        let nodes = Nodes { primary, replica, copy, repeats: true };
        nodes.set_clock(T0);
        nodes
    }
}

impl Nodes {
    pub fn set_clock(&self, clock: Time) {
        self.primary.set_clock(clock);
        self.replica.set_clock(clock);
    }

    /// Runs a call, and compares the copies. A caller that would wait hangs up.
    pub fn call(&self, words: &[&[u8]]) -> Reply {
        let before = self.primary.dump();
        let reply = match self.primary.call(words) {
            Called::Replied(reply) => reply,
            Called::Waits(caller) => {
                self.primary.hang_up(caller);
                Reply::Null
            }
        };
        let (effects, after) = (self.primary.take_effects(), self.primary.dump());
        if effects.is_empty() || matches!(reply, Reply::Error(_)) {
            assert_eq!(before, after, "an error changes nothing, and what changes is sent");
        }
        for effect in &effects {
            self.replica.apply(effect).expect("an effect that can be read back");
            if self.repeats {
                let once = self.replica.dump();
                self.replica.apply(effect).expect("an effect that can be read back");
                assert_eq!(once, self.replica.dump(), "twice is once");
            }
        }
        if !effects.is_empty() {
            assert_eq!(self.replica.dump(), after, "a replica holds the same");
            assert!(self.copy.load(&after) && self.copy.all() == after, "and so does who loads a copy");
        }
        reply
    }

    pub fn line(&self, line: &str) -> Reply {
        self.call(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
    }

    /// Replaces all keys by this one. Returns whether it can be read.
    pub fn load(&self, value: &Value, expiry: Time) -> bool {
        let key = ratelimit_engine::waiting::WaitedKey { database: 0, name: KEY.as_bytes().into() };
        let keys: [Dumped; 1] = [(key, value.encode(), Some(expiry.as_micros() / 1000))];
        self.primary.load(&keys) && self.replica.load(&keys)
    }

    /// The limits of the key, and when it expires. A key takes no more memory than the bounds need.
    pub fn limits(&self) -> Option<(LimitSet, Time)> {
        let (_, bytes, expiry) = self.primary.dump().pop()?;
        let mut value = Value::decode(&bytes).expect("a value that can be read back");
        assert!(value.heap_bytes() < 256 * 1024);
        let set = match value.lone_limit() {
            Some((name, _)) => LimitSet::of_one(name, value.take_state()?),
            None => value.state::<LimitSet>()?.clone(),
        };
        Some((set, Time::from_millis(expiry.expect("a key that expires"))))
    }
}
