//! A number that a table keeps beside some of its leases.

use crate::state::table::Slots;

/// The number of the lease in each slot. Slots at the end of the table can be missing.
#[derive(Clone, Default, Debug)]
pub(super) struct Beside(Slots<u64>);

/// For a lease without a number.
const NONE: u64 = u64::MAX;

impl Beside {
    /// The number of the lease in a slot.
    pub(super) fn get(&self, slot: u32) -> Option<u64> {
        self.0.get(slot).copied().filter(|number| *number != NONE)
    }

    /// Sets the number of the lease in a slot. One that looks like none is less by one.
    pub(super) fn set(&mut self, slot: u32, number: Option<u64>) {
        while self.0.len() <= slot as usize {
            self.0.push(NONE);
        }
        if let Some(of_slot) = self.0.get_mut(slot) {
            *of_slot = number.map_or(NONE, |number| number.min(NONE - 1));
        }
    }

    /// A slot was freed, and the lease in the slot `last` moved into it.
    pub(super) fn free(&mut self, slot: u32, last: u32) {
        if self.0.len() > last as usize {
            self.0.swap_remove(slot);
        } else if let Some(of_slot) = self.0.get_mut(slot) {
            *of_slot = NONE;
        }
    }

    /// The bytes that are allocated.
    pub(super) fn allocated(&self) -> usize {
        self.0.allocated()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_slot_gets_the_number_of_the_last_lease() {
        let mut beside = Beside::default();
        // The leases in slots 0 and 1 are older than the first number. That in slot 4 has none.
        beside.set(2, Some(20));
        beside.set(3, Some(30));
        beside.free(0, 4);
        assert_eq!([0, 1, 2, 3].map(|slot| beside.get(slot)), [None, None, Some(20), Some(30)]);
        beside.free(1, 3);
        assert_eq!([0, 1, 2].map(|slot| beside.get(slot)), [None, Some(30), Some(20)]);
        beside.set(1, None);
        assert_eq!(beside.get(1), None);
        beside.set(0, Some(u64::MAX));
        assert_eq!(beside.get(0), Some(u64::MAX - 1));
    }
}
