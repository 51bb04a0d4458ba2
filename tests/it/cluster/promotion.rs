//! A primary that is killed while clients call: its replica is elected and goes on from the same state.

use crate::support::cluster::{self, Cluster, serves};
use crate::support::one_slot::{CALLED, LEFT_ALONE, LEFT_ALONE_TOO, contents};
use crate::support::{info, text, wait_for};

#[test]
fn a_promoted_replica_goes_on_where_the_killed_primary_was() {
    let mut cluster = Cluster::start();
    let (slot, place) = (cluster.slot("{t}"), cluster.place("{t}"));
    let con = &mut cluster.primaries[place].connection();
    for line in LEFT_ALONE.iter().chain(&LEFT_ALONE_TOO) {
        text(con, line);
    }
    let kept = contents(con, slot);
    let load = cluster::load(&cluster, &CALLED);
    load.all_go_on(100);

    // A server that is dropped is killed, with SIGKILL. The other nodes notice and elect its replica, by themselves.
    drop(cluster.primaries.remove(place));
    let con = &mut cluster.replicas[place].connection();
    wait_for("the promotion", || info(con, "replication", "role").as_deref() == Some("master"));
    wait_for("the cluster", || cluster.nodes().all(|node| serves(&mut node.connection())));
    load.all_go_on(2);

    for ((line, limit), tally) in CALLED.into_iter().zip(load.finish()) {
        // At most the one call that was under way when the primary died is in doubt, and all of the rest counts.
        let admitted = tally.admitted.len();
        assert!(tally.unknown <= 1 && tally.lost == 1, "{line}: {} {}", tally.unknown, tally.lost);
        assert!((limit - tally.unknown..=limit).contains(&admitted), "{line}: {admitted} admitted");
        for call in tally.admitted {
            let (look, absent) = match line.split(' ').next().unwrap() {
                "RL.CONCURRENT" => (format!("RL.RENEW {{t}}:lease 1h id{call}"), "0"),
                "RL.MULTI" => (format!("RL.RENEW {{t}}:both 1h id{call}"), "0"),
                "RL.XADD" => (format!("XRANGE {{t}}:stream 1-{call} 1-{call}"), "[]"),
                "RL.RPUSH" => (format!("LPOS {{t}}:list id{call}"), "(nil)"),
                // What is only counted has no names.
                _ => break,
            };
            assert_ne!(text(con, &look), absent, "{line}: call {call} was forgotten");
        }
    }
    let now = contents(con, slot);
    for key in &kept {
        assert!(now.contains(key), "{key:?} is not in {now:?}");
    }
}
