//! Keys of other types. Keys and ids of any bytes are in `tests/sessions/keys_and_ids.txt`.

use crate::support::harmless::{harmless_error, words};
use crate::support::{Server, WRONG_TYPE, error, kind_of_error, text};

/// A call of each limiter, and of each other command for one key.
const CALLS: [&str; 22] = [
    "RL.TOKENBUCKET k 10 1 1000s",
    "RL.TOKENBUCKET k 10 1 1000s BATCH",
    "RL.GCRA k 9 1 1000s",
    "RL.GCRA k 9 1 1000s COST 0",
    "RL.GCRA k 9 1 1000s COST 11",
    "RL.PEEK k GCRA 9 1 1000s",
    "RL.SLIDINGWINDOW k 10 1000s",
    "RL.SLIDINGWINDOW k 10 1000s PRECISION 10s",
    "RL.LEAKYBUCKET k 10 1 1000s",
    "RL.FIXEDWINDOW k 10 1000s",
    "RL.FIXEDWINDOW k 10 1000s ALIGNED",
    "RL.CALENDAR k 10 DAY",
    "RL.SLIDINGLOG k 10 1000s",
    "RL.CONCURRENT k 10 1000s id",
    "RL.RELEASE k id",
    "RL.RENEW k 1s id",
    "RL.INFO k",
    "RL.SKETCH k item 9 1 1s",
    "RL.SKETCH k item 9 1 1s COST 11 WIDTH 8 DEPTH 1",
    "RL.PEEK k SKETCH item 9 1 1s",
    "RL.EXPLAIN RL.GCRA k 9 1 1s",
    "RL.EXPLAIN RL.MULTI 1 k LIMIT GCRA 9 1 1s",
];

#[test]
fn a_key_of_another_type_is_refused_and_left_alone() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for foreign in
        ["SET k 1700000000000000", "RPUSH k a b", "SADD k 1", "HSET k field value", "XADD k 1-1 f v"]
    {
        text(con, "FLUSHALL");
        text(con, foreign);
        text(con, "PEXPIRE k 1000000");
        for line in CALLS {
            assert_eq!(
                kind_of_error(harmless_error(con, &words(line))),
                WRONG_TYPE,
                "{line} after {foreign}"
            );
        }
    }
}

#[test]
fn commands_for_other_types_refuse_a_limiter() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for make in [
        "RL.GCRA k 9 1 1000s",
        "RL.SKETCH k item 9 1 1000s",
        "RL.MULTI 1 k LIMIT UNIFORM 1h LIMIT GCRA 9 1 1h",
    ] {
        text(con, "FLUSHALL");
        text(con, make);
        for line in
            ["GET k", "LPUSH k a", "HSET k a b", "XADD k * a b", "RL.XADD k 9 * a b", "RL.LPUSH k 9 a"]
        {
            let told = kind_of_error(harmless_error(con, &words(line)));
            assert_eq!(told, WRONG_TYPE, "{line} after {make}");
        }
        assert_eq!(text(con, "TYPE k"), "ratelimit");
    }
    // SET takes any key, and the limiter begins anew after DEL.
    text(con, "SET k 1");
    assert_eq!(kind_of_error(error(con, "RL.GCRA k 9 1 1000s")), WRONG_TYPE);
    text(con, "DEL k");
    assert!(text(con, "RL.GCRA k 9 1 1000s").starts_with("[0, 10, 9, "));
}
