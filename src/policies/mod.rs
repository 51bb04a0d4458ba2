//! The policies of this node: limits under names, which [`RL.ASK`](crate::command::Ask) asks for.
//!
//! Like the server's ACL users, policies belong to a node. They are neither replicated nor in the RDB or AOF, which hold
//! the effects of calls. `RL.POLICY SAVE` and `LOAD` write and
//! read a file (`file.rs`); nothing else does.

#![forbid(unsafe_code)]

mod counted;
mod file;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ratelimit_core::MAX_COUNT;
use ratelimit_language::{Bounds, Error, Policy};

pub use counted::{CountedPolicy, LimitCounts};

pub use file::{load, load_at_start, save};

/// The most policies of a node.
const MOST: usize = 10_000;

/// The most policies whose names an error compares with a name that is none, each time a call asks for it.
const MOST_COMPARED: usize = 1000;

/// The policies by their names.
type Policies = BTreeMap<Box<str>, Arc<CountedPolicy>>;

/// A policy with its name.
pub type Named = (Box<str>, Arc<CountedPolicy>);

static POLICIES: Mutex<Policies> = Mutex::new(Policies::new());

/// Locks the policies. No lock is held while a command opens keys: another module's code may run then, and call a
/// command of this module.
fn policies() -> MutexGuard<'static, Policies> {
    // No panic leaves the policies half changed.
    POLICIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The name as the registry has it; `None` if no policy can have it.
fn as_name(name: &[u8]) -> Option<&str> {
    str::from_utf8(name).ok()
}

/// The policy of this name; `None` if there is none.
#[inline(always)]
pub fn get(name: &[u8]) -> Option<Arc<CountedPolicy>> {
    policies().get(as_name(name)?).cloned()
}

/// The policy that a call asks for.
///
/// # Errors
///
/// If there is none, or if one of its limits exceeds these bounds. A caller may have swapped the policy and the key.
#[inline(always)]
pub fn get_within(name: &[u8], key: &[u8], bounds: Bounds) -> Result<Arc<CountedPolicy>, Error> {
    match get(name) {
        Some(stored) if stored.policy.bounds() == bounds => Ok(stored),
        Some(stored) => rebound(name, &stored, bounds),
        None => Err(missing(name, key)),
    }
}

#[cold]
fn missing(name: &[u8], key: &[u8]) -> Error {
    let policies = policies();
    if as_name(key).is_some_and(|key| policies.contains_key(key)) {
        return Error::policy_before_key(name, key);
    }
    let compared = if policies.len() > MOST_COMPARED { 0 } else { policies.len() };
    Error::no_policy(name, policies.keys().take(compared).map(|name| &**name))
}

/// Parses a policy anew after the bounds changed.
#[cold]
fn rebound(name: &[u8], stored: &CountedPolicy, bounds: Bounds) -> Result<Arc<CountedPolicy>, Error> {
    let policy = stored.policy.within(bounds).inspect_err(|_| stored.counts.errors.add_one())?;
    let name = as_name(name).ok_or(Error::Internal)?;
    let again = CountedPolicy::new(name, stored.version, policy, Some(stored));
    policies().insert(name.into(), again.clone());
    Ok(again)
}

/// Stores a policy under a name, and returns its version: the given one, else one more than the stored one.
///
/// # Errors
///
/// If the version is not above the stored one, or if there are too many policies.
pub fn set(name: &str, version: Option<u64>, policy: Policy) -> Result<u64, Error> {
    let mut policies = policies();
    let stored = policies.get(name);
    let last = stored.map_or(0, |stored| stored.version);
    let version = version.unwrap_or(last + 1);
    if version <= last || version > MAX_COUNT {
        return Err(Error::old_version(name.as_bytes(), last));
    }
    if stored.is_none() && policies.len() >= MOST {
        return Err(too_many());
    }
    let stored = CountedPolicy::new(name, version, policy, stored.map(|stored| &**stored));
    policies.insert(name.into(), stored);
    Ok(version)
}

fn too_many() -> Error {
    Error::invalid(format_args!("at most {MOST} policies"))
}

/// Deletes a policy. Returns whether there was one.
pub fn delete(name: &[u8]) -> bool {
    as_name(name).is_some_and(|name| policies().remove(name).is_some())
}

/// All policies, in the order of their names.
pub fn all() -> Vec<Named> {
    first(usize::MAX).1
}

/// The number of policies, and the first `most` of them in the order of their names.
pub fn first(most: usize) -> (usize, Vec<Named>) {
    let policies = policies();
    let first = policies.iter().take(most).map(|(name, stored)| (name.clone(), stored.clone()));
    (policies.len(), first.collect())
}

/// A number that is the same on all nodes with the same policies of the same versions.
pub fn digest() -> u64 {
    policies().values().fold(0, |sum: u64, stored| sum.wrapping_add(stored.digest))
}
