//! What a session is: lines, each with what it asks and what it expects.

/// A passage of a file, with one value for each of its names.
pub struct Session {
    pub title: String,
    pub(super) lines: Vec<Line>,
}

pub(super) struct Line {
    pub(super) number: usize,
    pub(super) step: Step,
}

pub(super) type Words = Vec<Vec<u8>>;

pub(super) enum Step {
    Call(Words, Expected),
    /// A caller that must wait.
    Waits(String, Words),
    Ended(String, String),
    HangsUp(String),
    /// Microseconds.
    Pass(u64),
    Set(String, u64),
    Same(String, String),
    Apart(String, String),
    /// Milliseconds from now.
    Expires(String, Option<u64>),
    Count(String, u64),
}

pub(super) enum Expected {
    Reply(String),
    /// That of this call.
    ReplyOf(Words),
}

impl Session {
    /// Whether it can run on a server, whose clock goes on, and which counts more callers than those of the session.
    pub fn fits_a_server(&self) -> bool {
        let has = |is: fn(&Step) -> bool| self.lines.iter().any(|line| is(&line.step));
        let is_timed = has(|step| matches!(step, Step::Pass(_) | Step::Expires(..)));
        let counts_callers =
            has(|step| matches!(step, Step::Waits(..))) && has(|step| matches!(step, Step::Count(..)));
        !is_timed && !counts_callers
    }
}
