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
const BOOKS: [&str; 6] = ["", "", "PARTIAL", "FORCE", "RESERVE", "RESERVE MAXWAIT 400"];

/// The first ones, this many, can be refunded.
pub const GIVE_BACK: usize = 12;
/// The first ones, this many, can be held.
pub const HELD: usize = 10;

#[rustfmt::skip]
pub const FAMILIES: [Family; 16] = [
    family("bucket", "TOKENBUCKET", &["7 3 1000", "9 5 1100", "5 3 700"], &BOOKS, true),
    family("batch", "TOKENBUCKET", &["7 5 1000 BATCH", "9 4 1300 BATCH"], &BOOKS, true),
    family("water", "LEAKYBUCKET", &["8 7 1100", "6 3 700"], &DEBT, true),
    family("gcra", "GCRA", &["6 7 1100", "3 1 250"], &BOOKS, true),
    family("window", "FIXEDWINDOW", &["9 1000", "6 700"], &DEBT, true),
    family("aligned", "FIXEDWINDOW", &["9 1000 ALIGNED", "6 700 ALIGNED"], &DEBT, true),
    family("page", "CALENDAR", &["9 HOUR TZ +05:45", "20 DAY TZ Europe/Lisbon", "30 MONTH TZ America/New_York ANCHOR 31", "9 HOUR TZ Australia/Lord_Howe"], &DEBT, true),
    family("sliding", "SLIDINGWINDOW", &["9 1000", "12 1500"], &DEBT, true),
    family("precise", "SLIDINGWINDOW", &["9 1000 PRECISION 100", "9 2000 PRECISION 100", "7 1500 PRECISION 250"], &DEBT, true),
    family("log", "SLIDINGLOG", &["9 1000", "5 600 GAP 20"], &DEBT, true),
    family("gate", "UNIFORM", &["90", "40"], &["", "FORCE", "RESERVE", "RESERVE MAXWAIT 200"], true),
    family("banned", "PENALTY", &["5 1000 700 GROW 2 MAX 3000 FORGIVE 900", "7 600 400", "9 1500 300 GROW 3 FORGIVE 1300"], &[""], true),
    family("hammered", "SLIDINGLOG", &["5 1000 COUNTREFUSED", "4 900 GAP 3 COUNTREFUSED"], &[""], false),
    family("burst", "SMOOTH", &["90 1000 MAXWAIT 30", "50 900 BURST 2000", "9 1100 BURST 0 MAXWAIT 90"], &[""], false),
    family("warm", "SMOOTH", &["9 1000 WARMUP 700 MAXWAIT 90", "60 1300 WARMUP 900 COLDFACTOR 4.5"], &[""], false),
    family("lease", "CONCURRENT", &["6 2000 #", "9 1500 # RESERVED 3", "9 1200 # RESERVED 3 CRITICAL"], &[""], false),
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
    "RL.TOKENBUCKET live:bucket 9 1 3600000",
    "RL.GCRA live:gcra 9 1 3600000",
    "RL.FIXEDWINDOW live:window 9 3600000",
    "RL.SLIDINGLOG live:log 9 3600000",
    "RL.UNIFORM live:gate 3600000",
    "RL.PENALTY live:penalty 9 3600000 3600000 GROW 2",
    "RL.CONCURRENT live:lease 9 3600000 #",
    "RL.RENEW live:lease 3600000 #",
    "RL.RELEASE live:lease #",
    "RL.FIXEDWINDOW live:window 9 3600000 COST 2 HOLD # 1h",
    "RL.SETTLE live:window # FIXEDWINDOW 9 3600000 COST 1",
    "RL.MULTISETTLE 2 live:window live:one # COST 1 LIMIT FIXEDWINDOW 9 3600000",
    "RL.MULTI 2 live:one live:two LIMIT GCRA 9 1 3600000 LIMIT SLIDINGWINDOW 9 3600000 COST 0",
    // These wait if another one of them came a moment ago.
    "RL.MULTI 1 live:turn BLOCK 50 LIMIT UNIFORM 20 LIMIT FIXEDWINDOW 1000000 36000000",
    "RL.MULTI 2 live:turn live:two BLOCK 50 LIMIT UNIFORM 20 ON 1 LIMIT FIXEDWINDOW 1000000 36000000",
    "RL.MULTI 2 live:three live:turn BLOCK 50 LIMIT SLIDINGLOG 1000 36000000 LIMIT UNIFORM 20 ON 2",
    // These wait in vain.
    "RL.CONCURRENT live:lease 9 3600000 # BLOCK 2",
    "RL.UNIFORM live:gate 3600000 BLOCK 2",
];
