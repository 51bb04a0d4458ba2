//! What the tables of a sketch share: shapes, and how figures are shown.

use std::fmt::Display;

use ratelimit_core::State;
use ratelimit_core::state::codec::Reader;
use ratelimit_core::state::{Cells, CellsChange, Shape};
use ratelimit_testing::dice::Dice;

/// Widths and depths.
pub const SHAPES: [(u32, u32); 4] = [(16_384, 4), (65_536, 4), (16_384, 8), (262_144, 4)];

pub fn shape(width: u32, depth: u32) -> Shape {
    Shape::new(width, depth).expect("a shape")
}

/// The hash key that follows from a seed, so that a run can be repeated.
pub fn hash_key(seed: u64) -> [u64; 2] {
    let mut dice = Dice::new(seed);
    [dice.any(), dice.any()]
}

/// Applies a change from its bytes, as the server does.
pub fn apply(cells: &mut Option<Cells>, change: &CellsChange<'_>, bytes: &mut Vec<u8>) {
    bytes.clear();
    Cells::encode_change(change, bytes);
    let change = Cells::decode_change(&mut Reader::new(bytes)).expect("a change that was just encoded");
    cells.get_or_insert_with(Cells::blank).apply(change);
}

/// A line on stderr.
pub fn progress(line: impl Display) {
    eprintln!("sketch: {line}");
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
pub fn number(count: u64) -> f64 {
    count as f64
}

/// A share in percent, with three significant digits.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        0.0 => "0".into(),
        10.0.. => format!("{percent:.1}%"),
        1.0.. => format!("{percent:.2}%"),
        0.1.. => format!("{percent:.3}%"),
        0.001.. => format!("{percent:.5}%"),
        _ => format!("{percent:.1e}%"),
    }
}

/// With commas between thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut groups: Vec<&str> = if first > 0 { vec![&digits[..first]] } else { vec![] };
    groups.extend(digits.as_bytes()[first..].chunks(3).map(|group| std::str::from_utf8(group).unwrap()));
    groups.join(",")
}
