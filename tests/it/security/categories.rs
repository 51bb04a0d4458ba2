//! ACL categories: the one of the module, those of the server, and the commands that each of them grants. (`access_control.rs` has
//! users of them.)

use redis::Connection;

use crate::support::{Server, command_names, older, skipped, sorted_elements, text};

#[test]
fn commands_are_in_the_category_of_the_module_and_in_those_of_what_they_do() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let ours = command_names(con);
    if older(con, [7, 2], "categories for modules' commands") {
        return;
    }
    for (category, flag) in [("read", "readonly"), ("write", "write"), ("fast", "fast")] {
        let mut flagged = ours.clone();
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
    for (rules, may, may_not) in [
        ("+@read", ["RL.PEEK key GCRA 9 1 1h", "RL.INFO key"], ["RL.GCRA key 9 1 1h", "RL.RELEASE key id"]),
        (
            "+@write -@dangerous",
            ["RL.GCRA key 9 1 1h", "RL.RELEASE key id"],
            ["RL.PEEK key GCRA 9 1 1h", "RL.APPLY key payload"],
        ),
    ] {
        text(con, &format!("ACL SETUSER user on nopass resetkeys ~* nocommands {rules}"));
        for (lines, expected) in [(may, true), (may_not, false)] {
            for line in lines {
                let told = text(con, &format!("ACL DRYRUN user {line}"));
                assert_eq!(told == "OK", expected, "{rules}: {line}: {told}");
            }
        }
    }

    if older(con, [7, 4], "categories that modules add") {
        return;
    }
    assert_eq!(in_category(con, "ratelimit"), ours);
    // Valkey 8.0 leaves all modules out of this list, though their commands are in the category.
    let listed = text(con, "ACL CAT ratelimit");
    if listed == "[]" {
        return skipped(con, "modules' commands in ACL CAT");
    }
    let listed = sorted_elements(&listed).into_iter().filter(|name| !name.contains('|'));
    assert_eq!(listed.collect::<Vec<_>>(), ours);
}

/// Those of our commands that are in the category, in order.
fn in_category(con: &mut Connection, category: &str) -> Vec<String> {
    let ours = command_names(con);
    let mut all = sorted_elements(&text(con, &format!("COMMAND LIST FILTERBY ACLCAT {category}")));
    all.retain(|name| ours.contains(name));
    all
}
