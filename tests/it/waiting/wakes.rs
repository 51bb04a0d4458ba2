//! What gives room to a line serves it: each event of the server that frees something, in whatever way. What calls of the module
//! free is in `tests/sessions/waiting_order.txt`.
//!
//! The server also looks at all lines in turn, at each cron event. Here it takes longer than a test waits until it comes to the
//! lines of the tests, so that a grant is due to the event.

use redis::{Connection, Value};

use super::{PATIENT, Waiting, count, until_tried, until_waiting};
use crate::support::client::Client;
use crate::support::{Server, WRONG_TYPE, call, call_bytes, dump, info, ints, kind_of_error, refused, text};

/// A server at which other lines are looked at before those of database 1.
struct Crowded {
    server: Server,
    /// In database 0.
    others: Vec<Waiting>,
}

/// The number of callers in the other lines, and the lines of each. At each cron event, 32 lines are looked at.
const OTHERS: usize = 64;
const LINES_EACH: usize = 32;

impl Crowded {
    fn start() -> Crowded {
        let server = Server::start(&[&PATIENT[..], &["--hz", "1"]].concat());
        let others = (0..OTHERS).map(|other| {
            let keys: Vec<String> = (0..LINES_EACH).map(|key| format!("other:{other}:{key}")).collect();
            let keys = format!("{LINES_EACH} {}", keys.join(" "));
            let mut client = Client::connect(server.port);
            client.call(&format!("RL.MULTI {keys} LIMIT CONCURRENT 1 1d first"));
            Waiting::enter_on(
                &server,
                client,
                &format!("RL.MULTI {keys} BLOCK 1d LIMIT CONCURRENT 1 1d next"),
            )
        });
        let others = others.collect();
        Crowded { server, others }
    }

    /// A connection to database 1.
    fn connection(&self) -> Connection {
        let mut con = self.server.connection();
        text(&mut con, "SELECT 1");
        con
    }

    /// A caller that waits in database 1.
    fn enter(&self, line: &str) -> Waiting {
        let mut client = Client::connect(self.server.port);
        client.call("SELECT 1");
        Waiting::enter_on(&self.server, client, line)
    }
}

/// Two leases of `k` are one call's, and one of `other` is. So who waits for one finds room if `other` replaces `k`.
fn two_leases(con: &mut Connection) {
    text(con, "DEL k other third new set string");
    ints(con, "RL.CONCURRENT k 2 1h a COST 2");
    ints(con, "RL.CONCURRENT other 2 1h a");
}

const ONE_LEASE: &str = "RL.CONCURRENT k 2 1h b BLOCK 1d";

#[test]
fn a_lease_that_ends_or_a_key_that_goes_admits_the_first_in_line() {
    let crowded = Crowded::start();
    let con = &mut crowded.connection();
    for (event, remaining) in [
        ("RL.RELEASE k a", 1),
        ("DEL k", 1),
        ("UNLINK k other", 1),
        ("PEXPIRE k 0", 1),
        ("PEXPIREAT k 1", 1),
        ("RENAME k third", 1),
        ("RENAMENX k third", 1),
        ("MOVE k 3", 1),
        ("RENAME other k", 0),
        ("COPY other k REPLACE", 0),
        ("FLUSHDB SYNC", 1),
        ("FLUSHDB ASYNC", 1),
    ] {
        two_leases(con);
        let caller = crowded.enter(ONE_LEASE);
        text(con, event);
        assert_eq!(caller.ints()[..3], [0, 2, remaining], "{event}");
    }
    two_leases(con);
    let caller = crowded.enter(ONE_LEASE);
    let Value::BulkString(other) = dump(con, "other") else { panic!("no dump") };
    call_bytes(con, &[b"RESTORE", b"k", b"0", &other, b"REPLACE"]).unwrap();
    assert_eq!(caller.ints()[..3], [0, 2, 0]);
    // An effect from elsewhere, which deletes the key.
    let caller = crowded.enter("RL.CONCURRENT k 2 1h c BLOCK 1d");
    call_bytes(con, &[b"RL.APPLY", b"k", &[1, 0, 0]]).unwrap();
    assert_eq!(caller.ints()[..3], [0, 2, 1]);
    // An eviction.
    two_leases(con);
    let caller = crowded.enter(ONE_LEASE);
    text(con, "CONFIG SET maxmemory-policy allkeys-random");
    text(con, "CONFIG SET maxmemory 1");
    assert_eq!(caller.ints()[..3], [0, 2, 1]);
    assert_ne!(info(con, "stats", "evicted_keys").as_deref(), Some("0"));
}

type Run = fn(&mut Connection, &str);

/// Ways to run a line within something larger.
const WITHIN: [(&str, Run); 2] = [
    ("a transaction", |con, line| {
        for line in ["MULTI", line, "EXEC"] {
            text(con, line);
        }
    }),
    ("a script", |con, line| {
        let words: Vec<&str> = line.split(' ').collect();
        let script =
            "redis.call(unpack(ARGV)) return redis.call('RL.PEEK', 'k', 'CONCURRENT', '2', '1h', 'z')";
        let reply = call(con, &[&["EVAL", script, "0"], &words[..]].concat()).unwrap();
        // Within the script there is room: the grant comes afterwards.
        assert!(!refused(&reply), "{line}");
    }),
];

#[test]
fn what_happens_in_a_transaction_or_a_script_counts_afterwards() {
    let crowded = Crowded::start();
    let con = &mut crowded.connection();
    for (within, run) in WITHIN {
        for event in ["RL.RELEASE k a", "RL.MULTIRELEASE 1 k a", "DEL k", "RENAME other k", "FLUSHDB"] {
            two_leases(con);
            let caller = crowded.enter(ONE_LEASE);
            run(con, event);
            assert_eq!(caller.ints()[..2], [0, 2], "{event} in {within}");
        }
    }
    // One that takes back what it gave admits no caller.
    two_leases(con);
    let mut caller = crowded.enter(ONE_LEASE);
    for line in ["MULTI", "RENAME k away", "RENAME away k", "EXEC"] {
        text(con, line);
    }
    until_tried(&crowded.server);
    assert!(caller.waits());
    text(con, "RL.RELEASE k a");
    assert_eq!(caller.ints()[..3], [0, 2, 1]);
}

#[test]
fn databases_that_are_flushed_or_swapped_admit_all_who_fit() {
    let crowded = Crowded::start();
    let con = &mut crowded.connection();
    two_leases(con);
    text(con, "COPY other k DB 2");
    let caller = crowded.enter(ONE_LEASE);
    let mut next = crowded.enter("RL.CONCURRENT k 2 1h c BLOCK 1d");
    text(con, "SWAPDB 2 1");
    assert_eq!(caller.ints()[..3], [0, 2, 0]);
    assert!(next.waits());
    // Back again: in what is database 1 now, both leases are taken.
    text(con, "SWAPDB 1 2");
    until_tried(&crowded.server);
    assert!(next.waits());
    text(con, "RL.RELEASE k a");
    assert_eq!(next.ints()[..3], [0, 2, 1]);

    two_leases(con);
    let [first, second, mut third] =
        ["b", "c", "d"].map(|id| crowded.enter(&format!("RL.CONCURRENT k 2 1h {id} BLOCK 1d")));
    text(con, "FLUSHALL");
    assert_eq!((first.ints()[2], second.ints()[2]), (1, 0));
    for other in crowded.others {
        assert!(other.text().starts_with("[[0, 1, 0, "));
    }
    assert!(third.waits());
}

#[test]
fn another_type_is_an_error_for_all_in_line() {
    let crowded = Crowded::start();
    let con = &mut crowded.connection();
    text(con, "RL.POLICY SET p LIMIT CONCURRENT 2 1h");
    for event in
        ["SET k value", "SUNIONSTORE k set", "RENAME set k", "COPY set k REPLACE", "BITOP NOT k string"]
    {
        two_leases(con);
        text(con, "SADD set member");
        text(con, "SET string value");
        let callers = [
            ONE_LEASE,
            "RL.CONCURRENT k 2 1h c COST 2 BLOCK 1d",
            "RL.MULTI 2 new k BLOCK 1d LIMIT CONCURRENT 2 1h d",
            "RL.ASK k p ID e BLOCK 1d",
        ]
        .map(|line| crowded.enter(line));
        text(con, event);
        for caller in callers {
            assert_eq!(kind_of_error(caller.error()), WRONG_TYPE, "{event}");
        }
        until_waiting(con, OTHERS as u64);
        assert_eq!(text(con, "EXISTS new"), "0", "{event}");
    }
    assert_eq!((count(con, "waited_granted"), count(con, "waited_timeout")), (0, 0));
}

#[test]
fn what_sends_no_event_is_noticed_by_and_by() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    // Whether the server deletes what has expired, or leaves it to the next who looks.
    for active in ["1", "0"] {
        text(con, &format!("DEBUG SET-ACTIVE-EXPIRE {active}"));
        text(con, "DEL k");
        ints(con, "RL.CONCURRENT k 1 1h a");
        let caller = Waiting::enter(&server, "RL.CONCURRENT k 1 1h b BLOCK 1m");
        text(con, "PEXPIRE k 300");
        assert_eq!(caller.ints(), [0, 1, 0, 0, 3_600_000], "{active}");
    }
    // A larger limit of a policy.
    text(con, "RL.POLICY SET p LIMIT CONCURRENT 1 1h");
    let caller = Waiting::enter(&server, "RL.ASK k p ID c BLOCK 1m");
    text(con, "RL.POLICY SET p LIMIT CONCURRENT 2 1h");
    assert_eq!(caller.ints()[..3], [0, 2, 0]);
    // A reload keeps the line.
    let mut caller = Waiting::enter(&server, "RL.CONCURRENT k 1 1h d BLOCK 1m");
    text(con, "DEBUG RELOAD");
    until_tried(&server);
    assert!(caller.waits());
    text(con, "RL.RELEASE k b");
    text(con, "RL.RELEASE k c");
    assert_eq!(caller.ints()[0], 0);
}
