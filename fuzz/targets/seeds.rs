//! Writes the seeds of the corpus: calls of each form, histories of each limiter, states and changes of each kind.
//! `cargo run --example seeds` in `fuzz/`; the same files each time.

use std::fs;
use std::path::Path;

use ratelimit_fuzz::seeds::seeds;

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (target, seeds) in seeds() {
        let folder = corpus.join(target);
        fs::create_dir_all(&folder)?;
        for (name, bytes) in seeds {
            fs::write(folder.join(name), bytes)?;
        }
    }
    Ok(())
}
