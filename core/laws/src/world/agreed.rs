//! What `RL.EXPLAIN` and the looks say of a call before it is made.

use ratelimit_core::{Manner, Span, Verdict};
use ratelimit_engine::memory::{Called, Memory};
use ratelimit_engine::reply::Reply;
use ratelimit_language::Rough;

use super::believed::limits;
use super::state::World;
use super::told::Told;

/// What was said of a call.
pub(super) struct Looks {
    explained: String,
    /// The reply of `RL.PEEK`.
    peeked: Option<Reply>,
}

/// The reply of a look.
pub(super) fn reply(memory: &Memory, line: &str) -> Reply {
    match memory.call(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>()) {
        Called::Replied(reply) => reply,
        Called::Waits(_) => Reply::Null,
    }
}

impl World {
    /// Asks what a call would do. `None` if that is not explained.
    pub(super) fn look(&self, told: &Told<'_>, is_alone: bool) -> Result<Option<Looks>, String> {
        let memory = self.copies.primary();
        let explained = ["RL.MULTI", "RL.ASK", "RL.CONCURRENT", "RL.SKETCH", "RL.PENALTY", "RL.SMOOTH"];
        let is_limiter = limits().any(|(_, limit)| told.name.strip_prefix("RL.") == limit.split(' ').next());
        if !is_limiter && !explained.contains(&told.name) {
            return Ok(None);
        }
        let line = told.words.join(" ");
        let before = memory.dump();
        let explained = match reply(memory, &format!("RL.EXPLAIN {line}")) {
            Reply::Lines(lines) => lines.into_iter().next().unwrap_or_default(),
            Reply::Error(error) => format!("error {error}"),
            _ => return Err(format!("RL.EXPLAIN {line}: no sentences")),
        };
        let is_plain = is_alone
            && told.block.or(told.ttl).is_none()
            && told.manner == Manner::Strict
            && !told.is_odd()
            && !told.names("COUNTREFUSED");
        let peeked = told.peek().filter(|_| is_plain).map(|line| reply(memory, &line));
        if memory.dump() != before {
            return Err(format!("RL.EXPLAIN {line}: it has changed something"));
        }
        Ok(Some(Looks { explained, peeked }))
    }
}

impl Looks {
    /// Compares what was said with what came of the call.
    pub(super) fn agree(&self, called: &Called) -> Result<(), String> {
        let verdict = self.explained.rsplit("on this node: ").next().unwrap_or_default();
        let is_said = match called {
            Called::Replied(Reply::Error(_)) => !verdict.starts_with("admitted"),
            Called::Waits(_) => verdict.starts_with("would wait"),
            Called::Replied(reply) if reply.is_admission() => verdict.starts_with("admitted"),
            Called::Replied(_) => ["refused", "banned", "error ERR too many holds"]
                .iter()
                .any(|start| verdict.starts_with(start)),
        };
        let was = || match called {
            Called::Waits(_) => "waits",
            Called::Replied(reply) if reply.is_admission() => "admitted",
            Called::Replied(_) => "refused",
        };
        if !is_said {
            return Err(format!("explained as {:?}, and it is {}", self.explained, was()));
        }
        if let (Some(said), Some(time)) = (time(verdict), time_of(called))
            && said != Rough(time).to_string()
        {
            return Err(format!("explained as {:?}, and it is {}", self.explained, Rough(time)));
        }
        match (&self.peeked, called) {
            (Some(Reply::Answer(peeked)), Called::Replied(Reply::Answer(answer))) => {
                let is_same = peeked.verdict.admits() == answer.verdict.admits()
                    && (answer.verdict.admits() || peeked.integers() == answer.integers());
                if is_same {
                    Ok(())
                } else {
                    Err(format!("RL.PEEK {:?}, and then {:?}", peeked.integers(), answer.integers()))
                }
            }
            _ => Ok(()),
        }
    }
}

/// How long a sentence says that the caller has to wait, or until its next try.
fn time(verdict: &str) -> Option<&str> {
    let starts = ["; try again in ", "; wait ", "banned for ", "this strike bans for "];
    let (_, time) = starts.iter().find_map(|start| verdict.split_once(start))?;
    time.split(" by limit").next()?.split("; ").next()
}

/// How long a reply says so.
fn time_of(called: &Called) -> Option<Span> {
    let Called::Replied(reply) = called else { return None };
    let (Reply::Answer(answer)
    | Reply::Six(answer, _)
    | Reply::SixAndEach(answer, ..)
    | Reply::Answers(answer, _)) = reply
    else {
        return None;
    };
    match answer.verdict {
        Verdict::Admit { wait } => Some(wait),
        Verdict::Refuse { retry } => retry,
    }
}
