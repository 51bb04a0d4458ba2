//! The rows that limiters are compared with: the server's own commands, what every module must do, and scripts.

use super::lua;
use super::row::{Answer, PLAIN, Row};

/// Commands of the module in benches/floor/.
const FLOOR: Row = Row { prepare: "SET key:# 1 PX 3600000", module: Some("floor"), ..PLAIN };

pub const INCR: Row = Row { name: "INCR", call: "INCR key:#", elsewhere: "3,858 when designed", ..PLAIN };
pub const SET_PX: Row =
    Row { name: "SET PX", call: "SET key:# 1 PX 60000", elsewhere: "9,485 when designed", ..PLAIN };

pub const SERVER: &[Row] = &[
    Row { name: "PING", call: "PING", writes: false, elsewhere: "2,294 when designed", ..PLAIN },
    Row {
        name: "GET",
        call: "GET key:#",
        prepare: "SET key:# 1",
        writes: false,
        elsewhere: "2,835 when designed, of a missing key",
        ..PLAIN
    },
    INCR,
    Row { name: "INCR, one hot key", call: "INCR key", ..PLAIN },
    SET_PX,
    Row { name: "SET PX, one hot key", call: "SET key 1 PX 60000", ..PLAIN },
    // The server's own share of a call of five words: what ours cost above that is ours.
    Row {
        name: "empty command, five integers",
        call: "FL.REPLY key:# 500 100 1000",
        writes: false,
        elsewhere: "5,212 when designed",
        ..FLOOR
    },
    Row {
        name: "... which opens its key",
        call: "FL.OPEN key:# 500 100 1000",
        writes: false,
        elsewhere: "6,581 when designed",
        ..FLOOR
    },
    Row {
        // Our commands send effects only if something can receive them. This one always does.
        name: "... signals it, replicates 24 bytes",
        call: "FL.WRITE key:# 500 100 1000",
        elsewhere: "8,146 when designed",
        ..FLOOR
    },
];

/// The limiters that people run today.
pub const SCRIPTS: &[Row] = &[
    Row {
        name: "EVALSHA of an empty script",
        call: "EVALSHA $SHA 1 key:#",
        script: lua::EMPTY,
        writes: false,
        elsewhere: "11,604 when designed",
        ..PLAIN
    },
    // Its two keys have numbers of their own, which makes no difference: the clock stands still.
    Row {
        name: "Lua token bucket",
        call: "EVALSHA $SHA 2 tok:# tim:# 1000000 1000000000 1700000000 1",
        script: lua::TOKEN_BUCKET,
        elsewhere: "77,698 when designed",
        answer: Answer::Admitted,
        ..PLAIN
    },
    Row {
        name: "Lua concurrent acquire",
        call: "EVALSHA $SHA 1 key:# 1000000 1700000000 id:#",
        script: lua::CONCURRENT,
        elsewhere: "43,957 when designed",
        answer: Answer::Admitted,
        ..PLAIN
    },
    Row {
        name: "Lua stream, admitted",
        call: "EVALSHA $SHA 1 stream:# 1000000 request_details some~values",
        script: lua::STREAM,
        elsewhere: "30,335 when designed",
        answer: Answer::Done,
        ..PLAIN
    },
    Row {
        name: "Lua GCRA booking",
        call: "EVALSHA $SHA 1 key:# 1000000",
        script: lua::GCRA,
        elsewhere: "40,276 when designed",
        ..PLAIN
    },
    Row {
        name: "Lua sliding window",
        call: "EVALSHA $SHA 1 key:# [[3600,1000000,60]] 1700000000 1",
        script: lua::SLIDING_WINDOWS,
        elsewhere: "98,797 when designed",
        answer: Answer::Admitted,
        ..PLAIN
    },
    Row {
        name: "Lua three sliding windows",
        call: "EVALSHA $SHA 1 key:# [[1,1000000],[60,1000000],[3600,1000000,60]] 1700000000 1",
        script: lua::SLIDING_WINDOWS,
        elsewhere: "233,209 when designed",
        answer: Answer::Admitted,
        ..PLAIN
    },
];
