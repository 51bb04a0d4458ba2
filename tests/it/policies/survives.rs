//! Policies are part of the data set: they survive restarts, and every replica has those of its primary.

use std::fs;
use std::thread::scope;

use redis::Connection;

use super::folder::Folder;
use super::{each, get, policies, set, stats};
use crate::support::replicas::{LARGE_BACKLOG, NOWHERE, SLOWLY, STRICT, attach, counter, follow, is_up};
use crate::support::{
    AOF_AT_ONCE, Server, T0, call, error, info, ints, rewrite_aof, rewrites_aof, sync, text, wait_for,
};

const SAVES: [&str; 2] = ["--save", "3600 1"];
const NO_PREAMBLE: [&str; 2] = ["--aof-use-rdb-preamble", "no"];

/// Stores two policies, deletes one, and changes the other. Returns what is to be found from then on.
fn change(con: &mut Connection) -> (String, String) {
    set(con, "gone LIMIT UNIFORM 1s");
    set(con, "api LIMIT GCRA 9 10 1h");
    set(con, "api LIMIT GCRA 9 10 1h LIMIT FIXEDWINDOW 20 60m");
    set(con, "mail VERSION 7 SHADOW LIMIT CALENDAR 8 DAY TZ Europe/Lisbon");
    assert_eq!(text(con, "RL.POLICY DEL gone"), "1");
    policies(con)
}

#[test]
fn policies_survive_a_restart() {
    let keys_alone = [&AOF_AT_ONCE[..], &NO_PREAMBLE].concat();
    let hides_settings = [&keys_alone[..], &["--rename-command", "CONFIG", "hidden"]].concat();
    let kinds: [(&str, &[&str]); 6] = [
        ("an RDB", &SAVES),
        ("an AOF", &AOF_AT_ONCE),
        ("an AOF without an RDB in it", &keys_alone),
        ("an AOF without an RDB in it, on a server that does not say so", &hides_settings),
        ("both", &[&AOF_AT_ONCE[..], &SAVES].concat()),
        ("an AOF that a replica wrote", &keys_alone),
    ];
    for (kind, args) in kinds {
        for rewritten in [false, true] {
            let mut server = Server::start(args);
            let con = &mut server.connection();
            let stored = if kind.ends_with("replica wrote") {
                let primary = Server::start(&[]);
                attach(&server, &primary);
                let stored = change(&mut primary.connection());
                wait_for("the effects", || policies(con) == stored);
                wait_for("its own AOF", || !rewrites_aof(con));
                stored
            } else {
                change(con)
            };
            if rewritten && args.contains(&"--appendonly") {
                rewrite_aof(con);
            }
            assert_eq!(policies(con), stored, "{kind}");
            server.restart();
            let con = &mut server.connection();
            assert_eq!(policies(con), stored, "{kind}, rewritten: {rewritten}");
            assert_eq!(ints(con, &format!("RL.ASK k api COST 4 AT {T0}"))[2], 6);
            text(con, "RL.POLICY DEL mail");
            server.restart();
            assert_eq!(text(&mut server.connection(), "RL.POLICY LIST"), "[api, 2]", "{kind}");
        }
    }
}

#[test]
fn flushes_swaps_and_reloads_keep_policies_and_their_counts() {
    let server = Server::start(&SAVES);
    let con = &mut server.connection();
    change(con);
    ints(con, "RL.ASK k api");
    let stored = (policies(con), stats(con, "api"));
    for line in [
        "DEBUG RELOAD",
        "SWAPDB 0 1",
        "FLUSHDB",
        "FLUSHALL",
        "DEBUG RELOAD",
        "SELECT 1",
        "CONFIG RESETSTAT",
        "SCRIPT FLUSH",
    ] {
        text(con, line);
        assert_eq!((policies(con), stats(con, "api")), stored, "{line}");
    }
}

/// How a replica is given its first copy.
const SYNCS: [(&str, [&str; 2], [&str; 2]); 3] = [
    ("a file", ["--repl-diskless-sync", "no"], ["--repl-diskless-load", "disabled"]),
    ("a stream", ["--repl-diskless-sync", "yes"], ["--repl-diskless-load", "on-empty-db"]),
    ("a second database", ["--repl-diskless-sync", "yes"], ["--repl-diskless-load", "swapdb"]),
];

#[test]
fn a_replica_has_the_policies_of_its_primary_whatever_it_had() {
    for (kind, sends, loads) in SYNCS {
        let primary = Server::start(&[&sends[..], &LARGE_BACKLOG].concat());
        let folder = Folder::with("own LIMIT UNIFORM 1s\napi VERSION 40 LIMIT UNIFORM 2s\n");
        let replica = folder.server(&[&loads[..], &STRICT].concat());
        let (con, copy) = (&mut primary.connection(), &mut replica.connection());
        set(copy, "mail LIMIT UNIFORM 3s");
        let same = |con: &mut Connection, copy: &mut Connection| {
            sync(&primary, &replica);
            wait_for("the same policies", || policies(con) == policies(copy));
        };
        // Of a primary without policies, too.
        attach(&replica, &primary);
        same(con, copy);
        assert_eq!(text(copy, "RL.POLICY LIST"), "[]", "{kind}");
        change(con);
        same(con, copy);
        // What it misses: with a part of the stream, and with a second copy.
        for whole in [false, true] {
            let (full, partial) = (counter(con, "sync_full"), counter(con, "sync_partial_ok"));
            follow(&replica, NOWHERE);
            set(con, "missed LIMIT UNIFORM 1s");
            if whole {
                text(con, "DEBUG CHANGE-REPL-ID");
            }
            attach(&replica, &primary);
            assert_eq!(counter(con, "sync_full"), full + u64::from(whole), "{kind}");
            assert_eq!(counter(con, "sync_partial_ok"), partial + u64::from(!whole), "{kind}");
            same(con, copy);
            text(con, "RL.POLICY DEL missed");
        }
        same(con, copy);
        assert_eq!(
            ints(copy, &format!("RL.ASKPEEK k api AT {T0}")),
            ints(con, &format!("RL.ASKPEEK k api AT {T0}"))
        );
        // It keeps them when it is promoted, and its former primary gets those that are set then.
        text(copy, "REPLICAOF NO ONE");
        set(copy, "api LIMIT GCRA 1 10 1h");
        attach(&primary, &replica);
        wait_for("the same policies", || policies(con) == policies(copy));
        assert_eq!(get(con, "api").0, 3, "{kind}");
    }
}

#[test]
fn a_copy_that_breaks_off_leaves_the_old_policies() {
    for (kind, sends, loads) in SYNCS {
        let mut primary = Server::start(&[&sends[..], &SLOWLY, &["--rdbcompression", "no"]].concat());
        // It answers while it loads.
        let answers = ["--loading-process-events-interval-bytes", "1024"];
        let replica = Server::start(&[&loads[..], &answers].concat());
        let (con, copy) = (&mut primary.connection(), &mut replica.connection());
        let stored = change(copy);
        set(con, "other LIMIT UNIFORM 1s");
        text(con, "DEBUG POPULATE 2000 key 500");
        follow(&replica, primary.port);
        // The file is loaded when it is whole.
        let (section, field, most) = match kind {
            "a file" => ("replication", "master_sync_in_progress", 0),
            _ => ("persistence", "loading_loaded_bytes", 20_000),
        };
        wait_for("a copy under way", || {
            info(copy, section, field).is_some_and(|number| number.parse::<u64>().unwrap() > most)
        });
        primary.kill();
        wait_for("its end", || info(copy, "persistence", "loading").as_deref() == Some("0"));
        follow(&replica, NOWHERE);
        assert_eq!(policies(copy), stored, "{kind}");
    }
}

#[test]
fn the_file_wins_on_a_primary_and_the_data_on_a_replica() {
    let folder = Folder::with("api VERSION 3 LIMIT GCRA 1 10 1h\nfile LIMIT UNIFORM 1s\n");
    let cluster = [&SAVES[..], &["--cluster-enabled", "yes"]].concat();
    for args in [&SAVES[..], &AOF_AT_ONCE[..], &cluster[..]] {
        let mut server = folder.server(args);
        let con = &mut server.connection();
        let of_file = policies(con);
        assert_eq!(of_file.0, "[api, 3, file, 1]");
        change(con);
        server.restart();
        let con = &mut server.connection();
        assert_eq!(policies(con), of_file);
        assert!(
            server.log().contains("2 policies of the data differ from those of the file"),
            "{}",
            server.log()
        );
        // They are part of the data from then on.
        wait_for("the effects", || {
            info(con, "persistence", "rdb_changes_since_last_save").is_some_and(|count| count != "0")
        });
        server.stop();
        fs::remove_file(folder.file()).unwrap();
        server.start_again();
        assert_eq!(policies(&mut server.connection()), of_file);
        assert!(server.log().contains("so the policies are those of the data"), "{}", server.log());
        folder.write("api VERSION 3 LIMIT GCRA 1 10 1h\nfile LIMIT UNIFORM 1s\n");
    }
    // Also in an AOF whose policies are effects alone, and on a replica.
    let mut server = folder.server(&AOF_AT_ONCE);
    wait_for("the effect", || text(&mut server.connection(), "RL.POLICY LIST") == "[api, 3, file, 1]");
    set(&mut server.connection(), "other LIMIT UNIFORM 1s");
    server.restart();
    assert_eq!(text(&mut server.connection(), "RL.POLICY LIST"), "[api, 3, file, 1]");
    // One that starts as a replica takes those of the data, and keeps them when it is promoted.
    let primary = Server::start(&[]);
    let stored = change(&mut primary.connection());
    let port = primary.port.to_string();
    let mut replica = folder.server(&[&["--replicaof", "127.0.0.1", &port][..], &SAVES].concat());
    wait_for("the link", || is_up(&replica));
    let con = &mut replica.connection();
    wait_for("its policies", || policies(con) == stored);
    drop(primary);
    replica.restart();
    let con = &mut replica.connection();
    assert_eq!(policies(con), stored);
    text(con, "REPLICAOF NO ONE");
    text(con, "DEBUG RELOAD");
    assert_eq!(policies(con), stored);
}

/// A table of several pieces.
fn large_file(of: &str) -> String {
    let words = super::windows(60);
    each(0..300, |number| format!("{of}{number}{words}\n"))
}

#[test]
fn large_tables_reach_replicas_and_the_aof_whatever_comes_between() {
    let folder = Folder::with("");
    let mut primary = folder.server(&[&AOF_AT_ONCE[..], &NO_PREAMBLE, &LARGE_BACKLOG].concat());
    let replica = primary.replica(&[&STRICT[..], &AOF_AT_ONCE].concat());
    let (con, copy) = (&mut primary.connection(), &mut replica.connection());
    for (round, file) in
        [large_file("one"), "small LIMIT UNIFORM 1s\n".into(), large_file("two")].iter().enumerate()
    {
        folder.write(large_file("begun"));
        text(con, "RL.POLICY LOAD");
        set(con, "one7 VERSION 7 LIMIT UNIFORM 7s");
        // Amid the table comes another.
        folder.write(file);
        text(con, "RL.POLICY LOAD");
        set(con, &format!("later{round} LIMIT UNIFORM 1s"));
        text(con, "RL.POLICY DEL two9");
        if round == 2 {
            rewrite_aof(con);
        }
        let another = primary.replica(&STRICT);
        for copy in [&mut *copy, &mut another.connection()] {
            wait_for("the same policies", || policies(copy) == policies(con));
        }
        // Nothing more comes.
        wait_for("the AOF", || info(con, "persistence", "aof_rewrite_in_progress").as_deref() == Some("0"));
        sync(&primary, &replica);
        assert_eq!(policies(copy), policies(con), "round {round}");
    }
    let stored = policies(con);
    fs::remove_file(folder.file()).unwrap();
    primary.restart();
    assert_eq!(policies(&mut primary.connection()), stored);
}

#[test]
fn who_may_change_policies_and_when() {
    let primary = Server::start(&[]);
    let replica = primary.replica(&STRICT);
    let (con, copy) = (&mut primary.connection(), &mut replica.connection());
    let stored = change(con);
    sync(&primary, &replica);
    for line in ["RL.POLICY SET api LIMIT UNIFORM 1s", "RL.POLICY DEL api", "RL.POLICY LOAD"] {
        assert!(error(copy, line).starts_with("READONLY "), "{line}");
    }
    for server in [&mut *con, &mut *copy] {
        for line in ["SET api VERSION 9 LIMIT UNIFORM 1s", "DEL api", "ALL x", "FIRST x", "NEXT x", "LAST x"]
        {
            let line: Vec<&str> = ["RL.POLICY", "APPLY"].into_iter().chain(line.splitn(2, ' ')).collect();
            let refused = call(server, &line).expect_err("a client").to_string();
            assert!(
                refused.contains("for replicas and the AOF") || refused.contains("read only replica"),
                "{refused}"
            );
        }
    }
    assert_eq!(policies(copy), stored);
    // A replica looks, and what its server refuses is no error of the policy.
    for call in ["RL.ASK k api", "RL.ASK k missing", "RL.ASKREFUND k api", "RL.ASKSETTLE k api r1 COST 1"] {
        assert!(error(copy, call).starts_with("READONLY "), "{call}");
    }
    assert_eq!(ints(copy, &format!("RL.ASKPEEK k api AT {T0}"))[2], 10);
    assert_eq!(stats(copy, "api"), [0; 4]);
    // On a writable replica a change is local until the next table of the primary.
    text(copy, "CONFIG SET replica-read-only no");
    set(copy, "own LIMIT UNIFORM 1s");
    assert_ne!(policies(copy), stored);
    let another = primary.replica(&STRICT);
    sync(&primary, &replica);
    wait_for("the table", || policies(copy) == stored && policies(&mut another.connection()) == stored);

    // A transaction is sent as one; a script cannot.
    text(con, "MULTI");
    for line in ["RL.POLICY SET api LIMIT UNIFORM 1s", "RL.POLICY DEL mail", "RL.ASK k api"] {
        assert_eq!(text(con, line), "QUEUED");
    }
    text(con, "EXEC");
    let script = "return redis.call('RL.POLICY', 'SET', 'api', 'LIMIT', 'UNIFORM', '1s')";
    assert!(call(con, &["EVAL", script, "0"]).is_err());
    sync(&primary, &replica);
    assert_eq!(text(copy, "RL.POLICY LIST"), "[api, 3]");
    text(con, "CONFIG SET maxmemory 1");
    assert!(error(con, "RL.POLICY SET api LIMIT UNIFORM 2s").starts_with("OOM "));
    assert_eq!(text(con, "RL.POLICY DEL api"), "1");
    text(con, "CONFIG SET maxmemory 0");
    sync(&primary, &replica);
    assert_eq!(text(copy, "RL.POLICY LIST"), "[]");
}

#[test]
fn a_pause_of_writes_holds_changes_and_tables_back() {
    let primary = Server::start(&LARGE_BACKLOG);
    let replica = primary.replica(&STRICT);
    let (con, copy) = (&mut primary.connection(), &mut replica.connection());
    let stored = change(con);
    sync(&primary, &replica);
    text(con, "CLIENT PAUSE 60000 WRITE");
    scope(|scope| {
        let changed = scope.spawn(|| text(&mut primary.connection(), "RL.POLICY SET later LIMIT UNIFORM 1s"));
        wait_for("a held call", || info(con, "clients", "blocked_clients").as_deref() == Some("1"));
        // A replica that comes online meanwhile gets the table afterwards.
        let another = Server::start(&STRICT);
        attach(&another, &primary);
        assert_eq!((policies(con), policies(copy)), (stored.clone(), stored.clone()));
        text(con, "CLIENT UNPAUSE");
        changed.join().unwrap();
        for server in [&replica, &another] {
            sync(&primary, server);
            wait_for("the change", || policies(&mut server.connection()) == policies(con));
        }
    });
}

#[test]
fn a_policy_that_a_node_cannot_parse_is_kept_in_words() {
    let primary = Server::start(&SAVES);
    let mut replica = primary.replica(&["--ratelimit.max-leases", "10", "--save", "3600 1"]);
    let con = &mut primary.connection();
    set(con, "large LIMIT CONCURRENT 11 1m");
    set(con, "small LIMIT CONCURRENT 10 1m");
    sync(&primary, &replica);
    for restarts in [false, true] {
        if restarts {
            drop(primary.connection());
            text(&mut replica.connection(), "REPLICAOF NO ONE");
            replica.restart();
            text(&mut replica.connection(), "REPLICAOF NO ONE");
        }
        let copy = &mut replica.connection();
        assert_eq!(policies(copy), policies(con));
        assert_eq!(get(copy, "large"), (1, "LIMIT CONCURRENT 11 1m".into()));
        assert_eq!(
            error(copy, "RL.ASKPEEK k large ID a"),
            "ERR capacity must be an integer from 1 to 10 (ratelimit.max-leases); got '11' (LIMIT 1)"
        );
        assert_eq!(ints(copy, "RL.ASKPEEK k small ID a")[1], 10);
        text(copy, "CONFIG SET ratelimit.max-leases 11");
        assert_eq!(ints(copy, "RL.ASKPEEK k large ID a")[1], 11);
        text(copy, "CONFIG SET ratelimit.max-leases 10");
    }
}

#[test]
fn an_rdb_without_policies_needs_no_module() {
    for (args, policies) in [
        (vec![], false),
        (vec!["--ratelimit.policies-in-rdb", "no"], false),
        (vec!["--ratelimit.policies-in-rdb", "no"], true),
    ] {
        let server = Server::start(&args);
        let con = &mut server.connection();
        let writes_always = writes_the_field_always(con);
        if policies {
            change(con);
            assert_eq!(
                error(con, "CONFIG SET ratelimit.policies-in-rdb yes"),
                "ERR CONFIG SET failed (possibly related to argument 'ratelimit.policies-in-rdb') - it cannot be \
                 changed while the server runs"
            );
        }
        text(con, "SET key value");
        text(con, "SAVE");
        let started = Server::try_start_with(None, &[], &["--dir", server.dir().to_str().unwrap()]);
        assert_eq!(started.is_ok(), !args.is_empty() || !writes_always, "{args:?}");
        // Reading is never left out.
        let with_policies = Server::start(&[]);
        let stored = change(&mut with_policies.connection());
        text(&mut with_policies.connection(), "SAVE");
        let dir = with_policies.dir().to_str().unwrap();
        let reader = Server::start(&[&args[..], &["--dir", dir]].concat());
        assert_eq!(super::policies(&mut reader.connection()), stored);
    }
}

/// Whether the server writes the field of a module into each RDB: Redis 7.0.
fn writes_the_field_always(con: &mut Connection) -> bool {
    info(con, "server", "redis_version").unwrap().starts_with("7.0.")
}
