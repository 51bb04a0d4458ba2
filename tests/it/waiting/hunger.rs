//! Fair shares for calls that do not wait: a tenant whose call was refused is hungry, and room is kept for it.

use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::Value;

use super::{Waiting, until_tried, until_waiting};
use crate::support::client::Client;
use crate::support::wall_clock::WallClock;
use crate::support::{Server, ints, multi, text, wait_for};

/// A hunger that does not end within a test.
const LASTING: [&str; 4] = ["--ratelimit.hunger", "1d", "--ratelimit.max-block", "86400000"];

#[test]
fn a_missing_key_shows_who_waits_or_is_hungry_for_it() {
    let server = Server::start(&LASTING);
    let con = &mut server.connection();
    assert_eq!(text(con, "RL.INFO k"), "(nil)");
    ints(con, "RL.CONCURRENT k 1 1d a TENANT ann");
    ints(con, "RL.CONCURRENT k 1 1d b TENANT bob");
    ints(con, "RL.RELEASE k a");
    assert_eq!(text(con, "EXISTS k"), "0");
    let hungry = "[tenants, [[name, bob, weight, 1, held, 0, waiting, 0]], tenants_count, 1, waiting, 0]";
    assert_eq!(text(con, "RL.INFO k"), hungry);
    // Room is kept for bob, so cid waits.
    let mut cid = Client::connect(server.port);
    cid.send("RL.CONCURRENT k 1 1d c TENANT cid BLOCK 1d");
    until_waiting(con, 1);
    let both = "[tenants, [[name, bob, weight, 1, held, 0, waiting, 0], [name, cid, weight, 1, held, 0, waiting, 1]], tenants_count, 2, waiting, 1]";
    assert_eq!(text(con, "RL.INFO k"), both);
    drop(cid);
}

#[test]
fn room_is_kept_for_a_tenant_that_was_refused() {
    let server = Server::start(&["--ratelimit.hunger", "1h"]);
    let con = &mut server.connection();
    for id in ["1", "2"] {
        ints(con, &format!("RL.CONCURRENT k 2 1d {id} TENANT a"));
    }
    assert_eq!(ints(con, "RL.CONCURRENT k 2 1d 3 TENANT b")[..3], [1, 2, 0]);
    assert_eq!(ints(con, "RL.CONCURRENT k 2 1d 4 TENANT a")[..3], [1, 2, 0]);
    text(con, "RL.RELEASE k 1");
    // Nothing remains for a, until the hunger of b ends.
    let refused = ints(con, "RL.CONCURRENT k 2 1d 4 TENANT a");
    assert_eq!(refused[..3], [1, 2, 0]);
    assert!((3_590_000..=3_600_000).contains(&refused[3]), "{refused:?}");
    let explained = text(con, "RL.EXPLAIN RL.CONCURRENT k 2 1d 4 TENANT a");
    assert!(
        explained.starts_with("[refused: limit 1 keeps room for another tenant, at most for "),
        "{explained}"
    );
    assert!(explained.contains("; tenant a of weight 1 holds 1"), "{explained}");
    // A look says what the limit says.
    assert_eq!(ints(con, "RL.PEEK k CONCURRENT 2 1d 4")[..3], [0, 2, 1]);
    assert_eq!(ints(con, "RL.CONCURRENT k 2 1d 3 TENANT b")[..3], [0, 2, 0]);
    // Now a, which was refused for want of a lease meanwhile, comes before b.
    text(con, "RL.RELEASE k 2");
    assert_eq!(ints(con, "RL.CONCURRENT k 2 1d 5 TENANT b")[0], 1);
    assert_eq!(ints(con, "RL.CONCURRENT k 2 1d 4 TENANT a")[0], 0);
}

#[test]
fn a_hunger_ends_by_itself_with_at_too() {
    let server = Server::start(&["--ratelimit.hunger", "300ms"]);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT k 1 1h 1 TENANT a AT 1800000000000000");
    assert_eq!(ints(con, "RL.CONCURRENT k 1 1h 2 TENANT b AT 1800000000000000")[0], 1);
    let hungry = Instant::now();
    text(con, "RL.RELEASE k 1 AT 1800000000000000");
    let refused = ints(con, "RL.CONCURRENT k 1 1h 3 TENANT a COST 1 AT 1800000000000000");
    if hungry.elapsed() < Duration::from_millis(250) {
        assert!(refused[0] == 1 && (1..=300).contains(&refused[3]), "{refused:?}");
    }
    sleep(Duration::from_millis(310));
    // That made a not hungry, and kept the lease no longer.
    assert_eq!(ints(con, "RL.CONCURRENT k 1 1h 3 TENANT a AT 1800000000000000")[0], 0);
}

#[test]
fn room_is_kept_for_all_hungry_tenants_that_would_hold_less() {
    let server = Server::start(&LASTING);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT k 3 1h a1 TENANT ann");
    ints(con, "RL.CONCURRENT k 3 1h z1 COST 2 TENANT zed");
    for (id, tenant) in [("b1", "bob"), ("c1", "cid")] {
        assert_eq!(ints(con, &format!("RL.CONCURRENT k 3 1h {id} TENANT {tenant}"))[0], 1);
    }
    text(con, "RL.RELEASE k z1");
    // Two leases are free: for bob, and for cid. The first of their hungers ends in a day.
    let refused = ints(con, "RL.CONCURRENT k 3 1h a2 TENANT ann");
    assert!(refused[..3] == [1, 3, 0] && (86_300_000..=86_400_000).contains(&refused[3]), "{refused:?}");
    for call in ["b1 TENANT bob", "c1 TENANT cid"] {
        assert_eq!(ints(con, &format!("RL.CONCURRENT k 3 1h {call}"))[0], 0);
    }
}

#[test]
fn a_hunger_ends_when_the_call_that_was_refused_last_is_served_or_given_up() {
    let server = Server::start(&LASTING);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET jobs LIMIT CONCURRENT 1 1h FAIR");
    for (ends, is_hungry) in [
        // Whatever command has the lease admitted, and whichever tenant it is for.
        ("RL.CONCURRENT k 1 1h b1 TENANT bob", false),
        ("RL.CONCURRENT k 1 1h b1 TENANT bob BLOCK 1h", false),
        ("RL.CONCURRENT k 2 1h b1 TENANT ann", false),
        ("RL.CONCURRENT k 2 1h b1", false),
        ("RL.MULTI 1 k LIMIT CONCURRENT 1 1h b1 TENANT bob", false),
        ("RL.ASK k jobs ID b1 TENANT bob", false),
        // A lease that is released is wanted no more, held or not.
        ("RL.RELEASE k b1", false),
        ("RL.MULTIRELEASE 2 other k b1", false),
        ("RL.RELEASE k b0", true),
        ("RL.RELEASE other b1", true),
        ("RL.RENEW k 1h b1", true),
        ("RL.MULTI 1 k LIMIT CONCURRENT 1 1h b1 SHADOW", true),
        ("RL.PEEK k CONCURRENT 1 1h b1", true),
        ("RL.EXPLAIN RL.CONCURRENT k 1 1h b1 TENANT bob", true),
    ] {
        text(con, "FLUSHALL");
        ints(con, "RL.CONCURRENT k 1 1h a1 TENANT ann");
        for id in ["b0", "b1"] {
            assert_eq!(ints(con, &format!("RL.CONCURRENT k 1 1h {id} TENANT bob"))[0], 1);
        }
        text(con, "RL.RELEASE k a1");
        text(con, ends);
        if !is_hungry {
            text(con, "RL.RELEASE k b1");
        }
        let (asked, _) = multi(con, "RL.MULTI 1 k LIMIT CONCURRENT 1 1h a2 TENANT ann");
        assert_eq!(asked[0] == 1, is_hungry, "{ends}");
    }
}

#[test]
fn a_lease_that_is_renewed_ends_the_hungers_of_those_that_were_refused_under_its_id() {
    let server = Server::start(&LASTING);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT saved 1 1h x TENANT bob");
    for (renews, is_hungry) in [
        ("RL.RENEW k 2h x", false),
        ("RL.CONCURRENT k 1 2h x", false),
        ("RL.MULTI 1 k LIMIT CONCURRENT 1 2h x", false),
        ("RL.RENEW k 2h other", true),
    ] {
        ints(con, "RL.CONCURRENT k 1 1h a1 TENANT ann");
        for tenant in ["bob", "cid"] {
            assert_eq!(ints(con, &format!("RL.CONCURRENT k 1 1h x TENANT {tenant}"))[0], 1);
        }
        // The pool becomes empty, and then one in which the lease is held.
        text(con, "RL.RELEASE k a1");
        text(con, "COPY saved k");
        assert_eq!(text(con, "RL.INFO k").matches("[name, ").count(), 2, "bob and cid");
        text(con, renews);
        assert_eq!(text(con, "RL.INFO k").contains("cid"), is_hungry, "{renews}");
        text(con, "DEL k");
    }
}

#[test]
fn hungers_end_with_the_setting_and_with_what_others_do_to_the_key() {
    let server = Server::start(&LASTING);
    let con = &mut server.connection();
    for (ends, is_hungry) in [
        ("CONFIG SET ratelimit.hunger 0", false),
        ("CONFIG SET ratelimit.max-tenants 0", false),
        ("CONFIG SET ratelimit.hunger 2h", true),
        ("DEL k", false),
        ("UNLINK k", false),
        ("RENAME k other", false),
        ("COPY saved k REPLACE", false),
        ("SET k text", false),
        ("PEXPIRE k -1", false),
        ("DEL other", true),
        // The limit gets another one beside it, and is alone again.
        ("RL.MULTI 1 k LIMIT FIXEDWINDOW 1 1h", true),
        // The module deletes the key.
        ("RL.RELEASE k a1", true),
    ] {
        text(con, "FLUSHALL");
        text(con, "CONFIG SET ratelimit.max-tenants 100");
        text(con, "CONFIG SET ratelimit.hunger 1d");
        ints(con, "RL.CONCURRENT saved 1 1h s1 TENANT ann");
        ints(con, "RL.CONCURRENT k 1 1h a1 TENANT ann");
        assert_eq!(ints(con, "RL.CONCURRENT k 1 1h b1 TENANT bob")[0], 1);
        text(con, ends);
        // However the key was left, the pool is empty.
        if text(con, "TYPE k") == "ratelimit" {
            text(con, "RL.RELEASE k a1");
            text(con, "RL.RELEASE k s1");
        } else {
            text(con, "DEL k");
        }
        assert_eq!(ints(con, "RL.CONCURRENT k 1 1h a2 TENANT ann")[0] == 1, is_hungry, "{ends}");
    }
}

#[test]
fn a_hunger_outlasts_the_key_of_a_pool_whose_leases_expire() {
    let clock = WallClock::start(0, &LASTING);
    let con = &mut clock.server.connection();
    ints(con, "RL.CONCURRENT k 1 1s a1 TENANT ann");
    assert_eq!(ints(con, "RL.CONCURRENT k 1 1s b1 TENANT bob")[0], 1);
    clock.set(3600);
    assert_eq!(text(con, "EXISTS k"), "0");
    wait_for("the key is gone", || text(con, "DBSIZE") == "0");
    assert_eq!(ints(con, "RL.CONCURRENT k 1 1s a2 TENANT ann")[0], 1);
    assert_eq!(ints(con, "RL.CONCURRENT k 1 1s b1 TENANT bob")[0], 0);
}

#[test]
fn in_an_empty_database_no_room_is_kept() {
    let server = Server::start(&LASTING);
    let con = &mut server.connection();
    for (ends, is_kept) in
        [("FLUSHALL", false), ("FLUSHDB", false), ("SWAPDB 0 1", false), ("RL.RELEASE k 1", true)]
    {
        ints(con, "RL.CONCURRENT k 1 1d 1 TENANT a");
        assert_eq!(ints(con, "RL.CONCURRENT k 1 1d 2 TENANT b")[0], 1);
        text(con, ends);
        assert_eq!(ints(con, "RL.CONCURRENT k 1 1d 1 TENANT a")[0] == 1, is_kept, "{ends}");
        text(con, "FLUSHALL");
    }
}

#[test]
fn what_makes_nobody_hungry() {
    let server = Server::start(&LASTING);
    let con = &mut server.connection();
    for line in [
        "RL.CONCURRENT k 1 1h 2 TENANT b COST 2",
        "RL.CONCURRENT k 1 1h 2 TENANT b COST 0",
        "RL.PEEK k CONCURRENT 1 1h 2",
        "RL.MULTI 1 k LIMIT CONCURRENT 1 1h 2 TENANT b SHADOW",
        "RL.CONCURRENT k 1 1h 2 TENANT b BLOCK 1ms",
        // Another limit refuses it, too.
        "RL.MULTI 2 k used LIMIT CONCURRENT 1 1h 2 ON 1 TENANT b LIMIT FIXEDWINDOW 1 1h ON 2",
        "RL.EXPLAIN RL.CONCURRENT k 1 1h 2 TENANT b",
    ] {
        text(con, "DEL k used");
        ints(con, "RL.FIXEDWINDOW used 1 1h");
        ints(con, "RL.CONCURRENT k 1 1h 1 TENANT a");
        text(con, line);
        text(con, "RL.RELEASE k 1");
        assert_eq!(ints(con, "RL.CONCURRENT k 1 1h 3 TENANT a")[0], 0, "{line}");
    }
    // A cost that never fits ends no hunger.
    assert_eq!(ints(con, "RL.CONCURRENT k 1 1h 2 TENANT b")[0], 1);
    for line in
        ["RL.CONCURRENT k 1 1h 2 TENANT b COST 2", "RL.MULTI 1 k LIMIT CONCURRENT 1 1h 2 COST 2 TENANT b"]
    {
        text(con, line);
        assert!(text(con, "RL.INFO k").contains("[name, b, "), "{line}");
    }
    // A refusal by another limit does.
    assert_eq!(
        multi(con, "RL.MULTI 2 k used LIMIT CONCURRENT 1 1h 2 ON 1 TENANT b LIMIT FIXEDWINDOW 1 1h ON 2").0
            [0],
        1
    );
    text(con, "RL.RELEASE k 3");
    assert_eq!(ints(con, "RL.CONCURRENT k 1 1h 4 TENANT a")[0], 0);
    // Nor is anybody hungry if the setting says so.
    for setting in ["ratelimit.hunger", "ratelimit.max-tenants"] {
        text(con, &format!("CONFIG SET {setting} 0"));
        assert_eq!(ints(con, "RL.CONCURRENT k 1 1h 2 TENANT b")[0], 1);
        text(con, "RL.RELEASE k 4");
        assert_eq!(ints(con, "RL.CONCURRENT k 1 1h 4 TENANT a")[0], 0, "{setting}");
        text(con, "CONFIG SET ratelimit.hunger 1d");
    }
}

#[test]
fn without_tenants_a_call_without_one_makes_nobody_hungry() {
    let server = Server::start(&LASTING);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT k 1 1h 1");
    assert_eq!(ints(con, "RL.CONCURRENT k 1 1h 2")[0], 1);
    text(con, "RL.RELEASE k 1");
    assert_eq!(ints(con, "RL.CONCURRENT k 1 1h 3 TENANT a")[0], 0);
    // Now the key has a tenant, so the others are one tenant, too.
    assert_eq!(ints(con, "RL.CONCURRENT k 1 1h 4")[0], 1);
    text(con, "RL.RELEASE k 3");
    // The key is gone, but the hunger is not.
    assert_eq!(ints(con, "RL.CONCURRENT k 1 1h 5 TENANT a")[0], 1);
    assert_eq!(ints(con, "RL.CONCURRENT k 1 1h 5")[0], 0);
}

#[test]
fn a_refusal_for_the_turn_makes_nobody_hungry() {
    let server = Server::start(&LASTING);
    let con = &mut server.connection();
    for id in ["0", "1"] {
        ints(con, &format!("RL.CONCURRENT k 2 1h {id} TENANT a"));
    }
    assert_eq!(ints(con, "RL.CONCURRENT k 2 1h 2 TENANT b")[0], 1);
    text(con, "RL.RELEASE k 1");
    // The lease is kept for b, in whichever command the others call.
    text(con, "RL.POLICY SET jobs LIMIT CONCURRENT 2 1h FAIR");
    for line in [
        "RL.CONCURRENT k 2 1h 3 TENANT c",
        "RL.MULTI 1 k LIMIT CONCURRENT 2 1h 3 TENANT c",
        "RL.ASK k jobs ID 3 TENANT c",
    ] {
        let refused = text(con, line);
        let tenants = text(con, "RL.INFO k");
        assert!(refused.contains("1, 2, 0, ") && tenants.contains("[name, b, "), "{refused} {tenants}");
        assert!(!tenants.contains("[name, c, "), "{line}: {tenants}");
    }
    assert_eq!(ints(con, "RL.CONCURRENT k 2 1h 2 TENANT b")[0], 0);
}

/// Tenants of one client share a lease. Each asks less often than once a hunger, and holds the lease for 20 ms.
#[test]
fn tenants_that_ask_less_often_than_once_a_hunger_use_a_free_lease() {
    let server = Server::start(&["--ratelimit.hunger", "100ms"]);
    let con = &mut server.connection();
    let (start, mut grants) = (Instant::now(), 0);
    for tenant in (0..30).cycle() {
        if start.elapsed() > Duration::from_secs(3) {
            break;
        }
        // Another tenant asks every 10 ms, so each of them every 300 ms.
        if ints(con, &format!("RL.CONCURRENT k 1 1h {tenant} TENANT t{tenant}"))[0] == 0 {
            grants += 1;
            sleep(Duration::from_millis(10));
            assert_eq!(ints(con, &format!("RL.CONCURRENT k 1 1h x TENANT t{}", (tenant + 1) % 30))[0], 1);
            sleep(Duration::from_millis(10));
            text(con, &format!("RL.RELEASE k {tenant}"));
        }
        sleep(Duration::from_millis(10));
    }
    // The lease is kept for about a hunger after each grant.
    assert!(grants >= 10, "{grants}");
}

#[test]
fn a_waiting_caller_leaves_the_same_room_and_is_tried_when_the_hunger_ends() {
    let server = Server::start(&["--ratelimit.hunger", "400ms"]);
    let con = &mut server.connection();
    for id in ["1", "2"] {
        ints(con, &format!("RL.CONCURRENT k 2 1h {id} TENANT a"));
    }
    let mut waits = Waiting::enter(&server, "RL.CONCURRENT k 2 1h 3 TENANT a BLOCK 30s");
    assert_eq!(ints(con, "RL.CONCURRENT k 2 1h 4 TENANT b")[0], 1);
    let hungry = Instant::now();
    text(con, "RL.RELEASE k 1");
    until_tried(&server);
    if hungry.elapsed() < Duration::from_millis(350) {
        assert!(waits.waits());
    }
    // Nothing else wakes it.
    assert_eq!(waits.ints()[0], 0);
    assert!(hungry.elapsed() >= Duration::from_millis(390), "{:?}", hungry.elapsed());
}

#[test]
fn a_call_that_does_not_wait_passes_the_line_if_its_turn_is_first() {
    let server = Server::start(&LASTING);
    let con = &mut server.connection();
    for id in ["1", "2", "3"] {
        ints(con, &format!("RL.CONCURRENT k 3 1h {id} TENANT a"));
    }
    let mut large = Waiting::enter(&server, "RL.CONCURRENT k 3 1h 4 COST 2 TENANT a BLOCK 1d");
    text(con, "RL.RELEASE k 1");
    until_tried(&server);
    assert!(large.waits());
    // a holds two and wants two more: b comes before it. Without a tenant, calls have one, too.
    assert_eq!(ints(con, "RL.CONCURRENT k 3 1h 5 TENANT b")[0], 0);
    text(con, "RL.RELEASE k 5");
    assert_eq!(ints(con, "RL.CONCURRENT k 3 1h 5")[0], 0);
    text(con, "RL.RELEASE k 5");
    // Another call of a comes after its own.
    assert_eq!(ints(con, "RL.CONCURRENT k 3 1h 6 TENANT a")[..3], [1, 3, 0]);
    assert!(large.waits());
    text(con, "RL.RELEASE k 2");
    assert_eq!(large.ints()[0], 0);
    until_waiting(con, 0);
}

#[test]
fn the_oldest_hungers_go_if_there_are_too_many() {
    let server = Server::start(&LASTING);
    let con = &mut server.connection();
    text(con, "CONFIG SET ratelimit.max-tenants 2");
    ints(con, "RL.CONCURRENT k 1 1h 1 TENANT a");
    for tenant in ["b", "c", "d"] {
        assert_eq!(ints(con, &format!("RL.CONCURRENT k 1 1h 2 TENANT {tenant}"))[0], 1);
        sleep(Duration::from_millis(2));
    }
    let shown = text(con, "RL.INFO k");
    for (tenant, is_there) in [("b", false), ("c", true), ("d", true)] {
        assert_eq!(shown.contains(&format!("[name, {tenant}, ")), is_there, "{shown}");
    }
}

#[test]
fn a_policy_with_a_fair_limit_shares_among_pollers() {
    let server = Server::start(&LASTING);
    let con = &mut server.connection();
    text(con, "RL.POLICY SET jobs LIMIT CONCURRENT 1 1h FAIR");
    assert_eq!(ints(con, "RL.ASK k jobs ID 1 TENANT a")[0], 0);
    assert_eq!(ints(con, "RL.ASK k jobs ID 2 TENANT b")[0], 1);
    text(con, "RL.RELEASE k 1");
    assert_eq!(ints(con, "RL.ASK k jobs ID 1 TENANT a")[..3], [1, 1, 0]);
    assert_eq!(ints(con, "RL.ASK k jobs ID 2 TENANT b")[0], 0);
    // Without such a limit, the tenant is ignored.
    text(con, "RL.POLICY SET jobs LIMIT CONCURRENT 1 1h");
    assert_eq!(ints(con, "RL.ASK other jobs ID 1 TENANT a WEIGHT 7")[0], 0);
    assert!(!text(con, "RL.INFO other").contains("tenants"));
}

/// The clients that poll, by their tenants.
const POLLERS: [(&str, usize); 3] = [("a", 100), ("b", 5), ("c", 1)];
const SLOTS: usize = 10;
const JOB: Duration = Duration::from_millis(500);
const INTERVAL: Duration = Duration::from_millis(50);

/// A client that polls for a lease, has a job for some time, and polls again.
struct Poller {
    tenant: usize,
    client: Client,
    id: usize,
    /// When its next call is due; whether it then releases.
    due: Instant,
    has_job: bool,
    /// Whether a reply is awaited.
    asks: bool,
}

#[test]
fn pollers_of_three_tenants_share_ten_slots() {
    let server = Server::start(&["--ratelimit.hunger", "500ms"]);
    let start = Instant::now();
    let mut pollers = Vec::new();
    for (tenant, (_, count)) in POLLERS.iter().enumerate() {
        for number in 0..*count {
            let client = Client::connect(server.port);
            let due = start + INTERVAL * u32::try_from(number).unwrap() / 100;
            pollers.push(Poller { tenant, client, id: pollers.len(), due, has_job: false, asks: false });
        }
    }
    // The jobs of each tenant that began after the first second.
    let mut jobs = [0usize; 3];
    while start.elapsed() < Duration::from_secs(7) {
        for poller in &mut pollers {
            let now = Instant::now();
            if poller.asks {
                let Some(reply) = poller.client.poll() else { continue };
                poller.asks = false;
                let admitted = matches!(&reply, Value::Array(five) if five[0] == Value::Int(0));
                poller.has_job = admitted;
                poller.due = now + if admitted { JOB } else { INTERVAL };
                jobs[poller.tenant] += usize::from(admitted && start.elapsed() > Duration::from_secs(1));
            } else if now >= poller.due {
                if poller.has_job {
                    poller.client.call(&format!("RL.RELEASE k {}", poller.id));
                }
                let name = POLLERS[poller.tenant].0;
                poller.client.send(&format!("RL.CONCURRENT k {SLOTS} 1m {} TENANT {name}", poller.id));
                poller.asks = true;
            }
        }
        sleep(Duration::from_millis(1));
    }
    // Six seconds of ten slots are 120 jobs. Shares of 4.5 : 4.5 : 1 would be 54, 54 and 12; without tenants b and c get next to none.
    let total: usize = jobs.iter().sum();
    assert!(total >= 80, "{jobs:?}");
    let percent = jobs.map(|jobs| 100 * jobs / total);
    assert!(percent[0] <= 70 && percent[1] >= 25 && percent[2] >= 4, "{jobs:?}");
}
