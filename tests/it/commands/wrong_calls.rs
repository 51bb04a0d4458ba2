//! Wrong calls and their errors are sessions, in `tests/sessions/wrong_calls.txt`. Here, that they forget no argument.

use std::path::Path;

use ratelimit_language::CATALOG;
use ratelimit_laws::session::sessions;

#[test]
fn sessions_get_each_parameter_and_each_option_of_a_limiter_wrong() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions/wrong_calls.txt");
    let sessions = sessions(&file);
    for row in &CATALOG {
        for argument in row.arguments().iter().skip(1) {
            // A title ends with the values of its passage: here a limiter, and the argument that the errors name.
            let names_both = sessions.iter().any(|session| {
                let values: Vec<&str> = session.title.split([',', '(', ')']).map(str::trim).collect();
                [row.name(), argument.name].iter().all(|name| values.contains(name))
            });
            assert!(names_both, "no session gets {} of {} wrong", argument.name, row.name());
        }
    }
}
