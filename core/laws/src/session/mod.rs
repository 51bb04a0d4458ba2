//! Sessions: calls and their replies as text, in `tests/sessions/`. Each runs on a node in memory, and once on a server
//! (`tests/it/sessions.rs`).
//!
//! ```text
//! ## What the passage shows                      a fresh node, and the settings are the defaults
//! # A remark.
//! RL.GCRA k 9 10 1s COST 3 @1.5s => [0, 10, 7, 0, 300]
//! RL.GCRA k 9 10 => ERR wrong number of arguments for 'rl.gcra' command
//! RL.PEEK k GCRA 9 10 1s @2s == RL.GCRA k 9 10 1s COST 0 @2s        both are called, and their replies are equal
//! ```
//!
//! `@1.5s` stands for `AT` and the instant 1.5 s after [`T0`](crate::T0). `""` is an empty word, `{x*300}` is `x` 300 times, and `\xff` is a byte.
//! In a reply `...` stands for any text. What replies an error, and what only looks (`RL.PEEK`, `RL.EXPLAIN`, `RL.INFO`, `COST 0`
//! and their like), must change no key and send nothing to copies: that is checked without a word. A call that says so of some of
//! its limits only, and charges others, has it in small letters: `cost 0`.
//!
//! ```text
//! let WINDOWS = FIXEDWINDOW 5 1m | SLIDINGLOG 5 1m      in the whole file
//! each W = WINDOWS                       the passage runs with each for {W}
//! each W RESET = GCRA 9 10 1s ; 300 | FIXEDWINDOW 9 1s ; 1000       several names, with parts in the same order
//! set max-leases 10                      a setting, until the end of the passage
//! same a b                               the keys hold the same bytes, or are both missing
//! apart a b                              they do not hold the same bytes
//! expires a 3s                           the key expires 3 s from now, or `never`: on a node in memory, whose clock stands still
//! count waiting 1                        a number of `INFO ratelimit`, since the passage began
//! caller: RL.CONCURRENT k 1 1m id BLOCK 1m      the caller must wait
//! caller => [0, 1, 0, 0, 60000]          its wait has ended, and this is its reply
//! caller hangs up
//! pass 3s                                both clocks go on, which only a node in memory can do: such a passage runs there only
//! ```
//!
//! The lines that follow a line name all callers whose wait it has ended.

mod line;
mod memory;
mod parse;
mod run;
mod setting;

use std::fs;
use std::path::{Path, PathBuf};

pub use line::Session;
pub use memory::InMemory;
pub use run::{Node, run};
pub use setting::set;

/// Runs each session of the files of a folder. Returns each line that differs, with its file.
pub fn run_all(folder: &Path, mut run: impl FnMut(&Session) -> Vec<String>) -> Vec<String> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let of_file = |file: &PathBuf| -> Vec<String> {
        let differs = sessions(file).into_iter().flat_map(|session| run(&session));
        differs.map(|why| format!("{}: {why}", file.display())).collect()
    };
    files.iter().flat_map(of_file).collect()
}

/// The sessions of a file. Lines that cannot be read panic.
#[allow(clippy::panic, reason = "a test that cannot go on has failed")]
pub fn sessions(file: &Path) -> Vec<Session> {
    let text = fs::read_to_string(file).expect("a file of sessions");
    parse::file(&text).unwrap_or_else(|why| panic!("{}: {why}", file.display()))
}
