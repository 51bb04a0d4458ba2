//! Which mutant is on: the one that `MUTANT` names. Without it, none is, and those that could be are written into the file
//! `REACHED`. `tools/mutants` compiles this into ratelimit-core.

extern crate std;

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::fs::File;
use std::io::Write;

#[inline(always)]
pub fn on(mutant: usize) -> bool {
    let on = ON.load(Relaxed);
    if on < NONE { on == mutant } else { look(mutant) }
}

#[cold]
fn look(mutant: usize) -> bool {
    if let Some(on) = std::env::var("MUTANT").ok().and_then(|on| on.parse().ok()) {
        ON.store(on, Relaxed);
        return on == mutant;
    }
    if let Some(path) = std::env::var_os("REACHED").filter(|_| !REACHED[mutant].swap(true, Relaxed)) {
        let mut file = File::options().append(true).create(true).open(path).unwrap();
        std::writeln!(file, "{mutant}").unwrap();
    }
    false
}

static ON: AtomicUsize = AtomicUsize::new(NONE);
static REACHED: [AtomicBool; 10_000] = [const { AtomicBool::new(false) }; 10_000];
const NONE: usize = usize::MAX;
