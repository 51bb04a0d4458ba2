//! The limiters as random calls name them: their parameters, and in which manners they can be asked.

pub struct Family {
    pub key: &'static str,
    pub limiter: &'static str,
    /// Of different lengths of time, so that they are different limits on one key. `#` is an id.
    pub parameters: &'static [&'static str],
    pub manners: &'static [&'static str],
    /// Whether `RL.MULTI` takes it with `FORCE`, and `RL.MULTIREFUND` takes it.
    pub debt: bool,
}

const DEBT: [&str; 4] = ["", "", "PARTIAL", "FORCE"];
const BOOKS: [&str; 6] = ["", "", "PARTIAL", "FORCE", "RESERVE", "RESERVE MAXWAIT 400ms"];

/// The first ones, this many, can be refunded.
pub const GIVE_BACK: usize = 12;
/// The first ones, this many, can be held.
pub const HELD: usize = 10;

#[rustfmt::skip]
pub const FAMILIES: [Family; 16] = [
    family("bucket", "TOKENBUCKET", &["7 3 1s", "9 5 1100ms", "5 3 700ms"], &BOOKS, true),
    family("batch", "TOKENBUCKET", &["7 5 1s BATCH", "9 4 1300ms BATCH"], &BOOKS, true),
    family("water", "LEAKYBUCKET", &["8 7 1100ms", "6 3 700ms"], &DEBT, true),
    family("gcra", "GCRA", &["6 7 1100ms", "3 1 250ms"], &BOOKS, true),
    family("window", "FIXEDWINDOW", &["9 1s", "6 700ms"], &DEBT, true),
    family("aligned", "FIXEDWINDOW", &["9 1s ALIGNED", "6 700ms ALIGNED"], &DEBT, true),
    family("page", "CALENDAR", &["9 HOUR TZ +05:45", "20 DAY TZ Europe/Lisbon ANCHOR 4", "30 MONTH TZ America/New_York ANCHOR 31", "9 HOUR TZ Australia/Lord_Howe"], &DEBT, true),
    family("sliding", "SLIDINGWINDOW", &["9 1s", "12 1500ms"], &DEBT, true),
    family("precise", "SLIDINGWINDOW", &["9 1s PRECISION 100ms", "9 2s PRECISION 100ms", "7 1500ms PRECISION 250ms"], &DEBT, true),
    family("log", "SLIDINGLOG", &["9 1s", "5 600ms GAP 20ms"], &DEBT, true),
    family("gate", "UNIFORM", &["90ms", "40ms"], &["", "FORCE", "RESERVE", "RESERVE MAXWAIT 200ms"], true),
    family("banned", "PENALTY", &["5 1s 700ms GROW 2 MAX 3s FORGIVE 900ms", "7 600ms 400ms", "9 1500ms 300ms GROW 3 FORGIVE 1300ms"], &[""], true),
    family("hammered", "SLIDINGLOG", &["5 1s COUNTREFUSED", "4 900ms GAP 3ms COUNTREFUSED"], &[""], false),
    family("burst", "SMOOTH", &["90 1s MAXWAIT 30ms", "50 900ms BURST 2s", "9 1100ms BURST 0 MAXWAIT 90ms"], &[""], false),
    family("warm", "SMOOTH", &["9 1s WARMUP 700ms MAXWAIT 90ms", "60 1300ms WARMUP 900ms COLDFACTOR 4.5"], &[""], false),
    family("lease", "CONCURRENT", &["6 2s #", "9 1500ms # RESERVED 3", "9 1200ms # RESERVED 3 CRITICAL"], &[""], false),
];

const fn family(
    key: &'static str,
    limiter: &'static str,
    parameters: &'static [&'static str],
    manners: &'static [&'static str],
    debt: bool,
) -> Family {
    Family { key, limiter, parameters, manners, debt }
}

/// Calls by the server's clock, with limits that take hours.
pub const LIVE: [&str; 18] = [
    "RL.TOKENBUCKET live:bucket 9 1 1h",
    "RL.GCRA live:gcra 9 1 1h",
    "RL.FIXEDWINDOW live:window 9 1h",
    "RL.SLIDINGLOG live:log 9 1h",
    "RL.UNIFORM live:gate 1h",
    "RL.PENALTY live:penalty 9 1h 1h GROW 2",
    "RL.CONCURRENT live:lease 9 1h #",
    "RL.RENEW live:lease 1h #",
    "RL.RELEASE live:lease #",
    "RL.FIXEDWINDOW live:window 9 1h COST 2 HOLD # 1h",
    "RL.SETTLE live:window # FIXEDWINDOW 9 1h COST 1",
    "RL.MULTISETTLE 2 live:window live:one # COST 1 LIMIT FIXEDWINDOW 9 1h",
    "RL.MULTI 2 live:one live:two LIMIT GCRA 9 1 1h LIMIT SLIDINGWINDOW 9 1h COST 0",
    // These wait if another one of them came a moment ago.
    "RL.MULTI 1 live:turn BLOCK 50ms LIMIT UNIFORM 20ms LIMIT FIXEDWINDOW 1000000 10h",
    "RL.MULTI 2 live:turn live:two BLOCK 50ms LIMIT UNIFORM 20ms ON 1 LIMIT FIXEDWINDOW 1000000 10h",
    "RL.MULTI 2 live:three live:turn BLOCK 50ms LIMIT SLIDINGLOG 1000 10h LIMIT UNIFORM 20ms ON 2",
    // These wait in vain.
    "RL.CONCURRENT live:lease 9 1h # BLOCK 2ms",
    "RL.UNIFORM live:gate 1h BLOCK 2ms",
];
