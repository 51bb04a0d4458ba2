//! The order of the tenants in a fair line.

use core::cmp::Ordering;
use core::ops::Bound::{Excluded, Included, Unbounded};

use super::claim::Caller;
use super::sum::{Entry, Sum};
use super::tree::Tree;

/// A cost divided by a weight, in units of 2^-32. Two to the power of 43 grants of the largest cost fit.
pub(super) type Tag = u128;

/// What a cost adds to a tag, rounded up.
pub(super) fn stretch(cost: u64, weight: u32) -> Tag {
    (Tag::from(cost) << 32).div_ceil(Tag::from(weight.max(1)))
}

/// What a cost takes from a tag, rounded down.
pub(super) fn shrink(cost: u64, weight: u32) -> Tag {
    (Tag::from(cost) << 32) / Tag::from(weight.max(1))
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

/// Those who come before a place in the line.
pub(super) struct Before {
    /// Those that must fit together: critical ones, and tenants that would hold less.
    pub(super) together: Sum,
    /// All of them, the first ones once more. Each of them must fit alone.
    pub(super) each: Sum,
}

impl Before {
    /// Whether the callers that wait still fit if this much is held.
    pub(super) fn waiting_fit(&self, used: u64) -> bool {
        used <= self.together.of_waiting.joint && used <= self.each.of_waiting.alone
    }

    /// Whether the callers that wait and the hungry tenants still fit if this much is held.
    pub(super) fn all_fit(&self, used: u64) -> bool {
        used <= self.together.of_all.joint && used <= self.each.of_all.alone
    }
}

/// Takes the number of a tree, a load and its weight, a tag, a caller, and the entry there.
pub(super) type Each<'a> = dyn FnMut(u64, (u64, u32), Tag, Caller, &Entry) + 'a;

/// Entries in the order of their ranks.
#[derive(Clone, Default, Debug)]
pub(super) struct Order {
    critical: Tree<Caller>,
    /// Those that stand by their tags, and those that hold nothing.
    by_tag: Tree<(Tag, Caller)>,
    /// Those of leases.
    by_load: Tree<(Load, Tag, Caller)>,
}

impl Order {
    pub(super) fn insert(&mut self, place: Place, entry: Entry) {
        match place {
            Place::Critical(caller) => self.critical.insert(caller, entry),
            Place::Tag(tag, caller) => self.by_tag.insert((tag, caller), entry),
            Place::With(load, tag, caller) => self.by_load.insert((load, tag, caller), entry),
            Place::Without(load, tag, caller) => {
                self.by_tag.insert((tag, caller), entry.clone());
                self.by_load.insert((load, tag, caller), entry);
            }
        }
    }

    pub(super) fn remove(&mut self, place: Place) {
        match place {
            Place::Critical(caller) => self.critical.remove(&caller),
            Place::Tag(tag, caller) => self.by_tag.remove(&(tag, caller)),
            Place::With(load, tag, caller) => self.by_load.remove(&(load, tag, caller)),
            Place::Without(load, tag, caller) => {
                self.by_tag.remove(&(tag, caller));
                self.by_load.remove(&(load, tag, caller));
            }
        }
    }

    /// The first caller that waits, while the line's V is `passed`.
    pub(super) fn first(&self, passed: Tag) -> Option<(Rank, &Entry)> {
        if let Some((caller, entry)) = self.critical.first_waiting() {
            return Some((Rank::Critical(*caller), entry));
        }
        // Without loads, the line is that of a rate, and all stand by their tags.
        let passed = if self.by_load.is_empty() { Tag::MAX } else { passed };
        let by_tag = self.by_tag.first_waiting().filter(|((tag, _), _)| *tag <= passed);
        let by_tag = by_tag.map(|((tag, caller), entry)| (Rank::Tag(*tag, *caller), entry));
        by_tag.or_else(|| {
            let ((load, tag, caller), entry) = self.by_load.first_waiting()?;
            Some((Rank::Load(*load, *tag, *caller), entry))
        })
    }

    /// Calls `each` with all entries.
    pub(super) fn each(&self, each: &mut Each<'_>) {
        self.critical.each(&mut |caller, entry| each(0, (0, 0), 0, *caller, entry));
        self.by_tag.each(&mut |(tag, caller), entry| each(1, (0, 0), *tag, *caller, entry));
        self.by_load.each(&mut |(Load { held, weight }, tag, caller), entry| {
            each(2, (*held, *weight), *tag, *caller, entry);
        });
    }

    /// Whether any caller waits for a rate, at which no tenant stands by its load.
    pub(super) fn anybody_waits(&self) -> bool {
        self.critical.all().waiting + self.by_tag.all().waiting > 0
    }

    /// Those who come before a rank, without the one that stands at the place `skip`.
    pub(super) fn before(&self, rank: Rank, passed: Tag, skip: Option<Place>) -> Before {
        let (critical, tag, load) = match skip {
            None => (None, None, None),
            Some(Place::Critical(caller)) => (Some(caller), None, None),
            Some(Place::Tag(tag, caller)) => (None, Some((tag, caller)), None),
            Some(Place::With(load, tag, caller)) => (None, None, Some((load, tag, caller))),
            Some(Place::Without(load, tag, caller)) => (None, Some((tag, caller)), Some((load, tag, caller))),
        };
        let end = match &rank {
            Rank::Critical(caller) => Excluded(caller),
            Rank::Tag(..) | Rank::Load(..) => Unbounded,
        };
        let critical = self.critical.sum(end, critical.as_ref());
        match rank {
            Rank::Critical(_) => Before { together: critical, each: critical },
            Rank::Tag(own, caller) => {
                let by_tag = self.by_tag.sum(Excluded(&(own, caller)), tag.as_ref());
                Before { together: critical, each: critical.then(by_tag) }
            }
            Rank::Load(own, own_tag, caller) => {
                let less = self.by_load.sum(Excluded(&(own, 0, 0)), load.as_ref());
                let by_load = self.by_load.sum(Excluded(&(own, own_tag, caller)), load.as_ref());
                let by_tag = self.by_tag.sum(Included(&(passed, Caller::MAX)), tag.as_ref());
                Before { together: critical.then(less), each: critical.then(by_tag).then(by_load) }
            }
        }
    }

    /// The number of callers that wait before a rank and are `counted`.
    pub(super) fn count(&self, rank: Rank, passed: Tag, counted: impl Fn(&Entry, bool) -> bool) -> usize {
        let mut count = 0;
        let end = if let Rank::Critical(caller) = rank { caller } else { Caller::MAX };
        self.critical.each_waiting(&end, &mut |_, entry| count += usize::from(counted(entry, true)));
        let mut each = |entry: &Entry| count += usize::from(counted(entry, false));
        match rank {
            Rank::Critical(_) => (),
            Rank::Tag(tag, caller) => self.by_tag.each_waiting(&(tag, caller), &mut |_, entry| each(entry)),
            Rank::Load(load, tag, caller) => {
                self.by_tag.each_waiting(&(passed, Caller::MAX), &mut |_, entry| each(entry));
                self.by_load.each_waiting(&(load, tag, caller), &mut |(_, tag, caller), entry| {
                    let is_by_tag = *tag <= passed && self.by_tag.has(&(*tag, *caller));
                    if !is_by_tag {
                        each(entry);
                    }
                });
            }
        }
        count
    }
}
