//! A policy of this node: its version, its limits, the counts of its calls, and its line in the file.
//!
//! A new version continues the counts. The line is here since a digest of it is compared between nodes.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use ratelimit_core::MAX_COUNT;
use ratelimit_language::vocabulary::VERSION;
use ratelimit_language::{Arguments, Bounds, Policy, policy_name};

use crate::count::{Count, Outcome};

/// A policy of the node.
pub struct CountedPolicy {
    pub version: u64,
    pub policy: Policy,
    /// A call that runs while its policy is replaced adds to the same counts.
    pub counts: Arc<Counts>,
    /// The counts of each limit, in order.
    limits: Box<[Arc<LimitCounts>]>,
    /// As [`digest`](Self::digest), once it is asked for.
    digest: OnceLock<u64>,
}

impl CountedPolicy {
    /// A policy that continues the counts of the stored one, and of those of its limits that have the same words,
    /// whatever the units of their durations.
    pub(super) fn new(version: u64, policy: Policy, stored: Option<&CountedPolicy>) -> Arc<CountedPolicy> {
        let counts = stored.map(|stored| stored.counts.clone()).unwrap_or_default();
        let limits = match stored {
            None => policy.limits().map(|_| Arc::default()).collect(),
            Some(stored) => {
                let before: HashMap<String, &Arc<LimitCounts>> =
                    stored.policy.canonical_limits().zip(&stored.limits).collect();
                let of_words =
                    |words: String| before.get(&words).map(|counts| Arc::clone(counts)).unwrap_or_default();
                policy.canonical_limits().map(of_words).collect()
            }
        };
        Arc::new(CountedPolicy { version, policy, counts, limits, digest: OnceLock::new() })
    }

    /// The policy's line, with its end, as the file and the copies have it.
    pub(super) fn line(&self, name: &str) -> String {
        line(name, self.version, self.policy.words())
    }

    /// The bytes of the line.
    pub(super) fn length(&self, name: &str) -> usize {
        const OTHERS: usize = "  VERSION \n".len();
        let digits = self.version.checked_ilog10().map_or(1, |digits| digits as usize + 1);
        name.len() + digits + self.policy.words().len() + OTHERS
    }

    /// A digest of the line, with its durations in one form.
    pub(super) fn digest(&self, name: &str) -> u64 {
        *self.digest.get_or_init(|| {
            let line = line(name, self.version, &self.policy.canonical());
            // FNV-1a: the same number on every machine and in every release.
            line.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            })
        })
    }

    /// The words of each limit, and its counts.
    pub fn limits(&self) -> impl Iterator<Item = (&str, &Arc<LimitCounts>)> {
        self.policy.limits().zip(&self.limits)
    }

    /// Counts a call. `refusing` are the indices of the limits that refuse it.
    #[inline(always)]
    pub fn count(&self, outcome: Outcome, refusing: impl Iterator<Item = usize>) {
        match outcome {
            Outcome::Admitted => self.counts.admitted.add_one(),
            Outcome::Refused => {
                self.counts.refused.add_one();
                let limits = refusing.filter_map(|limit| self.limits.get(limit));
                limits.for_each(|limit| limit.refused.add_one());
            }
        }
    }

    /// Counts an admitted call that shadows would have refused. `shadows` are their indices among the limits.
    pub fn count_refusal_in_shadow(&self, shadows: impl Iterator<Item = usize>) {
        self.counts.shadow_refused.add_one();
        shadows.filter_map(|limit| self.limits.get(limit)).for_each(|limit| limit.shadow_refused.add_one());
    }
}

/// The outcomes of a policy's calls. A new version of the policy continues the counts.
#[derive(Default)]
pub struct Counts {
    admitted: Count,
    refused: Count,
    /// Admitted calls that a shadow would have refused.
    shadow_refused: Count,
    /// Calls that replied an error.
    pub errors: Count,
}

impl Counts {
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

/// What a limit of a policy refused. A call counts once, also if the limit refuses it on several keys.
#[derive(Default)]
pub struct LimitCounts {
    /// Refused calls that the limit refuses.
    refused: Count,
    /// Admitted calls that the limit refuses as a shadow.
    shadow_refused: Count,
}

impl LimitCounts {
    /// The counts by their names.
    pub fn by_name(&self) -> [(&'static str, u64); 2] {
        [("refused", self.refused.get()), ("shadow_refused", self.shadow_refused.get())]
    }
}

fn line(name: &str, version: u64, words: &str) -> String {
    format!("{name} VERSION {version} {words}\n")
}

/// The name, the version and the words of a line that a node has written, without its end.
pub(super) fn of_line(line: &str) -> Option<(&str, u64, &str)> {
    let mut words = line.splitn(4, ' ');
    let name = words.next()?;
    policy_name(&mut Arguments::new(&[name.as_bytes()], Bounds::DEFAULT)).ok()?;
    words.next().filter(|word| *word == VERSION.name)?;
    let version = words.next()?.parse().ok().filter(|version| (1..=MAX_COUNT).contains(version))?;
    let words =
        words.next().filter(|words| words.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()))?;
    Some((name, version, words))
}
