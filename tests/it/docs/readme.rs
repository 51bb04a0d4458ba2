//! Everything that the README names exists: commands, targets, settings.

use crate::support::{Server, command_names, text};

#[test]
fn the_readme_names_every_command_with_its_syntax() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let readme = include_str!("../../../README.md");
    let names = command_names(con);
    assert_eq!(names.len(), 37, "{names:?}");
    for name in names {
        let arguments = match name.as_str() {
            "rl.help" | "rl.top" => "",
            "rl.policy" => " SET name",
            name if name.starts_with("rl.multi") => " numkeys key",
            _ => " key",
        };
        let heading = format!("{}{arguments}", name.to_uppercase());
        let shown = readme.lines().any(|line| line.starts_with("### ") && line.contains(&heading));
        assert!(shown, "no heading with {heading}");
    }
}

#[test]
fn the_readmes_two_commands_and_settings_exist() {
    let makefile = include_str!("../../../Makefile");
    for target in ["run", "test", "install", "lint", "help"] {
        assert!(makefile.contains(&format!("\n{target}:")), "make {target}");
    }
    let server = Server::start(&[]);
    for (setting, default) in [
        ("max-leases", 1_000_000),
        ("max-log-entries", 1_000_000),
        ("max-holds", 10_000),
        ("max-sketch-bytes", 8 << 20),
        ("top", 0),
        ("top-window", 60_000),
    ] {
        let told = text(&mut server.connection(), &format!("CONFIG GET ratelimit.{setting}"));
        assert_eq!(told, format!("[ratelimit.{setting}, {default}]"));
        let line = format!("ratelimit.{setting} {default}");
        assert!(include_str!("../../../redis.conf").contains(&line), "redis.conf shows {line}");
    }
}
