//! A panic in the module does not end the server, and a server without a needed function refuses the module.

use redis::Value;

use crate::support::{Server, call, call_bytes, error, error_line, faulty_module, info, ints, text};

#[test]
fn a_panic_in_a_command_is_an_error_reply() {
    let server = Server::start_with(Some(&faulty_module()), &[]);
    let con = &mut server.connection();
    ints(con, "RL.GCRA key 1 1 3600000");
    let dump = call(con, &["DUMP", "key"]).unwrap();
    for _ in 0..3 {
        assert_eq!(
            error(con, "RL.PANIC NOW"),
            "ERR internal error of the ratelimit module, please report it"
        );
    }
    assert_eq!(call(con, &["DUMP", "key"]).unwrap(), dump);
    assert_eq!(ints(con, "RL.GCRA key 1 1 3600000")[0], 0);
    assert_eq!(info(con, "ratelimit", "ratelimit_errors").as_deref(), Some("3"));
}

#[test]
fn a_panic_while_a_value_is_loaded_is_a_failed_load() {
    let server = Server::start_with(Some(&faulty_module()), &[]);
    let con = &mut server.connection();
    ints(con, "RL.GCRA key 1 1 3600000");
    let Value::BulkString(dump) = call(con, &["DUMP", "key"]).unwrap() else { panic!("DUMP replies bytes") };
    text(con, "RL.PANIC LOAD");
    let failed = call_bytes(con, &[b"RESTORE", b"other", b"0", &dump]).unwrap_err();
    assert_eq!(error_line(&failed), "ERR Bad data format");
    assert_eq!(text(con, "EXISTS other"), "0");
    // The next one is sound again.
    call_bytes(con, &[b"RESTORE", b"other", b"0", &dump]).unwrap();
    assert_eq!(ints(con, "RL.GCRA other 1 1 3600000")[0], 0);
}

#[test]
fn a_server_without_a_needed_function_refuses_the_module_and_says_which() {
    let module = faulty_module();
    let without = ["WITHOUT", "RedisModule_Replicate"];
    let log = Server::try_start_with(Some(&module), &without, &[]).err().unwrap();
    assert!(log.contains("ratelimit not loaded: the server has no RedisModule_Replicate"), "{log}");
}
