//! What happens in a world. Each event is a line of text, so that a history can be printed, shortened and run again.

use std::fmt;

/// The number of nodes.
pub(super) const NODES: usize = 3;

/// Something that happens. Nodes and other choices are numbers, taken modulo what there is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A client calls the primary.
    Call(String),
    /// A transaction.
    Unit(Vec<String>),
    /// Time passes on all nodes, in microseconds. Callers that wait are tried when they are due.
    Pass(u64),
    /// The wall clock of a node is set, by this many microseconds.
    Step(usize, i64),
    /// The client of a caller that waits hangs up.
    HangUp(usize),
    /// A copy gets at most this many units of what its primary has sent.
    Deliver(usize, usize),
    /// The link of a copy breaks.
    Cut(usize),
    /// A copy comes back: it goes on where it was, or gets a full copy if it cannot.
    Join(usize),
    /// A full copy begins and breaks off: the node has its old keys, or none for the larger numbers.
    Broken(usize),
    /// A copy becomes the primary, and the primary a copy.
    Promote(usize),
    /// The primary dies, and comes back with its log, of which this many units are missing at the end.
    Crash(usize),
    /// The primary's log begins anew with a copy of its data, or if not `true` with its keys alone.
    Rewrite(bool),
    /// Keys that have expired are deleted.
    Expire,
    /// A key is evicted.
    Evict(usize),
    /// Writes are paused for long, or that ends.
    Pause(bool),
    /// An operator changes a setting of all nodes.
    Set(String, u64),
    /// The primary's periodic tasks run.
    Cron,
    /// All callers that wait are tried at once, and none may be admitted by it.
    Try,
    /// Copies get all that was sent, and all nodes are compared.
    Quiet,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Call(line) => write!(f, "call {line}"),
            Event::Unit(lines) => write!(f, "unit {}", lines.join("; ")),
            Event::Pass(micros) => write!(f, "pass {micros}"),
            Event::Step(node, micros) => write!(f, "step {node} {micros}"),
            Event::HangUp(caller) => write!(f, "hangup {caller}"),
            Event::Deliver(node, count) => write!(f, "deliver {node} {count}"),
            Event::Cut(node) => write!(f, "cut {node}"),
            Event::Join(node) => write!(f, "join {node}"),
            Event::Broken(node) => write!(f, "broken {node}"),
            Event::Promote(node) => write!(f, "promote {node}"),
            Event::Crash(missing) => write!(f, "crash {missing}"),
            Event::Rewrite(whole) => write!(f, "rewrite {whole}"),
            Event::Expire => write!(f, "expire"),
            Event::Evict(key) => write!(f, "evict {key}"),
            Event::Pause(paused) => write!(f, "pause {paused}"),
            Event::Set(name, value) => write!(f, "set {name} {value}"),
            Event::Cron => write!(f, "cron"),
            Event::Try => write!(f, "try"),
            Event::Quiet => write!(f, "quiet"),
        }
    }
}

impl Event {
    /// The event of a line. `None` if it is none.
    pub fn of(line: &str) -> Option<Event> {
        let (name, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        let mut words = rest.split(' ');
        let index = || rest.parse().ok();
        Some(match name {
            "call" => Event::Call(rest.into()),
            "unit" => Event::Unit(rest.split("; ").map(String::from).collect()),
            "pass" => Event::Pass(rest.parse().ok()?),
            "step" => Event::Step(words.next()?.parse().ok()?, words.next()?.parse().ok()?),
            "hangup" => Event::HangUp(index()?),
            "deliver" => Event::Deliver(words.next()?.parse().ok()?, words.next()?.parse().ok()?),
            "cut" => Event::Cut(index()?),
            "join" => Event::Join(index()?),
            "broken" => Event::Broken(index()?),
            "promote" => Event::Promote(index()?),
            "crash" => Event::Crash(index()?),
            "rewrite" => Event::Rewrite(rest.parse().ok()?),
            "expire" => Event::Expire,
            "evict" => Event::Evict(index()?),
            "pause" => Event::Pause(rest.parse().ok()?),
            "set" => Event::Set(words.next()?.into(), words.next()?.parse().ok()?),
            "cron" => Event::Cron,
            "try" => Event::Try,
            "quiet" => Event::Quiet,
            _ => return None,
        })
    }

    /// What the kinds are called in a tally.
    pub const NAMES: [&str; 20] = [
        "calls",
        "transactions",
        "spans of time",
        "clocks set back",
        "clocks set forth",
        "clients that hang up",
        "deliveries to copies",
        "links cut",
        "copies that come back",
        "full copies that break off",
        "promotions",
        "crashes",
        "logs rewritten",
        "expiry cycles",
        "evictions",
        "pauses begun or ended",
        "settings changed",
        "periodic tasks",
        "trials of all callers",
        "comparisons of all nodes",
    ];

    /// What it is called in a tally.
    pub(super) fn name(&self) -> &'static str {
        let place = match self {
            Event::Call(_) => 0,
            Event::Unit(_) => 1,
            Event::Pass(_) => 2,
            Event::Step(_, micros) => 3 + usize::from(*micros >= 0),
            Event::HangUp(_) => 5,
            Event::Deliver(..) => 6,
            Event::Cut(_) => 7,
            Event::Join(_) => 8,
            Event::Broken(_) => 9,
            Event::Promote(_) => 10,
            Event::Crash(_) => 11,
            Event::Rewrite(_) => 12,
            Event::Expire => 13,
            Event::Evict(_) => 14,
            Event::Pause(_) => 15,
            Event::Set(..) => 16,
            Event::Cron => 17,
            Event::Try => 18,
            Event::Quiet => 19,
        };
        Event::NAMES[place]
    }
}
