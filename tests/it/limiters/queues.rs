//! `RL.XADD`, `RL.LPUSH`, `RL.RPUSH`: queues of the server's own that never grow longer than the caller says.

use std::thread;

use redis::{Connection, Value};

use crate::support::{AOF_AT_ONCE, Server, WRONG_TYPE, call, error, info, simple, sync, text, wait_for};

const BAD_ID: &str = "ERR Invalid stream ID specified as stream command argument";

#[test]
fn a_queue_takes_as_much_as_was_said_and_refuses_the_rest() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    assert_eq!(text(con, "RL.XADD stream 2 5-1 name value"), "5-1");
    assert_eq!(text(con, "RL.XADD stream 2 5-* name value other 2"), "5-2");
    let dump = call(con, &["DUMP", "stream"]).unwrap();
    assert_eq!(text(con, "RL.XADD stream 2 * name value"), "(nil)");
    assert_eq!(call(con, &["DUMP", "stream"]).unwrap(), dump);
    assert_eq!(text(con, "XRANGE stream - +"), "[[5-1, [name, value]], [5-2, [name, value, other, 2]]]");
    // What was deleted leaves room; what is pending does not.
    text(con, "XDEL stream 5-1");
    assert_eq!(text(con, "RL.XADD stream 2 7 name value"), "7-0");

    assert_eq!(text(con, "RL.RPUSH list 3 a b"), "2");
    assert_eq!(text(con, "RL.RPUSH list 3 c d"), "(nil)", "all or none");
    assert_eq!(text(con, "RL.LPUSH list 3 c"), "3");
    assert_eq!(text(con, "RL.LPUSH list 3 d"), "(nil)");
    assert_eq!(text(con, "LRANGE list 0 -1"), "[c, a, b]");
    assert_eq!(text(con, "RL.LPUSH new 3 a b c"), "3");
    assert_eq!(text(con, "LRANGE new 0 -1"), "[c, b, a]");
    assert_eq!(text(con, "RL.LPUSH missing 3 a b c d"), "(nil)");
    assert_eq!(text(con, "EXISTS missing"), "0");
    assert_eq!(text(con, "TYPE stream"), "stream");
    for (field, expected) in [
        ("xadd_admitted", "3"),
        ("xadd_refused", "1"),
        ("rpush_admitted", "1"),
        ("rpush_refused", "1"),
        ("lpush_admitted", "2"),
        ("lpush_refused", "2"),
    ] {
        assert_eq!(
            info(con, "ratelimit", &format!("ratelimit_{field}")).as_deref(),
            Some(expected),
            "{field}"
        );
    }
}

#[test]
fn what_is_wrong_is_told_and_changes_nothing() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, "RL.XADD stream 5 5-1 name value");
    text(con, "RL.RPUSH list 5 a");
    let digest = text(con, "DEBUG DIGEST");
    for (line, expected) in [
        (
            "RL.XADD stream 5 * a b c",
            "ERR value is missing: RL.XADD key maxlen id field value [field value ...]",
        ),
        ("RL.LPUSH list 5", "ERR element is missing: RL.LPUSH key maxlen element [element ...]"),
        ("RL.RPUSH list", "ERR maxlen is missing: RL.RPUSH key maxlen element [element ...]"),
        // An id of no form; and options of XADD's, by which a caller would trim what others wait for.
        ("RL.XADD stream 5 - a b", BAD_ID),
        ("RL.XADD stream 5 5-1-1 a b", BAD_ID),
        ("RL.XADD stream 5 5x a b", BAD_ID),
        ("RL.XADD stream 5 MAXLEN 0 * a b", BAD_ID),
        ("RL.XADD stream 5 NOMKSTREAM * a b c", BAD_ID),
        // Also where the queue is full: the call is as wrong then.
        ("RL.XADD stream 1 5x a b", BAD_ID),
        ("RL.XADD stream 5 99999999999999999999 a b", BAD_ID),
        (
            "RL.XADD stream 5 5-1 a b",
            "ERR The ID specified in XADD is equal or smaller than the target stream top item",
        ),
        ("RL.XADD stream 5 0-0 a b", "ERR The ID specified in XADD must be greater than 0-0"),
        ("RL.XADD list 5 * a b", "WRONGTYPE the key holds a list, not a stream"),
        ("RL.LPUSH stream 5 a", "WRONGTYPE the key holds a stream, not a list"),
        ("XADD list * a b", WRONG_TYPE),
    ] {
        assert_eq!(error(con, line), expected, "{line}");
        assert_eq!(text(con, "DEBUG DIGEST"), digest, "{line}");
    }
    text(con, "RL.GCRA limiter 1 1 1s");
    assert_eq!(
        error(con, "RL.XADD limiter 5 * a b"),
        "WRONGTYPE the key holds a value of a module, not a stream"
    );
    assert_eq!(error(con, "RL.GCRA stream 1 1 1s"), "WRONGTYPE the key holds a stream, not GCRA");
}

#[test]
fn the_servers_own_command_is_what_replicas_and_the_aof_get() {
    let mut server = Server::start(&[&AOF_AT_ONCE[..], &["--aof-use-rdb-preamble", "no"]].concat());
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut server.connection();
    for i in 0..20 {
        text(con, &format!("RL.XADD stream 10 * number {i}"));
        text(con, &format!("RL.LPUSH list 7 {i} {i}"));
    }
    let script = "redis.call('RL.XADD', KEYS[1], 11, '*', 'by', 'script') return redis.call('RL.RPUSH', KEYS[2], 7, 'x')";
    assert_eq!(simple(&call(con, &["EVAL", script, "2", "stream", "list"]).unwrap()), "7");
    for line in ["MULTI", "RL.XADD stream 12 * in transaction", "RL.XADD stream 12 * in transaction"] {
        text(con, line);
    }
    assert!(text(con, "EXEC").ends_with(", (nil)]"));
    sync(&server, &replica);
    let shown = |con: &mut Connection| (text(con, "XRANGE stream - +"), text(con, "LRANGE list 0 -1"));
    let expected = shown(con);
    assert_eq!(text(con, "XLEN stream"), "12");
    assert_eq!(shown(&mut replica.connection()), expected);
    let calls = info(&mut replica.connection(), "commandstats", "cmdstat_rl.xadd");
    assert_eq!(calls, None, "no request came to the replica, only effects");
    let refused = error(&mut replica.connection(), "RL.XADD stream 99 * a b");
    assert_eq!(refused, "READONLY You can't write against a read only replica.");
    let digest = text(con, "DEBUG DIGEST");
    server.restart();
    assert_eq!(text(&mut server.connection(), "DEBUG DIGEST"), digest);
    assert_eq!(shown(&mut server.connection()), expected);
}

#[test]
fn blocked_readers_wake() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, "XGROUP CREATE stream group $ MKSTREAM");
    for (wait, add, got) in [
        (
            "XREADGROUP GROUP group me BLOCK 60000 STREAMS stream >",
            "RL.XADD stream 10 5-1 a b",
            "[5-1, [a, b]]",
        ),
        ("XREAD BLOCK 60000 STREAMS new $", "RL.XADD new 10 6-1 c d", "[6-1, [c, d]]"),
        ("BLPOP list 60", "RL.RPUSH list 10 e", "[list, e]"),
    ] {
        let mut reader = server.connection();
        let waiting = thread::spawn(move || format!("{:?}", text(&mut reader, wait)));
        wait_for("the reader", || info(con, "clients", "blocked_clients").as_deref() == Some("1"));
        text(con, add);
        let read = waiting.join().unwrap();
        assert!(read.contains(got), "{wait}: {read}");
    }
}

#[test]
fn a_consumer_group_sets_the_pace() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, "XGROUP CREATE jobs workers $ MKSTREAM");
    for _ in 0..10 {
        assert_ne!(text(con, "RL.XADD jobs 10 * request details"), "(nil)");
    }
    assert_eq!(text(con, "RL.XADD jobs 10 * request details"), "(nil)");
    // Read is not done: a job takes its place until it is deleted.
    let id = read_one(con, "first").unwrap();
    assert_eq!(text(con, "RL.XADD jobs 10 * request details"), "(nil)");
    assert_eq!(text(con, &format!("XACK jobs workers {id}")), "1");
    assert_eq!(text(con, "RL.XADD jobs 10 * request details"), "(nil)");
    assert_eq!(text(con, &format!("XDEL jobs {id}")), "1");
    assert_ne!(text(con, "RL.XADD jobs 10 * request details"), "(nil)");
    assert_eq!(text(con, "RL.XADD jobs 10 * request details"), "(nil)");
}

/// The id of the next job, if there is one.
fn read_one(con: &mut Connection, consumer: &str) -> Option<String> {
    let words =
        ["XREADGROUP", "GROUP", "workers", consumer, "COUNT", "1", "BLOCK", "20", "STREAMS", "jobs", ">"];
    let reply = call(con, &words).unwrap();
    let inside = |value: &Value, place: usize| match value {
        Value::Array(elements) => elements[place].clone(),
        other => panic!("{other:?}"),
    };
    (reply != Value::Nil).then(|| simple(&inside(&inside(&inside(&inside(&reply, 0), 1), 0), 0)))
}

#[test]
fn a_full_server_and_one_without_the_command_say_so() {
    let server = Server::start(&["--maxmemory", "1"]);
    let con = &mut server.connection();
    let full = "OOM command not allowed when used memory > 'maxmemory'.";
    assert_eq!(error(con, "RL.XADD stream 10 * a b"), full);
    assert_eq!(error(con, "RL.LPUSH list 10 a"), full);

    let server = Server::start(&["--rename-command", "XADD", ""]);
    let con = &mut server.connection();
    let refused = error(con, "RL.XADD stream 10 * a b");
    assert!(refused.starts_with("ERR unknown command 'XADD'"), "{refused}");
    assert_eq!(text(con, "EXISTS stream"), "0");
    assert_eq!(info(con, "ratelimit", "ratelimit_xadd_admitted").as_deref(), Some("0"));
}
