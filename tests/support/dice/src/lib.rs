//! Chance from a seed, so that what came of it can be had again.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "no number is too large"
)]

/// The state of splitmix64.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// For one input of a round: what came of those before it has no say in it.
    pub fn of(seed: u64, number: usize) -> Dice {
        let number = u64::try_from(number).unwrap();
        Dice(Dice(seed ^ number.rotate_left(40)).any())
    }

    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, most: u64) -> u64 {
        self.any() % most
    }

    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }

    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn pick<'t, T>(&mut self, things: &'t [T]) -> &'t T {
        &things[self.index(things.len())]
    }

    pub fn byte(&mut self) -> u8 {
        // Those at which something changes come more often.
        let edges = [0x00, 0x01, 0x02, 0x7f, 0x80, 0xfe, 0xff];
        if self.one_in(2) { edges[self.index(edges.len())] } else { self.any().to_le_bytes()[0] }
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.byte()).collect()
    }

    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        for place in 1..things.len() {
            things.swap(place, self.index(place + 1));
        }
    }
}
