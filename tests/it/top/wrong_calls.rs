//! The exact errors.

use super::{ON, entry, refuse, top};
use crate::support::{Server, error};

#[test]
fn the_error_says_what_is_wrong_and_nothing_is_forgotten() {
    let server = Server::start(&ON);
    let con = &mut server.connection();
    refuse(con, "key", 2);
    for word in ["0", "10001", "-1", "x", "1.5", "01", "PREVIOUS"] {
        let expected = format!("ERR COUNT must be an integer from 1 to 10000; got '{word}'");
        assert_eq!(error(con, &format!("RL.TOP COUNT {word}")), expected);
    }
    for (options, expected) in [
        ("COUNT", "ERR syntax error: COUNT needs a value"),
        ("PREVIOUS COUNT", "ERR syntax error: COUNT needs a value"),
        ("COUNT 1 COUNT 1", "ERR syntax error: COUNT is given twice"),
        ("PREVIOUS PREVIOUS", "ERR syntax error: PREVIOUS is given twice"),
        ("RESET RESET", "ERR syntax error: RESET is given twice"),
        ("RESET COUNT 1", "ERR syntax error: RESET and COUNT exclude each other"),
        ("COUNT 1 RESET", "ERR syntax error: RESET and COUNT exclude each other"),
        ("RESET PREVIOUS", "ERR syntax error: RESET and PREVIOUS exclude each other"),
        ("COUNT 1 PREVIOUS RESET", "ERR syntax error: RESET and COUNT exclude each other"),
        ("5", "ERR syntax error near '5'"),
        // `KEYS` is near, but not for this command.
        ("key", "ERR syntax error near 'key'"),
        ("RESET key", "ERR syntax error near 'key'"),
        ("COST 1", "ERR syntax error: COST is not for RL.TOP"),
        ("AT 1700000000000000", "ERR syntax error: AT is not for RL.TOP"),
        ("LIMIT 5", "ERR syntax error: LIMIT is not for RL.TOP"),
    ] {
        assert_eq!(error(con, &format!("RL.TOP {options}")), expected, "{options}");
    }
    assert_eq!(top(con, ""), [entry("key", 0, 2, 0)]);
}
