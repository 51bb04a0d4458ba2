//! The fuzzer's targets in short: on the committed corpus, and on bytes from a fixed seed, among them mutations of it.
//!
//! `make fuzz` does it for longer, and lets what the code does guide it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

// The library is a cdylib, which no Rust program can be linked against. So the core is compiled into this one, which
// uses a part of it; `harness = false` in Cargo.toml leaves out its unit tests, which are run where they belong.
#[allow(dead_code, unused_imports, clippy::wildcard_imports)]
#[path = "../src/limit/mod.rs"]
mod limit;
#[allow(dead_code, unused_imports)]
#[path = "../src/time.rs"]
mod time;

#[path = "../fuzz/src/bytes.rs"]
mod bytes;
#[path = "../fuzz/src/decode.rs"]
mod decode;
#[allow(dead_code)]
#[path = "it/support/dice.rs"]
mod dice;
#[path = "../fuzz/src/history.rs"]
mod history;
#[path = "../fuzz/src/key.rs"]
mod key;
#[path = "../fuzz/src/laws.rs"]
mod laws;
#[path = "../fuzz/src/lines.rs"]
mod lines;
#[path = "../fuzz/src/oracle.rs"]
mod oracle;
#[path = "../fuzz/src/words.rs"]
mod words;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::{env, fs};

use dice::Dice;

type Check = fn(&[u8]);

/// Each target, and how many inputs it gets beside the corpus.
const TARGETS: [(&str, Check, usize); 3] =
    [("words", words::check, 20_000), ("decode", decode::check, 10_000), ("history", history::check, 600)];

fn main() {
    // As far as a test program without a harness takes part in `cargo test`.
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        return;
    }
    for (target, check, inputs) in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
        let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        let corpus: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
        for (file, bytes) in files.iter().zip(&corpus) {
            run(check, bytes, &file.display().to_string());
        }
        let mut dice = Dice::new(0x9e37_79b9_7f4a_7c15);
        for number in 0..inputs {
            run(check, &input(&mut dice, &corpus), &format!("input {number}"));
        }
        println!("{target}: {} files, {inputs} inputs from a seed", files.len());
    }
}

fn run(check: Check, bytes: &[u8], name: &str) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(bytes))) {
        eprintln!("{name}: {}", bytes.escape_ascii());
        std::panic::resume_unwind(panic);
    }
}

/// A seed of the corpus with a few bytes changed, inserted or removed, or another one's end; seldom plain noise.
fn input(dice: &mut Dice, corpus: &[Vec<u8>]) -> Vec<u8> {
    let noise = |dice: &mut Dice| u8::try_from(dice.below(256)).unwrap();
    if dice.one_in(10) {
        let length = dice.index(100);
        return (0..length).map(|_| noise(dice)).collect();
    }
    let mut bytes = dice.pick(corpus).clone();
    for _ in 0..=dice.below(4) {
        let place = dice.index(bytes.len().max(1));
        match dice.below(5) {
            0 => bytes.insert(place, noise(dice)),
            1 if place < bytes.len() => _ = bytes.remove(place),
            2 => {
                let other = dice.pick(corpus);
                bytes.truncate(place);
                bytes.extend_from_slice(&other[place.min(other.len())..]);
            }
            _ if place < bytes.len() => bytes[place] = noise(dice),
            _ => {}
        }
    }
    bytes
}
