//! Fair shares: `TENANT` and `WEIGHT` of callers that wait, on a real server.

use std::collections::BTreeMap;

use redis::Connection;

use super::{PATIENT, Waiting, count, field, until_tried, until_waiting};
use crate::support::client::Client;
use crate::support::{Server, ints, multi, text};

/// Leases that are held by one who does not share them, and callers that wait for them.
struct Pool {
    server: Server,
    con: Connection,
    capacity: usize,
    waiting: Vec<(String, Waiting)>,
    /// The leases, each with its tenant, in the order of their grants.
    held: Vec<(String, String)>,
    next: usize,
}

impl Pool {
    fn of(capacity: usize) -> Pool {
        let server = Server::start(&[&PATIENT[..], &["--maxclients", "4000"]].concat());
        let mut con = server.connection();
        text(&mut con, "CONFIG SET ratelimit.max-waiters-per-key 4000");
        let mut pool = Pool { server, con, capacity, waiting: Vec::new(), held: Vec::new(), next: 0 };
        (0..capacity).for_each(|_| pool.take("before", ""));
        pool
    }

    fn lease(&mut self) -> String {
        self.next += 1;
        format!("{}", self.next)
    }

    /// Takes a lease at once.
    fn take(&mut self, tenant: &str, options: &str) {
        let id = self.lease();
        let line = format!("RL.CONCURRENT pool {} 1h {id} TENANT {tenant} {options}", self.capacity);
        assert_eq!(ints(&mut self.con, &line)[0], 0, "{line}");
        self.held.push((id, tenant.into()));
    }

    /// Callers that wait, one connection each.
    fn wait(&mut self, tenant: &str, options: &str, callers: usize) {
        for _ in 0..callers {
            let id = self.lease();
            let line =
                format!("RL.CONCURRENT pool {} 1h {id} TENANT {tenant} {options} BLOCK 1d", self.capacity);
            self.waiting.push((format!("{id} {tenant}"), Waiting::start(&self.server, &line)));
        }
        until_waiting(&mut self.con, self.waiting.len() as u64);
    }

    /// Ends the lease that was taken first, and returns its tenant.
    fn end(&mut self) -> String {
        let (id, tenant) = self.held.remove(0);
        assert_eq!(text(&mut self.con, &format!("RL.RELEASE pool {id}")), "1");
        until_tried(&self.server);
        let mut granted = Vec::new();
        self.waiting.retain_mut(|(name, caller)| {
            let waits = caller.waits();
            if !waits {
                let (id, tenant) = name.split_once(' ').unwrap();
                granted.push((id.to_string(), tenant.to_string()));
            }
            waits
        });
        self.held.extend(granted);
        tenant
    }

    fn held_by(&self, tenant: &str) -> usize {
        self.held.iter().filter(|(_, of)| of == tenant).count()
    }

    /// Leases end one by one, each with a new caller of its tenant behind it. Returns the number of grants to a tenant.
    fn turn_over(&mut self, ends: usize, tenant: &str, options: &BTreeMap<&str, &str>) -> usize {
        let mut grants = 0;
        for _ in 0..ends {
            let (had, held) = (self.held_by(tenant), self.held.first().is_some_and(|(_, of)| of == tenant));
            let ended = self.end();
            grants += self.held_by(tenant) + usize::from(held) - had;
            self.wait(&ended, options.get(&*ended).copied().unwrap_or_default(), 1);
        }
        grants
    }
}

/// Callers of these tenants, each with its options, wait while another tenant holds everything. Then its leases end.
fn filled<const N: usize>(capacity: usize, wants: [(&str, &str, usize); N]) -> [usize; N] {
    let mut pool = Pool::of(capacity);
    for (tenant, options, callers) in wants {
        pool.wait(tenant, options, callers);
    }
    (0..capacity).for_each(|_| drop(pool.end()));
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
    let mut pool = Pool::of(15);
    pool.wait("before", "", 100);
    pool.wait("new", "", 1);
    pool.end();
    assert_eq!((pool.held_by("before"), pool.held_by("new")), (14, 1));
}

#[test]
fn a_large_cost_a_small_weight_and_a_lonely_caller_have_their_turns() {
    // A cost of 10 of 10 beside two tenants of cost 1.
    let mut pool = Pool::of(10);
    pool.wait("a", "", 12);
    pool.wait("b", "", 12);
    pool.wait("large", "COST 10", 1);
    (0..10).for_each(|_| drop(pool.end()));
    let options = BTreeMap::from([("large", "COST 10")]);
    assert!(pool.turn_over(70, "large", &options) >= 2);

    // A weight of 1 among eleven of weight 2 on ten slots.
    let mut pool = Pool::of(10);
    let mut options = BTreeMap::from([("light", "WEIGHT 1")]);
    for tenant in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"] {
        options.insert(tenant, "WEIGHT 2");
        pool.wait(tenant, "WEIGHT 2", 2);
    }
    pool.wait("light", "WEIGHT 1", 1);
    (0..10).for_each(|_| drop(pool.end()));
    assert!(pool.turn_over(80, "light", &options) >= 2);

    // A cost of 2 beside ten of cost 1.
    let mut pool = Pool::of(10);
    let options = BTreeMap::from([("large", "COST 2")]);
    for tenant in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"] {
        pool.wait(tenant, "", 2);
    }
    pool.wait("large", "COST 2", 1);
    (0..10).for_each(|_| drop(pool.end()));
    assert!(pool.turn_over(60, "large", &options) >= 2);
}

#[test]
fn a_weight_of_1_beside_one_of_100_gets_one_grant_in_a_hundred() {
    let mut pool = Pool::of(1);
    let options = BTreeMap::from([("heavy", "WEIGHT 100"), ("light", "WEIGHT 1")]);
    pool.wait("heavy", "WEIGHT 100", 2);
    pool.wait("light", "WEIGHT 1", 1);
    pool.end();
    let grants = pool.turn_over(210, "light", &options);
    assert!((1..=3).contains(&grants), "{grants} of 210");
}

/// Callers that wait for a rate of one at a time, each with the options of its tenant.
fn rate<const N: usize>(
    con: &mut Connection,
    server: &Server,
    tenants: [(&str, &str, usize); N],
) -> Vec<(String, Waiting)> {
    ints(con, "RL.FIXEDWINDOW rate 1 1h");
    let mut callers = Vec::new();
    for (tenant, options, count) in tenants {
        for _ in 0..count {
            let line = format!("RL.FIXEDWINDOW rate 1 1h BLOCK 1d TENANT {tenant} {options}");
            callers.push((tenant.to_string(), Waiting::enter(server, &line)));
        }
    }
    callers
}

/// Makes room for one, and returns the tenant that gets it.
fn next(con: &mut Connection, server: &Server, callers: &mut Vec<(String, Waiting)>) -> String {
    ints(con, "RL.REFUND rate FIXEDWINDOW 1 1h");
    until_tried(server);
    let granted =
        callers.iter_mut().position(|(_, caller)| !caller.waits()).expect("a caller that is granted");
    callers.remove(granted).0
}

#[test]
fn the_grants_of_a_rate_are_as_the_weights() {
    let tenants = [("a", "WEIGHT 5", 8), ("b", "WEIGHT 3", 8), ("c", "WEIGHT 2", 8)];
    assert_eq!(shares(tenants, 10), [5, 3, 2]);
    assert_eq!(shares([("a", "WEIGHT 3", 8), ("b", "", 8)], 8), [6, 2]);
}

/// The grants to each of these tenants among the first ones.
fn shares<const N: usize>(tenants: [(&str, &str, usize); N], grants: usize) -> [usize; N] {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    let mut callers = rate(con, &server, tenants);
    let granted: Vec<String> = (0..grants).map(|_| next(con, &server, &mut callers)).collect();
    tenants.map(|(tenant, ..)| granted.iter().filter(|to| *to == tenant).count())
}

#[test]
fn who_was_served_alone_does_not_pay_for_it_when_another_joins() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    let mut callers = rate(con, &server, [("a", "", 120)]);
    (0..100).for_each(|_| assert_eq!(next(con, &server, &mut callers), "a"));
    for _ in 0..6 {
        let line = "RL.FIXEDWINDOW rate 1 1h BLOCK 1d TENANT b";
        callers.push(("b".into(), Waiting::enter(&server, line)));
    }
    let granted: Vec<String> = (0..10).map(|_| next(con, &server, &mut callers)).collect();
    assert_eq!(granted.iter().filter(|to| *to == "b").count(), 5, "{granted:?}");
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
