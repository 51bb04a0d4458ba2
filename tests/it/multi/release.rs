//! `RL.MULTIRELEASE`: ends a lease on several keys.

use redis::Connection;

use crate::support::{Server, T0, WRONG_TYPE, error, ints, multi, sync, text};

fn take(con: &mut Connection) {
    let leases = "LIMIT CONCURRENT 5 60000 job ON 1 LIMIT CONCURRENT 5 60000 job ON 2";
    let (all, _) =
        multi(con, &format!("RL.MULTI 2 tenant pool AT {T0} {leases} LIMIT FIXEDWINDOW 9 60000 ON 2"));
    assert_eq!(all[0], 0);
}

#[test]
fn it_ends_the_lease_on_each_key_and_replies_how_many_held_it() {
    let server = Server::start(&[]);
    let replica = server.replica(&["--propagation-error-behavior", "panic"]);
    let con = &mut server.connection();
    take(con);
    assert_eq!(ints(con, &format!("RL.MULTIRELEASE 3 tenant pool missing other AT {T0}")), [0]);
    assert_eq!(ints(con, &format!("RL.MULTIRELEASE 3 tenant pool missing job AT {T0}")), [2]);
    assert_eq!(ints(con, &format!("RL.MULTIRELEASE 3 tenant pool missing job AT {T0}")), [0]);
    // The last lease deletes its key; beside another limit the key stays.
    assert_eq!(text(con, "EXISTS tenant"), "0");
    assert_eq!(text(con, "EXISTS missing"), "0");
    assert_eq!(ints(con, &format!("RL.PEEK pool FIXEDWINDOW 9 60000 AT {T0}"))[2], 8);
    assert_eq!(ints(con, &format!("RL.PEEK pool CONCURRENT 5 60000 job AT {T0}"))[2], 5);
    sync(&server, &replica);
    assert_eq!(text(&mut replica.connection(), "DEBUG DIGEST"), text(con, "DEBUG DIGEST"));
}

#[test]
fn a_key_of_another_kind_is_an_error_before_anything_changes() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    take(con);
    ints(con, "RL.GCRA rate 9 1 1000000");
    text(con, "SET string x");
    let digest = text(con, "DEBUG DIGEST");
    for other in ["rate", "string"] {
        assert_eq!(error(con, &format!("RL.MULTIRELEASE 2 tenant {other} job AT {T0}")), WRONG_TYPE);
    }
    for (line, expected) in [
        ("RL.MULTIRELEASE 2 tenant tenant job", "ERR keys must differ"),
        ("RL.MULTIRELEASE 0 tenant job", "ERR numkeys must be between 1 and 64"),
        ("RL.MULTIRELEASE 2 tenant pool", "ERR wrong number of arguments for 'rl.multirelease' command"),
        ("RL.MULTIRELEASE 1 tenant job NOW", "ERR syntax error near 'NOW'"),
        ("RL.MULTIRELEASE 1 tenant job AT 1", "ERR AT must be Unix time in microseconds"),
    ] {
        assert_eq!(error(con, line), expected, "{line}");
    }
    let long = "x".repeat(257);
    assert_eq!(
        error(con, &format!("RL.MULTIRELEASE 1 tenant {long}")),
        "ERR id must be between 1 and 256 bytes"
    );
    assert_eq!(text(con, "DEBUG DIGEST"), digest);
    assert_eq!(text(con, "COMMAND GETKEYS RL.MULTIRELEASE 2 tenant pool job"), "[tenant, pool]");
}
