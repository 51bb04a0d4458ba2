//! The files of the reference.

use std::fs;
use std::path::{Path, PathBuf};

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn folder() -> PathBuf {
    root().join("docs/commands")
}

pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Whether the parts are written, and not compared.
pub fn is_written() -> bool {
    std::env::var("RATELIMIT_REFERENCE").is_ok_and(|word| word == "write")
}
