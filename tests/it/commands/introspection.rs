//! What the module tells about itself: `COMMAND`, `INFO`, `RL.INFO`, `RL.HELP`.

use ratelimit_language::help::Subcommand;
use ratelimit_language::syntax::{Kind, Part};
use ratelimit_language::{KeyUse, Keys};
use redis::Value;

use crate::docs::reference::catalog::flags;
use crate::support::fuzz::grammar::{commands, elements, field, fields};
use crate::support::{Server, call, call_bytes, command_names, error, error_line, info, ints, simple, text};

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
            let start = format!("[[{name}, {}, [{flags}], {first}, {last}, {step}, ", sub.arity());
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
    ] {
        assert_eq!(text(con, &format!("COMMAND GETKEYS {line}")), keys, "{line}");
    }
}

#[test]
fn help_lists_the_commands_and_explains_one() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let help = text(con, "RL.HELP");
    for line in [
        "RL.GCRA key max_burst count period [COST cost] [AT at] [PARTIAL | FORCE | RESERVE [MAXWAIT maxwait]] [HOLD id ttl]",
        "RL.APPLY key payload [key payload ...]",
        "RL.PEEK key limiter parameter [parameter ...] [COST cost] [AT at]",
        "RL.SETTLE key id limiter parameter [parameter ...] COST cost [AT at]",
        "RL.MULTISETTLE numkeys key [key ...] id [COST cost] [AT at] LIMIT limiter parameter ",
    ] {
        assert!(help.contains(line), "{line}: {help}");
    }
    assert_eq!(text(con, "RL.HELP rL.GcRa"), text(con, "RL.HELP gcra"));
    for unknown in [&b""[..], b"RL.", b"\0", b"gcra\n", &[b'x'; 10_000]] {
        let told = error_line(&call_bytes(con, &[b"RL.HELP", unknown]).unwrap_err());
        assert!(
            told.starts_with("ERR syntax error near '") && told.ends_with("': RL.HELP lists the commands"),
            "{told}"
        );
    }
    let gcra = text(con, "RL.HELP gcra");
    for line in [
        "RL.GCRA key max_burst count period [COST cost] [AT at] [PARTIAL | FORCE | RESERVE [MAXWAIT maxwait]] [HOLD id ttl]",
        "    max_burst  how many requests may come at once after the first (0 to 9007199254740991)",
        "    period     the length of a period (duration, 1ms to 36500d)",
        "    A duration has a unit: ms, s, m, h, d or w, as in 90s and 1d.",
        "    RL.GCRA user:1 14 30 60s",
    ] {
        assert!(gcra.contains(line), "{line}: {gcra}");
    }
}

#[test]
fn info_counts_requests_by_limiter_and_errors() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (line, times) in [
        ("RL.TOKENBUCKET tb 2 1 1h", 5),
        ("RL.TOKENBUCKET tb2 2 1 1h BATCH", 3),
        ("RL.GCRA gcra 0 1 1h", 4),
        ("RL.SLIDINGWINDOW sw 1 1000d", 2),
        ("RL.SLIDINGWINDOW swp 1 1000d PRECISION 1000d", 2),
        ("RL.CONCURRENT lease 1 1h a", 2),
        ("RL.CONCURRENT lease 1 1h b", 1),
        ("RL.CALENDAR page 1 YEAR", 2),
        // The strike that bans is refused, and so is what comes during the ban.
        ("RL.PENALTY penalty 2 1h 1h", 4),
        ("RL.PENALTY penalty 2 1h 1h COST 0", 2),
        ("RL.SKETCH sketch a 1 1 1h", 3),
        ("RL.SKETCH sketch b 1 1 1h", 2),
        ("RL.SKETCH sketch b 1 1 1h COST 0", 2),
        // What is held is a request, once. A settlement is none.
        ("RL.FIXEDWINDOW held 1 1h HOLD a 1h", 3),
        ("RL.FIXEDWINDOW held 1 1h HOLD b 1h", 2),
        ("RL.SETTLE held a FIXEDWINDOW 1 1h COST 5", 2),
        // Looks and probes are no requests.
        ("RL.GCRA gcra 0 1 1h COST 0", 3),
        ("RL.PEEK gcra GCRA 0 1 1h", 3),
    ] {
        for _ in 0..times {
            ints(con, line);
        }
    }
    for line in ["RL.GCRA key 1 1 0", "RL.GCRA sketch 1 1 1s", "RL.PEEK gcra NOSUCH 1"] {
        error(con, line);
    }
    for (field, count) in [
        ("tokenbucket_admitted", "4"),
        ("tokenbucket_refused", "4"),
        ("gcra_admitted", "1"),
        ("gcra_refused", "3"),
        ("slidingwindow_admitted", "2"),
        ("slidingwindow_refused", "2"),
        ("concurrent_admitted", "2"),
        ("concurrent_refused", "1"),
        ("calendar_admitted", "1"),
        ("calendar_refused", "1"),
        ("penalty_admitted", "1"),
        ("penalty_refused", "3"),
        ("sketch_admitted", "4"),
        ("sketch_refused", "1"),
        ("fixedwindow_admitted", "1"),
        ("fixedwindow_refused", "2"),
        ("errors", "3"),
        ("version", env!("CARGO_PKG_VERSION")),
    ] {
        let told = info(con, "ratelimit", &format!("ratelimit_{field}"));
        assert_eq!(told.as_deref(), Some(count), "{field}");
    }
    let build = info(con, "ratelimit", "ratelimit_build").unwrap();
    assert!(!build.is_empty());
}

#[test]
fn a_key_tells_what_it_holds() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let at = 1_700_002_800_000_000u64;
    for (make, told) in [
        (
            "RL.TOKENBUCKET a 10 1 1m COST 4",
            "limiter, TOKENBUCKET, mode, continuous, length_ms, 60000, tokens, 6, ",
        ),
        (
            "RL.TOKENBUCKET b 10 1 1m BATCH COST 4",
            "limiter, TOKENBUCKET, mode, batch, length_ms, 60000, tokens, 6, period_start_us, 1700002800000000, ",
        ),
        (
            "RL.GCRA c 9 1 1m COST 4",
            "limiter, GCRA, mode, plain, length_ms, 60000, theoretical_arrival_us, 1700003040000000, ",
        ),
        (
            "RL.SLIDINGWINDOW d 10 1m COST 4",
            "limiter, SLIDINGWINDOW, mode, weighted, length_ms, 60000, current, 4, previous, 0, ",
        ),
        (
            "RL.SLIDINGWINDOW e 10 1m PRECISION 1s COST 4",
            "limiter, SLIDINGWINDOW, mode, precision, length_ms, 60000, precision_ms, 1000, buckets, 1, count, 4, ",
        ),
        (
            "RL.CONCURRENT f 10 1m x COST 4",
            "limiter, CONCURRENT, mode, leases, stored_leases, 1, stored_cost, 4, last_deadline_us, 1700002860000000, ",
        ),
        (
            "RL.CALENDAR h 10 DAY TZ Europe/Lisbon COST 4",
            "limiter, CALENDAR, mode, calendar, length_ms, 86400000, count, 4, window_start_us, 1699920000000000, window_end_us, 1700006400000000, ",
        ),
        (
            "RL.SKETCH j x 9 1 1m COST 4 WIDTH 4 DEPTH 2",
            "limiter, SKETCH, mode, cells, width, 4, depth, 2, ahead, 0, all_ahead, 0, ",
        ),
        (
            "RL.PENALTY i 10 1m 5s COST 4",
            "limiter, PENALTY, mode, strikes, length_ms, 60000, strikes, 4, window_start_us, 1700002800000000, level, 0, ban_end_us, 0, ",
        ),
        (
            "RL.SLIDINGLOG g 10 1m COST 4",
            "limiter, SLIDINGLOG, mode, log, length_ms, 60000, stored_entries, 1, stored_cost, 4, oldest_us, 1700002800000000, newest_us, 1700002800000000, last_entry_us, 1700002800000000, ",
        ),
    ] {
        ints(con, &format!("{make} AT {at}"));
        let key = make.split(' ').nth(1).unwrap();
        let expires = text(con, &format!("PEXPIRETIME {key}"));
        let expected = format!("[{told}last_charge_us, {at}, expires_at_ms, {expires}, waiting, 0]");
        assert_eq!(text(con, &format!("RL.INFO {key}")), expected);
    }
    assert_eq!(text(con, "RL.INFO missing"), "(nil)");
    text(con, "PERSIST a");
    assert!(text(con, "RL.INFO a").ends_with("expires_at_ms, -1, waiting, 0]"));
    text(con, "SET string x");
    assert!(error(con, "RL.INFO string").starts_with("WRONGTYPE"));
}
