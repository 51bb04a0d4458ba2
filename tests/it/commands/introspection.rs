//! What the module tells about itself: `COMMAND`, `INFO`, `RL.INFO`, `RL.HELP`.

use redis::{Connection, Value};

use crate::support::{Server, call, call_bytes, command_names, error, error_line, info, ints, simple, text};

#[test]
fn the_server_knows_each_commands_arity_flags_and_keys() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (name, arity, flags, key) in [
        ("rl.tokenbucket", -5, "write, denyoom, module, blocking, fast", "RW, access, update"),
        ("rl.gcra", -5, "write, denyoom, module, blocking, fast", "RW, access, update"),
        ("rl.slidingwindow", -4, "write, denyoom, module, blocking", "RW, access, update"),
        ("rl.calendar", -4, "write, denyoom, module, blocking, fast", "RW, access, update"),
        ("rl.penalty", -5, "write, denyoom, module, fast", "RW, access, update"),
        ("rl.concurrent", -5, "write, denyoom, module, blocking", "RW, access, update"),
        ("rl.sketch", -6, "write, denyoom, module", "RW, access, update"),
        ("rl.release", -3, "write, module, fast", "RW, delete"),
        ("rl.renew", -4, "write, module, fast", "RW, access, update"),
        ("rl.settle", -7, "write, module, fast", "RW, access, update"),
        ("rl.ask", -3, "write, denyoom, module, blocking, movablekeys", "RW, access, update"),
        ("rl.askpeek", -3, "readonly, module, movablekeys", "RO, access"),
        ("rl.askrefund", -3, "write, module, fast, movablekeys", "RW, access, update"),
        ("rl.asksettle", -6, "write, module, fast, movablekeys", "RW, access, update"),
        ("rl.peek", -4, "readonly, module", "RO, access"),
        ("rl.info", -2, "readonly, module", "RO, access"),
        ("rl.apply", -3, "write, module", "OW, update"),
    ] {
        let told = text(con, &format!("COMMAND INFO {name}"));
        let keys = if name == "rl.apply" { "1, -1, 2" } else { "1, 1, 1" };
        let start = format!("[[{name}, {arity}, [{flags}], {keys}, ");
        assert!(told.starts_with(&start), "{told}");
        assert!(
            told.contains(&format!("[flags, [{key}], begin_search, [type, index, spec, [index, 1]]")),
            "{told}"
        );
    }
    assert_eq!(
        text(con, "COMMAND GETKEYS RL.APPLY a p b q"),
        "[a, b]",
        "the keys of pairs are found, so a cluster can check them"
    );
    let explain = text(con, "COMMAND INFO rl.explain");
    assert!(explain.starts_with("[[rl.explain, -3, [readonly, module, movablekeys], 0, 0, 0, "), "{explain}");
    assert!(
        explain.contains("[flags, [RO, access, incomplete], begin_search, [type, unknown,"),
        "no key is at a fixed place: {explain}"
    );
    assert_eq!(text(con, "COMMAND GETKEYS RL.PEEK a GCRA 1 1 1ms"), "[a]");
    assert_eq!(text(con, "COMMAND GETKEYS RL.SETTLE a b GCRA 1 1 1ms COST 1"), "[a]");
    assert_eq!(text(con, "COMMAND GETKEYS RL.MULTISETTLE 2 a b c COST 1 LIMIT UNIFORM 1ms"), "[a, b]");
}

#[test]
fn a_command_whose_reply_varies_has_the_tip_for_it() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let steady = ["rl.apply", "rl.help", "rl.lpush", "rl.rpush"];
    for name in command_names(con) {
        let told = text(con, &format!("COMMAND INFO {name}"));
        let varies = told.contains("[nondeterministic_output]");
        assert_eq!(varies, !steady.contains(&name.as_str()), "{told}");
    }
}

#[test]
fn the_server_documents_each_command() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for name in [
        "tokenbucket",
        "gcra",
        "slidingwindow",
        "concurrent",
        "release",
        "renew",
        "peek",
        "settle",
        "info",
        "apply",
    ] {
        let docs = text(con, &format!("COMMAND DOCS rl.{name}"));
        for part in ["summary", "since, 0.1.0", "complexity", "module, ratelimit", "name, key, type, key"] {
            assert!(docs.contains(part), "{part} of {docs}");
        }
    }
    let arguments =
        |con: &mut Connection, command: &str| described(&call(con, &["COMMAND", "DOCS", command]).unwrap());
    let docs = arguments(con, "rl.concurrent");
    for argument in [
        "[name, capacity, type, integer]",
        "[name, ttl, type, string]",
        "[name, id, type, string]",
        "[name, reserved, type, integer, token, RESERVED, flags, [optional]]",
        "[name, critical, type, pure-token, token, CRITICAL, flags, [optional]]",
        "[name, cost, type, integer, token, COST, flags, [optional]]",
        "[name, at, type, integer, token, AT, flags, [optional]]",
    ] {
        assert!(docs.contains(argument), "{argument} of {docs}");
    }
    let docs = arguments(con, "rl.shed");
    let tier = "[name, tier, type, block, flags, [optional], arguments, [[name, tier, type, integer, token, TIER], \
                [name, tiers, type, integer, token, OF]]]";
    assert!(docs.contains(tier), "{docs}");
    let docs = arguments(con, "rl.uniform");
    let manner = "[name, force, type, oneof, flags, [optional], arguments, [[name, force, type, pure-token, token, FORCE], \
                  [name, reserve, type, block, arguments, [[name, reserve, type, pure-token, token, RESERVE], \
                  [name, maxwait, type, string, token, MAXWAIT, flags, [optional]]]]]]";
    assert!(docs.contains(manner), "{docs}");
    let hold = "[name, id, type, block, flags, [optional], arguments, [[name, id, type, string, token, HOLD], \
                [name, ttl, type, string]]]";
    for command in ["rl.tokenbucket", "rl.slidinglog", "rl.calendar", "rl.multi"] {
        let docs = arguments(con, command);
        assert!(docs.contains(hold), "{docs}");
    }
    let docs = arguments(con, "rl.settle");
    assert!(docs.contains("[name, id, type, string], [name, limiter, type, string], "), "{docs}");
    assert!(docs.contains("[name, cost, type, integer, token, COST], "), "a settlement needs a cost: {docs}");
    let docs = arguments(con, "rl.multisettle");
    assert!(
        docs.contains(
            "[name, id, type, string], [name, cost, type, integer, token, COST, flags, [optional]]"
        )
    );
    let docs = arguments(con, "rl.apply");
    assert!(
        docs.contains("[name, key, type, block, flags, [multiple], arguments, [[name, key, type, key"),
        "{docs}"
    );
    let docs = arguments(con, "rl.peek");
    assert!(docs.contains("[name, parameter, type, string, flags, [multiple]]"), "{docs}");
}

/// The documentation without the meanings, which have a test of their own, and without the names that newer servers tell
/// once more, as texts to display.
fn described(docs: &Value) -> String {
    let Value::Array(items) = docs else { return simple(docs) };
    let is = |item: &Value, names: &[&str]| names.contains(&simple(item).as_str());
    let shown: Vec<String> = if items.first().is_some_and(|first| is(first, &["name"])) {
        let fields = items.chunks(2).filter(|field| !is(&field[0], &["summary", "display_text"]));
        fields.flatten().map(described).collect()
    } else {
        items.iter().map(described).collect()
    };
    format!("[{}]", shown.join(", "))
}

/// The arguments in `COMMAND DOCS`, groups with their parts: the name that errors use, and the meaning.
fn meanings(docs: &Value, found: &mut Vec<(String, Option<String>)>) {
    let Value::Array(items) = docs else { return };
    if items.first().is_some_and(|first| simple(first) == "name") {
        let field = |name: &str| {
            items.chunks(2).find(|field| simple(&field[0]) == name).map(|field| simple(&field[1]))
        };
        if !["block", "oneof"].contains(&field("type").unwrap().as_str()) {
            found.push((field("token").or(field("name")).unwrap(), field("summary")));
        }
    }
    for item in items {
        meanings(item, found);
    }
}

#[test]
fn each_argument_is_explained_and_each_example_runs() {
    let server = Server::start(&["--ratelimit.top", "9"]);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET api LIMIT GCRA 14 30 60s");
    for name in command_names(con) {
        let mut documented = Vec::new();
        meanings(&call(con, &["COMMAND", "DOCS", &name]).unwrap(), &mut documented);
        let lines = match call(con, &["RL.HELP", &name]).unwrap() {
            Value::Array(lines) => lines.iter().map(simple).collect::<Vec<_>>(),
            other => panic!("{name}: {other:?}"),
        };
        // What it is called without RL., and in upper case.
        let short = name.strip_prefix("rl.").unwrap_or(&name).to_uppercase();
        if short != "CL.THROTTLE" {
            assert_eq!(text(con, &format!("RL.HELP {short}")), text(con, &format!("RL.HELP {name}")));
        }
        let part = |title: &str| {
            let rest = lines.iter().skip_while(|line| *line != title).skip(1);
            rest.take_while(|line| line.starts_with("    ")).map(|line| line.trim()).collect::<Vec<_>>()
        };
        let explained = part("Arguments:");
        // In the order of the syntax, each once, and nothing else but the note about units.
        let notes = explained.iter().filter(|line| line.starts_with("A duration has a unit")).count();
        let mut distinct: Vec<&(String, Option<String>)> = Vec::new();
        for argument in &documented {
            if !distinct.iter().any(|(name, _)| *name == argument.0) {
                distinct.push(argument);
            }
        }
        assert_eq!(explained.len() - notes, distinct.len(), "{name}: {explained:?} of {documented:?}");
        for (line, (argument, meaning)) in explained.iter().zip(distinct) {
            let meaning = meaning.as_ref().unwrap_or_else(|| panic!("{name}: {argument} has no meaning"));
            let (first, rest) = line.split_once(' ').unwrap();
            assert_eq!(
                (first, rest.trim_start().starts_with(meaning.as_str())),
                (argument.as_str(), true),
                "{name}: {line}"
            );
        }
        assert!(lines[0].starts_with(&name.to_uppercase()), "{lines:?}");
        assert!(!part("Reply:").is_empty(), "{name}");
        match part("Example:").as_slice() {
            // The internal one has none.
            [] => assert_eq!(name, "rl.apply"),
            [example] => {
                assert!(example.to_lowercase().contains(&short.to_lowercase()), "{example}");
                text(con, "FLUSHALL");
                text(con, example);
            }
            more => panic!("{name}: {more:?}"),
        }
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
fn help_tells_every_command_with_its_syntax_and_what_it_does() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let help = text(con, "RL.HELP");
    for name in command_names(con) {
        let docs = text(con, &format!("COMMAND DOCS {name}"));
        let summary = docs.split("summary, ").nth(1).unwrap().split(", since").next().unwrap();
        let told = format!("{}{}", name.to_uppercase(), if name == "rl.help" { "" } else { " " });
        assert!(help.contains(&told) && help.contains(&format!("    {summary}.")), "{name}: {help}");
    }
    for line in [
        "RL.GCRA key max_burst count period [COST cost] [AT at] [PARTIAL | FORCE | RESERVE [MAXWAIT maxwait]] [HOLD id ttl]",
        "RL.APPLY key payload [key payload ...]",
        "RL.PEEK key limiter parameter [parameter ...] [COST cost] [AT at]",
        "RL.SETTLE key id limiter parameter [parameter ...] COST cost [AT at]",
        "RL.MULTISETTLE numkeys key [key ...] id [COST cost] [AT at] LIMIT limiter parameter ",
    ] {
        assert!(help.contains(line), "{line}: {help}");
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
