//! What all fuzzers share: seeds, how long they go on, and inputs in a form that can be typed again.
//!
//! By default a fuzzer tries the seeds that are written down in it. `RATELIMIT_FUZZ_SECONDS=n` makes it go on for so
//! long with seeds from the clock, and `RATELIMIT_FUZZ_SEED=s` try that one only.

pub mod caller;
pub mod corpus;
pub mod fake_primary;
pub mod grammar;
pub mod hostile;
pub mod probe;
pub mod promises;
pub mod request;
mod values;

use std::cell::Cell;
use std::env;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::support::dice::Dice;
use crate::support::{Server, module};

thread_local! {
    /// How many inputs this round has tried so far.
    static INPUTS: Cell<usize> = const { Cell::new(0) };
}

/// To be said of each input before it is tried.
pub fn count() {
    INPUTS.set(INPUTS.get() + 1);
}

/// Runs rounds that each begin anew from a seed.
pub fn rounds(what: &str, seeds: &[u64], mut round: impl FnMut(u64)) {
    let setting = |name| env::var(name).ok().map(|text| text.parse().unwrap());
    if let Some(seed) = setting("RATELIMIT_FUZZ_SEED") {
        round(Seed::begin(seed).0);
        return;
    }
    let begun = Instant::now();
    let seconds = setting("RATELIMIT_FUZZ_SECONDS");
    let first = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() << 20;
    let clock: Box<dyn Iterator<Item = u64>> = match seconds {
        Some(_) => Box::new(first..),
        None => Box::new(seeds.iter().copied()),
    };
    let (mut tried, mut last) = (0, first);
    for seed in clock {
        if seconds.is_some_and(|seconds| begun.elapsed() > Duration::from_secs(seconds)) {
            break;
        }
        last = seed;
        round(Seed::begin(seed).0);
        tried += INPUTS.get();
    }
    let took = begun.elapsed();
    let a_second = u128::try_from(tried).unwrap() * 1000 / took.as_millis().max(1);
    println!("{what}: {tried} inputs in {took:.1?}, {a_second} a second, the last seed was {last}");
}

/// The seed of a round, which is printed if the round fails.
struct Seed(u64);

impl Seed {
    fn begin(seed: u64) -> Seed {
        INPUTS.set(0);
        Seed(seed)
    }
}

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("It was input {}; RATELIMIT_FUZZ_SEED={} tries the round again", INPUTS.get(), self.0);
        }
    }
}

/// Bytes that were sound, and are so no more: bits, bytes and words changed, cut, spliced with others, drawn out.
pub fn garble(bytes: &mut Vec<u8>, others: &[Vec<u8>], dice: &mut Dice) {
    for _ in 0..=dice.below(3) {
        let length = bytes.len();
        let place = dice.index(length + 1);
        match dice.below(10) {
            0 | 1 if place < length => bytes[place] ^= 1 << dice.below(8),
            2 | 3 if place < length => bytes[place] = dice.byte(),
            // A word of eight bytes: lengths, instants and counts are such.
            4 | 5 if place + 8 <= length => {
                bytes[place..place + 8].copy_from_slice(&word(dice).to_le_bytes());
            }
            6 => bytes.truncate(place),
            7 => {
                let more = dice.index(40);
                bytes.splice(place..place, dice.bytes(more));
            }
            8 if !others.is_empty() => {
                let other = &others[dice.index(others.len())];
                bytes.truncate(place);
                bytes.extend_from_slice(&other[dice.index(other.len() + 1)..]);
            }
            9 => {
                // A piece of its own, once more.
                let piece = bytes[place..(place + dice.index(60)).min(length)].to_vec();
                bytes.splice(place..place, piece);
            }
            _ => {}
        }
    }
}

fn word(dice: &mut Dice) -> u64 {
    let edges = [0, 1, 2, 64, 65, 1 << 32, (1 << 53) - 1, 1 << 53, 1 << 60, 1 << 63, u64::MAX, u64::MAX - 1];
    match dice.below(3) {
        0 => edges[dice.index(edges.len())],
        1 => dice.below(300),
        _ => dice.any() >> dice.below(64),
    }
}

/// A call as redis-cli takes it. A very long one is put into a file instead.
pub fn typed<W: AsRef<[u8]>>(words: &[W]) -> String {
    let quoted = |word: &W| {
        let escaped = |byte: &u8| match byte {
            b'"' | b'\\' => format!("\\{}", char::from(*byte)),
            b' '..=b'~' => char::from(*byte).to_string(),
            _ => format!("\\x{byte:02x}"),
        };
        let plain = !word.as_ref().is_empty() && word.as_ref().iter().all(u8::is_ascii_alphanumeric);
        let text: String = word.as_ref().iter().map(escaped).collect();
        if plain { text } else { format!("\"{text}\"") }
    };
    let line = words.iter().map(quoted).collect::<Vec<_>>().join(" ");
    if line.len() < 20_000 {
        return line;
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!(
        "long-call-{}-{:?}",
        std::process::id(),
        thread::current().id()
    ));
    fs::write(&file, &line).unwrap();
    format!("(in {}) {}...", file.display(), &line[..1000])
}

/// A server that may take half a gigabyte of address space and no more, and whose dumps do not depend on compression.
pub fn confined(args: &[&str]) -> Server {
    let args = [&["--rdbcompression", "no"], args].concat();
    Server::try_start_under(&["prlimit", "--as=536870912"], Some(&module()), &[], &args)
        .unwrap_or_else(|log| panic!("not started:\n{log}"))
}
