//! Marks the examples that can be tried, in the pages whose files are the arguments.

use std::{env, fs, io};

use ratelimit_demo::example::mark;

fn main() -> io::Result<()> {
    env::args().skip(1).try_for_each(|file| fs::write(&file, mark(&fs::read_to_string(&file)?)))
}
