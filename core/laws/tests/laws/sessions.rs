//! The sessions of `tests/sessions/` on a node in memory.

use std::path::Path;

use ratelimit_laws::session::{InMemory, run, run_all};

#[test]
fn each_session_replies_what_stands_there() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sessions");
    let differs = run_all(&folder, |session| run(session, &mut InMemory::default()));
    assert!(differs.is_empty(), "{}", differs.join("\n"));
}
