//! What of tenants is on replicas, in files and in copies: the tenants and weights of leases. Turns and hungers are not.

use redis::Connection;

use super::{PATIENT, Waiting, until_tried, until_waiting};
use crate::support::contents::{contents, expect_same};
use crate::support::replicas::{STRICT, follow, is_up};
use crate::support::{AOF_AT_ONCE, Server, ints, rewrite_aof, sync, text, wait_for};

/// Leases of two tenants and of none, in a lone limit and in a set, of which some were renewed and released.
const CALLS: [&str; 9] = [
    "RL.CONCURRENT lone 9 1h 1 COST 2 TENANT a WEIGHT 4",
    "RL.CONCURRENT lone 9 1h 2 TENANT b",
    "RL.CONCURRENT lone 9 1h 3",
    "RL.CONCURRENT lone 9 2h 1 TENANT c WEIGHT 5",
    "RL.CONCURRENT lone 9 1h 4 TENANT b",
    "RL.RELEASE lone 2",
    "RL.MULTI 1 set LIMIT FIXEDWINDOW 9 1h LIMIT CONCURRENT 9 1h 1 TENANT a WEIGHT 3",
    "RL.MULTI 1 set LIMIT FIXEDWINDOW 9 1h LIMIT CONCURRENT 9 1h 2",
    "RL.RENEW set 3h 1",
];

fn shown(con: &mut Connection, key: &str) -> String {
    let info = text(con, &format!("RL.INFO {key}"));
    info.split("tenants, ")
        .nth(1)
        .unwrap_or_else(|| panic!("no tenants in {info}"))
        .split("]]")
        .next()
        .unwrap()
        .into()
}

/// Checks what the keys show, and that the next grants are by it.
fn expect(con: &mut Connection) {
    let lone = "[[name, , weight, 1, held, 1, waiting, 0], [name, b, weight, 1, held, 1, waiting, 0], \
                [name, a, weight, 4, held, 2, waiting, 0";
    assert_eq!(shown(con, "lone"), lone);
    assert_eq!(
        shown(con, "set"),
        "[[name, , weight, 1, held, 1, waiting, 0], [name, a, weight, 3, held, 1, waiting, 0"
    );
}

fn make(con: &mut Connection) {
    for call in CALLS {
        text(con, call);
    }
    expect(con);
}

#[test]
fn a_replica_has_the_tenants_and_goes_on_after_a_promotion() {
    let [primary, replica] = [(); 2].map(|()| Server::start(&[&PATIENT[..], &STRICT].concat()));
    follow(&replica, primary.port);
    wait_for("the link", || is_up(&replica));
    let con = &mut primary.connection();
    make(con);
    sync(&primary, &replica);
    let copy = &mut replica.connection();
    expect(copy);
    expect_same(&contents(&replica), &contents(&primary), "the replica");
    // A full copy has them, too.
    let late = Server::start(&STRICT);
    follow(&late, primary.port);
    wait_for("the link", || is_up(&late));
    sync(&primary, &late);
    expect(&mut late.connection());
    // A caller that waited comes anew. The tenants take turns by what they hold.
    text(copy, "REPLICAOF NO ONE");
    ints(copy, "RL.CONCURRENT lone 9 1h rest COST 5 TENANT b");
    let mut heavy = Waiting::enter(&replica, "RL.CONCURRENT lone 9 1h 5 TENANT b BLOCK 1d");
    let light = Waiting::enter(&replica, "RL.CONCURRENT lone 9 1h 6 TENANT a BLOCK 1d");
    text(copy, "RL.RELEASE lone 3");
    assert_eq!(light.ints()[0], 0);
    until_tried(&replica);
    assert!(heavy.waits());
    drop(heavy);
    until_waiting(copy, 0);
}

#[test]
fn files_have_the_tenants() {
    for rdb in ["yes", "no"] {
        let mut server = Server::start(&[&AOF_AT_ONCE[..], &["--aof-use-rdb-preamble", rdb]].concat());
        make(&mut server.connection());
        server.restart();
        expect(&mut server.connection());
        rewrite_aof(&mut server.connection());
        server.restart();
        expect(&mut server.connection());
    }
    let mut server = Server::start(&[]);
    make(&mut server.connection());
    text(&mut server.connection(), "SAVE");
    server.restart();
    expect(&mut server.connection());
}

#[test]
fn copies_have_the_tenants() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    make(con);
    for key in ["lone", "set"] {
        text(con, &format!("COPY {key} copy:{key}"));
        let dump: Vec<u8> = redis::cmd("DUMP").arg(key).query(con).unwrap();
        let restored = format!("restored:{key}");
        redis::cmd("RESTORE").arg(&restored).arg(0).arg(dump).exec(con).unwrap();
        let expected = shown(con, key);
        for copy in [format!("copy:{key}"), restored] {
            assert_eq!(shown(con, &copy), expected, "{copy}");
        }
    }
}

#[test]
fn a_line_reads_a_key_anew_that_has_another_value() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    for id in ["1", "2"] {
        ints(con, &format!("RL.CONCURRENT k 2 1h {id} TENANT a"));
        ints(con, &format!("RL.CONCURRENT other 2 1h {id} TENANT b"));
    }
    let first = Waiting::enter(&server, "RL.CONCURRENT k 2 1h 3 TENANT a BLOCK 1d");
    let mut second = Waiting::enter(&server, "RL.CONCURRENT k 2 1h 4 TENANT b BLOCK 1d");
    // Now it is b that holds both.
    text(con, "COPY other k REPLACE");
    until_tried(&server);
    text(con, "RL.RELEASE k 1");
    assert_eq!(first.ints()[0], 0);
    until_tried(&server);
    assert!(second.waits());
}

#[test]
fn an_expired_lease_counts_for_its_tenant_no_more() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    ints(con, "RL.CONCURRENT k 3 500ms 1 TENANT a");
    ints(con, "RL.CONCURRENT k 3 1h 2 TENANT b");
    ints(con, "RL.CONCURRENT k 3 1h 3 TENANT b");
    // When the first lease expires, a holds nothing, and b two.
    let mut heavy = Waiting::enter(&server, "RL.CONCURRENT k 3 1h 4 TENANT b BLOCK 1d");
    let light = Waiting::enter(&server, "RL.CONCURRENT k 3 1h 5 TENANT a BLOCK 1d");
    assert_eq!(light.ints()[0], 0);
    until_tried(&server);
    assert!(heavy.waits());
}
