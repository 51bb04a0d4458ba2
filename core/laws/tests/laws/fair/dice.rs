//! Numbers that look random, the same in each run.

/// Splitmix64: <https://prng.di.unimi.it/splitmix64.c>
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }

    /// Whether something happens that does `times` times in `of`.
    pub fn happens(&mut self, times: u64, of: u64) -> bool {
        self.below(of) < times
    }
}
