//! The cells of an item: one in each row, which a keyed hash chooses. The shape and the hash key of a sketch give them.

use alloc::vec::Vec;
use core::hash::Hasher;
#[allow(deprecated, reason = "SipHash-2-4 with a given key, which the library has under no other name")]
use core::hash::SipHasher;
use core::iter::zip;

use crate::state::codec::{Reader, put_short, put_words};

/// The most rows of cells.
pub const MAX_DEPTH: u32 = 8;
/// The most cells: 256 MiB.
pub const MAX_CELLS: u32 = 1 << 25;

/// The numbers of rows and of cells in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// A power of two.
    width: u32,
    depth: u32,
}

/// A sketch without charges: its shape, and the key of its hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blueprint {
    pub shape: Shape,
    pub hash_key: [u64; 2],
}

/// The cells of an item, by their places among all cells.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Places {
    /// The first `count` of them, as little-endian words of 32 bits.
    places: [[u8; 4]; MAX_DEPTH as usize],
    pub(super) count: u8,
}

impl Shape {
    pub const MAX_WIDTH: u32 = MAX_CELLS;
    pub const MOST_BYTES: u64 = MAX_CELLS as u64 * size_of::<u64>() as u64;
    pub const DEFAULT: Shape = Shape { width: 16_384, depth: 4 };
    /// The smallest one.
    pub(super) const ONE: Shape = Shape { width: 1, depth: 1 };

    /// `None` if the width is no power of two, if the depth is not from 1 to [`MAX_DEPTH`], or if there are more than
    /// [`MAX_CELLS`] cells.
    pub fn new(width: u32, depth: u32) -> Option<Shape> {
        let shape = Shape { width, depth };
        let fits = (1..=MAX_DEPTH).contains(&depth) && shape.cells() <= u64::from(MAX_CELLS);
        (width.is_power_of_two() && fits).then_some(shape)
    }

    pub fn width(self) -> u32 {
        self.width
    }

    pub fn depth(self) -> u32 {
        self.depth
    }

    /// The bytes of all cells.
    pub const fn bytes(self) -> u64 {
        self.cells() * size_of::<u64>() as u64
    }

    pub(super) const fn cells(self) -> u64 {
        self.width as u64 * self.depth as u64
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Option<Shape> {
        let [width, depth] = [reader.short()?, reader.short()?].map(u32::try_from);
        Shape::new(width.ok()?, depth.ok()?)
    }
}

impl Blueprint {
    /// The cells of an item.
    ///
    /// One hash of 64 bits is the seed of a sequence of numbers, one for each row. So two items share all their cells
    /// hardly more often than if each cell were chosen by a hash of its own.
    pub fn places(&self, item: &[u8]) -> Places {
        let Shape { width, depth } = self.shape;
        let seed = hash(self.hash_key, item);
        let mut places = Places::NONE;
        let mut row = 0;
        for (number, place) in zip(1.., &mut places.places).take(depth as usize) {
            #[allow(clippy::cast_possible_truncation, reason = "the low bits choose the cell")]
            let cell = split_mix(seed, number) as u32 & (width - 1);
            *place = (row + cell).to_le_bytes();
            row += width;
            places.count += 1;
        }
        places
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_short(out, self.shape.width.into());
        put_short(out, self.shape.depth.into());
        put_words(out, self.hash_key);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Option<Blueprint> {
        Some(Blueprint { shape: Shape::decode(reader)?, hash_key: [reader.word()?, reader.word()?] })
    }
}

/// SipHash-2-4. The places of items in stored sketches depend on it.
#[allow(deprecated, reason = "as where it is imported")]
fn hash([low, high]: [u64; 2], item: &[u8]) -> u64 {
    let mut hasher = SipHasher::new_with_keys(low, high);
    hasher.write(item);
    hasher.finish()
}

/// The number at this place, from 1, of the sequence that `SplitMix64` makes from a seed.
///
/// Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014, figure 17.
fn split_mix(seed: u64, number: u64) -> u64 {
    let mixed = seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Places {
    pub const NONE: Places = Places { places: [[0; 4]; MAX_DEPTH as usize], count: 0 };

    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.used().iter().map(|place| u32::from_le_bytes(*place) as usize)
    }

    pub(super) fn used(&self) -> &[[u8; 4]] {
        self.places.get(..usize::from(self.count)).unwrap_or(&[])
    }

    pub(super) fn decode(count: u8, reader: &mut Reader<'_>) -> Option<Places> {
        let mut places = Places { count, ..Places::NONE };
        let used = places.places.get_mut(..usize::from(count))?;
        used.copy_from_slice(reader.take(size_of_val(used))?.as_chunks().0);
        Some(places)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    const BLUEPRINT: Blueprint = Blueprint {
        shape: Shape { width: 1024, depth: 4 },
        hash_key: [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908],
    };

    #[test]
    fn the_hash_is_that_of_the_paper() {
        // Aumasson and Bernstein, "SipHash: a fast short-input PRF", appendix A: key 00 to 0f, input 00 to 0e.
        let input: Vec<u8> = (0..15).collect();
        assert_eq!(hash(BLUEPRINT.hash_key, &input), 0xa129_ca61_49be_45e5);
        // The first vectors of the reference implementation.
        assert_eq!(hash(BLUEPRINT.hash_key, b""), 0x726f_db47_dd0e_0e31);
        assert_eq!(hash(BLUEPRINT.hash_key, &[0]), 0x74f8_39c5_93dc_67fd);
    }

    #[test]
    fn the_sequence_is_that_of_split_mix() {
        // The first numbers of the reference implementation, whose seed is 1234567.
        assert_eq!(
            [1, 2, 3].map(|number| split_mix(1_234_567, number)),
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn an_item_has_a_cell_in_each_row() {
        for item in 0..1000_u32 {
            let places: Vec<usize> = BLUEPRINT.places(&item.to_le_bytes()).iter().collect();
            assert_eq!(places.iter().map(|place| place / 1024).collect::<Vec<_>>(), [0, 1, 2, 3]);
        }
    }

    #[test]
    fn items_spread_evenly_over_the_cells_of_each_row() {
        let mut counts = vec![0_u32; 4096];
        for item in 0..1_024_000_u32 {
            BLUEPRINT.places(&item.to_le_bytes()).iter().for_each(|place| counts[place] += 1);
        }
        for row in counts.chunks(1024) {
            // Chi-square with 1023 degrees of freedom: 1023, give or take five times its deviation of 45.
            let chi: f64 = row.iter().map(|count| (f64::from(*count) - 1000.0).powi(2) / 1000.0).sum();
            assert!((800.0..1250.0).contains(&chi), "{chi}");
        }
    }

    #[test]
    fn shapes_are_bounded() {
        for (width, depth) in [(0, 1), (3, 1), (1, 0), (1, 9), (1 << 25, 2), (1 << 26, 1), (1 << 31, 8)] {
            assert_eq!(Shape::new(width, depth), None, "{width} {depth}");
        }
        for (width, depth) in [(1, 1), (1, 8), (1 << 25, 1), (1 << 22, 8)] {
            assert!(Shape::new(width, depth).is_some(), "{width} {depth}");
        }
        assert_eq!(Shape::DEFAULT.bytes(), 512 << 10);
    }
}
