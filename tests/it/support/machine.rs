//! A server that can be killed with all that it forked, and whose disk can fill up or fail.

use std::fs;
use std::path::Path;
use std::process::Command;

use redis::Connection;

use crate::support::preload::Preload;
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
        let preload = BRITTLE_FSYNC.setting();
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

/// An `fsync` that fails as long as there is a file `broken`.
static BRITTLE_FSYNC: Preload = Preload::new("fsync", FSYNC);

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
