//! Fair shares: `TENANT` and `WEIGHT` of callers that wait, on a real server.

use std::collections::BTreeMap;

use redis::Connection;

use super::{PATIENT, Waiting, count, field, until_tried, until_waiting};
use crate::support::client::Client;
use crate::support::pool::{Caller, Limit, Pool};
use crate::support::{Server, ints, multi, text};

/// Callers of these tenants, each with its options, wait while another tenant holds everything. Then its leases end.
fn filled<const N: usize>(capacity: usize, wants: [(&str, &str, usize); N]) -> [usize; N] {
    let mut pool = Pool::full(Limit::Leases, capacity, "before", "TENANT before");
    for (tenant, options, callers) in wants {
        pool.wait(tenant, &format!("TENANT {tenant} {options}"), callers);
    }
    (0..capacity).for_each(|_| drop(pool.end_first()));
    wants.map(|(tenant, ..)| pool.held_by(tenant))
}

#[test]
fn a_pool_of_120_is_filled_up_progressively() {
    assert_eq!(filled(120, [("a", "", 1000), ("b", "", 60), ("c", "", 10)]), [55, 55, 10]);
    assert_eq!(filled(120, [("a", "", 200), ("b", "", 50), ("c", "", 10)]), [60, 50, 10]);
    let weights = [("a", "WEIGHT 6", 130), ("b", "WEIGHT 4", 130), ("c", "WEIGHT 2", 130)];
    assert_eq!(filled(120, weights), [60, 40, 20]);
}

#[test]
fn the_next_lease_goes_to_the_newcomer() {
    let mut pool = Pool::full(Limit::Leases, 15, "before", "TENANT before");
    pool.wait("before", "TENANT before", 100);
    pool.wait("new", "TENANT new", 1);
    pool.end_first();
    assert_eq!((pool.held_by("before"), pool.held_by("new")), (14, 1));
}

/// The grants to the tenant `last`, which waits with others, each in turn with its options and its callers. First the
/// leases of another tenant end, and then so many more.
fn grants_to_last(capacity: usize, tenants: &[(&str, &str, usize)], ends: usize) -> usize {
    let mut pool = Pool::full(Limit::Leases, capacity, "before", "TENANT before");
    let options: BTreeMap<&str, String> =
        tenants.iter().map(|(tenant, options, _)| (*tenant, format!("TENANT {tenant} {options}"))).collect();
    for (tenant, _, callers) in tenants {
        pool.wait(tenant, &options[tenant], *callers);
    }
    (0..capacity).for_each(|_| drop(pool.end_first()));
    pool.turn_over(ends, "last", |tenant| &options[tenant])
}

#[test]
fn a_large_cost_a_small_weight_and_a_lonely_caller_have_their_turns() {
    let beside = |options: &'static str, others: &[&'static str], last: &'static str| {
        let others = others.iter().map(|tenant| (*tenant, options, 12));
        others.chain([("last", last, 1)]).collect::<Vec<_>>()
    };
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"];
    // A cost of 10 of 10 beside two tenants of cost 1.
    assert!(grants_to_last(10, &beside("", &names[..2], "COST 10"), 70) >= 2);
    // A weight of 1 among eleven of weight 2 on ten slots.
    assert!(grants_to_last(10, &beside("WEIGHT 2", &names, ""), 80) >= 2);
    // A cost of 2 beside ten of cost 1.
    assert!(grants_to_last(10, &beside("", &names[..10], "COST 2"), 60) >= 2);
}

#[test]
fn a_weight_of_1_beside_one_of_100_gets_one_grant_in_a_hundred() {
    let grants = grants_to_last(1, &[("heavy", "WEIGHT 100", 2), ("last", "WEIGHT 1", 1)], 210);
    assert!((1..=3).contains(&grants), "{grants} of 210");
}

/// The grants of a window of one to each of these tenants, which wait in turn: all the first ones.
fn shares<const N: usize>(tenants: [(&str, &str, usize); N], grants: usize) -> [usize; N] {
    let mut rate = Pool::full(Limit::Rate, 1, "before", "");
    for (tenant, options, callers) in tenants {
        rate.wait(tenant, &format!("TENANT {tenant} {options}"), callers);
    }
    let granted: Vec<Caller> = (0..grants).flat_map(|_| rate.end_first()).collect();
    assert_eq!(granted.len(), grants);
    tenants.map(|(tenant, ..)| granted.iter().filter(|to| to.tenant == tenant).count())
}

#[test]
fn the_grants_of_a_rate_are_as_the_weights() {
    let tenants = [("a", "WEIGHT 5", 8), ("b", "WEIGHT 3", 8), ("c", "WEIGHT 2", 8)];
    assert_eq!(shares(tenants, 10), [5, 3, 2]);
    assert_eq!(shares([("a", "WEIGHT 3", 8), ("b", "", 8)], 8), [6, 2]);
}

#[test]
fn who_was_served_alone_does_not_pay_for_it_when_another_joins() {
    let mut rate = Pool::full(Limit::Rate, 1, "before", "");
    rate.wait("a", "TENANT a", 120);
    (0..100).for_each(|_| assert_eq!(rate.end_first().len(), 1));
    rate.wait("b", "TENANT b", 6);
    let granted: Vec<Caller> = (0..10).flat_map(|_| rate.end_first()).collect();
    assert_eq!(granted.iter().filter(|to| to.tenant == "b").count(), 5, "{granted:?}");
}

#[test]
fn a_settlement_above_the_estimate_sets_its_tenant_back() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    let line = |tenant: &str, id: usize| {
        format!("RL.FIXEDWINDOW llm 10 1h COST 10 HOLD {tenant}{id} 1h BLOCK 1d TENANT {tenant}")
    };
    ints(con, "RL.FIXEDWINDOW llm 10 1h COST 10");
    let mut callers = Vec::new();
    for id in 0..4 {
        for tenant in ["a", "b"] {
            callers.push((tenant.to_string(), Waiting::enter(&server, &line(tenant, id))));
        }
    }
    let mut next = |con: &mut Connection| {
        ints(con, "RL.REFUND llm FIXEDWINDOW 10 1h COST 10");
        until_tried(&server);
        let granted = callers.iter_mut().position(|(_, caller)| !caller.waits()).expect("a grant");
        callers.remove(granted).0
    };
    assert_eq!(next(con), "a");
    assert_eq!(next(con), "b");
    // The first call of a has cost three times its estimate.
    assert_eq!(ints(con, "RL.SETTLE llm a0 FIXEDWINDOW 10 1h COST 30 TENANT a")[5], 1);
    ints(con, "RL.REFUND llm FIXEDWINDOW 10 1h COST 20");
    assert_eq!([next(con), next(con), next(con)], ["b", "b", "a"]);
}

#[test]
fn callers_without_a_tenant_share_with_the_others_as_one() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    for id in ["1", "2", "3", "4"] {
        ints(con, &format!("RL.CONCURRENT pool 4 1h {id} TENANT a"));
    }
    let mut without: Vec<Waiting> = (0..4)
        .map(|id| Waiting::enter(&server, &format!("RL.CONCURRENT pool 4 1h plain{id} BLOCK 1d")))
        .collect();
    let mut more: Vec<Waiting> = (0..4)
        .map(|id| Waiting::enter(&server, &format!("RL.CONCURRENT pool 4 1h more{id} TENANT a BLOCK 1d")))
        .collect();
    for id in ["1", "2", "3", "4"] {
        text(con, &format!("RL.RELEASE pool {id}"));
    }
    until_tried(&server);
    let granted = |callers: &mut Vec<Waiting>| {
        callers.iter_mut().filter_map(|caller| (!caller.waits()).then_some(())).count()
    };
    assert_eq!((granted(&mut without), granted(&mut more)), (2, 2));
}

#[test]
fn one_limit_of_a_call_is_shared_by_tenants() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET jobs LIMIT CONCURRENT 2 1h ON 2 FAIR LIMIT FIXEDWINDOW 9 1h ON 1");
    let call = |user: &str, id: &str, tenant: &str, block: &str| {
        format!(
            "RL.MULTI 2 {user} pool {block} LIMIT FIXEDWINDOW 9 1h ON 1 LIMIT CONCURRENT 2 1h {id} ON 2 TENANT {tenant}"
        )
    };
    for id in ["1", "2"] {
        assert_eq!(multi(con, &call("u", id, "a", "")).0[0], 0);
    }
    let mut own = Waiting::enter(&server, &call("u", "3", "a", "BLOCK 1d"));
    let newcomer = Waiting::enter(&server, "RL.ASK v jobs ID 4 TENANT b BLOCK 1d KEYS pool");
    text(con, "RL.RELEASE pool 1");
    assert_eq!(newcomer.ints()[0], 0);
    until_tried(&server);
    assert!(own.waits());
    text(con, "RL.RELEASE pool 2");
    assert!(own.text().starts_with("[[0, 2, 0, "));
    let tenants = "[[name, a, weight, 1, held, 1, waiting, 0], [name, b, weight, 1, held, 1, waiting, 0]]";
    assert!(text(con, "RL.INFO pool").contains(tenants), "{}", text(con, "RL.INFO pool"));
}

#[test]
fn who_waits_for_its_own_quota_keeps_nobody_from_the_pool() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    let call = |user: &str, id: &str, block: &str| {
        format!(
            "RL.MULTI 2 {user} pool {block} LIMIT FIXEDWINDOW 1 1h ON 1 LIMIT CONCURRENT 2 1h {id} ON 2 TENANT {user}"
        )
    };
    assert_eq!(multi(con, &call("a", "1", "")).0[0], 0);
    let mut quota = Waiting::enter(&server, &call("a", "2", "BLOCK 1d"));
    assert_eq!(multi(con, &call("b", "3", "")).0[0], 0);
    let pooled = Waiting::enter(&server, &call("c", "4", "BLOCK 1d"));
    text(con, "RL.RELEASE pool 3");
    assert!(pooled.text().starts_with("[[0, "));
    assert!(quota.waits());
    assert_eq!(count(con, "waiting"), 1);
}

#[test]
fn info_lists_the_tenants_that_hold_most_for_their_weight_first() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT pool 7 1h 1 COST 4 TENANT a WEIGHT 4");
    ints(con, "RL.CONCURRENT pool 7 1h 2 COST 2 TENANT b");
    ints(con, "RL.CONCURRENT pool 7 1h 3");
    let waits = Waiting::enter(&server, "RL.CONCURRENT pool 7 1h 4 TENANT c WEIGHT 9 BLOCK 1d");
    let tenants = "tenants, [[name, b, weight, 1, held, 2, waiting, 0], [name, , weight, 1, held, 1, waiting, 0], \
                   [name, a, weight, 4, held, 4, waiting, 0], [name, c, weight, 9, held, 0, waiting, 1]]";
    let shown = text(con, "RL.INFO pool");
    assert!(shown.contains(tenants), "{shown}");
    // A lease that is asked again or renewed keeps its tenant.
    ints(con, "RL.CONCURRENT pool 7 1h 1 TENANT d WEIGHT 2");
    text(con, "RL.RENEW pool 2h 2");
    assert!(text(con, "RL.INFO pool").contains(tenants));
    drop(waits);
    until_waiting(con, 0);
    for id in ["1", "2", "3"] {
        text(con, &format!("RL.RELEASE pool {id}"));
    }
    // Without a tenant, it is as ever.
    ints(con, "RL.CONCURRENT pool 7 1h 1");
    assert!(!text(con, "RL.INFO pool").contains("tenants"));
    assert_eq!(field(con, "pool", "stored_cost"), 1);
}

#[test]
fn a_name_is_any_bytes_and_the_list_ends_at_a_hundred() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let long = "t".repeat(256);
    assert_eq!(ints(con, &format!("RL.CONCURRENT pool 999 1h 0 TENANT {long}"))[0], 0);
    for tenant in 0..150 {
        ints(con, &format!("RL.CONCURRENT pool 999 1h {} TENANT {tenant}", tenant + 1));
    }
    assert_eq!(text(con, "RL.INFO pool").matches("name, ").count(), 100);
    let mut client = Client::connect(server.port);
    client.send_words(&["RL.CONCURRENT", "pool", "999", "1h", "bytes", "TENANT", "LIMIT", "WEIGHT", "1000"]);
    assert!(matches!(client.reply(), redis::Value::Array(_)));
}

#[test]
fn a_lease_granted_past_the_line_may_make_another_caller_the_first() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT k 5 1h 1 TENANT other");
    // Both would hold as much for their weights. So a is first, and there is no room for it.
    let mut a = Waiting::enter(&server, "RL.CONCURRENT k 5 1h 2 COST 5 TENANT a WEIGHT 5 BLOCK 1d");
    let mut b = Waiting::enter(&server, "RL.CONCURRENT k 5 1h 3 TENANT b BLOCK 1d");
    until_tried(&server);
    assert!(a.waits() && b.waits());
    // A critical call passes the line. Now a holds more than b.
    assert_eq!(ints(con, "RL.CONCURRENT k 5 1h 4 CRITICAL TENANT a WEIGHT 5")[0], 0);
    assert_eq!(b.ints()[..3], [0, 5, 2]);
    assert!(a.waits());
}

#[test]
fn info_counts_all_tenants_and_shows_those_in_the_line_first_if_they_are_many() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    let take = |con: &mut Connection, i: u64, cost: u64| {
        ints(con, &format!("RL.CONCURRENT pool 3000 1h {i} COST {cost} TENANT tenant-{i:04}"));
    };
    (1..=999).for_each(|i| take(con, i, if i == 999 { 3 } else { 1 }));
    ints(con, "RL.CONCURRENT pool 3000 1h unnamed COST 2");
    let first = |con: &mut Connection| {
        let shown = text(con, "RL.INFO pool");
        let names =
            shown.split("[name, ").skip(1).map(|tenant| tenant.split(',').next().unwrap().to_string());
        let count = shown
            .split("tenants_count, ")
            .nth(1)
            .and_then(|rest| rest.split(',').next()?.parse::<u64>().ok());
        (names.collect::<Vec<_>>(), count)
    };
    // Of up to 1,000, those that hold most come first.
    let (names, count) = first(con);
    assert_eq!((names.len(), count), (100, Some(1000)));
    assert_eq!(names[..3], ["tenant-0999", "", "tenant-0001"]);
    // Of more, those in the line do, and after them the first holders by name.
    (1000..=1100).for_each(|i| take(con, i, if i == 1100 { 9 } else { 1 }));
    ints(con, "RL.CONCURRENT pool 1 1h refused TENANT hungry");
    let waits = Waiting::enter(&server, "RL.CONCURRENT pool 1 1h waits TENANT tenant-0500 BLOCK 1d");
    let (names, count) = first(con);
    assert_eq!((names.len(), count), (100, Some(1102)));
    assert_eq!(names[..4], ["tenant-0500", "hungry", "", "tenant-0001"]);
    // If more than 1,000 are in the line, those shown are its first by name.
    (0..1001).for_each(|i| _ = ints(con, &format!("RL.CONCURRENT pool 1 1h more-{i} TENANT in-line-{i:04}")));
    let (names, count) = first(con);
    assert_eq!((names.len(), count), (100, Some(2103)));
    assert!(names.iter().all(|name| name == "hungry" || name.starts_with("in-line-00")), "{names:?}");
    drop(waits);
}
