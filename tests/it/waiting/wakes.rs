//! What gives room to a line serves it: each event that frees something, in whatever way.
//!
//! The server also looks at all lines in turn, at each cron event. Here it takes minutes until it comes to the lines of the
//! tests, so that a grant soon after an event is due to the event.

use redis::{Connection, Value};

use super::{PATIENT, Waiting, count, field, until_tried, until_waiting};
use crate::support::client::Client;
use crate::support::{
    Server, WRONG_TYPE, call, call_bytes, dump, info, ints, kind_of_error, refused, text, wait_for,
};

/// A server at which other lines are looked at before those of database 1.
struct Crowded {
    server: Server,
    /// In database 0.
    others: Vec<Waiting>,
}

/// The number of callers in the other lines. Each stands in as many as a call can have.
const OTHERS: usize = 64;
const LINES_EACH: usize = 64;

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

    /// Checks that the other lines have not been looked at so long that the tests' lines were, too.
    fn finish(mut self) {
        assert!(self.others.iter_mut().all(Waiting::waits));
    }
}

/// Two leases of `k` are one call's, and one of `other` is. So who waits for one finds room if `other` replaces `k`.
fn two_leases(con: &mut Connection) {
    ints(con, "RL.CONCURRENT k 2 1h a COST 2");
    ints(con, "RL.CONCURRENT other 2 1h a");
}

const ONE_LEASE: &str = "RL.CONCURRENT k 2 1h b BLOCK 1d";

#[test]
fn a_lease_that_ends_or_a_key_that_goes_admits_the_first_in_line() {
    let crowded = Crowded::start();
    let con = &mut crowded.connection();
    text(con, "RL.POLICY SET p LIMIT CONCURRENT 2 1h");
    for (event, remaining) in [
        ("RL.RELEASE k a", 1),
        ("RL.MULTIRELEASE 2 missing k a", 1),
        ("DEL k", 1),
        ("UNLINK k other", 1),
        ("PEXPIRE k 0", 1),
        ("PEXPIREAT k 1", 1),
        ("FLUSHDB", 1),
        ("FLUSHDB SYNC", 1),
        ("FLUSHDB ASYNC", 1),
        ("SWAPDB 1 2", 1),
        ("RENAME k third", 1),
        ("RENAMENX k third", 1),
        ("MOVE k 3", 1),
        ("RENAME other k", 0),
        ("COPY other k REPLACE", 0),
    ] {
        text(con, "FLUSHDB");
        two_leases(con);
        let caller = crowded.enter(ONE_LEASE);
        text(con, event);
        assert_eq!(caller.ints()[..3], [0, 2, remaining], "{event}");
    }
    crowded.finish();
}

#[test]
fn a_key_that_is_restored_over_another_admits_the_first_in_line() {
    let crowded = Crowded::start();
    let con = &mut crowded.connection();
    two_leases(con);
    let caller = crowded.enter(ONE_LEASE);
    let Value::BulkString(other) = dump(con, "other") else { panic!("no dump") };
    call_bytes(con, &[b"RESTORE", b"k", b"0", &other, b"REPLACE"]).unwrap();
    assert_eq!(caller.ints()[..3], [0, 2, 0]);
    // An effect from elsewhere, which deletes the key.
    let caller = crowded.enter("RL.CONCURRENT k 2 1h c BLOCK 1d");
    call_bytes(con, &[b"RL.APPLY", b"k", &[1, 0, 0]]).unwrap();
    assert_eq!(caller.ints()[..3], [0, 2, 1]);
    crowded.finish();
}

#[test]
fn what_is_given_back_admits_the_first_in_line() {
    let crowded = Crowded::start();
    let con = &mut crowded.connection();
    text(con, "RL.POLICY SET p LIMIT FIXEDWINDOW 5 1h");
    let calls = [
        "RL.FIXEDWINDOW k 5 1h COST 3 BLOCK 1d",
        "RL.MULTI 1 k COST 3 BLOCK 1d LIMIT FIXEDWINDOW 5 1h",
        "RL.ASK k p COST 3 BLOCK 1d",
    ];
    for event in [
        "RL.REFUND k FIXEDWINDOW 5 1h COST 3",
        "RL.MULTIREFUND 2 other k COST 3 LIMIT FIXEDWINDOW 5 1h",
        "RL.ASKREFUND k p COST 3",
        "RL.ASKREFUND other p COST 3 KEYS k",
        "RL.SETTLE k job FIXEDWINDOW 5 1h COST 2",
        "RL.MULTISETTLE 2 other k job COST 2 LIMIT FIXEDWINDOW 5 1h",
        "RL.ASKSETTLE k p job COST 2",
    ] {
        for line in calls {
            text(con, "FLUSHDB");
            ints(con, "RL.FIXEDWINDOW k 5 1h COST 5 HOLD job 1h");
            let caller = crowded.enter(line);
            text(con, event);
            let reply = caller.text();
            assert!(reply.trim_start_matches('[').starts_with("0, 5, 0, "), "{event}: {line}: {reply}");
        }
    }
    crowded.finish();
}

#[test]
fn a_charge_that_makes_room_admits_the_first_in_line() {
    let crowded = Crowded::start();
    let con = &mut crowded.connection();
    text(con, "RL.POLICY SET p LIMIT CONCURRENT 2 50ms");
    let lease = "RL.CONCURRENT k 2 1h a COST 2";
    for (uses_up, waits, event) in [
        // A lease asked again, or renewed, that ends sooner.
        (lease, ONE_LEASE, "RL.CONCURRENT k 2 50ms a"),
        (lease, ONE_LEASE, "RL.MULTI 2 other k LIMIT CONCURRENT 2 50ms a"),
        (lease, ONE_LEASE, "RL.ASK k p ID a"),
        (lease, ONE_LEASE, "RL.RENEW k 50ms a"),
        // A faster rate fills a bucket, and a shorter window ends.
        ("RL.TOKENBUCKET k 9 1 1h COST 9", "RL.TOKENBUCKET k 9 1 1h BLOCK 1d", "RL.TOKENBUCKET k 9 9000 1s"),
        ("RL.FIXEDWINDOW k 9 1h COST 9", "RL.FIXEDWINDOW k 9 1h BLOCK 1d", "RL.FIXEDWINDOW k 9 1ms"),
        ("RL.SLIDINGLOG k 9 1h COST 9", "RL.SLIDINGLOG k 9 1h BLOCK 1d", "RL.SLIDINGLOG k 9 1ms"),
    ] {
        text(con, "FLUSHDB");
        ints(con, uses_up);
        let caller = crowded.enter(waits);
        // A while passes, so that the window or the bucket has room by the new parameters.
        wait_for(event, || !refused(&call(con, &event.split(' ').collect::<Vec<_>>()).unwrap()));
        assert_eq!(caller.ints()[0], 0, "{event}");
    }
    crowded.finish();
}

type Run = fn(&mut Connection, &str);

/// Ways to run a line within something larger.
const WITHIN: [(&str, Run); 3] = [
    ("a transaction", |con, line| {
        text(con, "MULTI");
        text(con, line);
        text(con, "EXEC");
    }),
    ("a script", |con, line| {
        let words: Vec<&str> = line.split(' ').collect();
        let script =
            "redis.call(unpack(ARGV)) return redis.call('RL.PEEK', 'k', 'CONCURRENT', '2', '1h', 'z')";
        let reply = call(con, &[&["EVAL", script, "0"], &words[..]].concat()).unwrap();
        // Within the script there is room: the grant comes afterwards.
        assert!(!refused(&reply), "{line}");
    }),
    ("a function", |con, line| {
        let library = "#!lua name=lib\n\
                       redis.register_function('run', function(_, args) return redis.call(unpack(args)) end)";
        call(con, &["FUNCTION", "LOAD", "REPLACE", library]).unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        call(con, &[&["FCALL", "run", "0"], &words[..]].concat()).unwrap();
    }),
];

#[test]
fn what_happens_in_a_transaction_or_a_script_counts_afterwards() {
    let crowded = Crowded::start();
    let con = &mut crowded.connection();
    for (within, run) in WITHIN {
        for event in ["RL.RELEASE k a", "RL.MULTIRELEASE 1 k a", "DEL k", "RENAME other k", "FLUSHDB"] {
            text(con, "FLUSHDB");
            two_leases(con);
            let caller = crowded.enter(ONE_LEASE);
            run(con, event);
            assert_eq!(caller.ints()[..2], [0, 2], "{event} in {within}");
        }
    }
    crowded.finish();
}

#[test]
fn a_transaction_that_takes_back_what_it_gave_admits_nobody() {
    let crowded = Crowded::start();
    let con = &mut crowded.connection();
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
fn all_databases_that_are_flushed_admit_everybody_who_fits() {
    for event in ["FLUSHALL", "FLUSHALL SYNC", "FLUSHALL ASYNC"] {
        let crowded = Crowded::start();
        let con = &mut crowded.connection();
        two_leases(con);
        let [first, second] = [crowded.enter(ONE_LEASE), crowded.enter("RL.CONCURRENT k 2 1h c BLOCK 1d")];
        let mut third = crowded.enter("RL.CONCURRENT k 2 1h d BLOCK 1d");
        text(con, event);
        assert_eq!((first.ints()[2], second.ints()[2]), (1, 0), "{event}");
        for other in crowded.others {
            assert!(other.text().starts_with("[[0, 1, 0, "), "{event}");
        }
        assert!(third.waits(), "{event}");
    }
}

#[test]
fn a_database_with_room_in_the_place_of_another_admits_the_first_in_line() {
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
    crowded.finish();
}

#[test]
fn another_type_is_an_error_for_everybody_in_line() {
    let crowded = Crowded::start();
    let con = &mut crowded.connection();
    text(con, "RL.POLICY SET p LIMIT CONCURRENT 2 1h");
    for event in
        ["SET k value", "SUNIONSTORE k set", "RENAME set k", "COPY set k REPLACE", "BITOP NOT k string"]
    {
        text(con, "FLUSHDB");
        text(con, "SADD set member");
        text(con, "SET string value");
        two_leases(con);
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
    crowded.finish();
}

#[test]
fn a_key_that_comes_to_hold_another_limit_admits_who_waits() {
    let crowded = Crowded::start();
    let con = &mut crowded.connection();
    two_leases(con);
    let callers = [ONE_LEASE, "RL.CONCURRENT k 2 1h c BLOCK 1d"].map(|line| crowded.enter(line));
    ints(con, "RL.GCRA gcra 9 1 1h");
    text(con, "RENAME gcra k");
    // The leases are gone with the old key, so both are admitted beside the other limit.
    for caller in callers {
        assert_eq!(caller.ints()[0], 0);
    }
    assert!(text(con, "RL.INFO k").contains("stored_limits, 2"));
    crowded.finish();
}

#[test]
fn an_eviction_admits_the_first_in_line() {
    let crowded = Crowded::start();
    let con = &mut crowded.connection();
    two_leases(con);
    let caller = crowded.enter(ONE_LEASE);
    text(con, "CONFIG SET maxmemory-policy allkeys-random");
    text(con, "CONFIG SET maxmemory 1");
    assert_eq!(caller.ints()[..3], [0, 2, 1]);
    assert_ne!(info(con, "stats", "evicted_keys").as_deref(), Some("0"));
}

#[test]
fn an_expiry_from_outside_admits_the_first_in_line() {
    // Whether the server deletes what has expired, or leaves it to the next who looks.
    for active in ["1", "0"] {
        let server = Server::start(&[]);
        let con = &mut server.connection();
        text(con, &format!("DEBUG SET-ACTIVE-EXPIRE {active}"));
        ints(con, "RL.CONCURRENT k 1 1h a");
        let caller = Waiting::enter(&server, "RL.CONCURRENT k 1 1h b BLOCK 1m");
        text(con, "PEXPIRE k 300");
        let expiry: u64 = text(con, "PEXPIRETIME k").parse().unwrap();
        assert_eq!(caller.ints(), [0, 1, 0, 0, 3_600_000], "{active}");
        let granted = field(con, "k", "last_charge_us");
        assert!(granted >= expiry * 1000, "{active}: {granted}, {expiry}");
    }
}

#[test]
fn a_reload_keeps_the_line() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT k 1 1h a");
    let mut caller = Waiting::enter(&server, "RL.CONCURRENT k 1 1h b BLOCK 1m");
    text(con, "DEBUG RELOAD");
    until_tried(&server);
    assert!(caller.waits());
    text(con, "RL.RELEASE k a");
    assert_eq!(caller.ints()[0], 0);
}
