//! Libraries that take the place of functions of libc in a server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub struct Preload {
    name: &'static str,
    /// In C, which what links Rust compiles.
    source: &'static str,
    built: OnceLock<PathBuf>,
}

impl Preload {
    pub const fn new(name: &'static str, source: &'static str) -> Preload {
        Preload { name, source, built: OnceLock::new() }
    }

    /// The setting of the environment with which a server loads the library.
    pub fn setting(&self) -> String {
        format!("LD_PRELOAD={}", self.built.get_or_init(|| self.build()).display())
    }

    fn build(&self) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let own = folder.join(format!("{}-{}", self.name, std::process::id()));
        let source = own.with_extension("c");
        fs::write(&source, self.source).unwrap();
        let cc = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&own, &source]).status();
        assert!(cc.unwrap().success());
        fs::remove_file(source).unwrap();
        // At once, and for good: the servers of another run may be using it.
        let library = folder.join(self.name).with_extension("so");
        fs::rename(own, &library).unwrap();
        library
    }
}
