//! Dice, sizes, copies, watched keys, and a name that another module has.

use redis::Connection;

use crate::support::kinds::flood;
use crate::support::{
    AOF_AT_ONCE, SECOND, Server, T0, dump, error, faulty_module, info, ints, multi, sync, text,
};

#[test]
fn the_dice_of_the_shedder_fall_as_often_as_the_chance_says() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let mut shed = |second: u64| {
        let reply = text(con, &format!("RL.SHED fleet 1 AT {}", T0 + second * SECOND));
        u32::from(reply.starts_with("[1"))
    };
    _ = [0, 28, 56, 84].map(&mut shed);
    // At 0.5, with time standing still: 2,000 throws are within six deviations of 1,000.
    let count: u32 = (0..2000).map(|_| shed(88)).sum();
    assert!((866..=1134).contains(&count), "{count} of 2000");
    let counted = ["admitted", "refused"].map(|what| {
        info(con, "ratelimit", &format!("ratelimit_shed_{what}")).unwrap().parse::<u32>().unwrap()
    });
    assert_eq!(counted.iter().sum::<u32>(), 2004);
}

#[test]
fn a_log_takes_few_bytes_an_entry_and_is_never_shipped_whole() {
    let server = Server::start(&AOF_AT_ONCE);
    let con = &mut server.connection();
    flood(con, (0..20_000).map(|i| format!("RL.SLIDINGLOG log 100000 36500d AT {}", T0 + i * 1003)));
    let number = |text: String| text.parse::<u64>().unwrap();
    let shipped = number(info(con, "persistence", "aof_current_size").unwrap()) / 20_000;
    assert!((30..150).contains(&shipped), "{shipped} bytes in the AOF for each call");
    let told = number(text(con, "MEMORY USAGE log SAMPLES 0"));
    assert!((40_000..100_000).contains(&told), "MEMORY USAGE tells {told}");
}

#[test]
fn a_name_that_another_module_has_is_left_to_it() {
    let server = Server::try_start_with(Some(&faulty_module()), &["TAKEN"], &[]).unwrap();
    let con = &mut server.connection();
    assert!(server.log().contains("ratelimit: CL.THROTTLE is another module's"), "{}", server.log());
    assert_eq!(ints(con, "RL.THROTTLE key 15 30 60")[..3], [0, 16, 15]);
}

#[test]
fn a_settlement_disturbs_who_watches_the_key_and_one_of_nothing_does_not() {
    let server = Server::start(&[]);
    let (con, other) = (&mut server.connection(), &mut server.connection());
    ints(con, "RL.GCRA key 9 1 1h COST 6 HOLD a 5m");
    for (line, disturbs) in [
        ("RL.GCRA key 9 1 1h COST 6 HOLD a 5m", false),
        ("RL.SETTLE key never GCRA 9 1 1h COST 1", false),
        // At its estimate it changes no count, but it ends the hold.
        ("RL.SETTLE key a GCRA 9 1 1h COST 6", true),
        ("RL.SETTLE key a GCRA 9 1 1h COST 6", false),
    ] {
        text(other, "WATCH key");
        ints(con, line);
        text(other, "MULTI");
        text(other, "PING");
        assert_eq!(text(other, "EXEC"), if disturbs { "(nil)" } else { "[PONG]" }, "{line}");
    }
}

#[test]
fn all_that_a_refusal_writes_to_a_key_reaches_a_replica() {
    let server = Server::start(&[]);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let (con, copy) = (&mut server.connection(), &mut replica.connection());
    // The year 2100: nothing expires meanwhile.
    let at = 4_102_444_800 * SECOND;
    let penalties = ["LIMIT PENALTY 3 10m 10m", "LIMIT PENALTY 3 1h 10m", "LIMIT PENALTY 3 10m 10m SHADOW"];
    for (number, (held, refuses, struck)) in [
        // On a missing key: beside the limit that refuses, and on another key than that.
        ("", "LIMIT UNIFORM 1s COST 2", 1),
        ("", "LIMIT UNIFORM 1s COST 2", 3),
        ("", "LIMIT UNIFORM 1s COST 2 ON 2", 3),
        // Where a penalty of the call stands alone.
        ("RL.PENALTY KEY 3 1h 10m", "LIMIT UNIFORM 1s COST 2", 3),
        ("RL.PENALTY KEY 3 1h 10m", "LIMIT UNIFORM 1s COST 2 ON 2", 3),
        ("RL.PENALTY KEY 3 10m 10m", "LIMIT UNIFORM 1s COST 2 ON 2", 3),
        // Where another limit stands alone: the one that refuses, one that is not named, and one that is fully reset.
        ("RL.UNIFORM KEY 1s", "LIMIT UNIFORM 1s ON 1", 3),
        ("RL.GCRA KEY 9 1 1h", "LIMIT UNIFORM 1s COST 2 ON 2", 3),
        ("RL.GCRA KEY 0 1 1ms", "LIMIT UNIFORM 1s COST 2 ON 2", 3),
        // Where the clock was set back, so the refusal moves that limit, too.
        ("RL.UNIFORM KEY 1s AHEAD", "LIMIT UNIFORM 1s ON 1 COST 2", 1),
        ("RL.PENALTY KEY 3 10m 10m AHEAD", "LIMIT UNIFORM 1s COST 2", 1),
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("key{number}");
        if !held.is_empty() {
            let (own, ahead) = held.split_once(" AHEAD").map_or((held, 0), |(own, _)| (own, 3600));
            text(con, &format!("{} AT {}", own.replace("KEY", &key), at - SECOND / 2 + ahead * SECOND));
        }
        let limits: Vec<String> =
            penalties[..struck].iter().map(|penalty| format!(" {penalty} ON 1")).collect();
        let limits = limits.concat();
        let line = format!("RL.MULTI 2 {key} other AT {at} {refuses}{limits}");
        let (all, each) = multi(con, &line);
        assert!(
            all[0] == 1 && each[each.len() - struck..].iter().all(|five| five[2] < 3),
            "{held}, then {line}: {each:?}"
        );
        sync(&server, &replica);
        let told = |con: &mut Connection| {
            (dump(con, &key), text(con, &format!("RL.INFO {key}")), text(con, &format!("PEXPIRETIME {key}")))
        };
        assert_eq!(told(copy), told(con), "{held}, then {line}");
    }
}

#[test]
fn a_key_of_64_limits_takes_no_penalty_more() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let windows: Vec<String> = (0..63).map(|i| format!("LIMIT FIXEDWINDOW 1 {}ms ", 3_600_000 + i)).collect();
    let windows = windows.concat();
    let call = |limits: &str| format!("RL.MULTI 1 key AT {T0} {limits}");
    let most = call(&format!("{windows}LIMIT PENALTY 3 10m 10m"));
    assert_eq!(multi(con, &most).0[0], 0);
    assert_eq!(multi(con, &most).1[63], [0, 3, 2, 0, 600_000]);
    // One more is an error, also where only a strike would add it, and before anything is changed.
    let before = dump(con, "key");
    for limits in [
        "LIMIT FIXEDWINDOW 1 1h LIMIT PENALTY 3 11m 10m",
        "LIMIT FIXEDWINDOW 9 1h LIMIT PENALTY 3 11m 10m",
        "LIMIT PENALTY 3 10m 10m LIMIT PENALTY 3 11m 10m SHADOW LIMIT FIXEDWINDOW 1 1h",
    ] {
        assert_eq!(error(con, &call(limits)), "ERR at most 64 limits a key", "{limits}");
    }
    assert_eq!(dump(con, "key"), before);
    // A look adds none, and the one that the key holds is struck.
    let look = call("LIMIT FIXEDWINDOW 1 1h LIMIT PENALTY 3 11m 10m COST 0");
    assert_eq!(multi(con, &look).1[1], [0, 3, 3, 0, 0]);
    let held = call("LIMIT FIXEDWINDOW 1 1h LIMIT PENALTY 3 10m 10m");
    assert_eq!(multi(con, &held).1[1], [0, 3, 1, 0, 600_000]);
}
