//! A list in blocks, which never moves as a whole when it grows.
//!
//! A removal moves the last item into the gap. So all blocks but the last are full, and the memory to spare is bounded.

use alloc::vec::Vec;
use core::mem::replace;

/// The items of a full block.
const BLOCK: usize = 128;

/// The most items by which a block grows.
const GROWTH: usize = 24;

/// The fewest items for which a block that is not the first one has room.
const LEAST: usize = 8;

#[derive(Clone, Debug)]
pub(crate) struct Slots<T> {
    blocks: Vec<Vec<T>>,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots { blocks: Vec::new() }
    }
}

impl<T> Slots<T> {
    pub(crate) fn len(&self) -> usize {
        let last = self.blocks.last().map_or(0, Vec::len);
        self.blocks.len().saturating_sub(1) * BLOCK + last
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<&T> {
        let slot = slot as usize;
        self.blocks.get(slot / BLOCK)?.get(slot % BLOCK)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        let slot = slot as usize;
        self.blocks.get_mut(slot / BLOCK)?.get_mut(slot % BLOCK)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.blocks.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.blocks.iter_mut().flatten()
    }

    /// The slot of the first item for which `wanted` holds.
    pub(crate) fn position(&self, wanted: impl Fn(&T) -> bool) -> Option<u32> {
        // Four at a time takes half the instructions.
        let within = |block: &Vec<T>| {
            let (fours, _) = block.as_chunks::<4>();
            let start = 4 * fours.iter().position(|four| four.iter().any(&wanted)).unwrap_or(fours.len());
            Some(start + block.get(start..)?.iter().position(&wanted)?)
        };
        let in_one = |(place, block)| Some(place * BLOCK + within(block)?);
        self.blocks.iter().enumerate().find_map(in_one).map(number)
    }

    /// Adds an item, and returns its slot.
    pub(crate) fn push(&mut self, item: T) -> u32 {
        let slot = self.len();
        if slot.is_multiple_of(BLOCK) {
            if self.blocks.is_empty() {
                self.blocks.reserve_exact(1);
            }
            self.blocks.push(Vec::new());
        }
        if let Some(block) = self.blocks.last_mut() {
            if block.len() == block.capacity() {
                // Most tables hold one or two leases.
                let least = if slot < BLOCK { 1 } else { LEAST };
                block.reserve_exact(block.len().clamp(least, GROWTH).min(BLOCK - block.len()));
            }
            block.push(item);
        }
        number(slot)
    }

    /// Removes an item. The last item moves into its slot.
    pub(crate) fn swap_remove(&mut self, slot: u32) -> Option<T> {
        let last = self.blocks.last_mut().and_then(Vec::pop)?;
        let removed = match self.get_mut(slot) {
            Some(item) => replace(item, last),
            None => last,
        };
        self.shrink();
        Some(removed)
    }

    /// Frees memory that is not needed.
    fn shrink(&mut self) {
        if let Some(last) = self.blocks.last_mut() {
            let spare = last.capacity() - last.len();
            if last.is_empty() {
                self.blocks.pop();
            } else if spare > (3 * last.len()).clamp(LEAST, GROWTH) {
                last.shrink_to(last.len() + last.len().min(GROWTH / 2));
            }
        }
        if self.blocks.capacity() > 4 * self.blocks.len() {
            self.blocks.shrink_to(2 * self.blocks.len());
        }
    }

    /// The bytes that the list has allocated.
    pub(crate) fn allocated(&self) -> usize {
        let bytes = |capacity: usize| size_class(capacity * size_of::<T>());
        let last = self.blocks.last().map_or(0, |last| bytes(last.capacity()));
        let full = self.blocks.len().saturating_sub(1) * bytes(BLOCK);
        size_class(self.blocks.capacity() * size_of::<Vec<T>>()) + full + last
    }
}

/// The number of a slot.
pub(crate) fn number(slot: usize) -> u32 {
    u32::try_from(slot).unwrap_or(u32::MAX)
}

/// The bytes that jemalloc allocates for this many: the next of its sizes, which has four per doubling.
pub(crate) fn size_class(bytes: usize) -> usize {
    bytes.next_multiple_of((bytes.next_power_of_two() / 8).max(16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slots_agree_with_a_plain_list_and_have_little_room_to_spare() {
        let mut slots = Slots::default();
        let mut list: Vec<u32> = Vec::new();
        for i in 0..4000u32 {
            // More and more of the items are removed.
            if i % 4000 < i.wrapping_mul(2_654_435_761) % 8000 || list.is_empty() {
                assert_eq!(slots.push(i) as usize, list.len());
                list.push(i);
            } else {
                let slot = i.wrapping_mul(40_503) as usize % list.len();
                assert_eq!(slots.swap_remove(number(slot)), Some(list.swap_remove(slot)));
            }
            assert!(slots.iter().eq(&list));
            assert_eq!(slots.len(), list.len());
            let room = slots.blocks.iter().map(Vec::capacity).sum::<usize>();
            assert!(room <= list.len() + GROWTH, "{room} for {}", list.len());
        }
        while slots.swap_remove(0).is_some() {}
        assert_eq!(slots.allocated(), 0);
    }
}
