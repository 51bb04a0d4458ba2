//! A node in memory and its replica, which hold the same after each call.

use std::sync::atomic::Ordering::Relaxed;

use ratelimit_core::state::codec::Reader;
use ratelimit_core::{Kind, LimitSet, State, Time, with_state};
use ratelimit_engine::key::Payload;
use ratelimit_engine::memory::{Called, Effect, Memory, Role};
use ratelimit_engine::reply::Reply;
use ratelimit_engine::waiting::{Clients, WaitedKey};
use ratelimit_value::Value;

use crate::lines::BOUNDS;

pub struct Nodes {
    primary: Memory,
    replica: Memory,
}

impl Nodes {
    pub fn new() -> Nodes {
        let [primary, replica] = [0; 2].map(Memory::new);
        replica.set_role(Role::Copy);
        let settings = &primary.node().settings;
        settings.max_leases.value.store(BOUNDS.leases.cast_signed(), Relaxed);
        settings.max_log_entries.value.store(BOUNDS.log_entries.cast_signed(), Relaxed);
        // No caller that was refused keeps others from a lease.
        settings.hunger.millis.store(0, Relaxed);
        Nodes { primary, replica }
    }

    pub fn set_clock(&self, clock: Time) {
        self.primary.set_clock(clock);
        self.replica.set_clock(clock);
    }

    /// Runs a call. The replica, which loads a copy whenever something has changed, holds the same after the effects.
    pub fn call(&self, line: &str) -> Reply {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let before = self.primary.dump();
        let Called::Replied(reply) = self.primary.call(&words) else { panic!("{line} waits") };
        let (effects, after) = (self.primary.take_effects(), self.primary.dump());
        if effects.is_empty() || matches!(reply, Reply::Error(_)) {
            assert_eq!(before, after, "an error changes nothing, and what changes is sent");
        }
        for effect in &effects {
            self.replicate(effect);
        }
        if !effects.is_empty() {
            assert_eq!(self.replica.dump(), after, "a replica holds the same");
            for key in &after {
                self.load(key);
            }
            assert_eq!(self.replica.dump(), after, "and so does who loads a copy");
        }
        reply
    }

    /// Applies an effect; twice is once.
    fn replicate(&self, effect: &Effect) {
        if let Effect::Apply(payloads) = effect {
            for (_, payload) in payloads {
                is_written_in_one_way(payload);
            }
        }
        let [once, twice] = [(); 2].map(|()| {
            self.replica.apply(effect).expect("an effect that can be read back");
            self.replica.dump()
        });
        assert_eq!(once, twice, "twice is once");
    }

    /// The replica loads a key. On the primary, the key takes no more memory than the bounds need.
    fn load(&self, (key, bytes, expiry): &Dumped) {
        let memory = self.primary.value_of(key, |value| value.map_or(0, |value| value.heap_bytes()));
        assert!(memory < 256 * 1024, "{memory} bytes");
        Payload::pieces(&decoded(bytes), |piece| {
            let mut piece = piece.to_vec();
            if let Some(expiry) = expiry {
                piece[FORM] |= WITH_EXPIRY;
                piece.extend(expiry.to_le_bytes());
            }
            let piece = Effect::Apply(vec![(key.clone(), piece)]);
            self.replica.apply(&piece).expect("a payload that can be read back");
        });
    }

    /// The limits of a key, and when it expires.
    pub fn limits(&self, key: &str) -> Option<(LimitSet, Time)> {
        let mut keys = self.primary.dump().into_iter();
        let (_, bytes, expiry) = keys.find(|(name, ..)| *name.name == *key.as_bytes())?;
        let (mut value, expiry) = (decoded(&bytes), Time::from_millis(expiry.expect("a key that expires")));
        let set = match value.lone_limit() {
            Some((name, _)) => LimitSet::of_one(name, value.take_state()?),
            None => value.state::<LimitSet>()?.clone(),
        };
        Some((set, expiry))
    }
}

fn decoded(value: &[u8]) -> Value {
    Value::decode(value).expect("a value that can be read back")
}

type Dumped = (WaitedKey, Vec<u8>, Option<u64>);

/// Of a payload: see `core/engine/src/key/payload.rs`.
const HEADER: usize = 11;
const FORM: usize = 2;
const WITH_EXPIRY: u8 = 1;

/// Checks that each change of a payload has one way to be written.
fn is_written_in_one_way(payload: &[u8]) {
    // The payload of a key that is gone has no changes.
    let Some(([_, kind, form, ..], body)) = payload.split_first_chunk::<HEADER>() else { return };
    let expiry = if form & WITH_EXPIRY > 0 { size_of::<u64>() } else { 0 };
    let (body, mut again) = (&body[..body.len() - expiry], Vec::new());
    let mut changes = Reader::new(body);
    with_state!(Kind::from_byte(*kind).expect("a kind"), S => {
        while let Some(change) = S::decode_change(&mut changes) {
            S::encode_change(&change, &mut again);
        }
    });
    assert_eq!(again, body, "a change is written in one way");
}
