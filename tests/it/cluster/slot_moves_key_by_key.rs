//! A slot that an operator moves with `MIGRATE`, one key at a time, while clients call.

use redis::Connection;

use crate::support::cluster::{self, Cluster};
use crate::support::one_slot::{CALLED, LEFT_ALONE, LEFT_ALONE_TOO, contents};
use crate::support::{sync, text};

#[test]
fn a_slot_moves_amid_calls_and_not_one_more_is_admitted() {
    let cluster = Cluster::start();
    let (slot, place) = (cluster.slot("{t}"), cluster.place("{t}"));
    let (source, target) = (&cluster.primaries[place], &cluster.primaries[(place + 1) % 3]);
    let (from, to) = (&mut source.connection(), &mut target.connection());
    for line in LEFT_ALONE.iter().chain(&LEFT_ALONE_TOO) {
        text(from, line);
    }
    let kept = contents(from, slot);
    assert_eq!(kept.len(), 20);
    let load = cluster::load(&cluster, &CALLED);
    load.all_go_on(10);

    let id = |con: &mut Connection| text(con, "CLUSTER MYID");
    let (source_id, target_id) = (id(from), id(to));
    text(to, &format!("CLUSTER SETSLOT {slot} IMPORTING {source_id}"));
    text(from, &format!("CLUSTER SETSLOT {slot} MIGRATING {target_id}"));
    loop {
        // One at a time, and calls between them.
        let key = text(from, &format!("CLUSTER GETKEYSINSLOT {slot} 1"));
        let key = key.trim_matches(['[', ']']);
        if key.is_empty() {
            break;
        }
        assert_eq!(text(from, &format!("MIGRATE 127.0.0.1 {} {key} 0 60000", target.port)), "OK", "{key}");
        load.goes_on(50);
    }
    // Two: the one that is under way may have begun before.
    load.all_go_on(2);
    for node in [target, source].into_iter().chain(&cluster.primaries) {
        text(&mut node.connection(), &format!("CLUSTER SETSLOT {slot} NODE {target_id}"));
    }
    load.all_go_on(2);

    for ((line, limit), tally) in CALLED.into_iter().zip(load.finish()) {
        assert_eq!((tally.admitted.len(), tally.unknown), (limit, 0), "{line}");
        assert!(tally.asked > 0, "{line}: not called amid the move");
    }
    let now = contents(to, slot);
    for (key, dumped, expires) in &kept {
        let (_, same, later) = now.iter().find(|moved| moved.0 == *key).expect(key);
        assert_eq!(same, dumped, "{key}");
        // MIGRATE sends the time that is left, so that it becomes later by the time that took.
        assert!((*expires == -1 && *later == -1) || (*expires..*expires + 60_000).contains(later), "{key}");
    }
    let replica = &cluster.replicas[(place + 1) % 3];
    sync(target, replica);
    assert_eq!(contents(&mut replica.connection(), slot), now);
    sync(source, &cluster.replicas[place]);
    assert!(contents(&mut cluster.replicas[place].connection(), slot).is_empty());
}
