//! `RL.POLICY LOAD`: all policies of the file, or an error and all policies as they were.

use std::fs;
use std::os::unix::fs::symlink;

use super::file_start::wrong_files;
use super::folder::Folder;
use super::{get, policies, set, stats};
use crate::support::{Server, T0, error, ints, text};

#[test]
fn a_load_replaces_all_policies_with_the_versions_of_the_file() {
    let folder = Folder::with("api VERSION 9 LIMIT GCRA 9 10 1s\nother LIMIT UNIFORM 1s\n");
    let server = folder.server(&[]);
    let con = &mut server.connection();
    set(con, "more LIMIT UNIFORM 1s");
    assert_eq!(set(con, "other LIMIT UNIFORM 2s"), 2);
    for (file, count, list) in [
        ("api VERSION 9 LIMIT GCRA 9 10 1s\nother LIMIT UNIFORM 1s\n", "2", "[api, 9, other, 1]"),
        // Versions may go back.
        ("api VERSION 3 LIMIT GCRA 4 5 1s", "1", "[api, 3]"),
        ("api LIMIT GCRA 4 5 1s\r\nnew VERSION 5 LIMIT UNIFORM 1s\r\n", "2", "[api, 1, new, 5]"),
        ("# none\n", "0", "[]"),
        ("", "0", "[]"),
        ("api VERSION 4 LIMIT FIXEDWINDOW 3 1s", "1", "[api, 4]"),
    ] {
        folder.write(file);
        assert_eq!(text(con, "RL.POLICY LOAD"), count, "{file}");
        assert_eq!(text(con, "RL.POLICY LIST"), list, "{file}");
    }
    assert_eq!(get(con, "api"), (4, "LIMIT FIXEDWINDOW 3 1s".into()));
    assert_eq!(ints(con, &format!("RL.ASK key api AT {T0}")), [0, 3, 2, 0, 1000, 1]);
    // The next version is above that of the file.
    assert_eq!(
        error(con, "RL.POLICY SET api VERSION 4 LIMIT UNIFORM 1s"),
        "ERR policy 'api' is at version 4"
    );
    assert_eq!(set(con, "api LIMIT UNIFORM 1s"), 5);
}

#[test]
fn a_wrong_line_is_an_error_that_names_it_and_nothing_changes() {
    let folder = Folder::with("api VERSION 9 LIMIT GCRA 9 10 1s\nother LIMIT UNIFORM 1s\n");
    let server = folder.server(&[]);
    let con = &mut server.connection();
    set(con, "more LIMIT UNIFORM 1s");
    ints(con, "RL.ASK key api");
    let before = (policies(con), get(con, "api"), stats(con, "api"));
    for (file, line, told) in wrong_files() {
        // A good line before the wrong one is not stored either.
        for (more, start) in [(0, &b""[..]), (1, b"good VERSION 2 LIMIT UNIFORM 1s\n")] {
            if more == 1 && told.starts_with("at most 10000") {
                continue;
            }
            folder.write([start, &file].concat());
            let expected = format!("ERR {}:{}: {told}", folder.file().display(), line + more);
            assert_eq!(error(con, "RL.POLICY LOAD"), expected);
            assert_eq!((policies(con), get(con, "api"), stats(con, "api")), before, "{told}");
        }
    }
    folder.write("api VERSION 2 LIMIT UNIFORM 1s\n");
    assert_eq!(text(con, "RL.POLICY LOAD"), "1");
}

#[test]
fn ten_thousand_lines_are_loaded() {
    let folder = Folder::with("");
    let server = folder.server(&[]);
    let con = &mut server.connection();
    let lines: Vec<String> = (0..10_000).map(|number| format!("policy{number} LIMIT UNIFORM 1s\n")).collect();
    folder.write(lines.concat());
    assert_eq!(text(con, "RL.POLICY LOAD"), "10000");
    assert_eq!(error(con, "RL.POLICY SET more LIMIT UNIFORM 1s"), "ERR at most 10000 policies");
    assert_eq!(text(con, "RL.POLICY SAVE"), "10000");
    let mut saved: Vec<String> = folder.read().lines().skip(1).map(str::to_string).collect();
    let mut expected: Vec<String> =
        lines.iter().map(|line| line.trim_end().replace(" LIMIT", " VERSION 1 LIMIT")).collect();
    saved.sort_unstable();
    expected.sort_unstable();
    assert!(saved == expected);
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_and_all_policies_stay() {
    let folder = Folder::with("api VERSION 9 LIMIT GCRA 9 10 1s\n");
    let server = folder.server(&[]);
    let con = &mut server.connection();
    let before = policies(con);
    let file = folder.file();
    fs::remove_file(&file).unwrap();
    let told = error(con, "RL.POLICY LOAD");
    assert_eq!(told, format!("ERR cannot read {}: No such file or directory (os error 2)", file.display()));
    fs::create_dir(&file).unwrap();
    assert_eq!(
        error(con, "RL.POLICY LOAD"),
        format!("ERR cannot read {}: it is not a regular file", file.display())
    );
    fs::remove_dir(&file).unwrap();
    symlink("policies", &file).unwrap();
    assert!(error(con, "RL.POLICY LOAD").starts_with(&format!("ERR cannot read {}: ", file.display())));
    assert_eq!(policies(con), before);
    assert_eq!(ints(con, &format!("RL.ASK key api AT {T0}"))[0], 0);
    fs::remove_file(&file).unwrap();
    folder.write("api VERSION 10 LIMIT UNIFORM 1s\n");
    assert_eq!(text(con, "RL.POLICY LOAD"), "1");
}

#[test]
fn without_the_setting_a_load_and_a_save_are_errors() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "api LIMIT UNIFORM 1s");
    let before = policies(con);
    for word in ["LOAD", "SAVE"] {
        assert_eq!(
            error(con, &format!("RL.POLICY {word}")),
            "ERR the setting ratelimit.policy-file is empty"
        );
    }
    assert_eq!(policies(con), before);
}
