//! Limits for a fleet: an adaptive one, a fixed one, and those of libraries in each process.

use ratelimit_core::adapt::{Adapt, Adapted, Ended, Ending, Rule, Settings};

/// In microseconds.
pub const SECOND: u64 = 1_000_000;

/// What limits the requests in progress.
pub trait Limit {
    fn admits(&mut self, process: usize) -> bool;

    /// A request of a process ends that was admitted at `taken`.
    fn ends(&mut self, process: usize, taken: u64, now: u64, ending: Ending);

    /// The limit of a fleet with this number of processes.
    fn limit(&self, processes: usize) -> f64;
}

/// One adaptive limit for the fleet.
pub struct Found {
    pub adapted: Adapted,
    held: u64,
}

impl Found {
    pub fn new(settings: Settings, start: u32) -> Found {
        Found { adapted: Adapted::new(Adapt { settings, start }), held: 0 }
    }

    /// With the default parameters.
    pub fn by(rule: Rule, ceiling: u32, slow: u64) -> Found {
        let settings = Settings { rule, ceiling, floor: 1, reserved: 0, backoff: 10, slow };
        Found::new(settings, ceiling.min(20))
    }
}

impl Limit for Found {
    fn admits(&mut self, _: usize) -> bool {
        let admits = self.held < self.adapted.limit();
        self.held += u64::from(admits);
        admits
    }

    fn ends(&mut self, _: usize, taken: u64, now: u64, ending: Ending) {
        self.adapted.learn(&Ended { taken, now, cost: 1, held: self.held }, ending);
        self.held -= 1;
    }

    fn limit(&self, _: usize) -> f64 {
        self.adapted.limit() as f64
    }
}

/// One limit for the fleet, which is fixed.
pub struct Fixed {
    pub limit: u64,
    pub held: u64,
}

impl Limit for Fixed {
    fn admits(&mut self, _: usize) -> bool {
        let admits = self.held < self.limit;
        self.held += u64::from(admits);
        admits
    }

    fn ends(&mut self, _: usize, _: u64, _: u64, _: Ending) {
        self.held -= 1;
    }

    fn limit(&self, _: usize) -> f64 {
        self.limit as f64
    }
}

/// A limit of each process, as the libraries have it.
pub struct Each<R>(Vec<Process<R>>);

/// What a library decides for one process.
pub trait Own {
    fn limit(&self) -> f64;
    /// A request ends; `held` is the number in progress, this one included.
    fn ends(&mut self, taken: u64, now: u64, held: u64, ending: Ending);
}

struct Process<R> {
    rule: R,
    held: u64,
}

impl<R: Own> Each<R> {
    pub fn new(processes: usize, rule: impl Fn() -> R) -> Each<R> {
        Each((0..processes).map(|_| Process { rule: rule(), held: 0 }).collect())
    }
}

impl<R: Own> Limit for Each<R> {
    fn admits(&mut self, process: usize) -> bool {
        let Process { rule, held } = &mut self.0[process];
        let admits = (*held as f64) < rule.limit().floor();
        *held += u64::from(admits);
        admits
    }

    fn ends(&mut self, process: usize, taken: u64, now: u64, ending: Ending) {
        let Process { rule, held } = &mut self.0[process];
        rule.ends(taken, now, *held, ending);
        *held -= 1;
    }

    fn limit(&self, processes: usize) -> f64 {
        self.0[..processes].iter().map(|each| each.rule.limit().floor()).sum()
    }
}

/// `Gradient2Limit` in a `WindowedLimit` of concurrency-limits with their defaults, but it begins at 2 for each process. By
/// default it begins at 20 and is never less, which would be 400 for 20 processes.
pub struct Gradient2 {
    limit: f64,
    long: f64,
    windows: f64,
    until: u64,
    window: (u64, u64, u64),
}

impl Default for Gradient2 {
    fn default() -> Gradient2 {
        Gradient2 { limit: 2.0, long: 0.0, windows: 0.0, until: 0, window: (0, 0, 0) }
    }
}

impl Own for Gradient2 {
    fn limit(&self) -> f64 {
        self.limit
    }

    fn ends(&mut self, taken: u64, now: u64, held: u64, ending: Ending) {
        if ending == Ending::Unknown || now - taken < 100 {
            return;
        }
        let (count, sum, most) = self.window;
        self.window = (count + 1, sum + (now - taken), most.max(held));
        if now <= self.until {
            return;
        }
        let (count, sum, most) = std::mem::take(&mut self.window);
        self.until = now + SECOND;
        if count < 10 {
            return;
        }
        let short = sum as f64 / count as f64;
        self.long = if self.windows < 10.0 {
            (self.long * self.windows + short) / (self.windows + 1.0)
        } else {
            self.long + (short - self.long) * 2.0 / 601.0
        };
        self.windows += 1.0;
        if self.long / short > 2.0 {
            self.long *= 0.95;
        }
        if (most as f64) < self.limit / 2.0 {
            return;
        }
        let gradient = (1.5 * self.long / short).clamp(0.5, 1.0);
        let limit = self.limit * gradient + 4.0;
        self.limit = (0.8 * self.limit + 0.2 * limit).clamp(1.0, 200.0);
    }
}

/// `AIMDLimit` of concurrency-limits with a time-out. It begins at 2 for each process too.
pub struct Aimd {
    limit: f64,
    timeout: u64,
}

impl Aimd {
    pub fn new(timeout: u64) -> Aimd {
        Aimd { limit: 2.0, timeout }
    }
}

impl Own for Aimd {
    fn limit(&self) -> f64 {
        self.limit
    }

    fn ends(&mut self, taken: u64, now: u64, held: u64, ending: Ending) {
        if ending == Ending::Unknown {
            return;
        }
        if ending == Ending::Failed || now - taken > self.timeout {
            self.limit = (self.limit * 0.9).floor().max(1.0);
        } else if 2.0 * held as f64 >= self.limit {
            self.limit = (self.limit + 1.0).min(200.0);
        }
    }
}
