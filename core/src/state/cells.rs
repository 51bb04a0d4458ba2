//! The cells of a sketch: arrival times that unboundedly many items share.
//!
//! Each item has `depth` cells, one in each row of `width` cells. A keyed hash of the item chooses them. The hash key is
//! random and part of the state, so no client can prepare items that share cells.
//!
//! A cell is never lowered. Each item's true arrival time is at or before all of its cells.
//!
//! # The clock
//!
//! When the clock is set back, other limits move their state to the new instant. A sketch cannot move all cells at once.
//! Instead it adds the step to `shift`, and reads the clock as the caller's time plus `shift`. All instants in the state
//! are on this shifted clock.

use alloc::vec;
use alloc::vec::Vec;
use core::hash::Hasher;
#[allow(deprecated, reason = "SipHash-2-4 with a given key, which the library has under no other name")]
use core::hash::SipHasher;
use core::iter::zip;

use super::codec::{Reader, put, put_short, put_words};
use super::{Figure, State};
use crate::kind::Kind;
use crate::time::{Span, Time};

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
    count: u8,
}

/// The cells, row by row, and the clock of the sketch.
#[derive(Clone, PartialEq, Debug)]
pub struct Cells {
    blueprint: Blueprint,
    last: Time,
    latest: Time,
    shift: Span,
    /// In microseconds since the epoch; 0 if no charge has reached the cell.
    cells: Vec<u64>,
}

/// A change of the cells. Changes are maxima, so they can be applied in any order, and more than once.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// The outcome of a call.
    Charged {
        /// The sketch begins with this change: what the key held before is gone.
        begun: Option<Blueprint>,
        last: Time,
        shift: Span,
        /// The cells of the item; none if only the shift changes.
        places: Places,
        /// The item's arrival time.
        arrival: Time,
    },
    /// Neighbouring cells, in a rewritten AOF.
    Piece {
        /// The place of the first cell.
        first: u32,
        /// Words of 64 bits.
        cells: &'a [u8],
    },
}

impl Shape {
    pub const MAX_WIDTH: u32 = MAX_CELLS;
    pub const MOST_BYTES: u64 = MAX_CELLS as u64 * size_of::<u64>() as u64;
    pub const DEFAULT: Shape = Shape { width: 16_384, depth: 4 };
    /// The smallest one.
    const ONE: Shape = Shape { width: 1, depth: 1 };

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

    const fn cells(self) -> u64 {
        self.width as u64 * self.depth as u64
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Shape> {
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

    fn encode(&self, out: &mut Vec<u8>) {
        put_short(out, self.shape.width.into());
        put_short(out, self.shape.depth.into());
        put_words(out, self.hash_key);
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Blueprint> {
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

    fn used(&self) -> &[[u8; 4]] {
        self.places.get(..usize::from(self.count)).unwrap_or(&[])
    }

    fn decode(count: u8, reader: &mut Reader<'_>) -> Option<Places> {
        let mut places = Places { count, ..Places::NONE };
        let used = places.places.get_mut(..usize::from(count))?;
        used.copy_from_slice(reader.take(size_of_val(used))?.as_chunks().0);
        Some(places)
    }
}

impl Cells {
    /// The latest instant on the shifted clock, 146,000 years from the epoch.
    pub const LATEST: Time = Time::from_micros(1 << 62);

    /// A sketch without charges.
    pub fn new(blueprint: Blueprint) -> Cells {
        let count = usize::try_from(blueprint.shape.cells()).unwrap_or(0);
        let (last, latest, shift) = (Time::EPOCH, Time::EPOCH, Span::ZERO);
        Cells { blueprint, last, latest, shift, cells: vec![0; count] }
    }

    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// The last charge, on the shifted clock.
    pub fn last_shifted(&self) -> Time {
        self.last
    }

    /// The greatest arrival time of an item.
    pub fn latest(&self) -> Time {
        self.latest
    }

    /// What is added to a caller's time.
    pub fn shift(&self) -> Span {
        self.shift
    }

    /// The least of an item's cells, which is at or after the item's true arrival time.
    pub fn arrival(&self, places: &Places) -> Time {
        let cells = places.iter().filter_map(|place| self.cells.get(place));
        Time::from_micros(cells.min().copied().unwrap_or(0))
    }

    /// The share of cells that are ahead of a caller's time: of all cells, or of the first [`SAMPLE`].
    pub fn ahead(&self, now: Time) -> f64 {
        let now = now.plus(self.shift).max(self.last).as_micros();
        let ahead = self.cells.iter().take(SAMPLE).filter(|cell| **cell > now).count();
        #[allow(clippy::cast_precision_loss, reason = "there are at most 2^25 cells")]
        let share = ahead as f64 / self.cells.len().min(SAMPLE) as f64;
        share
    }

    /// The changes that make these cells of a missing key, each of at most about [`PIECE`] bytes. Cells that no charge
    /// has reached are left out.
    pub fn pieces(&self) -> impl Iterator<Item = Vec<u8>> {
        let begun = Change::Charged {
            begun: Some(self.blueprint),
            last: self.last,
            shift: self.shift,
            places: Places::NONE,
            arrival: self.latest,
        };
        let pieces = zip((0..).step_by(CELLS_OF_PIECE), self.cells.chunks(CELLS_OF_PIECE));
        let reached = pieces.filter(|(_, cells)| cells.iter().any(|cell| *cell > 0));
        let rest = reached.map(|(first, cells)| {
            let bytes: Vec<u8> = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
            encoded(&Change::Piece { first, cells: &bytes })
        });
        core::iter::once(encoded(&begun)).chain(rest)
    }
}

/// The cells that [`Cells::ahead`] reads at most: 8 MiB, which takes some milliseconds. The hash makes them a sample, whose
/// share differs from that of all cells by less than 0.2 percentage points.
pub const SAMPLE: usize = 1 << 20;

/// The bytes of cells in a piece of a rewritten AOF.
pub const PIECE: usize = 64_000;
const CELLS_OF_PIECE: usize = PIECE / size_of::<u64>();

fn encoded(change: &Change<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    Cells::encode_change(change, &mut out);
    out
}

/// A cell, or the greatest of them: an instant on the shifted clock, at most a limiter's longest reset after it.
fn cell(reader: &mut Reader<'_>) -> Option<Time> {
    reader.word_up_to(LATEST_CELL).map(Time::from_micros)
}

const LATEST_CELL: u64 = Cells::LATEST.plus(Span::CENTURY).plus(Span::CENTURY).as_micros();

fn instant(reader: &mut Reader<'_>) -> Option<Time> {
    reader.word_up_to(Cells::LATEST.as_micros()).map(Time::from_micros)
}

fn shift(reader: &mut Reader<'_>) -> Option<Span> {
    reader.word_up_to(Cells::LATEST.as_micros()).map(Span::from_micros)
}

impl State for Cells {
    const KIND: Kind = Kind::Cells;
    type Change<'a> = Change<'a>;

    /// On the callers' clock.
    fn last(&self) -> Time {
        self.last.minus(self.shift)
    }

    fn blank() -> Cells {
        Cells::new(Blueprint { shape: Shape::ONE, hash_key: [0; 2] })
    }

    fn apply(&mut self, change: Change<'_>) {
        match change {
            Change::Charged { begun, last, shift, places, arrival } => {
                if let Some(blueprint) = begun {
                    *self = Cells::new(blueprint);
                }
                for place in places.iter() {
                    // A forged change may name cells beyond the last.
                    if let Some(cell) = self.cells.get_mut(place) {
                        *cell = (*cell).max(arrival.as_micros());
                    }
                }
                self.last = self.last.max(last);
                self.latest = self.latest.max(arrival);
                self.shift = self.shift.max(shift);
            }
            Change::Piece { first, cells } => {
                let words = cells.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
                for (cell, word) in zip(self.cells.iter_mut().skip(first as usize), words) {
                    *cell = (*cell).max(word);
                }
            }
        }
    }

    fn encode_change(change: &Change<'_>, out: &mut Vec<u8>) {
        match change {
            Change::Charged { begun, last, shift, places, arrival } => {
                let form = if begun.is_some() { BEGUN } else { CHARGED };
                out.extend_from_slice(&[form, places.count]);
                put_words(out, [last.as_micros(), arrival.as_micros(), shift.as_micros()]);
                out.extend_from_slice(places.used().as_flattened());
                if let Some(blueprint) = begun {
                    blueprint.encode(out);
                }
            }
            Change::Piece { first, cells } => {
                out.push(PIECE_OF_CELLS);
                put_short(out, (*first).into());
                put_short(out, cells.len() as u64);
                out.extend_from_slice(cells);
            }
        }
    }

    fn decode_change<'a>(reader: &mut Reader<'a>) -> Option<Change<'a>> {
        let form = reader.byte()?;
        if form == PIECE_OF_CELLS {
            return decode_piece(reader);
        }
        let count = reader.byte()?;
        let (last, arrival, shift) = (instant(reader)?, cell(reader)?, shift(reader)?);
        let places = Places::decode(count, reader)?;
        let begun = match form {
            CHARGED => None,
            BEGUN => Some(Blueprint::decode(reader)?),
            _ => return None,
        };
        Some(Change::Charged { begun, last, shift, places, arrival })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.blueprint.encode(out);
        put_words(out, [self.last.as_micros(), self.latest.as_micros(), self.shift.as_micros()]);
        out.reserve(self.heap_bytes());
        self.cells.iter().for_each(|cell| put(out, *cell));
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Cells> {
        let blueprint = Blueprint::decode(reader)?;
        let (last, latest, shift) = (instant(reader)?, cell(reader)?, shift(reader)?);
        // Nothing is allocated for cells that do not follow.
        if reader.len() as u64 != blueprint.shape.bytes() {
            return None;
        }
        let mut cells = Cells::new(blueprint);
        for place in &mut cells.cells {
            *place = cell(reader)?.as_micros();
        }
        Some(Cells { last, latest, shift, ..cells })
    }

    fn heap_bytes(&self) -> usize {
        self.cells.capacity() * size_of::<u64>()
    }

    /// The server frees a sketch of 4 MiB or more on another thread.
    fn effort(&self) -> usize {
        1 + self.heap_bytes() / 65_536
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        let Shape { width, depth } = self.blueprint.shape;
        figure("width", Figure::Count(width.into()));
        figure("depth", Figure::Count(depth.into()));
    }

    fn describe_at(&self, now: Time, figure: &mut dyn FnMut(&'static str, Figure)) {
        let ahead = self.ahead(now);
        figure("ahead", Figure::Real(ahead));
        figure("all_ahead", Figure::Real(power(ahead, self.blueprint.shape.depth)));
    }
}

/// The forms of a change.
const CHARGED: u8 = 0;
const BEGUN: u8 = 1;
const PIECE_OF_CELLS: u8 = 2;

fn decode_piece<'a>(reader: &mut Reader<'a>) -> Option<Change<'a>> {
    let first = reader.short().and_then(|first| u32::try_from(first).ok())?;
    let length = usize::try_from(reader.short()?).ok().filter(|length| *length <= PIECE)?;
    let cells = reader.take(length)?;
    let mut words = Reader::new(cells);
    while !words.is_empty() {
        cell(&mut words)?;
    }
    Some(Change::Piece { first, cells })
}

/// A small power. The crate has no `powi`, which is not part of `core`.
fn power(base: f64, exponent: u32) -> f64 {
    (0..exponent).map(|_| base).product()
}

#[cfg(test)]
mod tests {
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
