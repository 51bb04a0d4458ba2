//! Who may look: it shows keys whatever the caller's key patterns, so it is for operators.

use redis::Connection;

use super::{ON, entry, refuse, top};
use crate::support::{Server, error, text};

/// A connection of a new user with these rules.
fn user(server: &Server, name: &str, rules: &str) -> Connection {
    let mut con = server.connection();
    text(&mut con, &format!("ACL SETUSER {name} on nopass {rules}"));
    text(&mut con, &format!("AUTH {name} x"));
    con
}

#[test]
fn a_user_who_may_call_it_sees_all_keys() {
    let server = Server::start(&ON);
    let con = &mut server.connection();
    refuse(con, "apple", 1);
    refuse(con, "banana", 2);
    let viewer = &mut user(&server, "viewer", "~a* +rl.top +rl.gcra");
    assert!(error(viewer, "RL.GCRA banana 0 1 1h").starts_with("NOPERM"));
    assert_eq!(top(viewer, ""), [entry("banana", 0, 2, 0), entry("apple", 0, 1, 0)]);
    let without_keys = &mut user(&server, "without-keys", "resetkeys +rl.top");
    assert_eq!(top(without_keys, "COUNT 1"), [entry("banana", 0, 2, 0)]);
    assert_eq!(text(without_keys, "RL.TOP RESET"), "OK");
    assert_eq!(top(con, ""), []);
}

#[test]
fn a_user_who_may_not_call_it_sees_none() {
    let server = Server::start(&ON);
    let con = &mut server.connection();
    refuse(con, "key", 1);
    for rules in ["~* +rl.gcra +rl.info", "~* +@all -rl.top", "~* +@read"] {
        let app = &mut user(&server, "app", rules);
        for line in ["RL.TOP", "RL.TOP PREVIOUS", "RL.TOP RESET"] {
            // Where the server does not know which commands of modules read, no user is granted them by category.
            assert!(error(app, line).starts_with("NOPERM"), "{rules}: {line}");
        }
        text(con, "ACL DELUSER app");
    }
    assert_eq!(top(con, ""), [entry("key", 0, 1, 0)]);
}

#[test]
fn it_is_an_administrators_and_a_dangerous_command() {
    let server = Server::start(&ON);
    let con = &mut server.connection();
    let described = text(con, "COMMAND INFO rl.top");
    assert!(described.starts_with("[[rl.top, -1, [module, admin, stale], 0, 0, 0, "), "{described}");
    // Where the server gives commands of modules their categories, these do the same.
    let known = text(con, "COMMAND INFO rl.gcra").contains("@write");
    for category in ["@admin", "@dangerous"] {
        assert_eq!(described.contains(category), known, "{described}");
        let app = &mut user(&server, "app", &format!("~* +@all -{category}"));
        if known {
            assert!(error(app, "RL.TOP").starts_with("NOPERM"), "{category}");
        } else {
            assert_eq!(top(app, ""), []);
        }
        text(con, "ACL DELUSER app");
    }
}
