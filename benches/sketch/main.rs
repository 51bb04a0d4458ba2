//! How often a sketch refuses falsely, beside the formula; that it never admits too much; how exact the counter of
//! frequent keys is. No server is needed.
//!
//! ```text
//! cargo bench -p ratelimit-benches --bench sketch -- [--requests=100000000] [--seed=1]
//! ```

// A bench that goes wrong panics.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;
mod exact;
mod frequent;
mod promise;
mod refusals;
mod traffic;

use std::time::Instant;

use common::{SHAPES, grouped, number, percent, progress, shape};
use exact::ITEMS;

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
