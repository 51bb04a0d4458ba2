//! How often a sketch refuses falsely, beside the formula; that it never admits too much; how exact the counter of
//! frequent keys is. No server is needed.
//!
//! ```text
//! cargo bench --bench sketch -- [--requests=100000000] [--seed=1]
//! ```

// A bench that goes wrong panics.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod exact;
mod frequent;
mod promise;
mod refusals;
mod traffic;

use std::fmt::Display;
use std::time::Instant;

use ratelimit_core::State;
use ratelimit_core::state::codec::Reader;
use ratelimit_core::state::{Cells, CellsChange, Shape};
use ratelimit_testing::dice::Dice;

use exact::ITEMS;

const SHAPES: [(u32, u32); 4] = [(16_384, 4), (65_536, 4), (16_384, 8), (262_144, 4)];
/// The bytes of a key of `RL.GCRA` with a name of 16 bytes, from the table "Bytes per key" of docs/performance.md.
const BYTES_PER_KEY: u64 = 193;

fn main() {
    let began = Instant::now();
    let option = |name: &str| std::env::args().find_map(|word| word.strip_prefix(name)?.parse().ok());
    let (requests, seed) = (option("--requests=").unwrap_or(100_000_000), option("--seed=").unwrap_or(1));
    println!("{} items, seed {seed}", grouped(ITEMS));
    refusals::run(seed);
    promise::run(seed, requests);
    frequent::run(seed);
    bytes();
    progress(format_args!("done in {:.0} s", began.elapsed().as_secs_f64()));
}

/// Prints the memory of sketches beside that of a key for each item.
fn bytes() {
    let keys = BYTES_PER_KEY * ITEMS;
    println!("\nBytes");
    println!("{:<32} {:>13} {:>10}", "", "bytes", "of keys");
    println!("{:<32} {:>13} {:>10}", format!("RL.GCRA, {} keys", grouped(ITEMS)), grouped(keys), "");
    for (width, depth) in SHAPES {
        let bytes = shape(width, depth).bytes();
        let share = percent(number(bytes) / number(keys));
        println!("{:<32} {:>13} {:>10}", format!("RL.SKETCH {width} x {depth}"), grouped(bytes), share);
    }
    println!(
        "of keys: the sketch's bytes as a share of those of the keys. A sketch does not grow with its items."
    );
}

fn shape(width: u32, depth: u32) -> Shape {
    Shape::new(width, depth).expect("a shape")
}

/// The hash key that follows from a seed, so that a run can be repeated.
fn hash_key(seed: u64) -> [u64; 2] {
    let mut dice = Dice::new(seed);
    [dice.any(), dice.any()]
}

/// Applies a change from its bytes, as the server does.
fn apply(cells: &mut Option<Cells>, change: &CellsChange<'_>, bytes: &mut Vec<u8>) {
    bytes.clear();
    Cells::encode_change(change, bytes);
    let change = Cells::decode_change(&mut Reader::new(bytes)).expect("a change that was just encoded");
    cells.get_or_insert_with(Cells::blank).apply(change);
}

/// A line on stderr.
fn progress(line: impl Display) {
    eprintln!("sketch: {line}");
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
fn number(count: u64) -> f64 {
    count as f64
}

/// A share in percent, with three significant digits.
fn percent(share: f64) -> String {
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
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut groups: Vec<&str> = if first > 0 { vec![&digits[..first]] } else { vec![] };
    groups.extend(digits.as_bytes()[first..].chunks(3).map(|group| std::str::from_utf8(group).unwrap()));
    groups.join(",")
}
