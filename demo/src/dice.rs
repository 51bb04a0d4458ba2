//! Chance from a seed, the same on every machine.

/// The state of splitmix64.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to less than `most`.
    pub fn below(&mut self, most: u64) -> u64 {
        self.any() % most
    }

    /// From 0 to less than 1.
    #[allow(clippy::cast_precision_loss, reason = "53 bits, which an f64 holds exactly")]
    pub fn part(&mut self) -> f64 {
        (self.any() >> 11) as f64 / 2f64.powi(53)
    }
}
