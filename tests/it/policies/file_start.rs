//! A server that starts with a file of policies, or does not start because of it; and the setting that names the file.

use std::fs;

use super::folder::Folder;
use super::{each, get, policies, set, windows};
use crate::support::{Server, T0, call, error, ints, module, text};

const GOOD: &str = "# Policies of a shop.\n\
    \n   \t \n\
    api VERSION 7 LIMIT GCRA 99 100 1s\n\
    \tsignup  limit\tfixedwindow 5 1h   limit penalty 3 10m 1h # three strikes\r\n\
    tried SHADOW VERSION 2 LIMIT UNIFORM 1s#comment\n\
    jobs LIMIT CONCURRENT 5 1h # LIMIT GCRA 1 1 1s\n\
    #old LIMIT GCRA 1 1 1s\r\n\
    \x0c\r\n\
    last VERSION 9007199254740991 LIMIT CALENDAR 9 MONTH TZ Europe/Lisbon";

#[test]
fn a_good_file_is_read_at_start() {
    let folder = Folder::with(GOOD.replace("#comment", " #comment"));
    let server = folder.server(&[]);
    let con = &mut server.connection();
    assert_eq!(text(con, "RL.POLICY LIST"), "[api, 7, jobs, 1, last, 9007199254740991, signup, 1, tried, 2]");
    for (name, version, words) in [
        ("api", 7, "LIMIT GCRA 99 100 1s"),
        ("signup", 1, "LIMIT FIXEDWINDOW 5 1h LIMIT PENALTY 3 10m 1h"),
        ("tried", 2, "SHADOW LIMIT UNIFORM 1s"),
        ("jobs", 1, "LIMIT CONCURRENT 5 1h"),
        ("last", 9_007_199_254_740_991, "LIMIT CALENDAR 9 MONTH TZ Europe/Lisbon"),
    ] {
        assert_eq!(get(con, name), (version, words.into()));
    }
    assert_eq!(ints(con, &format!("RL.ASK key api AT {T0}")), [0, 100, 99, 0, 10, 1]);
    // The file is as it was.
    assert_eq!(folder.read(), GOOD.replace("#comment", " #comment"));
    assert!(!server.log().contains("there is no"));
}

#[test]
fn a_missing_file_is_a_warning_and_an_empty_one_is_none() {
    let folder = Folder::new();
    let server = folder.server(&[]);
    let warning = format!("there is no {}, so the policies are those of the data", folder.file().display());
    assert!(server.log().contains(&warning), "{}", server.log());
    assert_eq!(text(&mut server.connection(), "RL.POLICY LIST"), "[]");
    for empty in ["", "\n", "# nothing\n"] {
        folder.write(empty);
        let server = folder.server(&[]);
        assert!(!server.log().contains("so the policies are those of the data"), "{}", server.log());
        assert_eq!(text(&mut server.connection(), "RL.POLICY LIST"), "[]");
    }
    // Without the setting there is no file to miss.
    let server = Server::start(&[]);
    assert!(!server.log().contains("so the policies are those of the data"));
}

/// Each wrong file, the number of the wrong line, and what the log says of it.
pub fn wrong_files() -> Vec<(Vec<u8>, usize, String)> {
    let many = each(0..=10_000, |number| format!("policy{number} LIMIT UNIFORM 1s\n"));
    let twice = "syntax error: GCRA of 1s twice on one key (LIMIT 2)";
    let texts: [(&str, usize, &str); 23] = [
        ("api", 1, "syntax error: LIMIT is missing"),
        (
            "api LIMIT GCRA 9 10 1s\n\n# a comment\napi2 LIMIT",
            4,
            "syntax error: limiter is missing (LIMIT 1)",
        ),
        ("api LIMIT NOBODY 9\n", 1, "syntax error near 'NOBODY' (LIMIT 1)"),
        (
            "api LIMIT GCRA 9 10 1s\nother LIMIT GCRA 9 10 0\n",
            2,
            "period must be from 1ms to 36500d; got '0' (LIMIT 1)",
        ),
        ("\"api\" LIMIT GCRA 9 10 1s", 1, r#"name must be 1 to 64 of A-Z a-z 0-9 . _ : -; got '\"api\"'"#),
        ("'my api' LIMIT GCRA 9 10 1s", 1, r"name must be 1 to 64 of A-Z a-z 0-9 . _ : -; got '\'my'"),
        ("LIMIT GCRA 9 10 1s", 1, "syntax error near 'GCRA': a limit begins with LIMIT"),
        ("RL.POLICY SET api LIMIT GCRA 9 10 1s", 1, "syntax error near 'SET'"),
        (
            "api LIMIT GCRA 9 10 '1s'",
            1,
            r"period must be a whole number with ms, s, m, h, d or w, such as 90s; got '\'1s\'' (LIMIT 1)",
        ),
        ("api LIMIT GCRA 9 10 60", 1, "period needs a unit: 60ms, 60s or 60m (LIMIT 1)"),
        ("api LIMIT GCRA 9 10 1s\rother LIMIT UNIFORM 1s", 1, "syntax error near 'other' (LIMIT 1)"),
        (
            "api VERSION 0 LIMIT GCRA 9 10 1s",
            1,
            "VERSION must be an integer from 1 to 9007199254740991; got '0'",
        ),
        (
            "api VERSION 9007199254740992 LIMIT GCRA 9 10 1s",
            1,
            "VERSION must be an integer from 1 to 9007199254740991; got '9007199254740992'",
        ),
        ("api VERSION LIMIT GCRA 9 10 1s", 1, "syntax error: VERSION needs a value"),
        ("api LIMIT GCRA 9 10 1s LIMIT GCRA 8 9 1s", 1, twice),
        ("api LIMIT GCRA 9 10 1s AT 1700000000000000", 1, "syntax error: AT is not for a policy (LIMIT 1)"),
        ("api LIMIT CONCURRENT 5 1h job", 1, "syntax error near 'job' (LIMIT 1)"),
        (
            "\napi LIMIT GCRA 9 10 1s\nAPI LIMIT GCRA 9 10 1s\napi LIMIT UNIFORM 1s",
            4,
            "policy 'api' is given twice",
        ),
        ("api VERSION 1 LIMIT UNIFORM 1s\napi VERSION 2 LIMIT UNIFORM 1s", 2, "policy 'api' is given twice"),
        (&format!("api {}", windows(65)), 1, "at most 64 pairs of a limit and a key"),
        (&many, 10_001, "at most 10000 policies"),
        ("api LIMIT SHED 0.5", 1, "syntax error: SHED is not for RL.POLICY (LIMIT 1)"),
        ("api LIMIT GCRA 4 5 1s COST 6", 1, "COST 6 is above the limit 5 (LIMIT 1)"),
    ];
    let mut wrong: Vec<_> =
        texts.iter().map(|(text, line, told)| (text.as_bytes().to_vec(), *line, told.to_string())).collect();
    let name = |word: &str| format!("name must be 1 to 64 of A-Z a-z 0-9 . _ : -; got '{word}'");
    wrong.push((b"api LIMIT UNIFORM 1s\nd\xe9j\xe0 LIMIT UNIFORM 1s".into(), 2, name(r"d\xe9j\xe0")));
    wrong.push((b"api LIMIT UNIFORM 1s \xff\0".into(), 1, r"syntax error near '\xff\x00' (LIMIT 1)".into()));
    wrong.push((vec![0; 100_000], 1, name(&(r"\x00".repeat(64) + "..."))));
    wrong
}

#[test]
fn a_wrong_line_is_named_in_the_log_and_the_module_does_not_load() {
    for (file, line, told) in wrong_files() {
        let folder = Folder::with(&file);
        let log = folder.try_server(&[]).err().unwrap_or_else(|| panic!("{told}: the server started"));
        let told = format!("ratelimit not loaded: {}:{line}: {told}", folder.file().display());
        assert!(log.contains(&format!("{told}\n")) || log.contains(&format!("{told}\r\n")), "{told}:\n{log}");
    }
}

/// Files of before durations needed units.
#[test]
fn a_bare_number_is_named_at_start_and_by_a_load() {
    let wrong = "api LIMIT GCRA 9 10 1s\nold LIMIT FIXEDWINDOW 5 60000\n";
    let folder = Folder::with(wrong);
    let log = folder.try_server(&[]).err().expect("the server does not start");
    let told = |folder: &Folder| {
        format!("{}:2: window needs a unit: 60000ms, 60000s or 60000m (LIMIT 1)", folder.file().display())
    };
    assert!(log.contains(&format!("ratelimit not loaded: {}", told(&folder))), "{log}");
    let folder = Folder::with("api LIMIT GCRA 9 10 1s\nold LIMIT FIXEDWINDOW 5 60000ms\n");
    let server = folder.server(&[]);
    let con = &mut server.connection();
    folder.write(wrong);
    assert_eq!(error(con, "RL.POLICY LOAD"), format!("ERR {}", told(&folder)));
    assert_eq!(get(con, "old"), (1, "LIMIT FIXEDWINDOW 5 60000ms".into()));
}

/// The log takes text with `%` for text, not for a format.
#[test]
fn a_wrong_line_with_percent_signs_is_named_in_the_log_as_it_is() {
    let folder = Folder::with("api LIMIT UNIFORM 1s 100%d%x%p");
    let log = folder.try_server(&[]).err().unwrap();
    let told = format!("{}:1: syntax error near '100%d%x%p' (LIMIT 1)", folder.file().display());
    assert!(log.contains(&told), "{told}:\n{log}");
}

#[test]
fn what_is_no_file_is_an_error() {
    let folder = Folder::new();
    fs::create_dir(folder.file()).unwrap();
    let log = folder.try_server(&[]).err().unwrap();
    assert!(
        log.contains(&format!(
            "ratelimit not loaded: cannot read {}: it is not a regular file",
            folder.file().display()
        )),
        "{log}"
    );
    for device in ["/dev/null", "/dev/zero", "/"] {
        let log = Server::try_start_with(Some(&module()), &[], &["--ratelimit.policy-file", device]);
        let log = log.err().unwrap_or_else(|| panic!("{device}: the server started"));
        assert!(
            log.contains(&format!("ratelimit not loaded: cannot read {device}: it is not a regular file")),
            "{log}"
        );
    }
}

#[test]
fn a_file_beyond_the_settings_is_an_error() {
    let folder = Folder::with("api LIMIT UNIFORM 1s\njobs LIMIT CONCURRENT 6 1h\n");
    let log = folder.try_server(&["--ratelimit.max-leases", "5"]).err().unwrap();
    let told = format!(
        "{}:2: capacity must be an integer from 1 to 5 (ratelimit.max-leases); got '6' (LIMIT 1)",
        folder.file().display()
    );
    assert!(log.contains(&told), "{log}");
    let server = folder.server(&["--ratelimit.max-leases", "6"]);
    assert_eq!(text(&mut server.connection(), "RL.POLICY LIST"), "[api, 1, jobs, 1]");
}

#[test]
fn the_setting_is_shown_and_cannot_be_changed() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    assert_eq!(text(con, "CONFIG GET ratelimit.policy-file"), "[ratelimit.policy-file, ]");
    let folder = Folder::with("api LIMIT UNIFORM 1s");
    let server = folder.server(&[]);
    let con = &mut server.connection();
    let shown = format!("[ratelimit.policy-file, {}]", folder.file().display());
    for _ in 0..3 {
        assert_eq!(text(con, "CONFIG GET ratelimit.policy-file"), shown);
        let told = error(con, "CONFIG SET ratelimit.policy-file other");
        assert!(told.contains("it cannot be changed while the server runs"), "{told}");
    }
    assert_eq!(text(con, "RL.POLICY LOAD"), "1");
}

#[test]
fn a_relative_file_is_in_the_folder_that_the_server_started_in() {
    let (folder, elsewhere) =
        (Folder::with("api LIMIT UNIFORM 1s\n"), Folder::with("other LIMIT UNIFORM 1s\n"));
    let dir = folder.path().to_str().unwrap();
    let server = Server::start(&[
        "--dir",
        dir,
        "--ratelimit.policy-file",
        "policies",
        "--enable-protected-configs",
        "yes",
    ]);
    let con = &mut server.connection();
    assert_eq!(text(con, "RL.POLICY LIST"), "[api, 1]");
    assert_eq!(text(con, "CONFIG GET ratelimit.policy-file"), "[ratelimit.policy-file, policies]");
    // The server's folder may change, the file does not.
    text(con, &format!("CONFIG SET dir {}", elsewhere.path().display()));
    assert_eq!(text(con, "RL.POLICY LOAD"), "1");
    assert_eq!(text(con, "RL.POLICY LIST"), "[api, 1]");
    set(con, "more LIMIT UNIFORM 1s");
    assert_eq!(text(con, "RL.POLICY SAVE"), "2");
    assert!(folder.read().contains("\nmore VERSION 1 LIMIT UNIFORM 1s\n"));
    assert_eq!(elsewhere.read(), "other LIMIT UNIFORM 1s\n");
}

#[test]
fn a_module_that_is_loaded_later_reads_its_file_and_may_be_loaded_again_after_an_error() {
    let folder = Folder::with("api LIMIT NOBODY\n");
    let server = Server::start_with(None, &["--enable-module-command", "yes"]);
    let con = &mut server.connection();
    let (module, file) = (module(), folder.file());
    let words = [
        "MODULE",
        "LOADEX",
        module.to_str().unwrap(),
        "CONFIG",
        "ratelimit.policy-file",
        file.to_str().unwrap(),
    ];
    assert!(call(con, &words).is_err());
    assert!(server.log().contains(&format!("{}:1: syntax error near 'NOBODY'", file.display())));
    folder.write("api LIMIT UNIFORM 1s\n");
    call(con, &words).unwrap_or_else(|error| panic!("{error}:\n{}", server.log()));
    assert_eq!(text(con, "RL.POLICY LIST"), "[api, 1]");
    let before = policies(con);
    assert_eq!(text(con, "RL.POLICY SAVE"), "1");
    assert_eq!(text(con, "RL.POLICY LOAD"), "1");
    assert_eq!(policies(con), before);
}
