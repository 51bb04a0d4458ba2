//! The rows of the tables of calls. Here are the limiters' own; [`super::baselines`] has what they are compared with.

use super::baselines::{SCRIPTS, SERVER};
use super::row::{Answer, Load, PLAIN, Row};
use super::traffic::TRAFFIC;

/// All rows, in the order of the tables.
pub fn all() -> impl Iterator<Item = &'static Row> {
    hot().chain(TRAFFIC)
}

/// Those whose keys are asked again and again.
pub fn hot() -> impl Iterator<Item = &'static Row> {
    SERVER.iter().chain(LIMITERS).chain(SCRIPTS)
}

/// A state of a few numbers, which any native write with a time to live is compared with.
const ADMITTED: Row = Row { answer: Answer::Admitted, target: Some(9_000), ..PLAIN };
const REFUSED: Row = Row { answer: Answer::Refused, writes: false, target: Some(6_900), ..PLAIN };
/// A larger state, or more arithmetic.
const LARGER: Row = Row { target: Some(10_000), ..ADMITTED };

/// Admitted: limits that no load reaches, in numbers as long as people write them. Refused: one an hour, and that one
/// is taken in advance.
const LIMITERS: &[Row] = &[
    // Stripe's figures, in the middle of a burst.
    Row {
        name: "RL.TOKENBUCKET admitted",
        call: "RL.TOKENBUCKET key:# 500 100 1s",
        elsewhere: "Lua 77,698",
        target: Some(7_600),
        target_with_backlog: Some(12_000),
        ..ADMITTED
    },
    Row {
        name: "RL.TOKENBUCKET refused",
        call: "RL.TOKENBUCKET key:# 1 1 1h",
        elsewhere: "redis-cell 13,498",
        ..REFUSED
    },
    Row { name: "RL.TOKENBUCKET BATCH admitted", call: "RL.TOKENBUCKET key:# 500 100 1s BATCH", ..ADMITTED },
    Row { name: "RL.TOKENBUCKET BATCH refused", call: "RL.TOKENBUCKET key:# 1 1 1h BATCH", ..REFUSED },
    Row { name: "RL.LEAKYBUCKET admitted", call: "RL.LEAKYBUCKET key:# 500 100 1s", ..ADMITTED },
    Row { name: "RL.LEAKYBUCKET refused", call: "RL.LEAKYBUCKET key:# 1 1 1h", ..REFUSED },
    Row { name: "RL.FIXEDWINDOW admitted", call: "RL.FIXEDWINDOW key:# 5000 1m", ..ADMITTED },
    Row { name: "RL.FIXEDWINDOW refused", call: "RL.FIXEDWINDOW key:# 1 1h", ..REFUSED },
    Row { name: "RL.FIXEDWINDOW ALIGNED admitted", call: "RL.FIXEDWINDOW key:# 5000 1m ALIGNED", ..ADMITTED },
    Row { name: "RL.FIXEDWINDOW ALIGNED refused", call: "RL.FIXEDWINDOW key:# 1 1d ALIGNED", ..REFUSED },
    Row {
        name: "RL.CALENDAR admitted",
        call: "RL.CALENDAR key:# 1000000 MONTH TZ Europe/Lisbon",
        ..ADMITTED
    },
    Row { name: "RL.CALENDAR refused", call: "RL.CALENDAR key:# 1 MONTH TZ Europe/Lisbon", ..REFUSED },
    Row { name: "RL.CALENDAR admitted, in UTC", call: "RL.CALENDAR key:# 1000000 MONTH", ..ADMITTED },
    Row { name: "RL.UNIFORM forced", call: "RL.UNIFORM key:# 1s FORCE", ..ADMITTED },
    Row { name: "RL.UNIFORM refused", call: "RL.UNIFORM key:# 1h", ..REFUSED },
    Row {
        name: "RL.GCRA admitted",
        call: "RL.GCRA key:# 500 100 1s",
        elsewhere: "C GCRA 10,410; redis-cell 23,112; Lua 40,276",
        target: Some(7_400),
        target_with_backlog: Some(11_800),
        ..ADMITTED
    },
    // Here the debt is gone whenever the next request comes, and the numbers are long.
    Row {
        name: "RL.GCRA admitted, at rest",
        call: "RL.GCRA key:# 1000000 1000000 1s",
        elsewhere: "C GCRA 10,410; redis-cell 23,112; Lua 40,276",
        ..ADMITTED
    },
    Row { name: "RL.GCRA admitted, one hot key", call: "RL.GCRA key 1000000 1000000 1s", ..ADMITTED },
    Row {
        name: "RL.GCRA refused",
        call: "RL.GCRA key:# 0 1 1h",
        elsewhere: "C GCRA 6,414; redis-cell 13,498",
        ..REFUSED
    },
    // Each of the thousand keys has an entry, or nearly every call takes the least one's.
    Row {
        name: "RL.GCRA refused, counted in RL.TOP",
        call: "RL.GCRA key:# 0 1 1h",
        top: 10_000,
        target: Some(7_450),
        ..REFUSED
    },
    Row {
        name: "RL.GCRA refused, new in RL.TOP",
        call: "RL.GCRA key:# 0 1 1h",
        top: 100,
        target: None,
        ..REFUSED
    },
    Row { name: "RL.GCRA admitted, with RL.TOP", call: "RL.GCRA key:# 500 100 1s", top: 10_000, ..ADMITTED },
    Row { name: "RL.SKETCH admitted", call: "RL.SKETCH sketch key:# 500 100 1s", ..ADMITTED },
    Row { name: "RL.SKETCH refused", call: "RL.SKETCH sketch key:# 0 1 1h", ..REFUSED },
    Row {
        name: "RL.PEEK GCRA",
        call: "RL.PEEK key:# GCRA 500 100 1s",
        prepare: "RL.GCRA key:# 500 100 1s",
        writes: false,
        target: Some(7_200),
        ..ADMITTED
    },
    Row {
        name: "RL.SLIDINGWINDOW admitted",
        call: "RL.SLIDINGWINDOW key:# 1000000 1m",
        elsewhere: "Lua, buckets 98,797",
        target: Some(7_300),
        target_with_backlog: Some(11_700),
        ..LARGER
    },
    Row { name: "RL.SLIDINGWINDOW refused", call: "RL.SLIDINGWINDOW key:# 1 1h", ..REFUSED },
    Row {
        name: "RL.SLIDINGWINDOW PRECISION admitted",
        call: "RL.SLIDINGWINDOW key:# 1000000 1h PRECISION 1m",
        elsewhere: "Lua 98,797",
        ..LARGER
    },
    Row {
        name: "RL.SLIDINGWINDOW PRECISION refused",
        call: "RL.SLIDINGWINDOW key:# 1 1h PRECISION 1m",
        ..REFUSED
    },
    Row {
        name: "RL.SLIDINGLOG admitted, 100 entries",
        call: "RL.SLIDINGLOG key:# 1000 1h",
        times: 100,
        elsewhere: "Lua, sorted set 68,043",
        target: Some(7_900),
        target_with_backlog: Some(12_000),
        ..LARGER
    },
    Row {
        name: "RL.SLIDINGLOG refused, 100 entries",
        call: "RL.SLIDINGLOG key:# 100 1h",
        times: 100,
        target: None,
        ..REFUSED
    },
    // Each call drops the oldest entry and adds one.
    Row {
        name: "RL.SLIDINGLOG COUNTREFUSED refused",
        call: "RL.SLIDINGLOG key:# 100 1h COUNTREFUSED",
        times: 100,
        writes: true,
        target: Some(14_000),
        ..REFUSED
    },
    // Random ids: a key comes to hold as many leases as it has calls, 60 under callgrind.
    Row {
        name: "RL.CONCURRENT acquire",
        call: "RL.CONCURRENT key:# 1000000 1h id:#",
        elsewhere: "Lua 43,957",
        target: Some(9_000),
        target_with_backlog: Some(13_000),
        ..LARGER
    },
    Row {
        name: "RL.CONCURRENT renew by asking again",
        call: "RL.CONCURRENT key:# 1000000 1h holder",
        ..LARGER
    },
    Row { name: "RL.CONCURRENT FENCE acquire", call: "RL.CONCURRENT key:# 1000000 1h id:# FENCE", ..LARGER },
    Row {
        name: "RL.CONCURRENT ADAPT acquire",
        call: "RL.CONCURRENT key:# 1000000 1h id:# ADAPT START 1000000",
        ..LARGER
    },
    Row {
        name: "RL.CONCURRENT refused",
        call: "RL.CONCURRENT key:# 1 1h id:#",
        prepare: "RL.CONCURRENT key:# 1 1h holder",
        ..REFUSED
    },
    Row { name: "RL.SMOOTH bursty", call: "RL.SMOOTH key:# 500 1s", ..LARGER },
    Row { name: "RL.SMOOTH warming", call: "RL.SMOOTH key:# 500 1s WARMUP 4s", ..LARGER },
    Row { name: "RL.SMOOTH refused", call: "RL.SMOOTH key:# 1 1h MAXWAIT 0", ..REFUSED },
    Row {
        name: "RL.REFUND TOKENBUCKET",
        call: "RL.REFUND key:# TOKENBUCKET 1000000 1000 1h",
        prepare: "RL.TOKENBUCKET key:# 1000000 1000 1h COST 1000000",
        target: None,
        ..ADMITTED
    },
    Row {
        name: "RL.TOKENBUCKET, held",
        call: "RL.TOKENBUCKET key:# 1000000 1000 1h HOLD id:# 1h",
        prepare: "RL.TOKENBUCKET key:# 1000000 1000 1h",
        load: Load::Once,
        target: None,
        ..ADMITTED
    },
    Row {
        name: "RL.SETTLE TOKENBUCKET",
        call: "RL.SETTLE key:# id:# TOKENBUCKET 1000000 1000 1h COST 4",
        prepare: "RL.TOKENBUCKET key:# 1000000 1000 1h COST 9 HOLD id:# 1h",
        load: Load::Once,
        target: None,
        ..ADMITTED
    },
    Row {
        name: "RL.SETTLE SLIDINGLOG",
        call: "RL.SETTLE key:# id:# SLIDINGLOG 1000000 1h COST 4",
        prepare: "RL.SLIDINGLOG key:# 1000000 1h COST 9 HOLD id:# 1h",
        load: Load::Once,
        target: None,
        ..ADMITTED
    },
    Row {
        name: "RL.MULTI, two limits, held",
        call: "RL.MULTI 1 key:# HOLD id:# 1h LIMIT GCRA 1000000 1000 1h LIMIT TOKENBUCKET 1000000 1000 1h COST 9",
        prepare: "RL.MULTI 1 key:# LIMIT GCRA 1000000 1000 1h LIMIT TOKENBUCKET 1000000 1000 1h COST 9",
        load: Load::Once,
        answer: Answer::AllAdmitted,
        ..PLAIN
    },
    Row {
        name: "RL.MULTISETTLE, two limits",
        call: "RL.MULTISETTLE 1 key:# id:# LIMIT GCRA 1000000 1000 1h COST 1 LIMIT TOKENBUCKET 1000000 1000 1h COST 4",
        prepare: "RL.MULTI 1 key:# HOLD id:# 1h LIMIT GCRA 1000000 1000 1h LIMIT TOKENBUCKET 1000000 1000 1h COST 9",
        load: Load::Once,
        answer: Answer::AllAdmitted,
        ..PLAIN
    },
    Row { name: "RL.SHED report", call: "RL.SHED key:# 0.5", ..LARGER },
    Row {
        name: "RL.RELEASE",
        call: "RL.RELEASE key:# id:#",
        prepare: "RL.CONCURRENT key:# 1000000 1h id:#",
        load: Load::Once,
        answer: Answer::Done,
        ..PLAIN
    },
    Row {
        name: "RL.RELEASE of ADAPT",
        call: "RL.RELEASE key:# id:#",
        prepare: "RL.CONCURRENT key:# 1000000 1h id:# ADAPT START 1000000",
        load: Load::Once,
        answer: Answer::Done,
        ..PLAIN
    },
    Row {
        name: "RL.RELEASE of ADAPT GRADIENT",
        call: "RL.RELEASE key:# id:#",
        prepare: "RL.CONCURRENT key:# 1000000 1h id:# ADAPT GRADIENT START 1000000",
        load: Load::Once,
        answer: Answer::Done,
        ..PLAIN
    },
    Row {
        name: "RL.RENEW",
        call: "RL.RENEW key:# 1h holder",
        prepare: "RL.CONCURRENT key:# 10 1h holder",
        answer: Answer::Done,
        ..PLAIN
    },
    Row {
        name: "RL.PENALTY look",
        call: "RL.PENALTY key:# 1000000 1h 1h COST 0",
        prepare: "RL.PENALTY key:# 1000000 1h 1h",
        writes: false,
        target: None,
        ..ADMITTED
    },
    Row {
        name: "RL.PENALTY look during a ban",
        call: "RL.PENALTY key:# 1 1h 1h COST 0",
        prepare: "RL.PENALTY key:# 1 1h 1h",
        target: None,
        ..REFUSED
    },
    Row { name: "RL.PENALTY strike", call: "RL.PENALTY key:# 1000000 1h 1h GROW 2", ..ADMITTED },
    Row { name: "RL.PENALTY during a ban", call: "RL.PENALTY key:# 1 1h 1h GROW 2", ..REFUSED },
    Row {
        name: "RL.THROTTLE admitted",
        call: "RL.THROTTLE key:# 500 100 1",
        elsewhere: "redis-cell 23,112",
        ..ADMITTED
    },
    Row {
        name: "RL.THROTTLE refused",
        call: "RL.THROTTLE key:# 0 1 3600",
        elsewhere: "redis-cell 13,498",
        ..REFUSED
    },
    Row {
        name: "RL.MULTI, three windows on one key",
        call: "RL.MULTI 1 key:# LIMIT SLIDINGWINDOW 1000000 1s LIMIT SLIDINGWINDOW 1000000 1m LIMIT SLIDINGWINDOW 1000000 1h PRECISION 1m",
        elsewhere: "Lua 233,209",
        answer: Answer::AllAdmitted,
        target: Some(22_500),
        ..PLAIN
    },
    Row {
        name: "RL.MULTI, three windows, one in the shadow",
        call: "RL.MULTI 1 key:# LIMIT SLIDINGWINDOW 1000000 1s LIMIT SLIDINGWINDOW 1000000 1m LIMIT SLIDINGWINDOW 1000000 1h PRECISION 1m SHADOW",
        answer: Answer::AllAdmitted,
        ..PLAIN
    },
    Row {
        name: "RL.MULTI, three windows, refused",
        call: "RL.MULTI 1 key:# LIMIT SLIDINGWINDOW 1000000 1s LIMIT SLIDINGWINDOW 1000000 1m LIMIT SLIDINGWINDOW 1 1h PRECISION 1m",
        answer: Answer::AllRefused,
        writes: false,
        ..PLAIN
    },
    // Only the window is charged.
    Row {
        name: "RL.MULTI, a window and a penalty",
        call: "RL.MULTI 1 key:# LIMIT SLIDINGWINDOW 1000000 1m LIMIT PENALTY 3 1h 1h GROW 2",
        answer: Answer::AllAdmitted,
        ..PLAIN
    },
    // The window refuses, and the penalty is struck.
    Row {
        name: "RL.MULTI, a window and a penalty, struck",
        call: "RL.MULTI 1 key:# LIMIT SLIDINGWINDOW 1 1h LIMIT PENALTY 1000000 1h 1h GROW 2",
        answer: Answer::AllRefused,
        ..PLAIN
    },
    Row {
        name: "RL.MULTI, GCRA on two keys",
        call: "RL.MULTI 2 key:# other:# LIMIT GCRA 1000000 1000000 1s",
        target: Some(17_500),
        answer: Answer::AllAdmitted,
        ..PLAIN
    },
    Row {
        name: "RL.MULTIPEEK, three windows",
        call: "RL.MULTIPEEK 1 key:# LIMIT SLIDINGWINDOW 1000000 1s LIMIT SLIDINGWINDOW 1000000 1m LIMIT SLIDINGWINDOW 1000000 1h PRECISION 1m",
        prepare: "RL.MULTI 1 key:# LIMIT SLIDINGWINDOW 1000000 1s LIMIT SLIDINGWINDOW 1000000 1m LIMIT SLIDINGWINDOW 1000000 1h PRECISION 1m",
        answer: Answer::AllAdmitted,
        writes: false,
        ..PLAIN
    },
    Row {
        name: "RL.ASK, three windows on one key",
        call: "RL.ASK key:# windows",
        policy: "windows LIMIT SLIDINGWINDOW 1000000 1s LIMIT SLIDINGWINDOW 1000000 1m LIMIT SLIDINGWINDOW 1000000 1h PRECISION 1m",
        elsewhere: "Lua 233,209",
        target: Some(14_000),
        ..ADMITTED
    },
    Row {
        name: "RL.ASK, three windows, FULL",
        call: "RL.ASK key:# windows FULL",
        policy: "windows LIMIT SLIDINGWINDOW 1000000 1s LIMIT SLIDINGWINDOW 1000000 1m LIMIT SLIDINGWINDOW 1000000 1h PRECISION 1m",
        answer: Answer::AllAdmitted,
        ..PLAIN
    },
    Row {
        name: "RL.ASK, three windows, refused",
        call: "RL.ASK key:# windows",
        policy: "windows LIMIT SLIDINGWINDOW 1000000 1s LIMIT SLIDINGWINDOW 1000000 1m LIMIT SLIDINGWINDOW 1 1h PRECISION 1m",
        target: None,
        ..REFUSED
    },
    Row {
        name: "RL.ASK, one GCRA",
        call: "RL.ASK key:# gcra",
        policy: "gcra LIMIT GCRA 500 100 1s",
        elsewhere: "C GCRA 10,410; redis-cell 23,112; Lua 40,276",
        target: Some(7_400),
        target_with_backlog: Some(11_800),
        ..ADMITTED
    },
    Row {
        name: "RL.ASK, one GCRA, recorded",
        call: "RL.ASK key:# gcra",
        policy: "gcra LIMIT GCRA 500 100 1s",
        record: 1_000_000,
        target: Some(7_600),
        ..ADMITTED
    },
    Row {
        name: "RL.ASK, one GCRA, refused",
        call: "RL.ASK key:# gcra",
        policy: "gcra LIMIT GCRA 0 1 1h",
        ..REFUSED
    },
    Row {
        name: "RL.ASK, GCRA on two keys",
        call: "RL.ASK key:# gcra KEYS other:#",
        policy: "gcra LIMIT GCRA 1000000 1000000 1s",
        target: Some(13_000),
        ..ADMITTED
    },
    Row {
        name: "RL.ASKPEEK, three windows",
        call: "RL.ASKPEEK key:# windows",
        prepare: "RL.ASK key:# windows",
        policy: "windows LIMIT SLIDINGWINDOW 1000000 1s LIMIT SLIDINGWINDOW 1000000 1m LIMIT SLIDINGWINDOW 1000000 1h PRECISION 1m",
        writes: false,
        target: None,
        ..ADMITTED
    },
    Row {
        name: "RL.XADD admitted",
        call: "RL.XADD stream:# 1000000 * request_details some~values",
        target: Some(16_000),
        elsewhere: "Lua 30,335",
        ..PLAIN
    },
    Row {
        name: "RL.XADD refused",
        call: "RL.XADD stream:# 1 * request_details some~values",
        target: Some(7_500),
        answer: Answer::Full,
        writes: false,
        ..PLAIN
    },
    Row {
        name: "RL.LPUSH admitted",
        call: "RL.LPUSH list:# 1000000 some~values",
        target: Some(16_000),
        ..PLAIN
    },
    Row {
        name: "RL.LPUSH refused",
        call: "RL.LPUSH list:# 1 some~values",
        target: Some(7_500),
        answer: Answer::Full,
        writes: false,
        ..PLAIN
    },
];
