//! The policies of a node: limits under names, which `RL.ASK` asks for.
//!
//! They are part of the data set: each change is sent to copies, as `effect.rs` describes, and the RDB has all of them. `RL.POLICY
//! SAVE` and `LOAD` write and read a file.
//!
//! What comes from another node, the AOF or the RDB is stored as words. They are parsed when the first call asks for the policy, by
//! this node's bounds. So loading is fast, and costs no policy that this node cannot parse.

mod counted;
mod effect;
mod sending;

use std::collections::BTreeMap;
use std::sync::Arc;

use ratelimit_core::MAX_COUNT;
use ratelimit_language::docs;
use ratelimit_language::{Arguments, Bounds, Error, Policy, WrongCall, policy_name, told};

pub use counted::{CountedPolicy, LimitCounts};
pub use effect::{Decoded, Effect, begun, decode, encode};
pub use sending::{Sending, To};

/// The most policies of a node.
const MOST: usize = 10_000;

/// The most bytes of the lines of all policies, and of one of them.
const MOST_BYTES: usize = 16 << 20;
const MOST_BYTES_OF_ONE: usize = 32 << 10;

/// The most policies whose names an error compares with a name that is none, each time a call asks for it.
const MOST_COMPARED: usize = 1000;

/// A policy with its name.
pub type Named = (Box<str>, Arc<CountedPolicy>);

/// The policies by their names.
#[derive(Clone)]
pub struct Policies {
    by_name: BTreeMap<Box<str>, Arc<CountedPolicy>>,
    /// The bytes of their lines.
    bytes: usize,
}

/// The name as the registry has it; `None` if no policy can have it.
fn as_name(name: &[u8]) -> Option<&str> {
    str::from_utf8(name).ok()
}

impl Policies {
    pub const NONE: Policies = Policies { by_name: BTreeMap::new(), bytes: 0 };

    /// The policy of this name; `None` if there is none.
    #[inline(always)]
    pub fn get(&self, name: &[u8]) -> Option<Arc<CountedPolicy>> {
        self.by_name.get(as_name(name)?).cloned()
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
            Some(stored) if stored.policy.bounds() == Some(bounds) => Ok(stored),
            Some(stored) => self.rebound(name, &stored, bounds),
            None => Err(self.missing(name, key)),
        }
    }

    #[cold]
    fn missing(&self, name: &[u8], key: &[u8]) -> Error {
        if as_name(key).is_some_and(|key| self.by_name.contains_key(key)) {
            return Error::policy_before_key(name, key);
        }
        let compared = if self.by_name.len() > MOST_COMPARED { 0 } else { self.by_name.len() };
        Error::no_policy(name, self.by_name.keys().take(compared).map(|name| &**name))
    }

    /// Parses a policy that is not parsed yet, or was by other bounds.
    #[cold]
    fn rebound(
        &mut self,
        name: &[u8],
        stored: &CountedPolicy,
        bounds: Bounds,
    ) -> Result<Arc<CountedPolicy>, Error> {
        let policy = stored.policy.within(bounds).inspect_err(|_| stored.counts.errors.add_one())?;
        let name = as_name(name).ok_or(Error::Internal)?;
        let again = CountedPolicy::new(stored.version, policy, Some(stored));
        self.insert(name, again.clone());
        Ok(again)
    }

    /// Stores a policy under a name, and returns its version: the given one, else one more than the stored one.
    ///
    /// # Errors
    ///
    /// If the version is not above the stored one, or if the policies would be too many or too long.
    pub fn set(&mut self, name: &str, version: Option<u64>, policy: Policy) -> Result<u64, Error> {
        let stored = self.by_name.get(name);
        let last = stored.map_or(0, |stored| stored.version);
        let version = version.unwrap_or(last + 1);
        if version <= last || version > MAX_COUNT {
            return Err(Error::old_version(name.as_bytes(), last));
        }
        let stored = CountedPolicy::new(version, policy, stored.map(|stored| &**stored));
        self.insert_within_bounds(name, stored)?;
        Ok(version)
    }

    /// Stores a policy under these names, as its first version.
    pub(crate) fn store<const N: usize>(&mut self, names: [&str; N], policy: &Policy) {
        for name in names {
            self.insert(name, CountedPolicy::new(1, policy.clone(), None));
        }
    }

    /// Adds the policy of a line of a file, unless the line is empty or a comment. Its counts are those of the old policy of its
    /// name.
    pub fn add_line(&mut self, line: &[u8], bounds: Bounds, old: &Policies) -> Result<(), Error> {
        let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let words: Vec<&[u8]> = words.take_while(|word| !word.starts_with(b"#")).collect();
        if words.is_empty() {
            return Ok(());
        }
        let (name, (version, policy)) = parse(&words, bounds)?;
        if self.by_name.contains_key(name) {
            return Err(Error::invalid(format_args!("policy '{name}' is given twice")));
        }
        let old = old.get(name.as_bytes());
        self.insert_within_bounds(name, CountedPolicy::new(version.unwrap_or(1), policy, old.as_deref()))
    }

    /// Stores a policy that this node was asked to store.
    fn insert_within_bounds(&mut self, name: &str, policy: Arc<CountedPolicy>) -> Result<(), Error> {
        let stored = self.by_name.get(name).map(|stored| stored.length(name));
        if stored.is_none() && self.by_name.len() >= MOST {
            return Err(Error::invalid(format_args!("at most {MOST} policies")));
        }
        let length = policy.length(name);
        if length > MOST_BYTES_OF_ONE {
            return Err(Error::policy_too_long(name, MOST_BYTES_OF_ONE));
        }
        if self.bytes + length - stored.unwrap_or(0) > MOST_BYTES {
            return Err(Error::invalid(format_args!("all policies may have {MOST_BYTES} bytes in all")));
        }
        self.insert(name, policy);
        Ok(())
    }

    fn insert(&mut self, name: &str, policy: Arc<CountedPolicy>) {
        self.bytes += policy.length(name);
        let before = self.by_name.insert(name.into(), policy);
        self.bytes -= before.map_or(0, |before| before.length(name));
    }

    /// The lines of all policies, as [`add_line`](Self::add_line) reads them.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.by_name.iter().map(|(name, stored)| stored.line(name))
    }

    /// Deletes a policy. Returns whether there was one.
    pub fn delete(&mut self, name: &[u8]) -> bool {
        let deleted = as_name(name).and_then(|name| self.by_name.remove_entry(name));
        self.bytes -= deleted.as_ref().map_or(0, |(name, stored)| stored.length(name));
        deleted.is_some()
    }

    /// How many policies are only in one of both tables, or differ.
    pub fn differences(&self, other: &Policies) -> usize {
        let digest = |of: &Policies, name: &str| of.by_name.get(name).map(|stored| stored.digest(name));
        let changed = self.by_name.keys().filter(|name| digest(self, name) != digest(other, name));
        let added = other.by_name.keys().filter(|name| !self.by_name.contains_key(*name));
        changed.count() + added.count()
    }

    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// The first `most` policies in the order of their names.
    pub fn first(&self, most: usize) -> Vec<Named> {
        self.by_name.iter().take(most).map(|(name, stored)| (name.clone(), stored.clone())).collect()
    }

    /// A number that is the same on all nodes with the same policies of the same versions.
    pub fn digest(&self) -> u64 {
        self.by_name.iter().fold(0, |sum: u64, (name, stored)| sum.wrapping_add(stored.digest(name)))
    }
}

/// Reads a line of a file: the words after `RL.POLICY SET`.
fn parse<'a>(words: &[&'a [u8]], bounds: Bounds) -> Result<(&'a str, (Option<u64>, Policy)), Error> {
    let mut arguments = Arguments::new(words, bounds);
    let parsed = policy_name(&mut arguments).and_then(|name| Ok((name, Policy::parse(&mut arguments)?)));
    parsed.map_err(|error| {
        let words = [&[&b"SET"[..]], words].concat();
        told(error, &WrongCall { command: &docs::POLICY, words: &words, bounds, asks: &|_, _, _| false })
    })
}
