//! A server that sends no effects counts its changes as others do, and some servers always send.

use redis::{Connection, Value};

use crate::support::callers::{propagates, wait_for_a_check, wait_until_unsent};
use crate::support::contents::contents;
use crate::support::machine::persistence;
use crate::support::{AOF_AT_ONCE, Server, simple, text, wait_for};

/// Calls and by how much each of them raises the number of changes.
const CHANGES: [(&str, u64); 41] = [
    ("RL.GCRA gcra 1 1 1h", 1),
    ("RL.GCRA gcra 1 1 1h", 1),
    ("RL.GCRA gcra 1 1 1h", 0),
    ("RL.GCRA gcra 1 1 1h COST 0", 0),
    ("RL.PEEK gcra GCRA 1 1 1h", 0),
    ("RL.REFUND gcra GCRA 1 1 1h", 1),
    ("RL.TOKENBUCKET missing 1 1 1s COST 2", 0),
    ("RL.SLIDINGLOG log 2 1h COST 2", 1),
    ("RL.SLIDINGLOG log 2 1h", 0),
    ("RL.SLIDINGLOG hammered 1 1h COUNTREFUSED", 1),
    ("RL.SLIDINGLOG hammered 1 1h COUNTREFUSED", 1),
    ("RL.SLIDINGWINDOW precise 2 1h PRECISION 1m", 1),
    ("RL.CONCURRENT lease 1 1h a", 1),
    ("RL.CONCURRENT lease 1 1h b", 0),
    ("RL.RENEW lease 2h a", 1),
    ("RL.RELEASE lease b", 0),
    ("RL.RELEASE lease a", 1),
    ("RL.MULTI 1 both LIMIT GCRA 0 1 1h LIMIT SLIDINGLOG 9 1h", 1),
    ("RL.MULTI 1 both LIMIT GCRA 0 1 1h LIMIT SLIDINGLOG 9 1h", 0),
    ("RL.MULTI 2 one two LIMIT GCRA 0 1 1h", 1),
    ("RL.MULTI 2 one two LIMIT GCRA 0 1 1h", 0),
    ("RL.MULTIREFUND 2 one two LIMIT GCRA 0 1 1h", 1),
    ("RL.GCRA held 9 1 1h HOLD a 1h", 1),
    ("RL.GCRA held 9 1 1h HOLD a 1h", 0),
    ("RL.SETTLE held a GCRA 9 1 1h COST 1", 1),
    ("RL.SETTLE held a GCRA 9 1 1h COST 1", 0),
    ("RL.MULTI 2 held new HOLD a 1h LIMIT GCRA 9 1 1h", 1),
    ("RL.MULTISETTLE 2 held new a COST 4 LIMIT GCRA 9 1 1h", 1),
    ("RL.MULTISETTLE 2 held new a COST 4 LIMIT GCRA 9 1 1h", 0),
    ("RL.ASK a alone", 1),
    ("RL.ASK a alone", 0),
    ("RL.ASK b several KEYS c", 1),
    ("RL.ASK b several KEYS c", 0),
    ("RL.ASK fresh several COST 0 KEYS c", 0),
    ("RL.ASKPEEK b several KEYS c", 0),
    ("RL.ASKREFUND fresh several KEYS other", 0),
    ("RL.ASKREFUND b several KEYS c", 1),
    ("RL.ASK d alone HOLD r1 1h", 1),
    ("RL.ASK d alone HOLD r1 1h", 0),
    ("RL.ASKSETTLE d alone r2 COST 0", 0),
    ("RL.ASKSETTLE d alone r1 COST 0", 1),
];

#[test]
fn a_change_counts_once_whether_its_effect_is_sent_or_not() {
    let (alone, sending) = (Server::start(&[]), Server::start(&AOF_AT_ONCE));
    for server in [&alone, &sending] {
        text(&mut server.connection(), "RL.POLICY SET alone LIMIT GCRA 0 1 1h");
        text(&mut server.connection(), "RL.POLICY SET several LIMIT GCRA 0 1 1h LIMIT FIXEDWINDOW 9 1h ON 2");
    }
    wait_until_unsent(&alone);
    for (server, sends) in [(&alone, false), (&sending, true)] {
        let con = &mut server.connection();
        for (line, expected) in CHANGES {
            let before = changes(con);
            text(con, line);
            assert_eq!(changes(con) - before, expected, "{line}, sends: {sends}");
        }
        assert_eq!(propagates(con), sends);
    }
}

#[test]
fn effects_are_sent_from_each_event_on_after_which_somebody_may_receive_them() {
    for event in ["BGSAVE", "SAVE", "CONFIG SET save \"\"", "REPLICAOF 127.0.0.1 1", "DEBUG RELOAD"] {
        let server = Server::start(&[]);
        wait_until_unsent(&server);
        // In one request, so that no check comes in between.
        let mut pipe = redis::pipe();
        for line in [event, "INFO ratelimit"] {
            pipe.add_command(command(line));
        }
        let replies: Vec<Value> = pipe.query(&mut server.connection()).unwrap();
        assert!(simple(&replies[1]).contains("ratelimit_propagates:1"), "{event}: {replies:?}");
    }
}

fn command(line: &str) -> redis::Cmd {
    let mut command = redis::Cmd::new();
    command.arg(line.replace('"', "").split(' ').collect::<Vec<_>>());
    command
}

#[test]
fn a_save_point_is_reached_by_calls_whose_effects_are_not_sent() {
    let mut server = Server::start(&["--save", "1 2"]);
    wait_until_unsent(&server);
    let con = &mut server.connection();
    assert!(!server.dir().join("dump.rdb").exists());
    for line in ["RL.GCRA gcra 9 1 1h", "RL.MULTI 2 one two LIMIT SLIDINGLOG 9 1h"] {
        assert!(!propagates(con));
        text(con, line);
    }
    wait_for("the save", || changes(con) == 0);
    let expected = contents(&server);
    assert_eq!(expected.len(), 3);
    server.kill();
    server.start_again();
    assert_eq!(contents(&server), expected);
}

#[test]
fn a_transaction_and_a_script_count_their_changes() {
    let server = Server::start(&[]);
    wait_until_unsent(&server);
    let con = &mut server.connection();
    text(con, "MULTI");
    for _ in 0..3 {
        text(con, "RL.GCRA gcra 1 1 1h");
    }
    text(con, "EXEC");
    assert_eq!(changes(con), 2);
    text(con, "EVAL return{redis.call('RL.GCRA','other',0,1,'1h'),redis.call('RL.GCRA','other',0,1,'1h')} 0");
    assert_eq!(changes(con), 3);
    assert!(!propagates(con));
}

#[test]
fn a_cluster_node_and_a_server_that_hides_its_settings_always_send() {
    let alone = Server::start(&["--hz", "100"]);
    let node = Server::start(&["--hz", "100", "--cluster-enabled", "yes"]);
    let hides = Server::start(&["--hz", "100", "--rename-command", "CONFIG", ""]);
    // Another name is none that the module asks by.
    let renames = Server::start(&["--hz", "100", "--rename-command", "CONFIG", "SETTINGS"]);
    wait_until_unsent(&alone);
    wait_for_a_check(&renames);
    for server in [&node, &hides, &renames] {
        assert!(propagates(&mut server.connection()), "{}", server.log());
    }
}

fn changes(con: &mut Connection) -> u64 {
    persistence(con, "rdb_changes_since_last_save").parse().unwrap()
}
