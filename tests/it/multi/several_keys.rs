//! `RL.MULTI`, `RL.MULTIPEEK`, `RL.MULTIREFUND`: several limits on several keys, all or nothing.

use crate::support::dice::Dice;
use crate::support::{SECOND, Server, T0, dump, ints, multi, text};

#[test]
fn all_are_charged_or_none_and_the_reply_tells_which_limit_binds() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let line = format!("RL.MULTI 1 user AT {T0} LIMIT FIXEDWINDOW 2 1s LIMIT FIXEDWINDOW 3 1m");
    let (all, each) = multi(con, &line);
    assert_eq!(all, [0, 2, 1, 0, 60_000]);
    assert_eq!(each, [[0, 2, 1, 0, 1000], [0, 3, 2, 0, 60_000]]);
    assert_eq!(multi(con, &line).0, [0, 2, 0, 0, 60_000]);
    let before = dump(con, "user");
    let (all, each) = multi(con, &line);
    assert_eq!(all, [1, 2, 0, 1000, 60_000]);
    // Each answers for itself: the one that would admit says so, and was not charged.
    assert_eq!(each, [[1, 2, 0, 1000, 1000], [0, 3, 1, 0, 60_000]]);
    assert_eq!(dump(con, "user"), before);
    // A second later the minute binds.
    let line = line.replace(&T0.to_string(), &(T0 + SECOND).to_string());
    assert_eq!(multi(con, &line).0, [0, 3, 0, 0, 59_000]);
    let (all, each) = multi(con, &line);
    assert_eq!(all, [1, 3, 0, 59_000, 59_000]);
    assert_eq!(each[0], [0, 2, 1, 0, 1000]);
    // Never is never, whatever the others say.
    assert_eq!(multi(con, &format!("{line} COST 4")).0[3], -1);
}

#[test]
fn limits_go_on_all_keys_or_on_one_of_them_with_costs_of_their_own() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let line = format!(
        "RL.MULTI 2 user address COST 3 AT {T0} LIMIT GCRA 9 1 1s LIMIT TOKENBUCKET 100 1 1s ON 2 COST 50 \
         LIMIT CONCURRENT 5 1m limit ON 1 LIMIT UNIFORM 1s on 2 LIMIT GCRA 4 1 1m COST 0 ON 1"
    );
    let (all, each) = multi(con, &line);
    assert_eq!(
        each,
        [
            [0, 10, 7, 0, 3000],
            [0, 10, 7, 0, 3000],
            [0, 100, 50, 0, 50_000],
            // One lease and one passage, whatever the default.
            [0, 5, 4, 0, 60_000],
            [0, 1, 0, 0, 1000],
            // Looked at.
            [0, 5, 5, 0, 0],
        ]
    );
    assert_eq!(all, [0, 1, 0, 0, 60_000]);
    assert!(text(con, "RL.INFO user").contains("stored_limits, 2"));
    assert!(text(con, "RL.INFO address").contains("stored_limits, 3"));
    // A default of 0 looks at all.
    let (all, each) = multi(con, "RL.MULTI 1 new COST 0 LIMIT UNIFORM 1s LIMIT CONCURRENT 5 1m a");
    assert_eq!((all[0], each.len()), (0, 2));
    assert_eq!(text(con, "EXISTS new"), "0");
    // The lease is found where it is; the id is an id, whatever it spells.
    assert_eq!(ints(con, &format!("RL.RENEW user 90s limit AT {T0}")), [1]);
    assert_eq!(ints(con, &format!("RL.RELEASE user other AT {T0}")), [0]);
    assert_eq!(ints(con, &format!("RL.RELEASE user limit AT {T0}")), [1]);
    assert_eq!(ints(con, &format!("RL.RELEASE user limit AT {T0}")), [0]);
    assert_eq!(ints(con, "RL.RELEASE address limit"), [0]);
}

#[test]
fn a_limit_of_no_cost_hinders_nobody_and_stays_as_it_is() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ints(con, &format!("RL.GCRA full 0 1 1m AT {T0}"));
    let before = dump(con, "full");
    let line = format!(
        "RL.MULTI 2 full window AT {T0} LIMIT GCRA 0 1 1m ON 1 COST 0 LIMIT FIXEDWINDOW 2 1m ON 2 COST 2"
    );
    let (all, each) = multi(con, &line);
    assert_eq!(
        (all, each),
        (vec![0, 1, 0, 0, 60_000], vec![vec![0, 1, 0, 0, 60_000], vec![0, 2, 0, 0, 60_000]])
    );
    // The other limit refuses. Of two limits with nothing remaining, the combined reply has the first.
    let (all, each) = multi(con, &line);
    assert_eq!(
        (all, each),
        (vec![1, 1, 0, 60_000, 60_000], vec![vec![0, 1, 0, 0, 60_000], vec![1, 2, 0, 60_000, 60_000]])
    );
    assert_eq!(dump(con, "full"), before);
}

#[test]
fn what_is_given_back_is_given_back_to_each() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = "LIMIT TOKENBUCKET 10 1 1s LIMIT SLIDINGLOG 8 1m ON 1";
    multi(con, &format!("RL.MULTI 2 a b COST 6 AT {T0} {limits}"));
    let (all, each) = multi(con, &format!("RL.MULTIREFUND 2 a b COST 2 AT {T0} {limits}"));
    assert_eq!(each, [[0, 10, 6, 0, 4000], [0, 10, 6, 0, 4000], [0, 8, 4, 0, 60_000]]);
    assert_eq!(all, [0, 8, 4, 0, 60_000]);
    // At most the charged cost comes back, and a key that is fully reset is deleted.
    let (_, each) = multi(con, &format!("RL.MULTIREFUND 1 a COST 99 AT {T0} {limits} LIMIT GCRA 9 1 1s"));
    assert_eq!(each, [[0, 10, 10, 0, 0], [0, 8, 8, 0, 0], [0, 10, 10, 0, 0]]);
    assert_eq!(text(con, "EXISTS a b missing"), "1");
    multi(con, &format!("RL.MULTIREFUND 2 missing b COST 99 AT {T0} LIMIT TOKENBUCKET 10 1 1s"));
    assert_eq!(text(con, "EXISTS a b missing"), "0");
    // FORCE admits into debt, and a refund works it off.
    let (all, _) = multi(con, &format!("RL.MULTI 1 a COST 12 FORCE AT {T0} {limits}"));
    assert_eq!(all, [0, 10, 0, 0, 60_000]);
    let (_, each) = multi(con, &format!("RL.MULTIREFUND 1 a COST 5 AT {T0} {limits}"));
    assert_eq!(each, [[0, 10, 3, 0, 7000], [0, 8, 1, 0, 60_000]]);
}

#[test]
fn carlsons_windows_in_any_order_give_the_same_verdicts() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let limits = [
        "LIMIT SLIDINGWINDOW 10 1s ",
        "LIMIT SLIDINGWINDOW 120 1m PRECISION 1s ",
        "LIMIT SLIDINGWINDOW 240 1h PRECISION 1m ",
    ];
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let mut dice = Dice::new(7);
    let mut random = |below| dice.below(below);
    let (mut at, mut refused) = (T0, [0; 3]);
    for step in 0..1000 {
        // Now in bursts, now minutes apart.
        at += if step % 200 < 150 { random(300_000) } else { random(20 * SECOND) };
        let cost = 1 + random(3);
        let mut first = None;
        for (place, order) in orders.iter().enumerate() {
            let named: String = order.iter().map(|limit| limits[*limit]).collect();
            let key = format!("key{place}");
            let before = dump(con, &key);
            let (all, each) = multi(con, &format!("RL.MULTI 1 {key} COST {cost} AT {at} {named}"));
            if all[0] == 1 {
                assert_eq!(dump(con, &key), before, "a refusal changes no counter");
            }
            let mut by_limit = each.clone();
            order.iter().zip(each).for_each(|(limit, five)| by_limit[*limit] = five);
            // The limit told is the first one's of equals.
            let told = (all[0], all[2..].to_vec(), by_limit);
            assert_eq!(first.get_or_insert_with(|| told.clone()), &told, "{order:?}");
        }
        for (count, five) in refused.iter_mut().zip(first.unwrap().2) {
            *count += five[0];
        }
    }
    assert!(refused.iter().all(|count| *count > 20), "{refused:?}");
    // The same bytes, in whatever order they were named.
    let expected = dump(con, "key0");
    assert!((1..6).all(|key| dump(con, &format!("key{key}")) == expected));
}
