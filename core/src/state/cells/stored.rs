//! The cells of a sketch as a stored state: the bytes, and how a change is written, read and applied.

use alloc::vec::Vec;
use core::iter::zip;

use super::{Blueprint, Cells, Places, Shape};
use crate::kind::Kind;
use crate::state::codec::{Reader, put, put_short, put_words};
use crate::state::{Figure, State};
use crate::time::{Span, Time};

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
        /// The index of the first cell.
        first: u32,
        /// Words of 64 bits.
        cells: &'a [u8],
    },
}

impl Cells {
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
        for stored in &mut cells.cells {
            *stored = cell(reader)?.as_micros();
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
        let shape = self.blueprint.shape;
        figure("width", Figure::Count(shape.width().into()));
        figure("depth", Figure::Count(shape.depth().into()));
    }

    fn describe_at(&self, now: Time, figure: &mut dyn FnMut(&'static str, Figure)) {
        let ahead = self.ahead(now);
        figure("ahead", Figure::Real(ahead));
        figure("all_ahead", Figure::Real(power(ahead, self.blueprint.shape.depth())));
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
