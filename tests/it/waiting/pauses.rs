//! Callers that wait while the server may not write: no grant then, but timeouts; and each grant is whole.

use std::thread::sleep;
use std::time::Duration;

use redis::{Connection, Value};

use super::{Waiting, count, until_tried, until_waiting, waiting};
use crate::support::machine::{Machine, persistence};
use crate::support::{Server, error, ints, refused, text, wait_for};

/// A few events of the server's clock.
const A_WHILE: Duration = Duration::from_millis(500);

/// Waits until the key `k` has room for the lease `b`.
fn until_room(con: &mut Connection) {
    wait_for("room", || ints(con, "RL.PEEK k CONCURRENT 1 1h b")[0] == 0);
}

#[test]
fn nobody_is_admitted_while_writes_are_paused() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for line in ["RL.CONCURRENT k 1 1h b BLOCK 1m", "RL.MULTI 1 k BLOCK 1m LIMIT CONCURRENT 1 1h b"] {
        text(con, "DEL k");
        ints(con, "RL.CONCURRENT k 1 1s a");
        let mut caller = Waiting::enter(&server, line);
        text(con, "CLIENT PAUSE 60000 WRITE");
        until_room(con);
        sleep(A_WHILE);
        assert!(caller.waits(), "{line}");
        assert_eq!(ints(con, "RL.PEEK k CONCURRENT 1 1h b")[0], 0, "{line}: nothing is charged");
        text(con, "CLIENT UNPAUSE");
        let reply = caller.text();
        assert!(reply.trim_start_matches('[').starts_with("0, 1, 0, 0, 3600000"), "{line}: {reply}");
        assert_eq!(ints(con, "RL.RELEASE k b"), [1], "{line}");
    }
}

#[test]
fn a_pause_that_ends_by_itself_goes_on_with_the_line() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT k 1 300ms a");
    let caller = Waiting::start(&server, "RL.CONCURRENT k 1 1h b BLOCK 1m");
    text(con, "CLIENT PAUSE 1500 WRITE");
    assert_eq!(caller.ints(), [0, 1, 0, 0, 3_600_000]);
}

#[test]
fn timeouts_and_unblocks_happen_in_a_pause() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT k 1 1s a");
    let callers = [
        "RL.CONCURRENT k 1 1h b BLOCK 3s",
        "RL.MULTI 1 k BLOCK 3s LIMIT CONCURRENT 1 1h c LIMIT PENALTY 9 1h 1h",
        "RL.CONCURRENT k 1 1h d BLOCK 1m",
    ]
    .map(|line| Waiting::enter(&server, line));
    text(con, "CLIENT PAUSE 60000 WRITE");
    until_room(con);
    let [lone, several, unblocked] = callers;
    ints(con, &format!("CLIENT UNBLOCK {}", unblocked.id));
    assert_eq!(unblocked.ints()[..3], [1, 1, 0]);
    // There is room by now, but it may not be taken.
    assert_eq!(lone.ints()[..3], [1, 1, 0]);
    assert!(several.text().starts_with("[[1, 1, 0, "));
    assert_eq!((waiting(con), count(con, "waited_timeout")), (0, 3));
    text(con, "CLIENT UNPAUSE");
    assert_eq!(ints(con, "RL.CONCURRENT k 1 1h c")[0], 0);
}

#[test]
fn a_caller_that_leaves_in_a_pause_makes_way_after_it() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let [first, mut second] = two_in_line(&server, "RL.CONCURRENT k 5 1h");
    text(con, "CLIENT PAUSE 60000 WRITE");
    drop(first);
    until_waiting(con, 1);
    sleep(A_WHILE);
    assert!(second.waits());
    text(con, "CLIENT UNPAUSE");
    assert_eq!(second.ints()[..3], [0, 5, 1]);
}

/// The first in line waits for three leases, of which two are there. The second waits for one.
fn two_in_line(server: &Server, call: &str) -> [Waiting; 2] {
    ints(&mut server.connection(), &format!("{call} a COST 3"));
    ["b COST 3", "c"].map(|lease| Waiting::enter(server, &format!("{call} {lease} BLOCK 1m")))
}

/// Checks that the server's error refuses new callers, and that one who waits already is admitted.
fn expect_whole_grant(server: &Server, refusal: &str, begin: impl FnOnce(&mut Connection)) {
    let con = &mut server.connection();
    let [first, second] = two_in_line(server, "RL.CONCURRENT k 5 1h");
    begin(con);
    for line in ["RL.CONCURRENT k 5 1h d BLOCK 1m", "RL.MULTI 1 new BLOCK 1m LIMIT GCRA 9 1 1s"] {
        assert!(error(con, line).starts_with(refusal), "{line}");
    }
    assert_eq!(waiting(con), 2);
    ints(con, &format!("CLIENT KILL ID {}", first.id));
    assert_eq!(second.ints(), [0, 5, 1, 0, 3_600_000]);
    assert_eq!(ints(con, "RL.PEEK k CONCURRENT 5 1h c")[..3], [0, 5, 1], "it holds the lease");
    assert_eq!((waiting(con), count(con, "waited_granted")), (0, 1));
}

#[test]
fn a_full_server() {
    let server = Server::start(&["--maxmemory-policy", "noeviction"]);
    expect_whole_grant(&server, "OOM ", |con| _ = text(con, "CONFIG SET maxmemory 1"));
}

#[test]
fn a_server_with_too_few_replicas() {
    let server = Server::start(&[]);
    expect_whole_grant(&server, "NOREPLICAS ", |con| _ = text(con, "CONFIG SET min-replicas-to-write 1"));
}

#[test]
fn a_server_that_cannot_save() {
    let machine = Machine::start(&["--save", "3600 1"]);
    expect_whole_grant(&machine.server, "MISCONF ", |con| {
        // No file may be longer.
        machine.may_write("10");
        text(con, "BGSAVE");
        wait_for("the save to fail", || persistence(con, "rdb_last_bgsave_status") == "err");
    });
}

#[test]
fn a_caller_without_permission() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    text(con, "ACL SETUSER app on nopass +@all ~mine:*");
    ints(con, "RL.CONCURRENT mine:k 1 1h a");
    ints(con, "RL.CONCURRENT k 1 1h a");
    let mut client = crate::support::client::Client::connect(server.port);
    client.call("AUTH app any");
    let refused_by_server = client.call("RL.CONCURRENT k 1 1h b BLOCK 1m");
    assert!(matches!(&refused_by_server, Value::ServerError(error) if error.code() == "NOPERM"));
    let caller = Waiting::enter_on(&server, client, "RL.CONCURRENT mine:k 1 1h b BLOCK 1m");
    // The permission counts as of the arrival.
    text(con, "ACL SETUSER app resetkeys -@all +ping");
    text(con, "RL.RELEASE mine:k a");
    assert_eq!(caller.ints()[0], 0);
    // A user that is deleted loses its clients.
    text(con, "ACL SETUSER app on nopass +@all ~*");
    let mut client = crate::support::client::Client::connect(server.port);
    client.call("AUTH app any");
    let mut caller = Waiting::enter_on(&server, client, "RL.CONCURRENT k 1 1h b BLOCK 1m");
    let next = Waiting::enter(&server, "RL.CONCURRENT k 1 1h c BLOCK 1m");
    text(con, "ACL DELUSER app");
    assert_eq!(caller.outcome(), None);
    until_tried(&server);
    text(con, "RL.RELEASE k a");
    assert!(!refused(&Value::Array(next.ints().into_iter().map(Value::Int).collect())));
}
