//! The strategies that are laid side by side: each is a call, the same limit in the words of one limiter.

use ratelimit_language::{CATALOG, Row};

use crate::settings::Settings;

pub struct Strategy {
    pub id: &'static str,
    pub family: &'static str,
    /// The call, with what is set or known of a request in braces.
    call: &'static str,
    /// What is bought, and what it costs.
    pub trade_off: &'static str,
    /// Of the documentation.
    pub page: &'static str,
}

/// What is known of a request.
pub struct Asker<'a> {
    pub key: &'a str,
    /// Its own.
    pub id: &'a str,
    /// Whose it is.
    pub tenant: &'a str,
    pub cost: u64,
    /// Of the workers, from 0 to 1.
    pub utilization: f64,
}

/// The longest wait that a caller accepts if it books ahead or is slowed down, in milliseconds.
const LONGEST_WAIT: u64 = 1000;
/// How long a lease lasts whose holder does not say when it is done, in milliseconds.
const TTL: u64 = 60_000;
/// How far above the workers an adaptive limit may go.
const CEILING: u64 = 10;
/// Sub-buckets of a window.
const PARTS: u64 = 10;

pub const STRATEGIES: [Strategy; 23] = [
    Strategy {
        id: "token-bucket",
        family: "Buckets",
        call: "RL.TOKENBUCKET {key} {burst} {limit} {period}",
        trade_off: "Saves up what is not used for a burst, then keeps the rate; within one period, burst and refill add up.",
        page: "buckets",
    },
    Strategy {
        id: "token-bucket-batch",
        family: "Buckets",
        call: "RL.TOKENBUCKET {key} {limit} {limit} {period} BATCH",
        trade_off: "A portion at once at each period's end: easy to explain; whoever runs out waits for the next one, and then all come at once.",
        page: "buckets",
    },
    Strategy {
        id: "gcra",
        family: "Buckets",
        call: "RL.GCRA {key} {max_burst} {limit} {period}",
        trade_off: "Decides as the token bucket does, from a single instant of state; in the words of traffic shaping and of redis-cell.",
        page: "buckets",
    },
    Strategy {
        id: "gcra-reserve",
        family: "Buckets",
        call: "RL.GCRA {key} {max_burst} {limit} {period} RESERVE MAXWAIT {wait}",
        trade_off: "Books ahead and says how long to wait, instead of refusing: fewer retries, but callers hold on to their requests meanwhile.",
        page: "buckets",
    },
    Strategy {
        id: "sketch",
        family: "Buckets",
        call: "RL.SKETCH {items} {key} {max_burst} {limit} {period}",
        trade_off: "GCRA for any number of users in half a megabyte: never admits more; now and then refuses somebody because of others.",
        page: "sketch",
    },
    Strategy {
        id: "leaky-bucket",
        family: "Buckets",
        call: "RL.LEAKYBUCKET {key} {burst} {limit} {period}",
        trade_off: "A queue: what gets through is spaced evenly whatever comes in, and every burst is paid for with waiting.",
        page: "buckets",
    },
    Strategy {
        id: "fixed-window",
        family: "Windows",
        call: "RL.FIXEDWINDOW {key} {limit} {period}",
        trade_off: "One counter, cheap and easy to explain; around the edge of two windows almost twice the limit may pass.",
        page: "windows",
    },
    Strategy {
        id: "fixed-window-aligned",
        family: "Windows",
        call: "RL.FIXEDWINDOW {key} {limit} {period} ALIGNED",
        trade_off: "Windows that everybody knows from the clock: so everybody comes at their edges, where twice the limit may pass.",
        page: "windows",
    },
    Strategy {
        id: "sliding-window",
        family: "Windows",
        call: "RL.SLIDINGWINDOW {key} {limit} {period}",
        trade_off: "Two counters and hardly an edge; takes the last window's requests for evenly spread, so after a burst it errs, to either side.",
        page: "windows",
    },
    Strategy {
        id: "sliding-window-precision",
        family: "Windows",
        call: "RL.SLIDINGWINDOW {key} {limit} {period} PRECISION {precision}",
        trade_off: "Never more than the limit in any nine tenths of a window, here; a counter for each tenth.",
        page: "windows",
    },
    Strategy {
        id: "sliding-log",
        family: "Windows",
        call: "RL.SLIDINGLOG {key} {limit} {period}",
        trade_off: "Never more than the limit in any window, exactly; keeps the time of each request, a few bytes for each.",
        page: "windows",
    },
    Strategy {
        id: "sliding-log-cost",
        family: "Windows",
        call: "RL.SLIDINGLOG {key} {limit} {period} COST {cost}",
        trade_off: "The exact window, of tokens instead of requests: a request that costs ten counts ten times.",
        page: "recipes-tokens",
    },
    Strategy {
        id: "sliding-log-gap",
        family: "Windows",
        call: "RL.SLIDINGLOG {key} {limit} {period} GAP {gap}",
        trade_off: "The exact window, and never two requests close together: no bursts at all; a gap of half the interval leaves some slack.",
        page: "windows",
    },
    Strategy {
        id: "sliding-log-countrefused",
        family: "Windows",
        call: "RL.SLIDINGLOG {key} {limit} {period} COUNTREFUSED",
        trade_off: "Refused requests count as well: whoever keeps hammering stays out, and so does whoever does not know better.",
        page: "windows",
    },
    Strategy {
        id: "penalty",
        family: "Windows",
        call: "RL.MULTI 1 {key} LIMIT SLIDINGWINDOW {limit} {period} LIMIT PENALTY {strikes} {period} {period} GROW 2",
        trade_off: "Bans a caller that is refused too often, each time twice as long: keeps an abuser away from the backend; all who share the key are banned together.",
        page: "recipes-login",
    },
    Strategy {
        id: "uniform",
        family: "Spacing",
        call: "RL.UNIFORM {key} {interval}",
        trade_off: "One per interval, never two at once; of uneven traffic it refuses much that the rate would allow.",
        page: "windows",
    },
    Strategy {
        id: "smooth",
        family: "Spacing",
        call: "RL.SMOOTH {key} {limit} {period} MAXWAIT {wait}",
        trade_off: "Guava's RateLimiter: spaces requests by waits that the caller sleeps; what a second of idle time saved may come at once.",
        page: "smooth",
    },
    Strategy {
        id: "smooth-warmup",
        family: "Spacing",
        call: "RL.SMOOTH {key} {limit} {period} WARMUP {period} MAXWAIT {wait}",
        trade_off: "The same for what must be warm first: after idle time it begins at a third of the rate, when others let a burst through.",
        page: "smooth",
    },
    Strategy {
        id: "concurrent",
        family: "Backend",
        call: "RL.CONCURRENT {key} {workers} {ttl} {id}",
        trade_off: "Limits what is in progress, whatever the rate: protects a backend when it slows down; holders must release.",
        page: "leases",
    },
    Strategy {
        id: "concurrent-tenant",
        family: "Backend",
        call: "RL.CONCURRENT {key} {workers} {ttl} {id} TENANT {tenant}",
        trade_off: "The same for a pool that tenants share: room is kept for a tenant that was refused, so none is crowded out; a lease may stay free meanwhile.",
        page: "waiting",
    },
    Strategy {
        id: "concurrent-adapt",
        family: "Backend",
        call: "RL.CONCURRENT {key} {ceiling} {ttl} {id} ADAPT START {workers} SLOW {slow}",
        trade_off: "Finds how much may be in progress from how long requests take: less when they become slow, more when they do not; it needs time, and to be told what is slow.",
        page: "adaptive",
    },
    Strategy {
        id: "multi",
        family: "Backend",
        call: "RL.MULTI 1 {key} LIMIT TOKENBUCKET {burst} {limit} {period} LIMIT CONCURRENT {workers} {ttl} {id}",
        trade_off: "A rate and what is in progress in one decision, all or nothing; costs about as much as both.",
        page: "recipes",
    },
    Strategy {
        id: "shed",
        family: "Backend",
        call: "RL.SHED {key} {utilization}",
        trade_off: "Looks at how busy the workers are and at nobody's rate: slow to act, slow to forgive, and chance decides whom it hits.",
        page: "shedding",
    },
];

pub fn find(id: &str) -> Option<&'static Strategy> {
    STRATEGIES.iter().find(|strategy| strategy.id == id)
}

/// The names of all limiters that there are, as the module's catalog has them.
pub fn limiters() -> impl Iterator<Item = &'static str> {
    CATALOG.iter().map(Row::name)
}

impl Strategy {
    /// The command, without `RL.`, and its mode: `GCRA RESERVE`.
    pub fn name(&self) -> String {
        let mode = |word: &&str| !word.contains('{') && word.parse::<u64>().is_err();
        let unnamed = ["MAXWAIT", "GROW", "LIMIT", "START", "SLOW"];
        let words = self.call.split(' ').filter(mode).filter(|word| !unnamed.contains(word));
        let words: Vec<&str> = words.map(|word| word.strip_prefix("RL.").unwrap_or(word)).collect();
        words.join(" ")
    }

    /// The call that a request makes.
    pub fn line(&self, settings: &Settings, asker: &Asker<'_>) -> String {
        let mut line = String::new();
        let mut rest = self.call;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            line.push_str(before);
            line.push_str(&word(name, settings, asker));
            rest = after;
        }
        line + rest
    }

    /// Whether a request must say when it is done.
    pub fn holds(&self) -> bool {
        self.call.contains("CONCURRENT")
    }

    /// Whether it limits a rate.
    pub fn limits_rate(&self) -> bool {
        self.call.contains("{limit}") || self.call.contains("{interval}")
    }
}

fn word(name: &str, settings: &Settings, asker: &Asker<'_>) -> String {
    // Rounded up: never above the rate.
    let interval = settings.period.div_ceil(settings.limit);
    match name {
        "key" => asker.key.into(),
        "items" => "users".into(),
        "id" => asker.id.into(),
        "tenant" => asker.tenant.into(),
        "cost" => asker.cost.to_string(),
        "utilization" => asker.utilization.to_string(),
        "burst" => settings.burst.to_string(),
        "max_burst" => (settings.burst - 1).to_string(),
        "limit" => settings.limit.to_string(),
        "period" => duration(settings.period),
        "precision" => duration(settings.period / PARTS),
        "interval" => duration(interval),
        "gap" => duration(interval.div_ceil(2)),
        "strikes" => settings.limit.div_ceil(5).to_string(),
        "workers" => settings.workers.to_string(),
        "ceiling" => (settings.workers * CEILING).to_string(),
        "slow" => duration((settings.service * 3).div_ceil(2)),
        "wait" => duration(LONGEST_WAIT),
        "ttl" => duration(TTL),
        other => unreachable!("nothing is known of {other}"),
    }
}

/// A duration as a call has it: in seconds if they are whole, or else in milliseconds.
fn duration(millis: u64) -> String {
    if millis.is_multiple_of(1000) { format!("{}s", millis / 1000) } else { format!("{millis}ms") }
}
