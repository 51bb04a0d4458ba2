//! What a row of a table is: what is called, on which keys, and what it must answer.

/// One kind of call.
pub struct Row {
    pub name: &'static str,
    /// Each `#` is a number of 12 digits, and `$SHA` the loaded script's digest.
    pub call: &'static str,
    /// What is called once for each key beforehand; empty: the call itself. So nothing measured creates a key.
    pub prepare: &'static str,
    /// How often that is called for each key.
    pub times: u32,
    pub script: &'static str,
    /// A policy that the call asks for: the words of `RL.POLICY SET`.
    pub policy: &'static str,
    /// The setting `ratelimit.top`.
    pub top: u32,
    /// The setting `ratelimit.record`.
    pub record: u32,
    /// The example that the command is in, if it is not the module itself.
    pub module: Option<&'static str>,
    pub load: Load,
    pub answer: Answer,
    /// Whether each call changes something, and is replicated if there are replicas.
    pub writes: bool,
    /// The most instructions it may cost on a server alone, and with a replication backlog.
    pub target: Option<u64>,
    pub target_with_backlog: Option<u64>,
    /// What the same costs elsewhere, in instructions.
    pub elsewhere: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// Any number for each `#`, as often as it comes: redis-benchmark.
    Random,
    /// For calls that can be made only once: the first `#` goes round the keys, a later one is never the same again,
    /// and it is that which is prepared.
    Once,
    /// For calls on new keys: no `#` is ever the same again, and nothing is prepared.
    Fresh,
}

/// What every measured call must have answered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Anything but an error.
    Any,
    /// First of the integers: 0.
    Admitted,
    /// First of the integers: 1.
    Refused,
    /// First of the first array: 0.
    AllAdmitted,
    /// First of the first array: 1.
    AllRefused,
    /// Nil.
    Full,
    /// 1.
    Done,
}

pub const PLAIN: Row = Row {
    name: "",
    call: "",
    prepare: "",
    times: 1,
    script: "",
    policy: "",
    top: 0,
    record: 0,
    module: None,
    load: Load::Random,
    answer: Answer::Any,
    writes: true,
    target: None,
    target_with_backlog: None,
    elsewhere: "",
};

impl Row {
    /// Whether the module counts it as a request to a limiter.
    pub fn consumes(&self) -> bool {
        let takes_nothing = self.call.ends_with(" COST 0")
            || ["RL.PEEK", "RL.REFUND", "RL.MULTIPEEK", "RL.SETTLE", "RL.MULTISETTLE", "RL.ASKPEEK"]
                .iter()
                .any(|name| self.call.starts_with(name));
        self.call.starts_with("RL.") && self.answer != Answer::Done && !takes_nothing
    }
}
