//! The states that calls are timed on: each kind of state, as large as the default bounds allow.
//!
//! All instants are given by `AT`, so a state is the same in every run.

use ratelimit_core::Kind;
use ratelimit_language::FORMS;

use ratelimit_testing::dice::Dice;

/// The state that is the payload `$small`.
pub const SMALL: &str = "gcra-plain";

/// The instant of the first charge, in November 2023.
pub const T0: u64 = 1_700_000_000_000_000;
/// The earliest and the latest instant that `AT` takes.
pub const BACK: u64 = 1_000_000_000_000_000;
pub const LATEST: u64 = 253_402_300_799_999_999;

pub const SECOND: u64 = 1_000_000;
pub const HOUR: u64 = 3600 * SECOND;
const MILLION: u32 = 1_000_000;
/// Nearly as many holds as a key may have.
const MOST_HOLDS: u32 = 9990;
/// The limits of a key, and the sub-buckets of a window.
const MOST_LIMITS: u32 = 64;
const MOST_BUCKETS: u32 = 1024;

/// A state, and the calls that make it.
pub struct State {
    /// It is kept in the key `state:` and this name.
    pub name: String,
    /// The name of its line in the report.
    pub family: &'static str,
    pub entries: u64,
    /// Its limits: limiter and parameters. `#` is the id of a lease.
    pub limits: Vec<String>,
    /// The cost that fills its first limit.
    pub most: u64,
    /// The instant of the last charge.
    pub last: u64,
    /// An instant at which about half of the entries have left.
    pub half: u64,
    /// The state that it begins as a copy of.
    pub base: Option<&'static str>,
    /// How many calls make it.
    pub calls: u32,
    /// The call of this number, on the key `work`.
    pub fill: Box<dyn Fn(u32) -> String>,
    /// The id of the lease of this number.
    pub id: fn(u32) -> String,
}

pub fn all() -> Vec<State> {
    let mut states = vec![
        leases("leases", id, T0 + HOUR / 2, |i| {
            let ttl = 1000 + Dice::of(1, i as usize).below(3_599_000);
            format!("RL.CONCURRENT work 1000000 {ttl}ms {} AT {}", id(i), T0 + u64::from(i))
        }),
        leases("leases-in-order", ordered_id, T0 + HOUR, |i| {
            format!("RL.CONCURRENT work 1000000 1h {} AT {T0}", ordered_id(i))
        }),
        // At half an hour nine of ten have expired.
        leases("leases-expired", id, T0 + HOUR / 2, |i| {
            let ttl = if i % 10 == 0 { 3_600_000 } else { 1000 + Dice::of(1, i as usize).below(1_499_000) };
            format!("RL.CONCURRENT work 1000000 {ttl}ms {} AT {}", id(i), T0 + u64::from(i))
        }),
        // Each of its own tenant, in a different order of names. They are held at the time of the search, too.
        leases("leases-of-tenants", id, T0 + HOUR, |i| {
            format!("RL.CONCURRENT work 1000000 36500d {} TENANT {} AT {T0}", id(i), ordered_id(i))
        }),
        // At half an hour all have expired in the same instant.
        leases("leases-of-tenants-expired", id, T0 + HOUR / 2, |i| {
            format!("RL.CONCURRENT work 1000000 20m {} TENANT {} AT {T0}", id(i), ordered_id(i))
        }),
        log("log", "SLIDINGLOG 1000000 1h", MILLION),
        log("log-gap", "SLIDINGLOG 1000000 1h GAP 1ms", MILLION),
        // The last thousand are refused.
        log("log-refused", "SLIDINGLOG 1000000 1h COUNTREFUSED", MILLION + 1000),
        holds("holds-window", "SLIDINGWINDOW 1000000 1h PRECISION 1m"),
        holds("holds-log", "SLIDINGLOG 1000000 1h"),
        set(),
        windows("window", 1),
        windows("64-windows", MOST_LIMITS),
        small_set(),
    ];
    states.extend(FORMS.iter().filter(|form| is_small(form.kind)).map(|form| small(form.kind)));
    states.extend([shed(), list(), stream()]);
    states
}

/// Ids of 16 bytes that come in no order.
pub fn id(i: u32) -> String {
    format!("{:016x}", Dice::of(7, i as usize).any())
}

fn ordered_id(i: u32) -> String {
    format!("{i:016}")
}

/// A limiter's own command on the key `work`.
pub fn own(limit: &str) -> String {
    let (limiter, parameters) = limit.split_once(' ').unwrap();
    format!("RL.{limiter} work {parameters}")
}

/// Several limits of an `RL.MULTI`.
pub fn multi(limits: &[String]) -> String {
    limits.iter().map(|limit| format!("LIMIT {limit}")).collect::<Vec<_>>().join(" ")
}

fn leases(name: &'static str, id: fn(u32) -> String, half: u64, fill: fn(u32) -> String) -> State {
    let limits = vec!["CONCURRENT 1000000 1h #".to_string()];
    let last = T0 + u64::from(MILLION);
    State { half, id, ..large(name, limits, last, MILLION, Box::new(fill)) }
}

/// An entry each millisecond.
fn log(name: &'static str, limit: &'static str, calls: u32) -> State {
    let at = |i: u32| T0 + u64::from(i) * 1000;
    let fill = move |i| format!("{} AT {}", own(limit), at(i));
    let half = T0 + HOUR + u64::from(MILLION / 2) * 1000;
    State { half, ..large(name, vec![limit.to_string()], at(calls - 1), calls, Box::new(fill)) }
}

/// Holds of charges that are a tenth of a second apart.
fn holds(name: &'static str, limit: &'static str) -> State {
    let at = |i: u32| T0 + u64::from(i) * SECOND / 10;
    let fill = move |i| {
        let ttl = 1_800_000 + Dice::of(1, i as usize).below(3_599_000);
        format!("{} COST 9 HOLD {} {ttl} AT {}", own(limit), id(i), at(i))
    };
    let half = T0 + HOUR;
    State { half, ..large(name, vec![limit.to_string()], at(MOST_HOLDS - 1), MOST_HOLDS, Box::new(fill)) }
}

/// A million leases and a log of a million entries beside three small limits.
fn set() -> State {
    let small = ["GCRA 999 1000 1h", "FIXEDWINDOW 1000 2h", "TOKENBUCKET 1000 1000 1h"];
    let small = small.map(str::to_string);
    let log = "SLIDINGLOG 1000000 1h".to_string();
    let limits = [vec!["CONCURRENT 1000000 1h #".to_string(), log.clone()], small.to_vec()].concat();
    let fill = move |i: u32| match (i, T0 + u64::from(i + 1) * 1000) {
        (0, at) => format!("RL.MULTI 1 work COST 999 AT {at} LIMIT {log} COST 1 {}", multi(&small)),
        (_, at) => format!("{} AT {at}", own(&log)),
    };
    let last = T0 + u64::from(MILLION) * 1000;
    let half = T0 + HOUR + u64::from(MILLION / 2) * 1000;
    let made = large("set", limits, last, MILLION, Box::new(fill));
    State { entries: 2 * u64::from(MILLION), half, base: Some("leases"), ..made }
}

/// Windows of 1,024 sub-buckets of a second and some milliseconds more each, all of which are charged.
fn windows(name: &'static str, count: u32) -> State {
    let window = |p: u32| format!("SLIDINGWINDOW 1000000 {}ms PRECISION {p}ms", MOST_BUCKETS * p);
    let limits: Vec<String> = (1000..1000 + count).map(window).collect();
    let calls = MOST_BUCKETS * (1000 + count) / 1000;
    let at = |i: u32| T0 + u64::from(i) * SECOND;
    let all = multi(&limits);
    let fill = move |i| format!("RL.MULTI 1 work AT {} {all}", at(i));
    let last = at(calls - 1);
    let made = large(name, limits, last, calls, Box::new(fill));
    State { entries: u64::from(count * MOST_BUCKETS), half: last + 512 * SECOND, ..made }
}

fn is_small(kind: Kind) -> bool {
    kind.is_limit() && ![Kind::Leases, Kind::Log, Kind::Buckets].contains(&kind)
}

/// The forms of the small limiters, for this period in milliseconds.
fn small_forms(period: u64) -> impl Iterator<Item = (Kind, String)> {
    let forms = FORMS.iter().filter(|form| is_small(form.kind));
    forms.map(move |form| (form.kind, form.words(100, period, "#")))
}

fn small_set() -> State {
    let forms = (0..).flat_map(|i| small_forms(3_600_000 + 1000 * i)).map(|(_, words)| words);
    let limits: Vec<String> = forms.take(MOST_LIMITS as usize).collect();
    let all = multi(&limits);
    let fill = move |_| format!("RL.MULTI 1 work COST 50 AT {T0} {all}");
    let made = large("64-small-limits", limits, T0, 1, Box::new(fill));
    State { entries: u64::from(MOST_LIMITS), most: 100, half: T0 + HOUR / 2, ..made }
}

fn small(kind: Kind) -> State {
    let (limiter, mode) = kind.title();
    let limits: Vec<String> =
        small_forms(3_600_000).filter(|(other, _)| *other == kind).map(|(_, words)| words).collect();
    let charge = own(&limits[0]);
    let fill = move |_| format!("{charge} AT {T0}");
    let name = format!("{limiter}-{mode}").to_lowercase();
    let made = large("small limit", limits, T0, 1, Box::new(fill));
    State { name, entries: 1, most: 100, half: T0 + HOUR / 2, ..made }
}

fn shed() -> State {
    let fill = |_| format!("RL.SHED work 0.95 AT {T0}");
    State { entries: 1, ..large("shed", Vec::new(), T0, 1, Box::new(fill)) }
}

fn list() -> State {
    let fill = |_| format!("RL.RPUSH work 1000000 {}", ["element"; 1000].join(" "));
    State { entries: u64::from(MILLION), ..large("list", Vec::new(), T0, 1000, Box::new(fill)) }
}

fn stream() -> State {
    let fill = |i| format!("RL.XADD work 1000000 {}-0 field value", i + 1);
    large("stream", Vec::new(), T0, 100_000, Box::new(fill))
}

/// A state of an entry for each call.
fn large(
    name: &'static str,
    limits: Vec<String>,
    last: u64,
    calls: u32,
    fill: Box<dyn Fn(u32) -> String>,
) -> State {
    let (entries, most) = (u64::from(calls), u64::from(MILLION));
    State {
        name: name.to_string(),
        family: name,
        entries,
        limits,
        most,
        last,
        half: last,
        base: None,
        calls,
        fill,
        id,
    }
}
