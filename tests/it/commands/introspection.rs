//! What `COMMAND` and `INFO` show of the module. What `RL.INFO` and `RL.HELP` show is in `tests/sessions/shown.txt`.

use ratelimit_language::help::Subcommand;
use ratelimit_language::syntax::{Kind, Part};
use ratelimit_language::{KeyUse, Keys};
use redis::Value;

use crate::docs::reference::catalog::flags;
use crate::support::fuzz::grammar::{commands, elements, field, fields};
use crate::support::{Server, call, command_names, error, info, simple, text};

/// All others that want to know a command, such as the pages and the packages, ask the language.
#[test]
fn the_server_says_of_each_command_what_the_language_says() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let commands = commands();
    let names: Vec<String> = commands.iter().map(|command| command.name.to_lowercase()).collect();
    assert_eq!(command_names(con), names);
    for (name, command) in names.iter().zip(&commands) {
        let said = command.documentation;
        let subcommands: Vec<Subcommand> = said.subcommands().collect();
        let arity = if subcommands.is_empty() { said.arity() } else { -2 };
        let ([first, last, step], flags) = (said.keys.places(), flags(said.flags).join(", "));
        let info = text(con, &format!("COMMAND INFO {name}"));
        let start = format!("[[{name}, {arity}, [{flags}], {first}, {last}, {step}, ");
        assert!(info.starts_with(&start), "{start}: {info}");
        assert_eq!(info.contains("[nondeterministic_output]"), said.varies, "{info}");
        let keys = key_specification(said.keys);
        assert!(info.contains(&keys), "{keys}: {info}");

        let docs = fields(call(con, &["COMMAND", "DOCS", name]).unwrap());
        let docs = fields(field(&docs, name).expect("one command"));
        for (name, expected) in [
            ("summary", said.summary),
            ("since", "0.1.0"),
            ("complexity", said.complexity),
            ("module", "ratelimit"),
        ] {
            assert_eq!(field(&docs, name).map(|text| simple(&text)).as_deref(), Some(expected));
        }
        let arguments = field(&docs, "arguments").map_or("[]".into(), described);
        let own = if subcommands.is_empty() { &command.arguments[..] } else { &[] };
        assert_eq!(arguments, all_shown(own), "{name}");
        let docs = field(&docs, "subcommands").map(fields).unwrap_or_default();
        assert_eq!(docs.len(), subcommands.len());
        for sub in subcommands {
            let name = format!("{name}|{}", sub.name.to_lowercase());
            let info = text(con, &format!("COMMAND INFO {name}"));
            let flags = crate::docs::reference::catalog::flags(sub.flags).join(", ");
            let start = format!("[[{name}, {}, [{flags}], {first}, {last}, {step}, ", Subcommand::ARITY);
            assert!(info.starts_with(&start), "{start}: {info}");
            let docs = fields(field(&docs, &name).expect("a subcommand"));
            let arguments = field(&docs, "arguments").map_or("[]".into(), described);
            assert_eq!(arguments, all_shown(&sub.parts.unwrap_or_default()), "{name}");
        }
    }
}

/// The start of the first key specification in `COMMAND INFO`.
fn key_specification(keys: Keys) -> String {
    let flags = |key_use| match key_use {
        KeyUse::Read => "RO, access",
        KeyUse::Update => "RW, access, update",
        KeyUse::Delete => "RW, delete",
        KeyUse::Insert => "RW, insert",
    };
    let (flags, search) = match keys {
        Keys::None => return String::new(),
        Keys::First(key_use) | Keys::FirstAndBehind(key_use) => (flags(key_use), "range"),
        Keys::Counted(key_use) => (flags(key_use), "keynum"),
        Keys::Pairs => ("OW, update", "range"),
        Keys::OfInner(key_use) => {
            return format!("[flags, [{}, incomplete], begin_search, [type, unknown,", flags(key_use));
        }
    };
    format!("[flags, [{flags}], begin_search, [type, index, spec, [index, 1]], find_keys, [type, {search},")
}

/// Arguments of `COMMAND DOCS`, without the places of keys, and without the names that newer servers tell once more, as texts to
/// display.
fn described(arguments: Value) -> String {
    let shown = elements(arguments).into_iter().map(|argument| {
        let shown = fields(argument).into_iter().filter_map(|(name, value)| match name.as_str() {
            "key_spec_index" | "display_text" => None,
            "arguments" => Some(format!("{name}, {}", described(value))),
            _ => Some(format!("{name}, {}", simple(&value))),
        });
        format!("[{}]", shown.collect::<Vec<_>>().join(", "))
    });
    format!("[{}]", shown.collect::<Vec<_>>().join(", "))
}

/// The same of the language.
fn all_shown(parts: &[Part]) -> String {
    format!("[{}]", parts.iter().map(shown).collect::<Vec<_>>().join(", "))
}

fn shown(part: &Part) -> String {
    let kind = match part.kind {
        Kind::Token => "pure-token",
        Kind::Key => "key",
        Kind::Integer => "integer",
        Kind::Real => "double",
        Kind::Text => "string",
        Kind::All => "block",
        Kind::OneOf => "oneof",
    };
    let flags = [("optional", part.is_optional), ("multiple", part.is_repeated)];
    let flags: Vec<&str> = flags.into_iter().filter(|(_, has)| *has).map(|(flag, _)| flag).collect();
    let fields = [
        ("name", Some(part.name())),
        ("type", Some(kind.into())),
        ("token", part.token.map(String::from)),
        ("summary", part.meaning().map(String::from)),
        ("flags", (!flags.is_empty()).then(|| format!("[{}]", flags.join(", ")))),
        ("arguments", (!part.parts.is_empty()).then(|| all_shown(&part.parts))),
    ];
    let given = fields.into_iter().filter_map(|(name, value)| Some(format!("{name}, {}", value?)));
    format!("[{}]", given.collect::<Vec<_>>().join(", "))
}

#[test]
fn the_server_finds_the_keys_of_a_call() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (line, keys) in [
        ("RL.APPLY a p b q", "[a, b]"),
        ("RL.PEEK a GCRA 1 1 1ms", "[a]"),
        ("RL.SETTLE a b GCRA 1 1 1ms COST 1", "[a]"),
        ("RL.MULTISETTLE 2 a b c COST 1 LIMIT UNIFORM 1ms", "[a, b]"),
        ("RL.MULTI 2 a b LIMIT GCRA 1 1 1s ON 1", "[a, b]"),
        ("RL.MULTIRELEASE 2 a b c", "[a, b]"),
        ("RL.PEEK a SKETCH b 1 1 1h", "[a]"),
    ] {
        assert_eq!(text(con, &format!("COMMAND GETKEYS {line}")), keys, "{line}");
    }
    // A number that cannot be right names none: the error is the command's own, on a cluster too.
    for wrong in ["5", "0", "-1", "x"] {
        error(con, &format!("COMMAND GETKEYS RL.MULTI {wrong} a b LIMIT"));
    }
    let flags = text(con, "COMMAND GETKEYSANDFLAGS RL.MULTIPEEK 1 a LIMIT GCRA 1 1 1s");
    assert_eq!(flags, "[[a, [RO, access]]]");
}

#[test]
fn info_has_the_version_and_the_build() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let version = info(con, "ratelimit", "ratelimit_version");
    assert_eq!(version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
    assert!(!info(con, "ratelimit", "ratelimit_build").unwrap().is_empty());
}
