//! A panic in the module does not end the server, and a server without a needed function refuses the module.

use std::thread::sleep;
use std::time::Duration;

use redis::Connection;

use crate::support::{
    Server, call_bytes, dump_bytes, error, error_line, faulty_module, info, ints, multi, text,
};

const PANIC: &str = "ERR internal error of the ratelimit module, please report it";

#[test]
fn a_panic_is_an_error_reply_or_a_failed_load_and_changes_nothing() {
    let server = Server::start_with(Some(&faulty_module()), &[]);
    let con = &mut server.connection();
    ints(con, "RL.GCRA key 1 1 1h");
    let dump = dump_bytes(con, "key");
    for count in ["1", "2", "3"] {
        assert_eq!(error(con, "RL.PANIC NOW"), PANIC);
        assert_eq!(info(con, "ratelimit", "ratelimit_errors").as_deref(), Some(count));
    }
    // A command cannot open a key twice.
    assert_eq!(error(con, "RL.PANIC TWICE key"), PANIC);
    assert_eq!(dump_bytes(con, "key"), dump);
    text(con, "RL.PANIC LOAD");
    let failed = call_bytes(con, &[b"RESTORE", b"other", b"0", &dump]).unwrap_err();
    assert_eq!(error_line(&failed), "ERR Bad data format");
    assert_eq!(text(con, "EXISTS other"), "0");
    // The next one is sound again.
    call_bytes(con, &[b"RESTORE", b"other", b"0", &dump]).unwrap();
    for key in ["key", "other"] {
        assert_eq!(ints(con, &format!("RL.GCRA {key} 1 1 1h"))[0], 0);
    }
}

#[test]
fn a_server_without_a_needed_function_refuses_the_module_and_says_which() {
    let without = ["WITHOUT", "RedisModule_Replicate"];
    let log = Server::try_start_with(Some(&faulty_module()), &without, &[]).err().unwrap();
    assert!(log.contains("ratelimit not loaded: the server has no RedisModule_Replicate"), "{log}");
}

/// Makes the keys `open` and `expired`, and another module that deletes `open` when `expired` is found to have expired.
fn with_a_rival(con: &mut Connection, limiter: &str) {
    text(con, "DEBUG SET-ACTIVE-EXPIRE 0");
    for key in ["open", "expired"] {
        ints(con, &format!("RL.{}", limiter.replacen(' ', &format!(" {key} "), 1)));
    }
    text(con, "PEXPIRE expired 100");
    sleep(Duration::from_millis(200));
    text(con, "RL.PANIC RIVAL open");
}

#[test]
fn a_key_that_another_module_deletes_while_keys_are_opened_is_missing() {
    let (fresh, full) = ("[0, 10, 9, 0, 3600000]", "[0, 10, 10, 0, 0]");
    let of_both = |each: &str| format!("[{each}, [{each}, {each}]]");
    for (limiter, command, reply, left) in [
        ("GCRA 9 1 1h", "RL.MULTI 2 open expired LIMIT GCRA 9 1 1h", of_both(fresh), "2"),
        ("GCRA 9 1 1h", "RL.MULTIREFUND 2 open expired LIMIT GCRA 9 1 1h", of_both(full), "0"),
        ("CONCURRENT 5 1h id", "RL.MULTIRELEASE 2 open expired id", "0".into(), "0"),
    ] {
        let server = Server::start_with(Some(&faulty_module()), &[]);
        let con = &mut server.connection();
        with_a_rival(con, limiter);
        assert_eq!(text(con, command), reply, "{command}");
        assert_eq!(text(con, "EXISTS open expired"), left, "{command}");
    }
}

#[test]
fn a_key_that_another_module_deletes_while_keys_are_looked_at_is_not_read_afterwards() {
    let server = Server::start_with(Some(&faulty_module()), &[]);
    let con = &mut server.connection();
    with_a_rival(con, "GCRA 9 1 1h");
    // `open` is answered before `missing` is opened.
    let line = "RL.MULTIPEEK 3 open missing open2 LIMIT GCRA 9 1 1h";
    let (_, each) = multi(con, line);
    assert_eq!(each.iter().map(|answer| answer[2]).collect::<Vec<_>>(), [9, 10, 10]);
    let (_, each) = multi(con, line);
    assert_eq!(each.iter().map(|answer| answer[2]).collect::<Vec<_>>(), [10, 10, 10]);
}
