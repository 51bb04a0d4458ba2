//! A panic in the module does not end the server, and a server without a needed function refuses the module.

use std::thread::sleep;
use std::time::Duration;

use redis::{Connection, Value};

use crate::support::{Server, call, call_bytes, error, error_line, faulty_module, info, ints, multi, text};

#[test]
fn a_panic_in_a_command_is_an_error_reply() {
    let server = Server::start_with(Some(&faulty_module()), &[]);
    let con = &mut server.connection();
    ints(con, "RL.GCRA key 1 1 1h");
    let dump = call(con, &["DUMP", "key"]).unwrap();
    for _ in 0..3 {
        assert_eq!(
            error(con, "RL.PANIC NOW"),
            "ERR internal error of the ratelimit module, please report it"
        );
    }
    assert_eq!(call(con, &["DUMP", "key"]).unwrap(), dump);
    assert_eq!(ints(con, "RL.GCRA key 1 1 1h")[0], 0);
    assert_eq!(info(con, "ratelimit", "ratelimit_errors").as_deref(), Some("3"));
}

#[test]
fn a_panic_while_a_value_is_loaded_is_a_failed_load() {
    let server = Server::start_with(Some(&faulty_module()), &[]);
    let con = &mut server.connection();
    ints(con, "RL.GCRA key 1 1 1h");
    let Value::BulkString(dump) = call(con, &["DUMP", "key"]).unwrap() else { panic!("DUMP replies bytes") };
    text(con, "RL.PANIC LOAD");
    let failed = call_bytes(con, &[b"RESTORE", b"other", b"0", &dump]).unwrap_err();
    assert_eq!(error_line(&failed), "ERR Bad data format");
    assert_eq!(text(con, "EXISTS other"), "0");
    // The next one is sound again.
    call_bytes(con, &[b"RESTORE", b"other", b"0", &dump]).unwrap();
    assert_eq!(ints(con, "RL.GCRA other 1 1 1h")[0], 0);
}

#[test]
fn a_server_without_a_needed_function_refuses_the_module_and_says_which() {
    let module = faulty_module();
    let without = ["WITHOUT", "RedisModule_Replicate"];
    let log = Server::try_start_with(Some(&module), &without, &[]).err().unwrap();
    assert!(log.contains("ratelimit not loaded: the server has no RedisModule_Replicate"), "{log}");
}

#[test]
fn a_command_cannot_open_a_key_twice() {
    let server = Server::start_with(Some(&faulty_module()), &[]);
    let con = &mut server.connection();
    ints(con, "RL.GCRA key 1 1 1h");
    assert_eq!(
        error(con, "RL.PANIC TWICE key"),
        "ERR internal error of the ratelimit module, please report it"
    );
    assert_eq!(ints(con, "RL.GCRA key 1 1 1h")[..3], [0, 2, 0]);
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
