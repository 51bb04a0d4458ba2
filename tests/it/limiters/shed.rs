//! The load shedder over the wire: the slow way in, the slow way out, tiers, dice, and errors.

use redis::{Connection, Value};

use crate::support::{SECOND, Server, T0, call, error, info, sync, text};

/// Reports a utilization at `second`. Returns whether the call is shed, and the chance of it.
fn report(con: &mut Connection, utilization: f64, second: u32, options: &str) -> (i64, f64) {
    let line = format!("RL.SHED fleet {utilization} {options} AT {}", T0 + u64::from(second) * 1_000_000);
    let words: Vec<&str> = line.split_whitespace().collect();
    match call(con, &words).unwrap() {
        Value::Array(reply) => match reply.as_slice() {
            [Value::Int(limited), Value::BulkString(chance)] => {
                (*limited, std::str::from_utf8(chance).unwrap().parse().unwrap())
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_is_shed_for_28_s_everything_after_148_s_and_the_way_back_is_slow() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for second in (0..=28).step_by(4) {
        let (limited, chance) = report(con, 1.0, second, "");
        assert!(limited == 0 && chance < 1e-9, "{second} s: {chance}");
    }
    for second in (32..=148).step_by(4) {
        let expected = f64::from(second - 28) / 120.0;
        let (_, chance) = report(con, 1.0, second, "");
        assert!((chance - expected).abs() < 1e-9, "{second} s: {chance}");
    }
    assert_eq!(report(con, 1.0, 152, ""), (1, 1.0), "the amount stays at 1");
    // Fully idle it takes as long to let everything in again, and nothing is forgotten at once.
    for second in (156..=272).step_by(4) {
        let expected = 1.0 - f64::from(second - 152) / 120.0;
        let (_, chance) = report(con, 0.0, second, "");
        assert!((chance - expected).abs() < 1e-9, "{second} s: {chance}");
    }
    assert_eq!(report(con, 0.0, 276, "").0, 0);
}

#[test]
fn the_dice_fall_as_often_as_the_chance_says() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for second in (0..=88).step_by(4) {
        report(con, 1.0, second, "");
    }
    // At 0.5, with time standing still: 2,000 throws are within six deviations of 1,000.
    let shed: i64 = (0..2000).map(|_| report(con, 0.75, 88, "").0).sum();
    assert!((866..=1134).contains(&shed), "{shed} of 2000");
    // Of two tiers the first is shed whole before the second is touched.
    assert_eq!(report(con, 0.75, 88, "TIER 1 OF 2").0, 1);
    assert_eq!(report(con, 0.75, 88, "TIER 2 OF 2").0, 0);
    let counted = |con: &mut Connection, what: &str| -> u64 {
        info(con, "ratelimit", &format!("ratelimit_shed_{what}")).unwrap().parse().unwrap()
    };
    assert_eq!(counted(con, "admitted") + counted(con, "refused"), 23 + 2002);
}

#[test]
fn each_report_is_written_and_replicas_agree() {
    let primary = Server::start(&[]);
    let replica = primary.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut primary.connection();
    for second in 0..60 {
        report(con, 0.95, second, "DELAY 5s RAMP 1m");
    }
    sync(&primary, &replica);
    let other = &mut replica.connection();
    for command in ["DUMP fleet", "PEXPIRETIME fleet", "RL.INFO fleet"] {
        let words: Vec<&str> = command.split(' ').collect();
        assert_eq!(call(con, &words).unwrap(), call(other, &words).unwrap(), "{command}");
    }
    assert!(text(con, "RL.INFO fleet").starts_with("[limiter, SHED, mode, utilization, shed_amount, 0."));
}

#[test]
fn silence_is_rest() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for second in (0..=148).step_by(4) {
        report(con, 1.0, second, "");
    }
    assert!(report(con, 1.0, 148 + 147, "").1 > 0.9);
    assert!(report(con, 1.0, 148 + 147 + 148, "").1 < 1e-9);
}

#[test]
fn a_utilization_from_1_to_2_counts_as_1() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let states = ["1", "1.000001", "1.7", "2"].map(|utilization| {
        text(con, "DEL key");
        for second in [0, 60, 90] {
            let at = T0 + second * SECOND;
            text(con, &format!("RL.SHED key {utilization} AT {at}"));
        }
        text(con, "DUMP key")
    });
    assert!(states.iter().all(|state| *state == states[0]), "{states:?}");
}

#[test]
fn errors_name_what_is_wrong_and_change_nothing() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let order = "ERR GOOD and BAD must be 0 <= GOOD <= BAD < 1; got GOOD";
    for (line, expected) in [
        ("RL.SHED key x", "ERR utilization must be a number from 0 to 2; got 'x'"),
        ("RL.SHED key 35", "ERR utilization must be a number from 0 to 2; got '35'"),
        ("RL.SHED key -0.01", "ERR utilization must be a number from 0 to 2; got '-0.01'"),
        ("RL.SHED key 0.5 GOOD 0.9", &format!("{order} 0.9 and BAD 0.8")),
        ("RL.SHED key 0.5 BAD 1", &format!("{order} 0.7 and BAD 1")),
        ("RL.SHED key 0.5 GOOD -0.1", "ERR GOOD must be a number from 0 to 1; got '-0.1'"),
        ("RL.SHED key 0.5 GOOD 0.3 BAD 0.2", &format!("{order} 0.3 and BAD 0.2")),
        ("RL.SHED key", "ERR wrong number of arguments for 'rl.shed' command"),
    ] {
        assert_eq!(error(con, line), expected, "{line}");
    }
    assert_eq!(text(con, "EXISTS key"), "0");
    text(con, "SET key x");
    assert!(error(con, "RL.SHED key 0.5").starts_with("WRONGTYPE"));
}
