//! Callers that wait on the nodes of a cluster, whose slots move.

use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::Connection;

use super::{Waiting, count, until_waiting, waiting};
use crate::support::client::Client;
use crate::support::cluster::{Cluster, serves};
use crate::support::replicas::is_up;
use crate::support::{Server, info, ints, refused, simple, text, wait_for};

/// With a hash tag, and with braces that make none.
const KEYS: [&str; 3] = ["{t}:a", "a}b{", "{}x"];

/// Long enough for several cron events, at each of which callers are tried.
const A_WHILE: Duration = Duration::from_millis(200);

#[test]
fn who_waits_for_a_slot_that_moves_is_sent_to_its_new_node() {
    let cluster = start();
    for key in KEYS {
        let (slot, source, target) = places(&cluster, key);
        let (from, to) = (&mut source.connection(), &mut target.connection());
        let granted = [count(from, "waited_granted"), count(to, "waited_granted")];
        let enter = |line: &str| enter(source, &line.replace("KEY", key));

        // They are served as on any server, whatever the name on which the server blocks them.
        assert_eq!(ints(from, &format!("RL.CONCURRENT {key} 1 1d holder"))[0], 0);
        let mut first = enter("RL.CONCURRENT KEY 1 1d first BLOCK 1h");
        let mut second = enter("RL.MULTI 1 KEY BLOCK 1h LIMIT CONCURRENT 1 1d second");
        let third = enter("RL.ASK KEY lease ID third BLOCK 1h");
        assert_eq!(ints(from, &format!("RL.RELEASE {key} holder")), [1]);
        assert!(!refused(&first.reply()), "{key}");
        assert_eq!(ints(from, &format!("DEL {key}")), [1]);
        assert!(!refused(&second.reply()), "{key}");
        let fourth = enter("RL.CONCURRENT KEY 1 1d fourth BLOCK 1h");
        let fifth = enter("RL.MULTI 1 KEY BLOCK 1h LIMIT CONCURRENT 1 1d fifth");
        assert_eq!(count_in_slot(from, slot), 1, "{key}: the lease, and no other key");

        begin_move(slot, source, target);
        migrate(from, key, target);
        assert_eq!(count_in_slot(from, slot), 0);
        // The lease is on the target now. The node that it has left must not take the key for fresh.
        sleep(A_WHILE);
        assert_eq!((waiting(from), count(from, "waited_granted")), (3, granted[0] + 2), "{key}");
        let mut sixth = Client::connect(target.port);
        assert_eq!(simple(&sixth.call("ASKING")), "OK");
        sixth.send(&format!("RL.CONCURRENT {key} 1 1d sixth BLOCK 1h"));
        until_waiting(to, 1);
        assert_eq!(text(to, "ASKING"), "OK");
        assert_eq!(ints(to, &format!("RL.RELEASE {key} second")), [1]);
        end_move(&cluster, slot, source, target);

        let moved = format!("MOVED {slot} 127.0.0.1:{}", target.port);
        for mut caller in [third, fourth, fifth] {
            assert_eq!(simple(&caller.reply()), moved, "{key}");
        }
        assert!(!refused(&sixth.reply()), "{key}");
        assert_eq!((waiting(from), count(from, "waited_granted")), (0, granted[0] + 2), "{key}");
        assert_eq!((waiting(to), count(to, "waited_granted")), (0, granted[1] + 1), "{key}");
        assert_eq!((count_in_slot(from, slot), count_in_slot(to, slot)), (0, 1), "{key}");
        assert_eq!(ints(to, &format!("RL.RELEASE {key} sixth")), [1]);
    }
}

#[test]
fn who_waits_for_a_slot_that_moves_stays_or_is_lost_is_granted_nothing_meanwhile() {
    let cluster = start();
    one_of_two_keys_is_away(&cluster);
    the_slot_stays(&cluster);
    the_cluster_is_down(&cluster);
}

/// A call for both of them is granted nothing.
fn one_of_two_keys_is_away(cluster: &Cluster) {
    let (slot, source, target) = places(cluster, "{m}");
    let (from, to) = (&mut source.connection(), &mut target.connection());
    for key in ["{m}:a", "{m}:b"] {
        text(from, &format!("RL.MULTI 1 {key} LIMIT CONCURRENT 1 1d holder"));
    }
    let mut callers = [
        enter(source, "RL.MULTI 2 {m}:a {m}:b BLOCK 1h LIMIT CONCURRENT 1 1d several"),
        enter(source, "RL.ASK {m}:b lease ID asked BLOCK 1h KEYS {m}:a"),
        enter(
            source,
            "RL.MULTI 2 {m}:a {m}:b BLOCK 1h LIMIT CONCURRENT 1 1d on-b ON 2 LIMIT GCRA 9 1 1s ON 1",
        ),
    ];
    let granted = count(from, "waited_granted");
    begin_move(slot, source, target);
    migrate(from, "{m}:a", target);
    // There is room in the second key, but the first one is away.
    assert_eq!(text(from, "RL.RELEASE {m}:b holder"), "1");
    sleep(A_WHILE);
    assert_eq!((waiting(from), count(from, "waited_granted")), (3, granted));
    end_move(cluster, slot, source, target);
    let moved = format!("MOVED {slot} 127.0.0.1:{}", target.port);
    for caller in &mut callers {
        assert_eq!(simple(&caller.reply()), moved);
    }
    assert_eq!((waiting(from), count(from, "waited_granted")), (0, granted));
    assert_eq!(text(to, "RL.MULTIRELEASE 2 {m}:a {m}:b holder"), "1");
    assert_eq!(count_in_slot(to, slot), 0);
}

/// Who waits goes on waiting.
fn the_slot_stays(cluster: &Cluster) {
    let (slot, source, target) = places(cluster, "{s}");
    let from = &mut source.connection();
    text(from, "RL.CONCURRENT {s} 1 1d holder");
    let mut first = enter(source, "RL.CONCURRENT {s} 1 1d first BLOCK 1h");
    let mut second = enter(source, "RL.CONCURRENT {s} 1 1d second BLOCK 1h");
    begin_move(slot, source, target);
    // The key is deleted with its last lease. As the slot migrates, it could be on the target as well.
    assert_eq!(text(from, "RL.RELEASE {s} holder"), "1");
    sleep(A_WHILE);
    assert_eq!(waiting(from), 2);
    for node in [source, target] {
        text(&mut node.connection(), &format!("CLUSTER SETSLOT {slot} STABLE"));
    }
    assert!(!refused(&first.reply()));
    assert_eq!(waiting(from), 1);
    assert_eq!(text(from, "RL.RELEASE {s} first"), "1");
    assert!(!refused(&second.reply()));
}

/// Who waits gets the error.
fn the_cluster_is_down(cluster: &Cluster) {
    let (slot, node, _) = places(cluster, "{d}");
    let con = &mut node.connection();
    text(con, "RL.CONCURRENT {d} 1 1d holder");
    let granted = count(con, "waited_granted");
    // If no node serves a slot, the node serves no key at all, or by the setting all keys except those of the slot.
    for (covers_all, lost, error) in [
        ("yes", slot + 1, "CLUSTERDOWN The cluster is down"),
        ("no", slot, "CLUSTERDOWN Hash slot not served"),
    ] {
        text(con, &format!("CONFIG SET cluster-require-full-coverage {covers_all}"));
        let mut callers =
            [1, 2].map(|caller| enter(node, &format!("RL.CONCURRENT {{d}} 1 1d caller{caller} BLOCK 1h")));
        text(con, "MULTI");
        text(con, &format!("CLUSTER DELSLOTS {lost}"));
        if lost == slot {
            // There is room from now on, but for no caller of this node.
            text(con, "RL.RELEASE {d} holder");
        }
        text(con, "EXEC");
        for caller in &mut callers {
            assert_eq!(simple(&caller.reply()), error);
        }
        assert_eq!((waiting(con), count(con, "waited_granted")), (0, granted));
        text(con, &format!("CLUSTER ADDSLOTS {lost}"));
        wait_for("the cluster", || serves(con));
    }
    assert_eq!(text(con, "EXISTS {d}"), "0");
}

/// A failover that did not succeed has been given up by then.
const GIVEN_UP: Duration = Duration::from_secs(6);

#[test]
fn callers_are_sent_to_the_new_primary_after_a_failover_and_no_lease_is_lost() {
    let cluster = start();
    let place = cluster.place("{f}");
    let (old, new) = (&cluster.primaries[place], &cluster.replicas[place]);
    let (from, to) = (&mut old.connection(), &mut new.connection());
    let line = |id: &str| format!("RL.CONCURRENT {{f}} 2 1d {id} BLOCK 1h");
    for id in ["holder", "other"] {
        text(from, &line(id));
    }
    let [mut granted, mut second, mut third] = ["granted", "second", "third"].map(|id| enter(old, &line(id)));
    text(from, "RL.RELEASE {f} other");
    assert!(!refused(&granted.reply()));
    wait_for("the replica", || is_up(new) && serves(from));
    let mut asked: Option<Instant> = None;
    wait_for("the failover", || {
        // One that is asked for too early is given up after five seconds.
        if is(new, "slave") && asked.is_none_or(|asked| asked.elapsed() > GIVEN_UP) {
            text(to, "CLUSTER FAILOVER");
            asked = Some(Instant::now());
        }
        is(new, "master") && is(old, "slave")
    });
    for caller in [&mut second, &mut third] {
        let end = caller.outcome().map_or_else(String::new, |reply| simple(&reply));
        let starts = ["UNBLOCKED ", "MOVED "].iter().any(|code| end.starts_with(code));
        assert!(starts || end.is_empty(), "{end}");
    }
    assert_eq!((waiting(from), count(from, "waited_granted")), (0, 1));
    // They ask again. Who was granted a lease has it.
    wait_for("the cluster", || serves(to));
    let [mut second, mut third] = ["second", "third"].map(|id| enter(new, &line(id)));
    for (held, next) in [("granted", &mut second), ("holder", &mut third)] {
        assert_eq!(text(to, &format!("RL.RELEASE {{f}} {held}")), "1");
        assert!(!refused(&next.reply()));
    }
}

fn is(node: &Server, role: &str) -> bool {
    info(&mut node.connection(), "replication", "role").as_deref() == Some(role)
}

/// A cluster of which each node has the policy `lease`.
fn start() -> Cluster {
    let cluster = Cluster::start();
    for node in &cluster.primaries {
        let con = &mut node.connection();
        text(con, "RL.POLICY SET lease LIMIT CONCURRENT 1 1d");
        text(con, "CONFIG SET ratelimit.max-block 86400000");
    }
    for node in &cluster.replicas {
        text(&mut node.connection(), "CONFIG SET ratelimit.max-block 86400000");
    }
    cluster
}

/// A client that makes a call and waits.
fn enter(node: &Server, line: &str) -> Client {
    Waiting::enter(node, line).client
}

/// The slot of a key, the primary that has it, and the next one.
fn places<'c>(cluster: &'c Cluster, key: &str) -> (usize, &'c Server, &'c Server) {
    let place = cluster.place(key);
    (cluster.slot(key), &cluster.primaries[place], &cluster.primaries[(place + 1) % 3])
}

fn count_in_slot(con: &mut Connection, slot: usize) -> usize {
    text(con, &format!("CLUSTER COUNTKEYSINSLOT {slot}")).parse().unwrap()
}

fn begin_move(slot: usize, source: &Server, target: &Server) {
    let (from, to) = (&mut source.connection(), &mut target.connection());
    let (source, target) = (text(from, "CLUSTER MYID"), text(to, "CLUSTER MYID"));
    text(to, &format!("CLUSTER SETSLOT {slot} IMPORTING {source}"));
    text(from, &format!("CLUSTER SETSLOT {slot} MIGRATING {target}"));
}

fn migrate(from: &mut Connection, key: &str, target: &Server) {
    assert_eq!(text(from, &format!("MIGRATE 127.0.0.1 {} {key} 0 60000", target.port)), "OK", "{key}");
}

fn end_move(cluster: &Cluster, slot: usize, source: &Server, target: &Server) {
    let id = text(&mut target.connection(), "CLUSTER MYID");
    for node in [target, source].into_iter().chain(&cluster.primaries) {
        text(&mut node.connection(), &format!("CLUSTER SETSLOT {slot} NODE {id}"));
    }
}
