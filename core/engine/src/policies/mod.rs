//! The policies of a node: limits under names, which `RL.ASK` asks for.
//!
//! Like the server's ACL users, policies belong to a node. They are neither replicated nor in the RDB or AOF, which hold
//! the effects of calls. `RL.POLICY SAVE` and `LOAD` write and read a file; nothing else does.

mod counted;

use std::collections::BTreeMap;
use std::sync::Arc;

use ratelimit_core::MAX_COUNT;
use ratelimit_language::{Arguments, Bounds, Error, Policy, policy_name};

pub use counted::{CountedPolicy, LimitCounts};

/// The most policies of a node.
const MOST: usize = 10_000;

/// The most policies whose names an error compares with a name that is none, each time a call asks for it.
const MOST_COMPARED: usize = 1000;

/// A policy with its name.
pub type Named = (Box<str>, Arc<CountedPolicy>);

/// The policies by their names.
#[derive(Clone)]
pub struct Policies(BTreeMap<Box<str>, Arc<CountedPolicy>>);

/// The name as the registry has it; `None` if no policy can have it.
fn as_name(name: &[u8]) -> Option<&str> {
    str::from_utf8(name).ok()
}

impl Policies {
    pub const NONE: Policies = Policies(BTreeMap::new());

    /// The policy of this name; `None` if there is none.
    #[inline(always)]
    pub fn get(&self, name: &[u8]) -> Option<Arc<CountedPolicy>> {
        self.0.get(as_name(name)?).cloned()
    }

    /// The policy that a call asks for.
    ///
    /// # Errors
    ///
    /// If there is none, or if one of its limits exceeds these bounds. A caller may have swapped the policy and the key.
    #[inline(always)]
    pub fn get_within(
        &mut self,
        name: &[u8],
        key: &[u8],
        bounds: Bounds,
    ) -> Result<Arc<CountedPolicy>, Error> {
        match self.get(name) {
            Some(stored) if stored.policy.bounds() == bounds => Ok(stored),
            Some(stored) => self.rebound(name, &stored, bounds),
            None => Err(self.missing(name, key)),
        }
    }

    #[cold]
    fn missing(&self, name: &[u8], key: &[u8]) -> Error {
        if as_name(key).is_some_and(|key| self.0.contains_key(key)) {
            return Error::policy_before_key(name, key);
        }
        let compared = if self.0.len() > MOST_COMPARED { 0 } else { self.0.len() };
        Error::no_policy(name, self.0.keys().take(compared).map(|name| &**name))
    }

    /// Parses a policy anew after the bounds changed.
    #[cold]
    fn rebound(
        &mut self,
        name: &[u8],
        stored: &CountedPolicy,
        bounds: Bounds,
    ) -> Result<Arc<CountedPolicy>, Error> {
        let policy = stored.policy.within(bounds).inspect_err(|_| stored.counts.errors.add_one())?;
        let name = as_name(name).ok_or(Error::Internal)?;
        let again = CountedPolicy::new(name, stored.version, policy, Some(stored));
        self.0.insert(name.into(), again.clone());
        Ok(again)
    }

    /// Stores a policy under a name, and returns its version: the given one, else one more than the stored one.
    ///
    /// # Errors
    ///
    /// If the version is not above the stored one, or if there are too many policies.
    pub fn set(&mut self, name: &str, version: Option<u64>, policy: Policy) -> Result<u64, Error> {
        let stored = self.0.get(name);
        let last = stored.map_or(0, |stored| stored.version);
        let version = version.unwrap_or(last + 1);
        if version <= last || version > MAX_COUNT {
            return Err(Error::old_version(name.as_bytes(), last));
        }
        if stored.is_none() && self.0.len() >= MOST {
            return Err(too_many());
        }
        let stored = CountedPolicy::new(name, version, policy, stored.map(|stored| &**stored));
        self.0.insert(name.into(), stored);
        Ok(version)
    }

    /// Adds the policy of a line of a file, unless the line is empty or a comment. Its counts are those of the old policy of its
    /// name.
    pub fn add_line(&mut self, line: &[u8], bounds: Bounds, old: &Policies) -> Result<(), Error> {
        let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let words: Vec<&[u8]> = words.take_while(|word| !word.starts_with(b"#")).collect();
        if words.is_empty() {
            return Ok(());
        }
        let mut arguments = Arguments::new(&words, bounds);
        let name = policy_name(&mut arguments)?;
        let (version, policy) = Policy::parse(&mut arguments)?;
        if self.0.len() >= MOST {
            return Err(too_many());
        }
        let old = old.0.get(name).map(|stored| &**stored);
        let stored = CountedPolicy::new(name, version.unwrap_or(1), policy, old);
        match self.0.insert(name.into(), stored) {
            None => Ok(()),
            Some(_) => Err(Error::invalid(format_args!("policy '{name}' is given twice"))),
        }
    }

    /// The lines of all policies, as [`add_line`](Self::add_line) reads them.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(name, stored)| counted::line(name, stored.version, stored.policy.words()))
    }

    /// Deletes a policy. Returns whether there was one.
    pub fn delete(&mut self, name: &[u8]) -> bool {
        as_name(name).is_some_and(|name| self.0.remove(name).is_some())
    }

    #[allow(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The first `most` policies in the order of their names.
    pub fn first(&self, most: usize) -> Vec<Named> {
        self.0.iter().take(most).map(|(name, stored)| (name.clone(), stored.clone())).collect()
    }

    /// A number that is the same on all nodes with the same policies of the same versions.
    pub fn digest(&self) -> u64 {
        self.0.values().fold(0, |sum: u64, stored| sum.wrapping_add(stored.digest))
    }
}

fn too_many() -> Error {
    Error::invalid(format_args!("at most {MOST} policies"))
}
