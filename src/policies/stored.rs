//! A policy of this node: its version, its limits and its counts.

use std::sync::Arc;

use ratelimit_language::Policy;

use crate::count::{Count, Outcome};

/// A policy of the node.
pub struct StoredPolicy {
    pub version: u64,
    pub policy: Policy,
    /// A call that runs while its policy is replaced adds to the same counts.
    pub counts: Arc<Counts>,
    /// The digest of the policy's line in the file, with its durations in one form.
    pub(super) digest: u64,
}

impl StoredPolicy {
    pub(super) fn new(name: &str, version: u64, policy: Policy, counts: Arc<Counts>) -> Arc<StoredPolicy> {
        let line = line(name, version, &policy.canonical());
        // FNV-1a: the same number on every machine and in every release.
        let digest = line.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Arc::new(StoredPolicy { version, policy, counts, digest })
    }
}

/// The outcomes of a policy's calls. A new version of the policy continues the counts.
#[derive(Default)]
pub struct Counts {
    pub admitted: Count,
    pub refused: Count,
    /// Admitted calls that a shadow would have refused.
    pub shadow_refused: Count,
    /// Calls that replied an error.
    pub errors: Count,
}

impl Counts {
    pub fn add(&self, outcome: Outcome) {
        match outcome {
            Outcome::Admitted => self.admitted.add_one(),
            Outcome::Refused => self.refused.add_one(),
        }
    }

    /// The counts by their names.
    pub fn by_name(&self) -> [(&'static str, u64); 4] {
        [
            ("admitted", self.admitted.get()),
            ("refused", self.refused.get()),
            ("shadow_refused", self.shadow_refused.get()),
            ("errors", self.errors.get()),
        ]
    }
}

/// The line of a policy with these words, with its end.
pub(super) fn line(name: &str, version: u64, words: &str) -> String {
    format!("{name} VERSION {version} {words}\n")
}
