//! Writes the seeds of the corpus that are not found by chance: calls of each form, lives of each limiter, states and
//! changes of each kind. `cargo run --example seeds` in `fuzz/`; the same files each time.

use std::fs;
use std::path::Path;

use ratelimit_fuzz::seeds::{calls, lives, states};

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let texts =
        calls().into_iter().enumerate().map(|(i, line)| (format!("call-{i:02}"), line.as_bytes().to_vec()));
    for (target, seeds) in [("words", texts.collect()), ("history", lives()), ("decode", states())] {
        let folder = corpus.join(target);
        fs::create_dir_all(&folder)?;
        for (name, bytes) in seeds {
            fs::write(folder.join(name), bytes)?;
        }
    }
    Ok(())
}
