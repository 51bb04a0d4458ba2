//! The sessions of `tests/sessions/` on a node in memory.

use std::path::Path;

use ratelimit_laws::session::{InMemory, files, run, sessions};

#[test]
fn each_session_replies_what_stands_there() {
    let mut differs = Vec::new();
    for file in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sessions")) {
        for session in sessions(&file) {
            let name = file.file_name().unwrap_or_default().display();
            differs
                .extend(run(&session, &mut InMemory::default()).iter().map(|why| format!("{name}: {why}\n")));
        }
    }
    assert!(differs.is_empty(), "{}", differs.concat());
}
