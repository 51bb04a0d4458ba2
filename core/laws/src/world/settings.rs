//! The settings of the nodes of a world, which an operator changes.

use std::collections::BTreeMap;

use ratelimit_engine::memory::Memory;

use crate::set;

/// The settings that were changed, by name.
#[derive(Default)]
pub(super) struct Settings(BTreeMap<String, u64>);

impl Settings {
    /// A fresh node with these settings.
    pub(super) fn node(&self, seed: u64) -> Memory {
        let memory = Memory::new(seed);
        set(&memory, "max-block", 86_400_000);
        for (name, value) in &self.0 {
            set(&memory, name, *value);
        }
        memory
    }

    /// Whether all callers may wait, and all tenants may be hungry.
    pub(super) fn are_usual(&self) -> bool {
        let least = |name: &str, least| self.0.get(name).is_none_or(|value| *value >= least);
        least("max-tenants", 10_000)
            && least("max-waiters", 10_000)
            && least("max-waiters-per-key", 1000)
            && least("max-block", 86_400_000)
            && least("max-holds", 10_000)
    }

    /// Changes a setting of a node, as `CONFIG SET` does.
    pub(super) fn change<'n>(&mut self, name: &str, value: u64, nodes: impl Iterator<Item = &'n Memory>) {
        self.0.insert(name.into(), value);
        for memory in nodes {
            set(memory, name, value);
        }
    }
}
