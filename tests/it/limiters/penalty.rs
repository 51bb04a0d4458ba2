//! `RL.PENALTY`: strikes, bans that grow and are forgiven, and how other limits strike in `RL.MULTI`.

use redis::Connection;

use crate::support::{AOF_AT_ONCE, LATEST, SECOND, Server, T0, dump, error, info, ints, multi, sync, text};

const MINUTE: i64 = 60_000;
const DAY: i64 = 86_400_000;

/// This many seconds after `T0`.
fn after(seconds: u64) -> u64 {
    T0 + seconds * SECOND
}

/// The reply to a call of `RL.PENALTY` with these parameters, this many seconds after `T0`.
fn strike(con: &mut Connection, parameters: &str, seconds: u64) -> Vec<i64> {
    ints(con, &format!("RL.PENALTY key {parameters} AT {}", after(seconds)))
}

fn look(con: &mut Connection, parameters: &str, seconds: u64) -> Vec<i64> {
    strike(con, &format!("{parameters} COST 0"), seconds)
}

/// What a change of the key or of what is replicated would change.
fn written(con: &mut Connection) -> (String, String, String) {
    let digest = text(con, "DEBUG DIGEST");
    let expires = text(con, "PEXPIRETIME key");
    (digest, expires, info(con, "persistence", "rdb_changes_since_last_save").unwrap())
}

#[test]
fn three_refusals_in_ten_minutes_ban_for_ten_minutes_then_twenty_at_most_a_day() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let mut ask = |seconds: u64, cost: u64| {
        let limits = "LIMIT SLIDINGWINDOW 100 60s LIMIT PENALTY 3 10m 10m GROW 2 MAX 1d";
        multi(con, &format!("RL.MULTI 1 ip COST {cost} AT {} {limits}", after(seconds)))
    };
    let all = vec![0, 100, 0, 0, 120_000];
    // A penalty enters the combined answer only when it refuses.
    assert_eq!(ask(0, 100), (all.clone(), vec![all, vec![0, 3, 3, 0, 0]]));
    // The window admits again 600 ms after its end. Each refusal is a strike.
    let window = |second: i64| vec![1, 100, 0, 60_600 - 1000 * second, 120_000 - 1000 * second];
    assert_eq!(ask(1, 1), (window(1), vec![window(1), vec![0, 3, 2, 0, 10 * MINUTE]]));
    assert_eq!(ask(2, 1), (window(2), vec![window(2), vec![0, 3, 1, 0, 10 * MINUTE - 1000]]));
    // The third bans. The level it leaves is forgiven a day after the ban.
    let banned = vec![1, 3, 0, 10 * MINUTE, 10 * MINUTE + DAY];
    let all = vec![1, 100, 0, 10 * MINUTE, 10 * MINUTE + DAY];
    assert_eq!(ask(3, 1), (all, vec![window(3), banned]));
    // The window has room again, but is not charged during the ban.
    let banned = vec![1, 3, 0, 7 * MINUTE, 7 * MINUTE + DAY];
    assert_eq!(ask(183, 100), (banned.clone(), vec![vec![0, 100, 100, 0, 0], banned]));
    // From then on the caller comes back whenever a ban ends, and is refused three times.
    let mut end = 603;
    let bans = [(20, 2), (40, 3), (80, 4), (160, 5), (320, 6), (640, 7), (1280, 8), (1440, 8), (1440, 8)];
    for (ban, levels) in bans {
        assert_eq!(ask(end, 100).0[0], 0, "a ban of {ban} minutes ends");
        assert_eq!((ask(end, 1).1[1][0], ask(end, 1).1[1][0]), (0, 0));
        assert_eq!(ask(end, 1).1[1], [1, 3, 0, ban * MINUTE, ban * MINUTE + levels * DAY]);
        end += ban.unsigned_abs() * 60;
        assert_eq!(ask(end - 1, 1).1[1], [1, 3, 0, 1000, 1000 + levels * DAY]);
    }
}

#[test]
fn strikes_count_in_a_window_that_the_first_one_opens() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let p = "3 60s 10s";
    assert_eq!(look(con, p, 0), [0, 3, 3, 0, 0]);
    assert_eq!(text(con, "EXISTS key"), "0", "a look makes no key");
    assert_eq!(strike(con, p, 0), [0, 3, 2, 0, 60_000]);
    assert_eq!(strike(con, p, 59), [0, 3, 1, 0, 1000]);
    let last = format!("RL.PEEK key PENALTY {p} AT {}", after(60) - 1);
    assert_eq!(ints(con, &last)[..4], [1, 3, 0, 10_000], "the last microsecond");
    // The next window begins with the next strike, not where the first one ended.
    assert_eq!(look(con, p, 60), [0, 3, 3, 0, 0]);
    assert_eq!(strike(con, p, 70), [0, 3, 2, 0, 60_000]);
    assert_eq!(look(con, p, 129), [0, 3, 2, 0, 1000]);
    // A cost counts as that number of strikes. Those beyond the one that bans are lost.
    assert_eq!(strike(con, "3 60s 10s COST 5", 100), [1, 3, 0, 10_000, 10_000]);
    assert_eq!(look(con, p, 109), [1, 3, 0, 1000, 1000]);
    assert_eq!(look(con, p, 110), [0, 3, 3, 0, 0]);
    // The strikes of before the ban are gone, although their window would still be open.
    assert_eq!(strike(con, "3 60s 10s COST 2", 110), [0, 3, 1, 0, 60_000]);
    assert_eq!(strike(con, p, 111), [1, 3, 0, 10_000, 10_000]);
    // A single strike.
    text(con, "DEL key");
    assert_eq!(strike(con, "1 60s 10s", 0), [1, 1, 0, 10_000, 10_000]);
    assert_eq!(strike(con, "1 60s 10s", 9), [1, 1, 0, 1000, 1000]);
    assert_eq!(look(con, "1 60s 10s", 10), [0, 1, 1, 0, 0]);
    assert_eq!(strike(con, "1 60s 10s", 10), [1, 1, 0, 10_000, 10_000]);
}

#[test]
fn a_ban_grows_with_each_level_and_the_level_falls_with_each_time_to_forgive() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let p = "1 60s 10s GROW 3 MAX 100s FORGIVE 60s";
    // 10 s, 30 s, 90 s, and from level 3 on 100 s. Each comes right after the one before.
    for (at, ban, level) in [(0, 10, 1), (10, 30, 2), (40, 90, 3), (130, 100, 3), (230, 100, 3)] {
        let reset = 1000 * (ban + 60 * level);
        assert_eq!(strike(con, p, at), [1, 1, 0, 1000 * ban, reset], "at {at}");
    }
    // The last ban ends at 330 s. What the next one would be:
    let mut would = |parameters: &str, micros: u64| {
        ints(con, &format!("RL.PEEK key PENALTY {parameters} AT {}", after(330) + micros))[3] / 1000
    };
    for (seconds, ban) in [(0, 100), (60, 90), (120, 30), (180, 10), (999, 10)] {
        assert_eq!(would(p, seconds * SECOND), ban, "{seconds} s after the last ban");
        // The level falls at no other instant.
        assert_eq!(would(p, (seconds + 59) * SECOND), ban, "{seconds} s and 59 s after the last ban");
    }
    for seconds in [60, 120, 180] {
        assert_ne!(would(p, seconds * SECOND - 1), would(p, seconds * SECOND), "{seconds} s");
    }
    // The parameters of the call hold: the highest level is cut before it falls. With a `MAX` of 30 s it is 1.
    let lower = p.replace("MAX 100s", "MAX 30s");
    assert_eq!([0, 59, 60].map(|seconds| would(&lower, seconds * SECOND)), [30, 30, 10]);
    let steeper = p.replace("GROW 3", "GROW 10");
    assert_eq!([0, 59, 60].map(|seconds| would(&steeper, seconds * SECOND)), [100, 100, 10]);
    let even = p.replace("GROW 3", "GROW 1");
    assert_eq!([0, 60].map(|seconds| would(&even, seconds * SECOND)), [10, 10]);
    assert_eq!(would(&p.replace("FORGIVE 60s", "FORGIVE 30s"), 60 * SECOND), 30);
    assert_eq!(would(&p.replace("FORGIVE 60s", "FORGIVE 1h"), 999 * SECOND), 100);
    // A look replies how long the level lasts; without growth there is none.
    assert_eq!(look(con, p, 390), [0, 1, 1, 0, 120_000]);
    assert_eq!(look(con, &even, 390), [0, 1, 1, 0, 0]);
    // After two falls the next ban is the second one, and it counts the levels from there.
    assert_eq!(strike(con, p, 450), [1, 1, 0, 30_000, 150_000]);
    assert_eq!(strike(con, p, 480), [1, 1, 0, 90_000, 270_000]);
    // A ban without growth leaves no level.
    assert_eq!(strike(con, &even, 570), [1, 1, 0, 10_000, 10_000]);
    assert_eq!(strike(con, p, 580), [1, 1, 0, 10_000, 70_000]);
    // `MAX` is the ban itself: it does not grow either.
    let flat = "1 60s 10s GROW 3 MAX 10s FORGIVE 60s";
    assert_eq!(strike(con, flat, 590), [1, 1, 0, 10_000, 10_000]);
}

#[test]
fn the_defaults_are_no_growth_a_century_and_a_day() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (short, long) in [
        ("3 10m 10m", "3 10m 10m GROW 1 MAX 36500d FORGIVE 1d COST 1"),
        ("3 10m 10m GROW 2", "3 10m 10m FORGIVE 86400000ms MAX 3153600000000ms GROW 2"),
    ] {
        for seconds in [0, 1, 2, 601, 602, 603, 605] {
            let told = |con: &mut Connection, parameters: &str| {
                let key = parameters.len().to_string();
                let line = format!("RL.PENALTY {key} {parameters} AT {}", after(seconds));
                (ints(con, &line), dump(con, &key))
            };
            assert_eq!(told(con, short), told(con, long), "{short} at {seconds}");
        }
    }
    // A key lives as long as its level.
    ints(con, "RL.PENALTY lives 1 10m 10m GROW 2");
    assert!(ints(con, "PTTL lives")[0] >= 10 * MINUTE + DAY - 1000);
}

#[test]
fn fewer_strikes_leave_one_less_than_bans() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (strikes, remaining) in [(9, 4), (6, 1), (5, 1), (3, 1), (2, 1), (1, 1), (20, 15)] {
        text(con, "DEL key");
        strike(con, "9 60s 10s COST 5", 0);
        let p = format!("{strikes} 60s 10s");
        // Without a strike there is nothing to forget.
        let reset = if strikes == 1 { 0 } else { 59_000 };
        assert_eq!(look(con, &p, 1), [0, strikes, remaining, 0, reset], "{strikes}");
        // A look changes nothing.
        assert_eq!(look(con, "9 60s 10s", 1), [0, 9, 4, 0, 59_000], "{strikes}");
        let reply = strike(con, &p, 1);
        if remaining == 1 {
            assert_eq!(reply, [1, strikes, 0, 10_000, 10_000], "{strikes}");
        } else {
            assert_eq!(reply, [0, strikes, remaining - 1, 0, 59_000], "{strikes}");
        }
    }
    // Another window is another length of the same limit: the strikes count from the same start.
    text(con, "DEL key");
    strike(con, "9 60s 10s COST 5", 0);
    assert_eq!(look(con, "9 10s 10s", 9), [0, 9, 4, 0, 1000]);
    assert_eq!(look(con, "9 10s 10s", 10), [0, 9, 9, 0, 0]);
    assert_eq!(strike(con, "9 2m 10s", 100), [0, 9, 3, 0, 20_000]);
}

#[test]
fn bans_end_at_the_latest_with_the_year_9999() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let latest = LATEST.unsigned_abs();
    let line = |parameters: &str, at: u64| format!("RL.PENALTY key {parameters} AT {at}");
    for (at, left) in [(latest, 1), (latest + 1 - 3600 * SECOND, 3_600_000)] {
        for (parameters, forgiven) in [
            ("1 1h 36500d", 0),
            ("1 36500d 36500d GROW 1000", 0),
            ("1 1h 10000d GROW 1000", DAY),
            ("1 1h 10000d GROW 1000 FORGIVE 36500d", 36_500 * DAY),
        ] {
            text(con, "DEL key");
            let banned = [1, 1, 0, left, left + forgiven];
            assert_eq!(ints(con, &line(parameters, at)), banned, "{parameters}");
            assert_eq!(ints(con, &line(parameters, at)), banned, "{parameters}");
            assert_eq!(text(con, "DEBUG RELOAD"), "OK");
            assert_eq!(ints(con, &line(&format!("{parameters} COST 0"), at)), banned, "{parameters}");
        }
    }
    // A window ends later than that.
    text(con, "DEL key");
    assert_eq!(ints(con, &line("3 36500d 1h", latest)), [0, 3, 2, 0, 36_500 * DAY]);
    // Forty-two levels from a millisecond on: 2^42 ms are more than a century.
    text(con, "DEL key");
    let (p, mut at) = ("1 1h 1ms GROW 2 FORGIVE 36500d", 1_000_000_000_000_000);
    for level in 0..42 {
        assert_eq!(ints(con, &line(p, at))[3], 1 << level);
        at += 1000 << level;
    }
    assert_eq!(ints(con, &line(p, at)), [1, 1, 0, 36_500 * DAY, 43 * 36_500 * DAY]);
    assert_eq!(ints(con, &line(p, at + 1))[3], 36_500 * DAY);
}

#[test]
fn during_a_ban_looks_and_strikes_are_refused_and_write_nothing() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    let p = "3 10m 10m GROW 2";
    strike(con, &format!("{p} COST 2"), 0);
    let before = written(con);
    assert_eq!(look(con, p, 1), [0, 3, 1, 0, 10 * MINUTE - 1000]);
    // A look with a cost says what the call would bring, and brings nothing.
    let told = |con: &mut Connection, options: &str| {
        let five = ints(con, &format!("RL.PEEK key PENALTY {p} {options} AT {}", after(1)));
        (five[0], five[1], five[3])
    };
    assert_eq!(told(con, ""), (1, 3, 10 * MINUTE));
    assert_eq!(told(con, "COST 7"), (1, 3, 10 * MINUTE));
    assert_eq!(told(con, "COST 0"), (0, 3, 0));
    let peeked = ints(con, &format!("RL.PEEK key PENALTY {p} AT {}", after(1)));
    assert_eq!(written(con), before);

    assert_eq!(strike(con, p, 1), peeked, "all five integers are foreseen");
    let before = written(con);
    let banned = vec![1, 3, 0, 10 * MINUTE - 1000, 10 * MINUTE - 1000 + DAY];
    for options in ["", "COST 0", "COST 9", "COST 9007199254740991"] {
        assert_eq!(strike(con, &format!("{p} {options}"), 2), banned, "{options}");
        let peek = format!("RL.PEEK key PENALTY {p} {options} AT {}", after(2));
        assert_eq!(ints(con, &peek), banned, "{options}");
    }
    for (command, limits) in [
        ("MULTI", "LIMIT FIXEDWINDOW 9 60s LIMIT PENALTY"),
        ("MULTI", "LIMIT PENALTY"),
        ("MULTI", "COST 0 LIMIT FIXEDWINDOW 9 60s LIMIT PENALTY"),
        ("MULTIPEEK", "LIMIT FIXEDWINDOW 9 60s LIMIT PENALTY"),
    ] {
        let line = format!("RL.{command} 1 key AT {} {limits} {p}", after(2));
        let (all, each) = multi(con, &line);
        assert_eq!((&all, each.last()), (&banned, Some(&banned)), "{line}");
    }
    assert_eq!(written(con), before);
    // Ban, window and level of the parameters that a call gives; the end of the ban stays.
    assert_eq!(strike(con, "9 1h 1s", 2), [1, 9, 0, 10 * MINUTE - 1000, 10 * MINUTE - 1000]);
    assert_eq!(written(con), before);
}

#[test]
fn a_refund_takes_strikes_back_and_del_pardons() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let p = "5 60s 10s GROW 2 FORGIVE 1h";
    let refund =
        |cost: u64, seconds: u64| format!("RL.REFUND key PENALTY {p} COST {cost} AT {}", after(seconds));
    assert_eq!(ints(con, &refund(1, 0)), [0, 5, 5, 0, 0]);
    assert_eq!(text(con, "EXISTS key"), "0");
    strike(con, &format!("{p} COST 4"), 0);
    assert_eq!(ints(con, &refund(0, 1)), [0, 5, 1, 0, 59_000]);
    assert_eq!(ints(con, &refund(3, 1)), [0, 5, 4, 0, 59_000]);
    assert_eq!(strike(con, p, 2), [0, 5, 3, 0, 58_000], "the window is that of the first strike");
    assert_eq!(ints(con, &refund(9, 3)), [0, 5, 5, 0, 0]);
    assert_eq!(text(con, "EXISTS key"), "0", "fully reset");
    // An ended window has nothing to give back.
    strike(con, &format!("{p} COST 4"), 0);
    assert_eq!(ints(con, &refund(1, 60)), [0, 5, 5, 0, 0]);

    // A ban stays, and so does its level. Limited and retry of a refund are 0.
    strike(con, &format!("{p} COST 5"), 100);
    assert_eq!(ints(con, &refund(5, 101)), [0, 5, 0, 0, 9000 + 3_600_000]);
    assert_eq!(ints(con, &refund(0, 101)), [0, 5, 0, 0, 9000 + 3_600_000]);
    assert_eq!(look(con, p, 102), [1, 5, 0, 8000, 8000 + 3_600_000]);
    strike(con, p, 110);
    assert_eq!(ints(con, &refund(1, 111)), [0, 5, 5, 0, 3_599_000]);
    assert_eq!(strike(con, &format!("{p} COST 5"), 111)[3], 20_000);
    // A deleted key knows of no ban.
    text(con, "DEL key");
    assert_eq!(strike(con, &format!("{p} COST 5"), 112)[3], 10_000);
}

#[test]
fn a_ban_moves_with_a_clock_that_was_set_back() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let hour = 3600;
    let p = "3 10m 10m";
    strike(con, &format!("{p} COST 3"), hour);
    // No further than the reset: no time has passed, and the caller waits for its lag too.
    assert_eq!(strike(con, p, hour - 300), [1, 3, 0, 15 * MINUTE, 15 * MINUTE]);
    assert_eq!(look(con, p, hour + 300), [1, 3, 0, 5 * MINUTE, 5 * MINUTE]);
    // Further: looks answer as if the state were moved, and a refused call moves it.
    let before = dump(con, "key");
    assert_eq!(look(con, p, 0), [1, 3, 0, 10 * MINUTE, 10 * MINUTE]);
    assert_eq!(dump(con, "key"), before);
    assert_eq!(strike(con, p, 0), [1, 3, 0, 10 * MINUTE, 10 * MINUTE]);
    assert_eq!(look(con, p, 300), [1, 3, 0, 5 * MINUTE, 5 * MINUTE]);
    assert_eq!(look(con, p, 600), [0, 3, 3, 0, 0]);
    // Strikes and their window.
    text(con, "DEL key");
    strike(con, &format!("{p} COST 1"), hour);
    strike(con, &format!("{p} COST 1"), hour + 60);
    assert_eq!(strike(con, "4 10m 10m", 0), [0, 4, 1, 0, 9 * MINUTE]);
    // The level, and the time since the last ban.
    text(con, "DEL key");
    let p = "2 10m 10m GROW 2 FORGIVE 1h";
    strike(con, &format!("{p} COST 2"), 100 * hour);
    strike(con, p, 100 * hour + 1200);
    assert_eq!(look(con, p, 0), [0, 2, 1, 0, 50 * MINUTE]);
    assert_eq!(strike(con, p, 0), [1, 2, 0, 20 * MINUTE, 140 * MINUTE]);
}

/// Otherwise the ban would begin anew with every call, until the clock reaches its old time again.
#[test]
fn a_call_with_several_limits_that_a_ban_refuses_moves_the_ban_too() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = "LIMIT FIXEDWINDOW 9 60s LIMIT PENALTY 3 10m 10m";
    strike(con, "3 10m 10m COST 3", 3600);
    for (seconds, left) in [(0, 10), (300, 5), (599, 0)] {
        let (all, _) = multi(con, &format!("RL.MULTI 1 key AT {} {limits}", after(seconds)));
        assert_eq!((all[0], all[3] / MINUTE), (1, left), "at {seconds}");
    }
    let (all, _) = multi(con, &format!("RL.MULTI 1 key AT {} {limits}", after(600)));
    assert_eq!(all[..4], [0, 9, 8, 0]);
}

const FULL: &str = "LIMIT FIXEDWINDOW 1 60s";

/// The answers of a call on `key`, and the combined one before them.
fn ask(con: &mut Connection, seconds: u64, limits: &str) -> Vec<Vec<i64>> {
    let (all, each) = multi(con, &format!("RL.MULTI 1 key AT {} {limits}", after(seconds)));
    [vec![all], each].concat()
}

#[test]
fn a_call_that_another_limit_refuses_strikes_each_penalty_once_by_its_own_cost() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let window = vec![1, 1, 0, 60_000, 60_000];
    // Admitted calls do not strike, and do not store the penalty.
    let two = format!("{FULL} LIMIT PENALTY 9 60s 10s LIMIT PENALTY 9 2m 10s COST 4");
    let full = vec![0, 1, 0, 0, 60_000];
    let clean = vec![0, 9, 9, 0, 0];
    assert_eq!(ask(con, 0, &two), [full.clone(), full, clean.clone(), clean]);
    // The default cost is that of the other limits: a penalty takes 1ms of it.
    let struck = [vec![0, 9, 8, 0, 60_000], vec![0, 9, 5, 0, 120_000]];
    assert_eq!(ask(con, 0, &two)[..2], [window.clone(), window.clone()]);
    // A call of cost 0 asks the window for nothing, so it refuses nothing.
    assert_eq!(ask(con, 0, &format!("COST 0 {two}"))[2..], struck);
    let never = ask(con, 0, &format!("COST 5 {two}"));
    assert_eq!(never[0], [1, 1, 0, -1, 60_000], "what can never be admitted strikes as well");
    assert_eq!(never[2..], [vec![0, 9, 7, 0, 60_000], vec![0, 9, 1, 0, 120_000]]);
    // A ban enters the combined answer. The other penalty counts on.
    let banned = vec![1, 9, 0, 10_000, 10_000];
    assert_eq!(
        ask(con, 0, &two),
        [vec![1, 1, 0, 60_000, 60_000], window.clone(), vec![0, 9, 6, 0, 60_000], banned.clone()]
    );
    assert_eq!(ask(con, 0, &two)[2..], [vec![0, 9, 5, 0, 60_000], banned.clone()]);
    // The ban alone refuses, which strikes no penalty.
    let gate = two.replace(FULL, "LIMIT FIXEDWINDOW 5 30s");
    assert_eq!(ask(con, 0, &gate), [banned.clone(), vec![0, 5, 5, 0, 0], vec![0, 9, 5, 0, 60_000], banned]);
    assert_eq!(ask(con, 10, &gate)[0], [0, 5, 4, 0, 30_000], "the ban has ended");
    // A penalty of cost 0 looks, whatever the others cost.
    let looks = format!("{FULL} LIMIT PENALTY 9 60s 10s COST 0");
    assert_eq!(ask(con, 10, &looks)[2], [0, 9, 5, 0, 50_000]);
    // A call whose default cost is 0 only looks, even if a limit with a cost of its own refuses.
    let own = format!("COST 0 {FULL} COST 1 LIMIT PENALTY 9 60s 10s");
    assert_eq!(ask(con, 10, &own)[1..], [vec![1, 1, 0, 50_000, 50_000], vec![0, 9, 5, 0, 50_000]]);
    // Unless the penalty has a cost as well.
    assert_eq!(ask(con, 10, &format!("{own} COST 2"))[2], [0, 9, 3, 0, 50_000]);
    // Alone in a call, penalties only look.
    assert_eq!(ask(con, 10, "COST 9 LIMIT PENALTY 9 60s 10s COST 9"), vec![vec![0, 9, 3, 0, 50_000]; 2]);
}

#[test]
fn a_refusal_on_any_key_strikes_the_penalties_of_all_keys() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = "LIMIT FIXEDWINDOW 1 60s ON 1 LIMIT PENALTY 2 10m 10m GROW 2 ON 2";
    let mut ask = |user: &str, seconds: u64| {
        multi(con, &format!("RL.MULTI 2 {user} ip AT {} {limits}", after(seconds)))
    };
    assert_eq!(ask("ann", 0).0[0], 0);
    assert_eq!(ask("ann", 1).1[1], [0, 2, 1, 0, 10 * MINUTE]);
    assert_eq!(ask("bob", 2).0[0], 0, "another user from the same address");
    let banned = vec![1, 2, 0, 10 * MINUTE, 10 * MINUTE + DAY];
    let (all, each) = ask("bob", 3);
    // Both have nothing left, so the first one's limit counts; the ban is longer than the window.
    assert_eq!((all, &each[1]), (vec![1, 1, 0, 10 * MINUTE, 10 * MINUTE + DAY], &banned));
    // Now the address is banned for every user, and no user is charged.
    assert_eq!(ask("cid", 3), (banned.clone(), vec![vec![0, 1, 1, 0, 0], banned]));
    assert_eq!(text(con, "EXISTS cid"), "0");
    // The address has the same bytes as after strikes by the penalty's own command.
    ints(con, &format!("RL.PENALTY own 2 10m 10m GROW 2 AT {}", after(1)));
    ints(con, &format!("RL.PENALTY own 2 10m 10m GROW 2 AT {}", after(3)));
    assert_eq!(dump(con, "ip"), dump(con, "own"));
    // Without `ON`, each key has its own.
    let limits = "LIMIT FIXEDWINDOW 1 60s ON 2 LIMIT PENALTY 2 10m 10m";
    for left in [2, 1, 0] {
        let (_, each) = multi(con, &format!("RL.MULTI 2 a b AT {T0} {limits}"));
        assert_eq!((each[1][2], each[2][2]), (left, left));
    }
}

#[test]
fn a_shadow_penalty_is_struck_alike_and_never_refuses() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = format!("{FULL} LIMIT PENALTY 2 10m 10m SHADOW LIMIT PENALTY 9 10m 10m");
    ask(con, 0, &limits);
    let window = vec![1, 1, 0, 60_000, 60_000];
    let real = |left: i64| vec![0, 9, left, 0, 10 * MINUTE];
    assert_eq!(
        ask(con, 0, &limits),
        [window.clone(), window.clone(), vec![0, 2, 1, 0, 10 * MINUTE], real(8)]
    );
    let banned = vec![1, 2, 0, 10 * MINUTE, 10 * MINUTE];
    assert_eq!(ask(con, 0, &limits), [window.clone(), window.clone(), banned.clone(), real(7)]);
    // The ban is not struck again, and refuses no call.
    assert_eq!(ask(con, 0, &limits), [window.clone(), window, banned, real(6)]);
    let refused = |con: &mut Connection| info(con, "ratelimit", "ratelimit_shadow_refused").unwrap();
    assert_eq!(refused(con), "0");
    let after_a_minute = ask(con, 60, &limits);
    assert_eq!(after_a_minute[0], [0, 1, 0, 0, 60_000]);
    assert_eq!(after_a_minute[2], [1, 2, 0, 9 * MINUTE, 9 * MINUTE]);
    assert_eq!(refused(con), "1");
    // It has a state of its own.
    assert_eq!(look(con, "9 10m 10m", 60), [0, 9, 6, 0, 9 * MINUTE]);
    // A shadow that refuses strikes no penalty.
    let shadow = "LIMIT FIXEDWINDOW 9 1h LIMIT GCRA 0 1 1h SHADOW LIMIT PENALTY 9 10m 10m";
    for _ in 0..3 {
        let reply = ask(con, 60, shadow);
        assert_eq!((reply[0][0], reply[3][2]), (0, 6));
    }
}

#[test]
fn force_looks_and_refunds_neither_strike_nor_pardon() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = format!("{FULL} LIMIT PENALTY 3 10m 10m COST 2");
    let (charge, forced) = (ask(con, 0, &limits), ask(con, 0, &format!("FORCE {limits}")));
    assert_eq!((charge[0][0], forced[0][0]), (0, 0));
    let struck = vec![0, 3, 1, 0, 10 * MINUTE];
    assert_eq!(ask(con, 0, &limits)[2], struck);
    assert_eq!(ask(con, 0, &format!("FORCE {limits}"))[2], struck, "FORCE does not strike");
    let peek = |con: &mut Connection, command: &str| {
        let (all, each) = multi(con, &format!("RL.{command} 1 key AT {T0} {limits}"));
        [vec![all], each].concat()
    };
    // A look replies the state as it is, not as a refusal would change it.
    let before = written(con);
    assert_eq!(peek(con, "MULTIPEEK")[2], struck);
    assert_eq!(written(con), before);
    assert_eq!(peek(con, "MULTIREFUND")[2], struck);
    assert_eq!(look(con, "3 10m 10m", 0), struck);

    ask(con, 0, &format!("FORCE COST 9 {FULL}"));
    let banned = vec![1, 3, 0, 10 * MINUTE, 10 * MINUTE];
    assert_eq!(ask(con, 0, &limits)[2], banned);
    assert_eq!(peek(con, "MULTIPEEK")[2], banned);
    // With FORCE it refuses no call, and its limited and retry are 0, as in a refund.
    let seen = vec![0, 3, 0, 0, 10 * MINUTE];
    let forced = ask(con, 0, &format!("FORCE {limits}"));
    assert_eq!((forced[0][..4].to_vec(), &forced[2]), (vec![0, 1, 0, 0], &seen));
    let refunded = peek(con, "MULTIREFUND");
    assert_eq!((refunded[0][0], refunded[0][3], &refunded[2]), (0, 0, &seen));
    assert_eq!(look(con, "3 10m 10m", 0), banned);
    // A refund of the penalty alone, and on a missing key.
    let before = dump(con, "key");
    let alone = |key: &str| format!("RL.MULTIREFUND 1 {key} AT {T0} LIMIT PENALTY 3 10m 10m COST 3");
    assert_eq!(multi(con, &alone("key")), (seen.clone(), vec![seen]));
    assert_eq!(dump(con, "key"), before);
    assert_eq!(multi(con, &alone("missing")), (vec![0, 3, 3, 0, 0], vec![vec![0, 3, 3, 0, 0]]));
    assert_eq!(text(con, "EXISTS missing"), "0");
}

#[test]
fn a_strike_makes_a_second_limit_of_the_key() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = format!("{FULL} LIMIT PENALTY 3 2m 10s");
    let holds = |con: &mut Connection, what: &str| {
        let told = text(con, "RL.INFO key");
        assert!(told.starts_with(&format!("[limiter, {what}")), "{what}: {told}");
    };
    ask(con, 0, &limits);
    holds(con, "FIXEDWINDOW, mode, opened, length_ms, 60000, ");
    ask(con, 0, &limits);
    holds(con, "MULTI, mode, several, stored_limits, 2, ");
    // A minute later the window is fully reset. The next strike by the own command drops it.
    assert_eq!(strike(con, "3 2m 10s", 60), [0, 3, 1, 0, 60_000]);
    holds(con, "PENALTY, mode, strikes, length_ms, 120000, strikes, 2, ");
    // And a charge of the window drops a penalty that is fully reset, if the call does not name it.
    ask(con, 60, &limits);
    holds(con, "MULTI, mode, several, stored_limits, 2, ");
    ask(con, 120, &limits);
    holds(con, "MULTI, mode, several, stored_limits, 2, ");
    ask(con, 180, FULL);
    holds(con, "FIXEDWINDOW");
    // A penalty that is struck where it stands alone: the key becomes a set with the window.
    text(con, "DEL key");
    strike(con, "3 2m 10s", 0);
    ask(con, 0, &limits);
    holds(con, "MULTI, mode, several, stored_limits, 2, ");
    assert_eq!(ask(con, 0, &limits)[2], [0, 3, 1, 0, 120_000]);
    // So it does with one that the call does not name, unless that is fully reset.
    let struck = "LIMIT UNIFORM 1s COST 2 LIMIT PENALTY 3 2m 10s";
    text(con, "DEL key");
    ask(con, 0, FULL);
    assert_eq!(ask(con, 59, struck)[2], [0, 3, 2, 0, 120_000]);
    holds(con, "MULTI, mode, several, stored_limits, 2, ");
    text(con, "DEL key");
    ask(con, 0, FULL);
    assert_eq!(ask(con, 60, struck)[2], [0, 3, 2, 0, 120_000]);
    holds(con, "PENALTY, mode, strikes, length_ms, 120000, strikes, 1, ");
    // On a missing key, one that is struck, and several at once.
    for (others, what) in [
        ("", "PENALTY, mode, strikes, length_ms, 120000, strikes, 1, "),
        ("LIMIT PENALTY 3 1m 10s LIMIT PENALTY 3 1m 10s SHADOW", "MULTI, mode, several, stored_limits, 3, "),
    ] {
        text(con, "DEL key");
        ask(con, 60, &format!("{struck} {others}"));
        holds(con, what);
    }
}

#[test]
fn a_key_of_64_limits_takes_no_penalty_more() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let windows = |count: u64| {
        (0..count).map(|i| format!("LIMIT FIXEDWINDOW 1 {}ms ", 3_600_000 + i)).collect::<Vec<_>>().concat()
    };
    let penalty = "LIMIT PENALTY 3 10m 10m";
    let call = |limits: &str| format!("RL.MULTI 1 key AT {T0} {limits}");
    // 63 windows and a penalty are 64ms pairs and 64 limits.
    let most = call(&format!("{}{penalty}", windows(63)));
    assert_eq!(multi(con, &most).0[0], 0);
    assert!(text(con, "RL.INFO key").contains("stored_limits, 63, "));
    assert_eq!(multi(con, &most).1[63], [0, 3, 2, 0, 10 * MINUTE]);
    assert!(text(con, "RL.INFO key").contains("stored_limits, 64, "));
    // One more is an error, also where only a strike would add it, and before anything is changed.
    let before = written(con);
    for limits in [
        "LIMIT FIXEDWINDOW 1 1h LIMIT PENALTY 3 11m 10m",
        "LIMIT FIXEDWINDOW 9 1h LIMIT PENALTY 3 11m 10m",
        "LIMIT PENALTY 3 10m 10m LIMIT PENALTY 3 11m 10m SHADOW LIMIT FIXEDWINDOW 1 1h",
    ] {
        assert_eq!(error(con, &call(limits)), "ERR at most 64 limits a key", "{limits}");
    }
    assert_eq!(written(con), before);
    // A look adds none, and the one that the key holds is struck.
    let look = call("LIMIT FIXEDWINDOW 1 1h LIMIT PENALTY 3 11m 10m COST 0");
    assert_eq!(multi(con, &look).1[1], [0, 3, 3, 0, 0]);
    let held = call(&format!("LIMIT FIXEDWINDOW 1 1h {penalty}"));
    assert_eq!(multi(con, &held).1[1], [0, 3, 1, 0, 10 * MINUTE]);
}

#[test]
fn all_that_a_refusal_writes_to_a_key_reaches_a_replica() {
    let penalties = ["LIMIT PENALTY 3 10m 10m", "LIMIT PENALTY 3 1h 10m", "LIMIT PENALTY 3 10m 10m SHADOW"];
    let mut wrong = Vec::new();
    for (held, refuses, struck) in [
        // On a missing key: beside the limit that refuses, and on another key than that.
        ("", "LIMIT UNIFORM 1s COST 2", 1),
        ("", "LIMIT UNIFORM 1s COST 2", 3),
        ("", "LIMIT UNIFORM 1s COST 2 ON 2", 3),
        // Where a penalty of the call stands alone.
        ("RL.PENALTY key 3 1h 10m", "LIMIT UNIFORM 1s COST 2", 3),
        ("RL.PENALTY key 3 1h 10m", "LIMIT UNIFORM 1s COST 2 ON 2", 3),
        ("RL.PENALTY key 3 10m 10m", "LIMIT UNIFORM 1s COST 2 ON 2", 3),
        // Where another limit stands alone: the one that refuses, one that is not named, and one that is fully reset.
        ("RL.UNIFORM key 1s", "LIMIT UNIFORM 1s ON 1", 3),
        ("RL.GCRA key 9 1 1h", "LIMIT UNIFORM 1s COST 2 ON 2", 3),
        ("RL.GCRA key 9 1 1h AT 4102440000000000", "LIMIT UNIFORM 1s COST 2 ON 2", 3),
        // Where the clock was set back, so the refusal moves that limit, too.
        ("RL.UNIFORM key 1s AT 4102448400000000", "LIMIT UNIFORM 1s ON 1 COST 2", 1),
        ("RL.PENALTY key 3 10m 10m AT 4102448400000000", "LIMIT UNIFORM 1s COST 2", 1),
    ] {
        let server = Server::start(&[]);
        let replica = server.replica(&[]);
        let con = &mut server.connection();
        let at = 4_102_444_800 * SECOND;
        if !held.is_empty() {
            let own = if held.contains(" AT ") { held.into() } else { format!("{held} AT {at}") };
            text(con, &own);
        }
        let limits =
            penalties[..struck].iter().map(|penalty| format!(" {penalty} ON 1")).collect::<Vec<_>>().concat();
        let line = format!("RL.MULTI 2 key other AT {at} {refuses}{limits}");
        let (all, each) = multi(con, &line);
        let struck = each[each.len() - struck..].iter().all(|five| five[2] < 3);
        assert!(all[0] == 1 && struck, "{held}, then {line}: {each:?}");
        let told =
            |con: &mut Connection| (dump(con, "key"), text(con, "RL.INFO key"), text(con, "PEXPIRETIME key"));
        sync(&server, &replica);
        if told(&mut replica.connection()) != told(con) {
            wrong.push(format!("{held}, then {refuses}{limits}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn replicas_and_restarts_keep_strikes_bans_and_levels() {
    let server = Server::start(&[]);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut server.connection();
    // The year 2100: nothing expires meanwhile.
    let at = |seconds: u64| (4_102_444_800 + seconds) * SECOND;
    let p = "PENALTY 3 10m 10m GROW 2 MAX 1h FORGIVE 1h";
    let several = |seconds: u64| {
        format!(
            "RL.MULTI 2 ip user AT {} LIMIT GCRA 0 1 1m ON 2 LIMIT {p} LIMIT {p} SHADOW ON 1",
            at(seconds)
        )
    };
    let own = |options: &str, seconds: u64| {
        let (name, parameters) = p.split_once(' ').unwrap();
        format!("RL.{name} ip {parameters} {options} AT {}", at(seconds))
    };
    let steps = [
        // A penalty that is struck where no limit is stored yet.
        format!("RL.MULTI 1 new AT {} LIMIT UNIFORM 1s COST 2 LIMIT {p}", at(0)),
        several(0),
        several(1),
        several(2),
        format!("RL.REFUND ip {p} AT {}", at(3)),
        own("COST 2", 3),
        // A ban: nothing is written by what it refuses.
        several(4),
        own("", 5),
        own("COST 0", 5),
        format!("RL.REFUND ip {p} AT {}", at(6)),
        // The next one.
        own("COST 9", 700),
        // The clock is set back by a month.
        own("", 0),
        several(1).replace(&at(1).to_string(), &(at(1) - 30 * 86_400 * SECOND).to_string()),
    ];
    let told = |con: &mut Connection| {
        ["ip", "user", "new"].map(|key| {
            (dump(con, key), text(con, &format!("PEXPIRETIME {key}")), text(con, &format!("RL.INFO {key}")))
        })
    };
    for step in steps {
        text(con, &step);
        sync(&server, &replica);
        assert_eq!(told(&mut replica.connection()), told(con), "{step}");
        let digest = text(con, "DEBUG DIGEST");
        assert_eq!(text(con, "DEBUG RELOAD"), "OK");
        assert_eq!(text(con, "DEBUG DIGEST"), digest, "{step}");
    }
    // A replica answers looks, also whether there is a ban.
    text(con, "DEL ip");
    ints(con, &own("COST 3", 0));
    sync(&server, &replica);
    let peek = format!("RL.PEEK ip {p} COST 0 AT {}", at(60));
    let banned = [1, 3, 0, 9 * MINUTE, 69 * MINUTE];
    assert_eq!(ints(&mut replica.connection(), &peek), banned);
    assert_eq!(ints(con, &peek), banned);
}
