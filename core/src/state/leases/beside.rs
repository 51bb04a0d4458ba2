//! A number that a table keeps beside some of its leases.

use alloc::vec::Vec;

use crate::state::table::size_class;

/// The slots of a block.
const BLOCK: usize = 128;

/// For a lease without a number.
const NONE: u64 = u64::MAX;

/// The number of the lease in each slot, in blocks. Blocks are empty, and slots at the end of a block missing, where no lease has
/// had one: so the first number in a table of a million leases costs as little as any other.
#[derive(Clone, Default, Debug)]
pub(super) struct Beside(Vec<Vec<u64>>);

impl Beside {
    /// The number of the lease in a slot.
    pub(super) fn get(&self, slot: u32) -> Option<u64> {
        let (block, place) = place(slot);
        self.0.get(block)?.get(place).copied().filter(|number| *number != NONE)
    }

    /// Sets the number of the lease in a slot. One that looks like none is less by one.
    pub(super) fn set(&mut self, slot: u32, number: Option<u64>) {
        let (block, place) = place(slot);
        if number.is_some() && self.0.len() <= block {
            self.0.resize_with(block + 1, Vec::new);
        }
        let Some(block) = self.0.get_mut(block) else { return };
        if number.is_some() && block.len() <= place {
            block.resize(place + 1, NONE);
        }
        if let Some(of_slot) = block.get_mut(place) {
            *of_slot = number.map_or(NONE, |number| number.min(NONE - 1));
        }
    }

    /// A slot was freed, and the lease in the slot `last` moved into it.
    pub(super) fn free(&mut self, slot: u32, last: u32) {
        let moved = self.get(last);
        self.set(slot, moved);
        let (block, place) = place(last);
        if let Some(block) = self.0.get_mut(block) {
            block.truncate(place);
            if block.capacity() > 4 * place {
                block.shrink_to(2 * place);
            }
        }
        self.0.truncate(if place > 0 { block + 1 } else { block });
        if self.0.capacity() > 4 * self.0.len() {
            self.0.shrink_to(2 * self.0.len());
        }
    }

    /// The bytes that are allocated.
    pub(super) fn allocated(&self) -> usize {
        let blocks = self.0.iter().map(|block| size_class(block.capacity() * size_of::<u64>()));
        size_class(self.0.capacity() * size_of::<Vec<u64>>()) + blocks.sum::<usize>()
    }
}

/// The block of a slot, and its place there.
fn place(slot: u32) -> (usize, usize) {
    (slot as usize / BLOCK, slot as usize % BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::table::number;

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

    #[test]
    fn numbers_agree_with_a_plain_list_and_go_with_their_leases() {
        let (mut beside, mut list) = (Beside::default(), Vec::new());
        for i in 0..6000u32 {
            let value = (i % 3 > 0).then_some(u64::from(i));
            // More and more of the leases are freed.
            if i < i.wrapping_mul(2_654_435_761) % 6000 || list.is_empty() {
                beside.set(number(list.len()), value);
                list.push(value);
            } else {
                let slot = i.wrapping_mul(40_503) as usize % list.len();
                beside.free(number(slot), number(list.len() - 1));
                list.swap_remove(slot);
            }
            assert!(
                (0..=list.len()).all(|slot| beside.get(number(slot)) == list.get(slot).copied().flatten())
            );
        }
        while let Some(last) = list.len().checked_sub(1) {
            beside.free(0, number(last));
            list.swap_remove(0);
        }
        assert_eq!(beside.allocated(), 0);
    }

    #[test]
    fn the_first_number_of_a_large_table_takes_no_room_for_the_others() {
        let mut beside = Beside::default();
        beside.set(999_999, Some(1));
        assert!(beside.allocated() < 400_000, "{}", beside.allocated());
        assert_eq!([0, 999_998, 999_999].map(|slot| beside.get(slot)), [None, None, Some(1)]);
    }
}
