//! Rows by how often a key is asked: *cold*, each call on a new key, and *slow*, limits whose interval is minutes. The
//! other tables' rows are *hot*. Each limiter stands beside `SET PX` and a script.

use super::lua;
use super::row::{Answer, Load, PLAIN, Row};

/// No key expires before the last call, so that the server's keys can be counted.
const COLD: Row = Row { load: Load::Fresh, ..PLAIN };
const GCRA: Row = Row { answer: Answer::Admitted, ..PLAIN };
const SCRIPT: Row = Row { script: lua::GCRA, ..PLAIN };

pub const TRAFFIC: &[Row] = &[
    Row { name: "SET PX cold", call: "SET key:# 1 PX 3600000", ..COLD },
    Row {
        name: "RL.GCRA cold",
        call: "RL.GCRA key:# 10 10 1h",
        answer: Answer::Admitted,
        target: Some(9_800),
        ..COLD
    },
    Row {
        name: "Lua GCRA cold",
        call: "EVALSHA $SHA 1 key:# 360000000",
        script: lua::GCRA,
        answer: Answer::Admitted,
        ..COLD
    },
    // Sixty calls on a key, in which the reset grows with each. At a steady ten an hour the expiry moves with every fifth.
    Row { name: "SET PX slow, 10 an hour", call: "SET key:# 1 PX 3600000", ..PLAIN },
    Row {
        name: "RL.GCRA slow, 10 an hour",
        call: "RL.GCRA key:# 100000 10 1h",
        target: Some(7_500),
        target_with_backlog: Some(11_900),
        ..GCRA
    },
    Row { name: "Lua GCRA slow, 10 an hour", call: "EVALSHA $SHA 1 key:# 360000000", ..SCRIPT },
    Row { name: "SET PX slow, 1,000 a day", call: "SET key:# 1 PX 86400000", ..PLAIN },
    Row { name: "RL.GCRA slow, 1,000 a day", call: "RL.GCRA key:# 100000 1000 1d", ..GCRA },
    Row { name: "Lua GCRA slow, 1,000 a day", call: "EVALSHA $SHA 1 key:# 86400000", ..SCRIPT },
];
