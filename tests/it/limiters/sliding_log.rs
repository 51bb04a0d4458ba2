//! `RL.SLIDINGLOG`: its options, what is replicated of it, how much it takes, and how long a call may last.

use redis::Value;

use crate::support::{AOF_AT_ONCE, SECOND, Server, T0, call, error, info, ints, sync, text, used_memory};

#[test]
fn an_event_counts_until_exactly_a_window_later() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (micros, reply) in [
        (0, [0, 2, 1, 0, 10_000]),
        (3 * SECOND, [0, 2, 0, 0, 10_000]),
        (3 * SECOND, [1, 2, 0, 7000, 10_000]),
        (10 * SECOND - 1, [1, 2, 0, 1, 3001]),
        (10 * SECOND, [0, 2, 0, 0, 10_000]),
        (13 * SECOND, [0, 2, 0, 0, 10_000]),
    ] {
        assert_eq!(ints(con, &format!("RL.SLIDINGLOG log 2 10s AT {}", T0 + micros)), reply, "{micros}");
    }
    // A cost of n is one entry of weight n: it leaves as one.
    ints(con, &format!("RL.SLIDINGLOG heavy 5 10s COST 4 AT {T0}"));
    let ask = format!("RL.SLIDINGLOG heavy 5 10s COST 2 AT {}", T0 + SECOND);
    assert_eq!(ints(con, &ask), [1, 5, 1, 9000, 9000]);
    assert_eq!(ints(con, &format!("RL.SLIDINGLOG heavy 5 10s COST 6 AT {T0}"))[3], -1);
}

#[test]
fn a_gap_spaces_requests_out_and_outlasts_a_refund() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let line = |at: u64| format!("RL.SLIDINGLOG log 3 10s GAP 2s AT {}", T0 + at);
    assert_eq!(ints(con, &line(0)), [0, 3, 0, 0, 10_000]);
    assert_eq!(ints(con, &line(SECOND)), [1, 3, 0, 1000, 9000]);
    assert_eq!(ints(con, &line(2 * SECOND - 1))[..4], [1, 3, 0, 1]);
    assert_eq!(ints(con, &line(2 * SECOND)), [0, 3, 0, 0, 10_000]);
    let refund = format!("RL.REFUND log SLIDINGLOG 3 10s GAP 2s COST 2 AT {}", T0 + 3 * SECOND);
    assert_eq!(ints(con, &refund), [0, 3, 0, 0, 1000]);
    assert_eq!(text(con, "EXISTS log"), "1", "the gap still runs");
    assert_eq!(ints(con, &line(3 * SECOND))[..4], [1, 3, 0, 1000]);
    assert_eq!(ints(con, &line(4 * SECOND))[0], 0);
    // A call with FORCE does not wait, and a part of nothing is nothing.
    assert_eq!(ints(con, &format!("{} FORCE", line(4 * SECOND)))[0], 0);
    let part = ints(con, &format!("{} PARTIAL", line(5 * SECOND)));
    assert_eq!(part, [1, 3, 0, 1000, 9000, 0]);
}

#[test]
fn whoever_keeps_hammering_stays_out_where_refusals_count() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    let line = |seconds: u64| format!("RL.SLIDINGLOG log 3 10s COUNTREFUSED AT {}", T0 + seconds * SECOND);
    for second in 0..3 {
        assert_eq!(ints(con, &line(second))[0], 0);
    }
    // What stays are the newest three, this refusal among them: the first of those leaves at 11 s.
    assert_eq!(ints(con, &line(3)), [1, 3, 0, 8000, 10_000]);
    assert_eq!(ints(con, &line(10)), [1, 3, 0, 2000, 10_000]);
    // A probe records nothing: at 12 s there is room.
    assert_eq!(
        ints(con, &format!("RL.PEEK log SLIDINGLOG 3 10s COUNTREFUSED AT {}", T0 + 11 * SECOND)),
        [1, 3, 0, 1000, 9000]
    );
    assert_eq!(ints(con, &line(12))[..3], [0, 3, 0]);
    assert!(text(con, "RL.INFO log").contains("stored_entries, 3, stored_cost, 3"));

    // The refusal was written, but for one that can never be admitted.
    let size = |con: &mut redis::Connection| info(con, "persistence", "aof_current_size");
    let (dump, written) = (call(con, &["DUMP", "log"]).unwrap(), size(con));
    assert_eq!(ints(con, &format!("{} COST 4", line(13)))[3], -1);
    assert_eq!((call(con, &["DUMP", "log"]).unwrap(), size(con)), (dump.clone(), written.clone()));
    ints(con, &line(13));
    assert_ne!(call(con, &["DUMP", "log"]).unwrap(), dump);
    assert_ne!(size(con), written);
}

#[test]
fn a_log_is_never_shipped_whole() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    let size = |con: &mut redis::Connection| -> u64 {
        info(con, "persistence", "aof_current_size").unwrap().parse().unwrap()
    };
    for i in 0..2000 {
        ints(con, &format!("RL.SLIDINGLOG log 10000 1h AT {}", T0 + i * 997));
    }
    let per_call = size(con) / 2000;
    assert!((30..150).contains(&per_call), "{per_call} bytes in the AOF for each call");
}

#[test]
fn an_entry_takes_less_than_ten_bytes() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let fill = |key: &str, step: u64| {
        let mut con = server.connection();
        let before = used_memory(&mut con);
        // So many that the buffers of a connection, which come and go, make no difference.
        for start in (0..100_000).step_by(500) {
            let mut pipe = redis::pipe();
            for at in (start..start + 500).map(|i| (T0 + i * step).to_string()) {
                pipe.cmd("RL.SLIDINGLOG").arg(&[key, "100000", "36500d", "AT", &at]);
            }
            let _: Vec<Value> = pipe.query(&mut con).unwrap();
        }
        (used_memory(&mut con) - before) / 100_000
    };
    // A thousand a second; one every ten minutes.
    let (busy, idle) = (fill("busy", 1003), fill("idle", 600 * SECOND + 1));
    assert!(busy < 5 && idle < 10, "{busy} and {idle} bytes per entry");
    let told: u64 = text(con, "MEMORY USAGE busy SAMPLES 0").parse().unwrap();
    assert!((200_000..500_000).contains(&told), "MEMORY USAGE tells {told}");
}

#[test]
fn a_hundred_thousand_entries_that_left_at_once_are_dropped_by_one_charge_and_freed_by_the_next() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for i in 0..200 {
        let mut pipe = redis::pipe();
        for j in 0..500 {
            let at = (T0 + i * 500 + j).to_string();
            pipe.cmd("RL.SLIDINGLOG").arg(&["log", "100000", "10s", "AT", &at]);
        }
        let _: Vec<Value> = pipe.query(con).unwrap();
    }
    let stored = |con: &mut redis::Connection| -> u64 {
        let told = text(con, "RL.INFO log");
        let (_, rest) = told.split_once("stored_entries, ").unwrap();
        rest.split(',').next().unwrap().parse().unwrap()
    };
    assert_eq!(stored(con), 100_000);
    let memory = |con: &mut redis::Connection| text(con, "MEMORY USAGE log").parse::<u64>().unwrap();
    let full = memory(con);
    let mut before = full;
    for call in 0..120 {
        let ask = ints(con, &format!("RL.SLIDINGLOG log 100000 10s AT {}", T0 + 20 * SECOND + call));
        assert_eq!(ask[2], 99_999 - i64::try_from(call).unwrap());
        assert_eq!(stored(con), call + 1);
        let now = memory(con);
        assert!(now + full / 2 > before, "one call freed {} bytes", before - now);
        before = now;
    }
    assert!(before < 2000, "{before} bytes are left");
}

#[test]
fn another_window_or_limit_finds_the_same_entries() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for second in [0, 4, 8] {
        ints(con, &format!("RL.SLIDINGLOG log 5 10s AT {}", T0 + second * SECOND));
    }
    let peek = |con: &mut redis::Connection, parameters: &str, second: u64| {
        ints(con, &format!("RL.PEEK log SLIDINGLOG {parameters} AT {}", T0 + second * SECOND))
    };
    assert_eq!(peek(con, "5 5s", 8), [0, 5, 3, 0, 5000]);
    assert_eq!(peek(con, "5 1m", 8), [0, 5, 2, 0, 60_000]);
    assert_eq!(peek(con, "2 1m", 8), [1, 2, 0, 56_000, 60_000]);
    assert_eq!(peek(con, "9 10s GAP 5s", 8), [1, 9, 0, 5000, 10_000]);
}

#[test]
fn a_debt_that_could_not_be_added_up_is_an_error_and_nothing_of_it_is_lost_before() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let most = 9_007_199_254_740_991u64;
    let force = |at: u64| format!("RL.SLIDINGLOG log 10 1s FORCE COST {most} AT {at}");
    for _ in 0..3 {
        assert_eq!(ints(con, &force(T0))[0], 0);
    }
    let refund = format!("RL.REFUND log SLIDINGLOG 10 1s COST {most} AT {T0}");
    assert_eq!(ints(con, &refund)[2], 0);
    assert_eq!(ints(con, &refund)[2], 0, "one is still owed");
    assert_eq!(ints(con, &refund), [0, 10, 10, 0, 0]);
    for i in 0..64 {
        ints(con, &force(T0 + i));
    }
    let dump = call(con, &["DUMP", "log"]).unwrap();
    for line in [force(T0 + 64), force(T0 + 63)] {
        assert_eq!(error(con, &line), "ERR limit would take too long to refill");
    }
    assert_eq!(call(con, &["DUMP", "log"]).unwrap(), dump);
}

#[test]
fn a_clock_that_was_set_back_moves_a_large_log_by_its_blocks() {
    let server = Server::start(&[]);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut server.connection();
    for i in 0..500 {
        ints(con, &format!("RL.SLIDINGLOG log 1000 1s COST {} AT {}", 1 + i % 2, T0 + i * 1500));
    }
    // Farther back than a reset: the entries are moved, even by a refusal, and stay as far apart.
    let back = T0 - 3600 * SECOND;
    let peek = |at: u64| format!("RL.PEEK log SLIDINGLOG 1000 1s COST 400 AT {at}");
    let before = ints(con, &peek(T0 + 499 * 1500));
    assert_eq!(before[..3], [1, 1000, 250]);
    assert_eq!(ints(con, &format!("RL.SLIDINGLOG log 1000 1s COST 400 AT {back}")), before);
    assert_eq!(ints(con, &peek(back)), before);
    sync(&server, &replica);
    let dump = call(con, &["DUMP", "log"]).unwrap();
    assert_eq!(call(&mut replica.connection(), &["DUMP", "log"]).unwrap(), dump);
}
