//! The order of the tenants in a fair line.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::cmp::Ordering;

use super::claim::Caller;
use crate::time::Time;

/// A cost divided by a weight, in units of 2^-32. Two to the power of 43 grants of the largest cost fit.
pub(super) type Tag = u128;

/// What a cost adds to a tag, rounded up.
pub(super) fn stretch(cost: u64, weight: u32) -> Tag {
    (Tag::from(cost) << 32).div_ceil(Tag::from(weight.max(1)))
}

/// What a tenant would hold with its first caller, for its weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) held: u64,
    pub(super) weight: u32,
}

impl Ord for Load {
    fn cmp(&self, other: &Load) -> Ordering {
        let product = |held: u64, weight: u32| u128::from(held) * u128::from(weight);
        product(self.held, other.weight).cmp(&product(other.held, self.weight))
    }
}

impl PartialOrd for Load {
    fn partial_cmp(&self, other: &Load) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Load {
    fn eq(&self, other: &Load) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Load {}

/// Where a tenant stands with its first caller, or a critical caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    Critical(Caller),
    /// By its tag only: for a rate.
    Tag(Tag, Caller),
    /// Of leases. The tenant holds nothing: it stands by its tag as soon as that is at most V.
    Without(Load, Tag, Caller),
    /// Of leases. The tenant holds something.
    With(Load, Tag, Caller),
}

/// The order in which tenants are tried: the least first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Rank {
    Critical(Caller),
    Tag(Tag, Caller),
    Load(Load, Tag, Caller),
}

impl Place {
    /// The rank while the line's V is `passed`.
    pub(super) fn rank(self, passed: Tag) -> Rank {
        match self {
            Place::Critical(caller) => Rank::Critical(caller),
            Place::Tag(tag, caller) => Rank::Tag(tag, caller),
            Place::Without(_, tag, caller) if tag <= passed => Rank::Tag(tag, caller),
            Place::Without(load, tag, caller) | Place::With(load, tag, caller) => {
                Rank::Load(load, tag, caller)
            }
        }
    }
}

/// Who stands at a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) tenant: Arc<[u8]>,
    pub(super) caller: Caller,
    pub(super) cost: u64,
    /// Of leases: the most that may be held with its own.
    pub(super) most: u64,
    /// When a hunger ends; `None` for a caller that waits.
    pub(super) until: Option<Time>,
}

/// Entries in the order of their ranks.
#[derive(Default, Debug)]
pub(super) struct Order {
    critical: BTreeMap<Caller, Entry>,
    /// Those that stand by their tags, and those that hold nothing.
    by_tag: BTreeMap<(Tag, Caller), Entry>,
    /// Those of leases.
    by_load: BTreeMap<(Load, Tag, Caller), Entry>,
}

impl Order {
    pub(super) fn insert(&mut self, place: Place, entry: Entry) {
        match place {
            Place::Critical(caller) => _ = self.critical.insert(caller, entry),
            Place::Tag(tag, caller) => _ = self.by_tag.insert((tag, caller), entry),
            Place::With(load, tag, caller) => _ = self.by_load.insert((load, tag, caller), entry),
            Place::Without(load, tag, caller) => {
                self.by_tag.insert((tag, caller), entry.clone());
                self.by_load.insert((load, tag, caller), entry);
            }
        }
    }

    pub(super) fn remove(&mut self, place: Place) {
        match place {
            Place::Critical(caller) => _ = self.critical.remove(&caller),
            Place::Tag(tag, caller) => _ = self.by_tag.remove(&(tag, caller)),
            Place::With(load, tag, caller) => _ = self.by_load.remove(&(load, tag, caller)),
            Place::Without(load, tag, caller) => {
                self.by_tag.remove(&(tag, caller));
                self.by_load.remove(&(load, tag, caller));
            }
        }
    }

    /// The entries with their ranks, the first one first, while the line's V is `passed`.
    pub(super) fn iter(&self, passed: Tag) -> impl Iterator<Item = (Rank, &Entry)> {
        let critical = self.critical.iter().map(|(caller, entry)| (Rank::Critical(*caller), entry));
        // Without loads, the line is that of a rate, and all stand by their tags.
        let passed = if self.by_load.is_empty() { Tag::MAX } else { passed };
        let by_tag = self.by_tag.iter().map(|((tag, caller), entry)| (Rank::Tag(*tag, *caller), entry));
        let is_passed =
            move |tag: Tag, caller: Caller| tag <= passed && self.by_tag.contains_key(&(tag, caller));
        let by_load = self
            .by_load
            .iter()
            .filter(move |((_, tag, caller), _)| !is_passed(*tag, *caller))
            .map(|((load, tag, caller), entry)| (Rank::Load(*load, *tag, *caller), entry));
        let by_tag = by_tag.take_while(move |(rank, _)| matches!(rank, Rank::Tag(tag, _) if *tag <= passed));
        critical.chain(by_tag).chain(by_load)
    }

    pub(super) fn first(&self, passed: Tag) -> Option<(Rank, &Entry)> {
        self.iter(passed).next()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.critical.is_empty() && self.by_tag.is_empty() && self.by_load.is_empty()
    }
}
