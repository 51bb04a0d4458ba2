//! Callers that wait while the server may not write: no grant then, but timeouts; and each grant is whole.

use redis::{Connection, Value};

use super::{Waiting, count, pipeline, until_tried, until_waiting, waiting};
use crate::support::client::Client;
use crate::support::machine::{Machine, persistence};
use crate::support::{Server, error, ints, text, wait_for};

/// The first in line waits for three leases, of which two are there. The second waits for one.
fn two_in_line(server: &Server, key: &str) -> [Waiting; 2] {
    ints(&mut server.connection(), &format!("RL.CONCURRENT {key} 5 1h a COST 3"));
    ["b COST 3", "c"]
        .map(|lease| Waiting::enter(server, &format!("RL.CONCURRENT {key} 5 1h {lease} BLOCK 1m")))
}

#[test]
fn no_caller_is_admitted_while_writes_are_paused_but_timeouts_and_unblocks_happen() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT k 1 1h a");
    let [mut own, mut several, unblocked] = [
        "RL.CONCURRENT k 1 1h b BLOCK 1m",
        "RL.MULTI 1 k BLOCK 1m LIMIT CONCURRENT 1 1h b",
        "RL.CONCURRENT k 1 1h c BLOCK 1m",
    ]
    .map(|line| Waiting::enter(&server, line));
    let [first, mut second] = two_in_line(&server, "l");
    let line = "RL.MULTI 1 k BLOCK 2s LIMIT CONCURRENT 1 1h d LIMIT PENALTY 9 1h 1h";
    let mut timed = Waiting::start(&server, line);
    wait_for("all callers", || waiting(con) == 6 || !timed.waits());
    pipeline(con, &["RL.RENEW k 50ms a", "CLIENT PAUSE 60000 WRITE"]);
    drop(first);
    wait_for("room", || ints(con, "RL.PEEK k CONCURRENT 1 1h b")[0] == 0);
    // It may not be taken.
    ints(con, &format!("CLIENT UNBLOCK {}", unblocked.id));
    assert_eq!(unblocked.ints()[..3], [1, 1, 0]);
    assert!(timed.text().starts_with("[[1, 1, 0, "));
    until_waiting(con, 3);
    assert!(own.waits() && several.waits() && second.waits());
    assert_eq!(ints(con, "RL.PEEK k CONCURRENT 1 1h b")[0], 0, "nothing is charged");
    assert_eq!((count(con, "waited_granted"), count(con, "waited_timeout")), (0, 2));
    text(con, "CLIENT UNPAUSE");
    assert_eq!(own.ints(), [0, 1, 0, 0, 3_600_000]);
    assert!(several.text().starts_with("[[0, 1, 0, 0, 3600000]"));
    assert_eq!(second.ints()[..3], [0, 5, 1]);
    // A pause that ends by itself.
    let caller = Waiting::enter(&server, "RL.CONCURRENT k 1 1h e BLOCK 1m");
    pipeline(con, &["RL.RENEW k 50ms b", "CLIENT PAUSE 300 WRITE"]);
    assert_eq!(caller.ints(), [0, 1, 0, 0, 3_600_000]);
}

type Step = fn(&Machine, &mut Connection);

#[test]
fn who_waits_already_is_admitted_while_the_server_refuses_new_callers() {
    let machine = Machine::start(&["--save", "3600 1", "--maxmemory-policy", "noeviction"]);
    let con = &mut machine.server.connection();
    let refusals: [(&str, Step, &str); 3] = [
        ("OOM ", |_, con| _ = text(con, "CONFIG SET maxmemory 1"), "CONFIG SET maxmemory 0"),
        (
            "NOREPLICAS ",
            |_, con| _ = text(con, "CONFIG SET min-replicas-to-write 1"),
            "CONFIG SET min-replicas-to-write 0",
        ),
        (
            "MISCONF ",
            |machine, con| {
                // No file may be longer.
                machine.may_write("10");
                text(con, "BGSAVE");
                wait_for("the save to fail", || persistence(con, "rdb_last_bgsave_status") == "err");
            },
            "CLIENT ID",
        ),
    ];
    for (granted, (refusal, begin, end)) in (1..).zip(refusals) {
        let [first, second] = two_in_line(&machine.server, refusal.trim());
        begin(&machine, con);
        for line in ["RL.CONCURRENT k 5 1h d BLOCK 1m", "RL.MULTI 1 new BLOCK 1m LIMIT GCRA 9 1 1s"] {
            assert!(error(con, line).starts_with(refusal), "{line}");
        }
        assert_eq!(waiting(con), 2, "{refusal}");
        ints(con, &format!("CLIENT KILL ID {}", first.id));
        assert_eq!(second.ints(), [0, 5, 1, 0, 3_600_000], "{refusal}");
        assert_eq!((waiting(con), count(con, "waited_granted")), (0, granted), "{refusal}");
        text(con, end);
    }
}

#[test]
fn a_caller_without_permission() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, "ACL SETUSER app on nopass +@all ~mine:*");
    text(con, "RL.MULTI 2 mine:k k LIMIT CONCURRENT 1 1h a");
    let login = || {
        let mut client = Client::connect(server.port);
        client.call("AUTH app any");
        client
    };
    let mut client = login();
    let refused_by_server = client.call("RL.CONCURRENT k 1 1h b BLOCK 1m");
    assert!(matches!(&refused_by_server, Value::ServerError(error) if error.code() == "NOPERM"));
    let caller = Waiting::enter_on(&server, client, "RL.CONCURRENT mine:k 1 1h b BLOCK 1m");
    // The permission counts as of the arrival.
    text(con, "ACL SETUSER app resetkeys -@all +ping");
    text(con, "RL.RELEASE mine:k a");
    assert_eq!(caller.ints()[0], 0);
    // A user that is deleted loses its clients.
    text(con, "ACL SETUSER app on nopass +@all ~*");
    let mut caller = Waiting::enter_on(&server, login(), "RL.CONCURRENT k 1 1h b BLOCK 1m");
    let next = Waiting::enter(&server, "RL.CONCURRENT k 1 1h c BLOCK 1m");
    text(con, "ACL DELUSER app");
    assert_eq!(caller.outcome(), None);
    until_tried(&server);
    text(con, "RL.RELEASE k a");
    assert_eq!(next.ints()[0], 0);
}
