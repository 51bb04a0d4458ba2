//! A server that can be killed with all that it forked, and whose disk can fill up or fail.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use redis::Connection;

use crate::support::{Server, info, module};

/// A server that can be killed at once with all that it forked, and whose disk can fill up or fail. What it has written
/// outlives it, as the machine goes on: a kill shows that it writes before it answers, not that the disk has it.
pub struct Machine {
    pub server: Server,
}

impl Machine {
    /// In a group of its own, so that what it forks dies with it. A file that becomes too large is an error, like a
    /// full disk, and no signal.
    pub fn start(args: &[&str]) -> Machine {
        let preload = format!("LD_PRELOAD={}", brittle_fsync().display());
        let launcher = ["setsid", "env", &preload, "sh", "-c", "trap '' XFSZ; exec \"$0\" \"$@\""];
        let server = Server::try_start_under(&launcher, Some(&module()), &[], args);
        Machine { server: server.unwrap_or_else(|log| panic!("the server did not start:\n{log}")) }
    }

    pub fn kill(&self) {
        let group = -i32::try_from(self.server.pid()).unwrap();
        // SAFETY: a bare system call. The group is the server's until a call waits for its end.
        unsafe { libc::kill(group, libc::SIGKILL) };
    }

    /// How many bytes of a file.
    pub fn may_write(&self, bytes: &str) {
        let args = [format!("--pid={}", self.server.pid()), format!("--fsize={bytes}:")];
        assert!(Command::new("prlimit").args(args).status().unwrap().success());
    }

    pub fn break_fsync(&self, broken: bool) {
        let switch = self.server.dir().join("broken");
        if broken { fs::write(switch, "") } else { fs::remove_file(switch) }.unwrap();
    }

    pub fn aof_size(&self) -> u64 {
        size(&self.server.dir().join("appendonlydir"), ".incr.aof").expect("its file")
    }

    /// A server that finds what this one has left.
    pub fn successor(&self, args: &[&str]) -> Server {
        Server::start(&[args, &["--dir", self.server.dir().to_str().unwrap()]].concat())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A library with an `fsync` that fails as long as there is a file `broken`. What links Rust compiles C.
fn brittle_fsync() -> &'static Path {
    static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let own = folder.join(format!("fsync-{}", std::process::id()));
        let source = own.with_extension("c");
        fs::write(&source, FSYNC).unwrap();
        let cc = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&own, &source]).status();
        assert!(cc.unwrap().success());
        fs::remove_file(source).unwrap();
        // At once, and for good: the servers of another run may be using it.
        let library = folder.join("fsync.so");
        fs::rename(own, &library).unwrap();
        library
    });
    &LIBRARY
}

/// Redis calls it by this name.
const FSYNC: &str = r#"
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>
int fdatasync(int file) {
    if (access("broken", F_OK)) return syscall(SYS_fdatasync, file);
    errno = EIO;
    return -1;
}
"#;

/// Of the file with that in its name, if there is one.
pub fn size(dir: &Path, part: &str) -> Option<u64> {
    let mut files = fs::read_dir(dir).unwrap().map(|file| file.unwrap());
    let file = files.find(|file| file.file_name().to_string_lossy().contains(part))?;
    Some(file.metadata().ok()?.len())
}

pub fn persistence(con: &mut Connection, field: &str) -> String {
    info(con, "persistence", field).unwrap()
}
