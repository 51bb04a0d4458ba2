//! ACL categories: the one of the module, those of the server, and the commands that each of them grants.

use redis::Connection;

use crate::support::{Server, command_names, error, ints, older, skipped, sorted_elements, text};

#[test]
fn the_category_ratelimit_is_all_of_our_commands_and_grants_them() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    if older(con, [7, 4], "categories that modules add") {
        return;
    }
    assert_eq!(in_category(con, "ratelimit"), command_names(con));

    // As the README has it.
    text(con, "ACL SETUSER app on nopass +@ratelimit -@dangerous ~limit:*");
    let app = &mut server.connection();
    text(app, "AUTH app any");
    assert_eq!(ints(app, "RL.GCRA limit:a 9 1 1h"), [0, 10, 9, 0, 3_600_000]);
    assert_eq!(ints(app, "RL.PEEK limit:a GCRA 9 1 1h")[..3], [0, 10, 9]);
    for line in ["GET limit:a", "RL.GCRA other 9 1 1h", "RL.APPLY limit:a payload"] {
        assert!(error(app, line).starts_with("NOPERM"), "{line}");
    }
}

#[test]
fn acl_cat_lists_our_commands() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    if older(con, [7, 4], "categories that modules add") {
        return;
    }
    let (ours, listed) = (command_names(con), text(con, "ACL CAT ratelimit"));
    // Valkey 8.0 leaves all modules out of this list, though their commands are in the category.
    if listed == "[]" && in_category(con, "ratelimit") == ours {
        return skipped(con, "modules' commands in ACL CAT");
    }
    let listed = sorted_elements(&listed).into_iter().filter(|name| !name.contains('|'));
    assert_eq!(listed.collect::<Vec<_>>(), ours);
}

#[test]
fn commands_are_in_the_categories_of_what_they_do() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    if older(con, [7, 2], "categories for modules' commands") {
        return;
    }
    for (category, flag) in [("read", "readonly"), ("write", "write"), ("fast", "fast")] {
        let mut flagged = command_names(con);
        flagged.retain(|name| {
            let described = text(con, &format!("COMMAND INFO {name}"));
            let flags = described.split(['[', ']']).nth(3).unwrap();
            flags.split(", ").any(|word| word == flag)
        });
        assert!(flagged.len() > 3, "{flagged:?}");
        assert_eq!(in_category(con, category), flagged, "@{category}");
    }
    assert_eq!(in_category(con, "dangerous"), ["rl.apply", "rl.policy", "rl.top"]);
    assert_eq!(in_category(con, "admin"), ["rl.policy", "rl.top"]);

    text(con, "ACL SETUSER reader on nopass +@read ~*");
    text(con, "ACL SETUSER writer on nopass +@write -@dangerous ~*");
    let (reader, writer) = (&mut server.connection(), &mut server.connection());
    text(reader, "AUTH reader any");
    text(writer, "AUTH writer any");
    assert_eq!(ints(writer, "RL.GCRA key 9 1 1h")[0], 0);
    assert_eq!(ints(reader, "RL.PEEK key GCRA 9 1 1h")[0], 0);
    for line in ["RL.GCRA key 9 1 1h", "RL.RELEASE key id", "RL.APPLY key payload"] {
        assert!(error(reader, line).starts_with("NOPERM"), "{line}");
    }
    for line in ["RL.PEEK key GCRA 9 1 1h", "RL.INFO key", "RL.APPLY key payload", "RL.POLICY LIST"] {
        assert!(error(writer, line).starts_with("NOPERM"), "{line}");
    }
}

/// Those of our commands that are in the category, in order.
fn in_category(con: &mut Connection, category: &str) -> Vec<String> {
    let ours = command_names(con);
    let mut all = sorted_elements(&text(con, &format!("COMMAND LIST FILTERBY ACLCAT {category}")));
    all.retain(|name| ours.contains(name));
    all
}
