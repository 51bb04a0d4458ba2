//! Random histories of all commands, from fixed seeds: whatever happens, each copy of the data is the same to the
//! byte. `RATELIMIT_HISTORIES=n` tries n times as many seeds.

use crate::support::histories::History;
use crate::support::replicas::{self, STRICT, follow, is_up};
use crate::support::{Server, call, command_names, info, rewrites_aof, text, wait_for};

const AOF: [&str; 2] = ["--appendonly", "yes"];
/// Makes the server write each key to a file or a socket so slowly, in microseconds, that calls go on meanwhile.
const SLOWLY: [&str; 2] = ["--rdb-key-save-delay", "1000"];

/// The seeds of a story: as many as are asked for, and other ones than those of the next story.
fn seeds(story: u64) -> impl Iterator<Item = u64> {
    let times = std::env::var("RATELIMIT_HISTORIES").map_or(1, |times| times.parse().unwrap());
    (0..times).map(move |number| 1000 * number + story)
}

#[test]
fn replicas_hold_the_same_bytes_at_each_stop_and_one_comes_back_from_its_own_aof() {
    for seed in seeds(1) {
        let primary = Server::start(&[]);
        let replica = primary.replica(&STRICT);
        let mut chained = replica.replica(&[&STRICT[..], &AOF, &["--aof-use-rdb-preamble", "no"]].concat());
        let mut history = History::new(seed, &primary);
        for _ in 0..30 {
            history.go_on(300);
            history.agree(&primary, &[&replica, &chained]);
        }
        let expected = history.agree(&primary, &[&replica, &chained]);
        assert!(expected.len() > 60, "{} keys", expected.len());
        goes_over_all(&history, &primary);

        text(&mut chained.connection(), "REPLICAOF NO ONE");
        drop((primary, replica));
        chained.restart();
        text(&mut chained.connection(), "REPLICAOF NO ONE");
        history.compare(&expected, &chained, "the chained replica's own AOF");
    }
}

/// The test is worth as much as what is called: every command that writes, both admitted and refused.
fn goes_over_all(history: &History, server: &Server) {
    let con = &mut server.connection();
    // Commands that only look or only replicate. Commands that give back are never refused, and shedding is by chance.
    let others = [
        "RL.PEEK",
        "RL.MULTIPEEK",
        "RL.ASKPEEK",
        "RL.EXPLAIN",
        "RL.INFO",
        "RL.HELP",
        "RL.APPLY",
        "RL.POLICY",
        "RL.TOP",
    ];
    let always = ["RL.REFUND", "RL.MULTIREFUND", "RL.ASKREFUND", "RL.SHED"];
    for command in ["COPY", "RENAME", "MOVE", "SWAPDB", "RESTORE", "MIGRATE"] {
        assert!(history.outcomes.contains_key(command), "no {command}");
    }
    let commands = command_names(con).into_iter().map(|name| name.to_uppercase());
    for command in commands.filter(|command| !others.contains(&&**command)) {
        let command = &*command;
        let (admitted, refused) = history.outcomes.get(command).copied().unwrap_or_default();
        assert!(admitted > 0, "{command}: {admitted} admitted");
        assert!(refused > 0 || always.contains(&command), "{command}: {refused} refused");
    }
}

#[test]
fn an_rdb_and_an_aof_with_preamble_and_without_bring_back_the_same_bytes() {
    let ways: [&[&str]; 3] =
        [&["--save", "3600 1"], &[&AOF[..], &["--aof-use-rdb-preamble", "no"]].concat(), &AOF];
    for (way, story) in ways.into_iter().zip(2..) {
        for seed in seeds(story) {
            let mut server = Server::start(way);
            let mut history = History::new(seed, &server);
            for _ in 0..4 {
                history.go_on(700);
                let expected = history.agree(&server, &[]);
                server.restart();
                history.compare(&expected, &server, &way.join(" "));
                // With deadlines that are no longer known.
                history.begin(&server);
            }
        }
    }
}

#[test]
fn a_rewrite_of_the_aof_loses_nothing_of_what_goes_on_meanwhile() {
    for (preamble, story) in [("no", 5), ("yes", 6)] {
        for seed in seeds(story) {
            let args = [&AOF[..], &SLOWLY, &["--aof-use-rdb-preamble", preamble]].concat();
            let mut server = Server::start(&args);
            let replica = server.replica(&STRICT);
            let mut history = History::new(seed, &server);
            history.go_on(700);
            let con = &mut server.connection();
            // Where the machine was so slow that nothing went on meanwhile, once more.
            let mut meanwhile = 0;
            wait_for("a rewrite amid calls", || {
                text(con, "BGREWRITEAOF");
                while rewrites_aof(con) {
                    history.go_on(20);
                    meanwhile += 20;
                }
                assert_eq!(info(con, "persistence", "aof_last_bgrewrite_status").as_deref(), Some("ok"));
                meanwhile > 0
            });
            history.go_on(100);
            let expected = history.agree(&server, &[&replica]);
            drop(replica);
            server.restart();
            history.compare(&expected, &server, "a rewritten AOF");
        }
    }
}

#[test]
fn a_link_that_is_cut_again_and_again_is_mended_by_what_was_missed() {
    for seed in seeds(7) {
        let primary = Server::start(&["--repl-backlog-size", "64mb"]);
        let replica = primary.replica(&STRICT);
        let chained = replica.replica(&STRICT);
        let mut history = History::new(seed, &primary);
        let (full, partial) = (counter(&primary, "sync_full"), counter(&primary, "sync_partial_ok"));
        for who in ["replica", "master"].repeat(4) {
            history.go_on(200);
            // The primary cuts it, or the replica.
            let server = if who == "replica" { &primary } else { &replica };
            text(&mut server.connection(), &format!("CLIENT KILL TYPE {who}"));
            history.go_on(100);
            history.agree(&primary, &[&replica, &chained]);
        }
        assert!(counter(&primary, "sync_partial_ok") >= partial + 8);
        assert_eq!(counter(&primary, "sync_full"), full);
    }
}

#[test]
fn a_replica_that_loads_from_the_socket_catches_up_with_what_goes_on_meanwhile() {
    for (how, story) in [("swapdb", 8), ("on-empty-db", 9)] {
        for seed in seeds(story) {
            let primary = Server::start(&[&SLOWLY[..], &["--repl-backlog-size", "16kb"]].concat());
            let replica = Server::start(&[&STRICT[..], &["--repl-diskless-load", how]].concat());
            let mut history = History::new(seed, &primary);
            history.go_on(500);
            follow(&replica, primary.port);
            wait_for("the link", || {
                history.go_on(10);
                is_up(&replica)
            });
            let chained = replica.replica(&STRICT);
            history.agree(&primary, &[&replica, &chained]);

            let full = counter(&primary, "sync_full");
            cut_too_long(&primary);
            wait_for("another full copy", || {
                history.go_on(10);
                counter(&primary, "sync_full") > full && is_up(&replica)
            });
            history.go_on(100);
            history.agree(&primary, &[&replica, &chained]);
            // Which is how a replica says that it swaps.
            assert_eq!(replica.log().contains("Swapping active DB"), how == "swapdb");
        }
    }
}

/// Cuts the link to the replica, and forgets what it misses before it is back.
fn cut_too_long(primary: &Server) {
    let con = &mut primary.connection();
    text(con, "MULTI");
    text(con, "CLIENT KILL TYPE replica");
    text(con, "SELECT 9");
    call(con, &["SET", "ballast", &"x".repeat(1 << 20)]).unwrap();
    text(con, "DEL ballast");
    text(con, "EXEC");
}

/// Limiters that are soon fully reset, and the parameters by which the last call makes them last for longer.
const BRIEF: [(&str, &str, &str); 8] = [
    ("TOKENBUCKET", "7 3 10ms", "7 1 10h"),
    ("GCRA", "6 7 110ms", "6 1 10h"),
    ("LEAKYBUCKET", "8 7 11ms", "8 1 10h"),
    ("FIXEDWINDOW", "9 40ms", "9 10h"),
    ("SLIDINGWINDOW", "9 30ms", "9 10000d"),
    ("SLIDINGWINDOW", "9 60ms PRECISION 10ms", "9 10h PRECISION 10h"),
    ("SLIDINGLOG", "9 50ms", "9 10h"),
    ("UNIFORM", "9ms", "10h"),
];

/// A prime, so that steps of any length go over all of them.
const KEYS: usize = 4001;

#[test]
fn keys_that_come_and_go_by_the_servers_clock_are_the_same_everywhere() {
    let primary = Server::start(&[]);
    let replica = primary.replica(&STRICT);
    let chained = replica.replica(&[&STRICT[..], &AOF].concat());
    let history = History::new(0, &primary);
    let con = &mut primary.connection();
    text(con, "DEBUG SET-ACTIVE-EXPIRE 1");
    let mut number = 0;
    // Each key is asked every second or so: when it has just expired, or is about to. By itself it would last ten.
    wait_for("keys that expire", || {
        for _ in 0..20 {
            number = (number + 123) % KEYS;
            let (limiter, parameters, _) = BRIEF[number % BRIEF.len()];
            text(con, &format!("RL.{limiter} brief:{number} {parameters}"));
            text(con, &format!("PEXPIRE brief:{number} 900"));
        }
        counter(&primary, "expired_keys") > 2000
    });
    for number in 0..KEYS {
        let (limiter, _, parameters) = BRIEF[number % BRIEF.len()];
        text(con, &format!("RL.{limiter} brief:{number} {parameters} FORCE"));
    }
    let expected = history.agree(&primary, &[&replica, &chained]);
    assert_eq!(expected.len(), KEYS);
}

/// A number of the server's that only grows.
fn counter(server: &Server, field: &str) -> u64 {
    replicas::counter(&mut server.connection(), field)
}
