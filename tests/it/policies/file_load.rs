//! `RL.POLICY LOAD`: all policies of the file, or an error and all policies as they were.

use std::fs;
use std::os::unix::fs::symlink;

use super::file_start::wrong_files;
use super::folder::Folder;
use super::{each, get, limit_refusals, policies, set, stats};
use crate::support::{T0, error, ints, text};

#[test]
fn a_load_replaces_all_policies_with_the_versions_of_the_file() {
    let folder = Folder::with("api VERSION 9 LIMIT GCRA 9 10 1s\nother LIMIT UNIFORM 1s\n");
    let server = folder.server(&[]);
    let con = &mut server.connection();
    set(con, "more LIMIT UNIFORM 1s");
    assert_eq!(set(con, "other LIMIT UNIFORM 2s"), 2);
    let ten_thousand = each(1..10_001, |number| format!("policy{number} LIMIT UNIFORM 1s\n"));
    for (file, count, list) in [
        ("api VERSION 9 LIMIT GCRA 9 10 1s\nother LIMIT UNIFORM 1s\n", "2", "[api, 9, other, 1]"),
        // Versions may go back.
        ("api VERSION 3 LIMIT GCRA 4 5 1s", "1", "[api, 3]"),
        ("api LIMIT GCRA 4 5 1s\r\nnew VERSION 5 LIMIT UNIFORM 1s\r\n", "2", "[api, 1, new, 5]"),
        ("# none\n", "0", "[]"),
        ("", "0", "[]"),
        (&ten_thousand, "10000", "[policy1, 1"),
        ("api VERSION 4 LIMIT FIXEDWINDOW 3 1s", "1", "[api, 4]"),
    ] {
        folder.write(file);
        assert_eq!(text(con, "RL.POLICY LOAD"), count, "{list}");
        assert!(text(con, "RL.POLICY LIST").starts_with(list), "{list}");
    }
    assert_eq!(get(con, "api"), (4, "LIMIT FIXEDWINDOW 3 1s".into()));
    assert_eq!(ints(con, &format!("RL.ASK key api AT {T0}")), [0, 3, 2, 0, 1000, 1]);
    // The next version is above that of the file.
    let told = error(con, "RL.POLICY SET api VERSION 4 LIMIT UNIFORM 1s");
    assert_eq!(told, "ERR policy 'api' is at version 4");
    assert_eq!(set(con, "api LIMIT UNIFORM 1s"), 5);
}

#[test]
fn counters_go_on_over_a_load_until_it_leaves_their_policy_out() {
    let folder = Folder::with("api LIMIT FIXEDWINDOW 1 1h LIMIT GCRA 0 1 1h\nother LIMIT UNIFORM 1h\n");
    let server = folder.server(&[]);
    let con = &mut server.connection();
    for (file, counts, of_limits) in [
        ("api LIMIT FIXEDWINDOW 1 1h LIMIT GCRA 0 1 60m\n", [1, 1, 0, 0], vec![1, 1]),
        ("api VERSION 2 LIMIT UNIFORM 1h LIMIT GCRA 0 1 1h\n", [2, 2, 0, 0], vec![0, 2]),
        ("other LIMIT UNIFORM 1h\n", [0; 4], vec![]),
    ] {
        for _ in 0..2 {
            ints(con, &format!("RL.ASK k{} api AT {T0}", counts[0]));
        }
        folder.write(file);
        text(con, "RL.POLICY LOAD");
        if of_limits.is_empty() {
            assert_eq!(text(con, "RL.POLICY STATS api"), "(nil)");
            set(con, "api LIMIT FIXEDWINDOW 1 1h");
            assert_eq!(stats(con, "api"), [0; 4]);
        } else {
            assert_eq!((stats(con, "api"), limit_refusals(con, "api")), (counts, of_limits), "{file}");
        }
    }
}

#[test]
fn a_wrong_line_is_an_error_that_names_it_and_nothing_changes() {
    let folder = Folder::with("api VERSION 9 LIMIT GCRA 9 10 1s\njobs LIMIT CONCURRENT 5 1h\n");
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
    // What a lowered bound forbids can be saved, and be loaded again when the bound is raised.
    text(con, "RL.POLICY SAVE");
    text(con, "CONFIG SET ratelimit.max-leases 4");
    assert_eq!(text(con, "RL.POLICY SAVE"), "3");
    let told = error(con, "RL.POLICY LOAD");
    assert!(told.contains(":3: capacity must be an integer from 1 to 4 (ratelimit.max-leases)"), "{told}");
    assert_eq!((policies(con), get(con, "api"), stats(con, "api")), before);
    text(con, "CONFIG SET ratelimit.max-leases 5");
    assert_eq!(text(con, "RL.POLICY LOAD"), "3");
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_and_all_policies_stay() {
    let folder = Folder::with("api VERSION 9 LIMIT GCRA 9 10 1s\n");
    let server = folder.server(&[]);
    let con = &mut server.connection();
    let (before, file) = (policies(con), folder.file());
    let told = |why: &str| format!("ERR cannot read {}: {why}", file.display());
    fs::remove_file(&file).unwrap();
    assert_eq!(error(con, "RL.POLICY LOAD"), told("No such file or directory (os error 2)"));
    fs::create_dir(&file).unwrap();
    assert_eq!(error(con, "RL.POLICY LOAD"), told("it is not a regular file"));
    fs::remove_dir(&file).unwrap();
    symlink("policies", &file).unwrap();
    assert!(error(con, "RL.POLICY LOAD").starts_with(&told("")));
    assert_eq!(policies(con), before);
    fs::remove_file(&file).unwrap();
    folder.write("api VERSION 10 LIMIT UNIFORM 1s\n");
    assert_eq!(text(con, "RL.POLICY LOAD"), "1");
}
