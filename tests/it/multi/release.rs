//! `RL.MULTIRELEASE`: ends a lease on several keys.

use redis::Connection;

use crate::support::{Server, T0, WRONG_TYPE, error, ints, multi, sync, text};

fn take(con: &mut Connection) {
    let leases = "LIMIT CONCURRENT 5 1m job ON 1 LIMIT CONCURRENT 5 1m job ON 2";
    let (all, _) =
        multi(con, &format!("RL.MULTI 2 tenant pool AT {T0} {leases} LIMIT FIXEDWINDOW 9 1m ON 2"));
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
    assert_eq!(ints(con, &format!("RL.PEEK pool FIXEDWINDOW 9 1m AT {T0}"))[2], 8);
    assert_eq!(ints(con, &format!("RL.PEEK pool CONCURRENT 5 1m job AT {T0}"))[2], 5);
    sync(&server, &replica);
    assert_eq!(text(&mut replica.connection(), "DEBUG DIGEST"), text(con, "DEBUG DIGEST"));
}

#[test]
fn a_key_of_another_type_is_an_error_before_anything_changes() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    take(con);
    text(con, "SET string x");
    let digest = text(con, "DEBUG DIGEST");
    assert_eq!(error(con, &format!("RL.MULTIRELEASE 2 tenant string job AT {T0}")), WRONG_TYPE);
    for (line, expected) in [
        ("RL.MULTIRELEASE 2 tenant tenant job", "ERR keys must differ"),
        ("RL.MULTIRELEASE 0 tenant job", "ERR numkeys must be an integer from 1 to 64; got '0'"),
        ("RL.MULTIRELEASE 2 tenant pool", "ERR wrong number of arguments for 'rl.multirelease' command"),
        ("RL.MULTIRELEASE 1 tenant job NOW", "ERR syntax error near 'NOW'"),
        ("RL.MULTIRELEASE 1 tenant job AT 1", "ERR AT must be Unix time in microseconds; got '1'"),
    ] {
        assert_eq!(error(con, line), expected, "{line}");
    }
    let long = "x".repeat(257);
    assert_eq!(error(con, &format!("RL.MULTIRELEASE 1 tenant {long}")), "ERR id must be 1 to 256 bytes");
    assert_eq!(text(con, "DEBUG DIGEST"), digest);
    assert_eq!(text(con, "COMMAND GETKEYS RL.MULTIRELEASE 2 tenant pool job"), "[tenant, pool]");
}

#[test]
fn a_key_of_this_module_without_the_lease_holds_none() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for line in [
        "RL.GCRA k 9 1 1000s",
        "RL.SLIDINGLOG k 9 1h",
        "RL.SHED k 0.9",
        "RL.SKETCH k item 9 1 1h",
        "RL.MULTI 1 k LIMIT GCRA 9 1 1h LIMIT UNIFORM 1h",
        "RL.GCRA k 9 1 1000s HOLD job 1h",
        "RL.CONCURRENT k 9 1h other",
        "RL.MULTI 1 k LIMIT CONCURRENT 9 1h other SHADOW",
    ] {
        text(con, "FLUSHALL");
        text(con, line);
        take(con);
        let digest = text(con, "DEBUG DIGEST-VALUE k");
        for release in ["RL.RELEASE k job", "RL.RENEW k 1h job", "RL.MULTIRELEASE 1 k job"] {
            assert_eq!(ints(con, release), [0], "{release} after {line}");
            assert_eq!(text(con, "DEBUG DIGEST-VALUE k"), digest, "{release} after {line}");
        }
        assert_eq!(ints(con, &format!("RL.MULTIRELEASE 2 k tenant job AT {T0}")), [1], "{line}");
    }
}
