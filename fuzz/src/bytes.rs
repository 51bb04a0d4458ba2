//! Choices made by bytes: a fuzzer changes bytes, and with them the choices.

/// Bytes to choose by. After the last one, all are 0.
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// The next bytes, at most `length`.
    pub fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// A number from `least` to `most`, often a small one: the first byte is the number of bits that follow.
    pub fn number(&mut self, least: u64, most: u64) -> u64 {
        let bits = self.byte() % 65;
        let mut number = 0u64;
        for _ in 0..bits.div_ceil(8) {
            number = number << 8 | u64::from(self.byte());
        }
        let number = number & u64::MAX.checked_shr(64 - u32::from(bits)).unwrap_or(0);
        // Mistakes are at the ends of a range.
        if bits == 64 && number == u64::MAX { most } else { least + number % (most - least + 1) }
    }
}
