//! A wait, and the limits for which a call waits.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

use ratelimit_core::line::{Claim, Stand};
use ratelimit_core::{Name, Span};

/// A wait that begins or goes on: how long at most, and for which limits.
pub struct Wait {
    pub left: Span,
    pub stands: Vec<Stand<WaitedKey>>,
    /// The places of the call's keys.
    pub keys: Vec<usize>,
}

/// A limit for which a call waits.
pub struct Wanted<'a> {
    /// The place of the key.
    pub key: usize,
    pub name: Name,
    pub claim: Claim<&'a [u8]>,
    /// The time after which the limit has room if no other caller comes.
    pub retry: Span,
}

/// A key of a database.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WaitedKey {
    pub database: i32,
    pub name: Arc<[u8]>,
}

/// A key of a database, whose name may be borrowed. So a search allocates nothing.
pub trait OfDatabase {
    fn parts(&self) -> (i32, &[u8]);
}

impl OfDatabase for WaitedKey {
    fn parts(&self) -> (i32, &[u8]) {
        (self.database, &self.name)
    }
}

impl OfDatabase for (i32, &[u8]) {
    fn parts(&self) -> (i32, &[u8]) {
        *self
    }
}

impl<'k> Borrow<dyn OfDatabase + 'k> for WaitedKey {
    fn borrow(&self) -> &(dyn OfDatabase + 'k) {
        self
    }
}

impl PartialEq for dyn OfDatabase + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for dyn OfDatabase + '_ {}

impl PartialOrd for dyn OfDatabase + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn OfDatabase + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}
