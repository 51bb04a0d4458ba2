//! The fuzz targets of the core in short: on the committed corpus, and on inputs from a fixed seed, most of them
//! mutations of the corpus.
//!
//! `make fuzz` runs them for longer, guided by coverage.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use ratelimit_fuzz::{decode, history, seeds, words};

use crate::support::dice::Dice;

type Check = fn(&[u8]);

#[test]
fn no_call_breaks_the_parser_and_what_it_accepts_is_within_its_ranges() {
    fuzz("words", words::check, 20_000);
}

#[test]
fn bytes_are_refused_or_are_a_state_that_can_be_used() {
    fuzz("decode", decode::check, 10_000);
}

#[test]
fn every_history_obeys_the_laws_and_its_model() {
    fuzz("history", history::check, 600);
}

#[test]
fn the_corpus_has_the_seeds_of_every_form() {
    for (target, seeds) in seeds::seeds() {
        for (name, bytes) in seeds {
            let file = folder(target).join(name);
            let committed = fs::read(&file).unwrap_or_default();
            assert!(committed == bytes, "{}: `cargo run --example seeds` in fuzz/", file.display());
        }
    }
}

/// Checks the corpus of a target, and this many inputs more.
fn fuzz(target: &str, check: Check, inputs: usize) {
    let mut files: Vec<_> = fs::read_dir(folder(target)).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let corpus: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    for (file, bytes) in files.iter().zip(&corpus) {
        run(check, bytes, &file.display().to_string());
    }
    let mut dice = Dice::new(0x9e37_79b9_7f4a_7c15);
    for number in 0..inputs {
        run(check, &input(&mut dice, &corpus), &format!("input {number}"));
    }
}

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target)
}

fn run(check: Check, bytes: &[u8], name: &str) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(bytes))) {
        eprintln!("{name}: {}", bytes.escape_ascii());
        resume_unwind(panic);
    }
}

/// A file of the corpus with a few bytes changed, inserted or removed, or with the end of another file; one in ten is
/// noise.
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
