//! What the server knows of the command, and what is counted.

use crate::support::{Server, error, info, ints, text};

#[test]
fn info_counts_what_was_admitted_and_refused() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let counts = |con: &mut _| {
        ["sketch_admitted", "sketch_refused", "errors"]
            .map(|field| info(con, "ratelimit", &format!("ratelimit_{field}")).unwrap())
    };
    assert_eq!(counts(con), ["0", "0", "0"]);
    for line in [
        "RL.SKETCH key a 1 1 1h",
        "RL.SKETCH key a 1 1 1h",
        "RL.SKETCH key a 1 1 1h",
        "RL.SKETCH key b 1 1 1h COST 3",
        // Looks are no requests.
        "RL.SKETCH key a 1 1 1h COST 0",
        "RL.PEEK key SKETCH a 1 1 1h",
        "RL.PEEK key SKETCH b 1 1 1h COST 3",
    ] {
        ints(con, line);
    }
    assert_eq!(counts(con), ["2", "2", "0"]);
    error(con, "RL.SKETCH key a 1 1 1h WIDTH 3");
    error(con, "RL.SKETCH key a 1 1 1h WIDTH 8");
    assert_eq!(counts(con), ["2", "2", "2"]);
}

#[test]
fn the_server_knows_that_it_writes_and_may_need_memory() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let told = text(con, "COMMAND INFO rl.sketch");
    assert!(told.starts_with("[[rl.sketch, -6, [write, denyoom, module], 1, 1, 1, "), "{told}");
    assert!(
        told.contains("[flags, [RW, access, update], begin_search, [type, index, spec, [index, 1]]"),
        "{told}"
    );
    assert_eq!(text(con, "COMMAND GETKEYS RL.SKETCH key item 1 1 1h"), "[key]");
    assert_eq!(text(con, "COMMAND GETKEYS RL.PEEK key SKETCH item 1 1 1h"), "[key]");
}

#[test]
fn a_full_server_refuses_charges_and_answers_probes() {
    let server = Server::start(&["--maxmemory-policy", "noeviction"]);
    let con = &mut server.connection();
    ints(con, "RL.SKETCH key a 1 1 1h");
    text(con, "CONFIG SET maxmemory 1");
    for key in ["key", "new"] {
        let told = error(con, &format!("RL.SKETCH {key} a 1 1 1h"));
        assert_eq!(told, "OOM command not allowed when used memory > 'maxmemory'.");
    }
    assert_eq!(ints(con, "RL.PEEK key SKETCH a 1 1 1h")[..3], [0, 2, 1]);
}
