//! A server that starts with a file of policies, or does not start because of it; and the setting that names the file.

use std::fs;

use super::folder::Folder;
use super::{each, get, policies, set, windows};
use crate::support::{Server, T0, call, ints, module, text};

const GOOD: &str = "# Policies of a shop.\n\
    \n   \t \n\
    api VERSION 7 LIMIT GCRA 99 100 1s\n\
    \tsignup  limit\tfixedwindow 5 1h   limit penalty 3 10m 1h # three strikes\r\n\
    tried SHADOW VERSION 2 LIMIT UNIFORM 1s #comment\n\
    jobs LIMIT CONCURRENT 5 1h # LIMIT GCRA 1 1 1s\n\
    #old LIMIT GCRA 1 1 1s\r\n\
    \x0c\r\n\
    last VERSION 9007199254740991 LIMIT CALENDAR 9 MONTH TZ Europe/Lisbon";
const OF_THE_DATA: &str = "so the policies are those of the data";

#[test]
fn a_good_file_is_read_at_start() {
    let folder = Folder::with(GOOD);
    let server = folder.server(&[]);
    let con = &mut server.connection();
    assert_eq!(text(con, "RL.POLICY LIST"), "[api, 7, jobs, 1, last, 9007199254740991, signup, 1, tried, 2]");
    for (name, words) in [
        ("api", "LIMIT GCRA 99 100 1s"),
        ("signup", "LIMIT FIXEDWINDOW 5 1h LIMIT PENALTY 3 10m 1h"),
        ("tried", "SHADOW LIMIT UNIFORM 1s"),
        ("jobs", "LIMIT CONCURRENT 5 1h"),
        ("last", "LIMIT CALENDAR 9 MONTH TZ Europe/Lisbon"),
    ] {
        assert_eq!(get(con, name).1, words);
    }
    assert_eq!(ints(con, &format!("RL.ASK key api AT {T0}")), [0, 100, 99, 0, 10, 1]);
    // The file is as it was.
    assert_eq!(folder.read(), GOOD);
    assert!(!server.log().contains(OF_THE_DATA));
}

#[test]
fn a_missing_file_is_a_warning_and_an_empty_one_is_none() {
    let folder = Folder::new();
    let server = folder.server(&[]);
    let warning = format!("there is no {}, {OF_THE_DATA}", folder.file().display());
    assert!(server.log().contains(&warning), "{}", server.log());
    assert_eq!(text(&mut server.connection(), "RL.POLICY LIST"), "[]");
    folder.write("# nothing\n");
    // Without the setting there is no file to miss.
    for server in [folder.server(&[]), Server::start(&[])] {
        assert!(!server.log().contains(OF_THE_DATA), "{}", server.log());
        assert_eq!(text(&mut server.connection(), "RL.POLICY LIST"), "[]");
    }
}

/// Each wrong file, the number of the wrong line, and what the log says of it.
pub fn wrong_files() -> Vec<(Vec<u8>, usize, String)> {
    let many = each(0..=10_000, |number| format!("policy{number} LIMIT UNIFORM 1s\n"));
    let pairs = format!("api {}", windows(65));
    let name = |word: &str| format!("name must be 1 to 64 of A-Z a-z 0-9 . _ : -; got '{word}'");
    let (quoted, cut, bytes) = (name(r#"\"api\""#), name(r"\'my"), name(r"d\xe9j\xe0"));
    let zeros = name(&(r"\x00".repeat(64) + "..."));
    let files: [(&[u8], usize, &str); 16] = [
        (
            b"api LIMIT GCRA 9 10 1s\n\n# a comment\napi2 LIMIT",
            4,
            "limiter is missing: RL.POLICY SET name [options] LIMIT limiter parameter [parameter ...] [options] [LIMIT ...] (LIMIT 1)",
        ),
        (b"api LIMIT UNIFORM 1s 100%d%x%p", 1, "syntax error near '100%d%x%p' (LIMIT 1)"),
        (many.as_bytes(), 10_001, "at most 10000 policies"),
        (b"api LIMIT UNIFORM 1s \xff\0", 1, r"syntax error near '\xff\x00' (LIMIT 1)"),
        (
            b"api",
            1,
            "LIMIT is missing: RL.POLICY SET name [options] LIMIT limiter parameter [parameter ...] [options] [LIMIT ...]",
        ),
        (b"\"api\" LIMIT GCRA 9 10 1s", 1, &quoted),
        (b"'my api' LIMIT GCRA 9 10 1s", 1, &cut),
        (b"api LIMIT UNIFORM 1s\nd\xe9j\xe0 LIMIT UNIFORM 1s", 2, &bytes),
        (&[0; 10_000], 1, &zeros),
        (
            b"LIMIT GCRA 9 10 1s",
            1,
            "name is missing: RL.POLICY SET name [options] LIMIT limiter parameter [parameter ...] [options] [LIMIT ...]",
        ),
        (b"api LIMIT GCRA 9 10 60", 1, "period needs a unit: 60ms, 60s or 60m (LIMIT 1)"),
        (b"api LIMIT GCRA 9 10 1s\rother LIMIT UNIFORM 1s", 1, "syntax error near 'other' (LIMIT 1)"),
        (
            b"api VERSION 0 LIMIT GCRA 9 10 1s",
            1,
            "VERSION must be an integer from 1 to 9007199254740991; got '0'",
        ),
        (
            b"\napi LIMIT GCRA 9 10 1s\nAPI LIMIT GCRA 9 10 1s\napi LIMIT UNIFORM 1s",
            4,
            "policy 'api' is given twice",
        ),
        (b"api VERSION 1 LIMIT UNIFORM 1s\napi VERSION 2 LIMIT UNIFORM 1s", 2, "policy 'api' is given twice"),
        (pairs.as_bytes(), 1, "at most 64 pairs of a limit and a key"),
    ];
    files.map(|(file, line, told)| (file.to_vec(), line, told.to_string())).to_vec()
}

#[test]
fn a_wrong_line_is_named_in_the_log_and_the_module_does_not_load() {
    // All of them are loaded in `file_load.rs`.
    for (file, line, told) in wrong_files().into_iter().take(4) {
        let folder = Folder::with(&file);
        let log = folder.try_server(&[]).err().unwrap_or_else(|| panic!("{told}: the server started"));
        let told = format!("ratelimit not loaded: {}:{line}: {told}", folder.file().display());
        assert!(log.contains(&format!("{told}\n")) || log.contains(&format!("{told}\r\n")), "{told}:\n{log}");
    }
    let folder = Folder::with("api LIMIT UNIFORM 1s\njobs LIMIT CONCURRENT 6 1h\n");
    let log = folder.try_server(&["--ratelimit.max-leases", "5"]).err().unwrap();
    let told =
        "policies:2: capacity must be an integer from 1 to 5 (ratelimit.max-leases); got '6' (LIMIT 1)";
    assert!(log.contains(told), "{log}");
    let server = folder.server(&["--ratelimit.max-leases", "6"]);
    assert_eq!(text(&mut server.connection(), "RL.POLICY LIST"), "[api, 1, jobs, 1]");
}

#[test]
fn what_is_no_file_is_an_error() {
    let folder = Folder::new();
    fs::create_dir(folder.file()).unwrap();
    for place in [folder.file().to_str().unwrap(), "/dev/null", "/dev/zero"] {
        let log = Server::try_start_with(Some(&module()), &[], &["--ratelimit.policy-file", place]);
        let log = log.err().unwrap_or_else(|| panic!("{place}: the server started"));
        let told = format!("ratelimit not loaded: cannot read {place}: it is not a regular file");
        assert!(log.contains(&told), "{log}");
    }
}

#[test]
fn a_relative_file_is_in_the_folder_that_the_server_started_in() {
    let (folder, elsewhere) =
        (Folder::with("api LIMIT UNIFORM 1s\n"), Folder::with("other LIMIT UNIFORM 1s\n"));
    let dir = folder.path().to_str().unwrap();
    let file = ["--dir", dir, "--ratelimit.policy-file", "policies"];
    let server = Server::start(&[&file[..], &["--enable-protected-configs", "yes"]].concat());
    let con = &mut server.connection();
    assert_eq!(text(con, "RL.POLICY LIST"), "[api, 1]");
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
    let setting = ["CONFIG", "ratelimit.policy-file", file.to_str().unwrap()];
    let words = [&["MODULE", "LOADEX", module.to_str().unwrap()][..], &setting].concat();
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
