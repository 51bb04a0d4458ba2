//! What can happen.

/// What happens next. Callers that hold something, and those that wait, are numbered by when they began to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// An idle caller makes the call of this number for a tenant.
    Call { ask: u8, tenant: u8 },
    /// A caller releases its lease.
    Release(u8),
    /// A caller settles its hold at what it used.
    Settle(u8, u8),
    /// A caller that waits gives up.
    GiveUp(u8),
    /// A tenant that polled gives up: it releases the id that was refused last.
    Forget(u8),
    /// A tick passes, in which leases and hungers end.
    Tick,
}

/// What an event did, for the search through cycles and for who reads a history.
#[derive(Clone, Debug, Default)]
pub struct Effect {
    /// The places by arrival, among those that waited before, of the callers that wait no more.
    pub gone: u8,
    /// The limits of which something was granted.
    pub granted: u8,
    /// How often each tenant was granted something, by limit.
    pub grants: [[u8; 4]; 2],
    /// Whether a critical call was granted something.
    pub critical: bool,
    pub ticks: bool,
    /// What happened, in words; `None` if no one reads them.
    pub text: Option<String>,
}

impl Effect {
    /// An effect that is put in words.
    pub fn told() -> Effect {
        Effect { text: Some(String::new()), ..Effect::default() }
    }

    pub fn tell(&mut self, text: impl FnOnce() -> String) {
        if let Some(told) = &mut self.text {
            told.push_str(&text());
        }
    }

    pub fn grants(&self, limit: usize) -> bool {
        self.granted & 1 << limit != 0
    }
}

/// A property that does not hold.
#[derive(Clone, Debug)]
pub struct Broken {
    pub property: &'static str,
    pub what: String,
}

pub const CAPACITY: &str = "1. never more is held than the capacity, and a rate admits no more than it may";
pub const NO_WAKE_IS_LOST: &str = "2. no caller waits for what would be admitted now";
pub const ORDER: &str = "3. the order is that of the model";
pub const ROOM: &str = "4. calls that pass leave room for those before them";
pub const HUNGER: &str =
    "5. a hunger ends at its time, when its call is served or given up, and nothing is left behind";
pub const NOBODY_STARVES: &str = "6. no one waits for ever while others are served and leases end";
pub const TURNS: &str = "7. settlements move turns within bounds";

/// All of them.
pub const PROPERTIES: [&str; 7] = [CAPACITY, NO_WAKE_IS_LOST, ORDER, ROOM, HUNGER, NOBODY_STARVES, TURNS];

impl Broken {
    pub fn new(property: &'static str, what: impl Into<String>) -> Broken {
        Broken { property, what: what.into() }
    }
}

/// Checks one thing.
pub fn holds(is_true: bool, property: &'static str, what: impl FnOnce() -> String) -> Result<(), Broken> {
    if is_true { Ok(()) } else { Err(Broken::new(property, what())) }
}
