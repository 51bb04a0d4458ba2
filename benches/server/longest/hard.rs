//! The calls that look hard, for each state.
//!
//! Each line is a call, after calls that prepare it and semicolons. The words of a line:
//!
//! ```text
//! @now  @lag     the instant after the last charge, and one before it
//! @mid  @half    half an hour after the first charge; when half of the entries have left
//! @later         when all entries have left
//! @back @9999    the earliest and the latest instant that AT takes
//! %most %some    the cost that fills the first limit, and half of it
//! $own  $limit   the first limit, as its own command and as an argument
//! $limits        all limits, as arguments of RL.MULTI
//! $debt $refund  the first limit that can be refunded and forced, and $refunds all of them
//! $others $keys  calls that make 63 copies of the key, and the names of all 64
//! $held          the id of a lease
//! ```
//!
//! Other words that begin with `$` are payloads of `payload.rs`. A line is left out if the state lacks what it names.
//! After `effect:` the call is made, and what replicas receive is timed. After `linear:` stands a call that is linear by
//! nature.

use super::report::{Findings, Found, command};
use super::states::{BACK, HOUR, LATEST, SMALL, State, T0, multi, own};
use super::trial::{Trial, Words};
use crate::Result;

mod lines;
mod own_lines;

/// How often a call is repeated. Fewer repetitions suffice if one shows that the call is not the longest.
const REPETITIONS: u32 = 5;
const LINEAR_REPETITIONS: u32 = 2;
/// No interruption takes so long, in microseconds.
const INTERRUPTION: u64 = 20_000;

/// A line, with its words replaced.
struct Hard {
    /// `effect`, `linear`, or empty.
    mark: String,
    before: Vec<String>,
    call: String,
}

/// Times all hard calls on a state.
pub fn measure(trial: &mut Trial, state: &State, most: u64, findings: &mut Findings) {
    let lines = lines::of(state);
    for hard in lines.lines().filter(|line| !line.is_empty()).filter_map(|line| parsed(state, line)) {
        if let Err(error) = hard.measure(trial, state, most, findings) {
            findings.fail(format!("{} after {:?} on {}: {error}", hard.call, hard.shown(), state.name));
        }
    }
}

impl Hard {
    fn measure(&self, trial: &mut Trial, state: &State, most: u64, findings: &mut Findings) -> Result<()> {
        findings.made += 1;
        let Some((name, words)) = self.words(trial, state)? else { return Ok(()) };
        if self.mark == "linear" {
            let micros = self.shortest(trial, state, &words, LINEAR_REPETITIONS, 0)?;
            findings.record_linear(state.family, &name, micros, state.entries);
            return Ok(());
        }
        let enough = findings.longest(state.family, command(&name)).max(most / 10);
        let micros = self.shortest(trial, state, &words, REPETITIONS, enough)?;
        findings.record(state.family, Found { micros, call: name, after: self.shown() });
        Ok(())
    }

    /// What is timed, and how it is printed; `None` if it is an effect, and the call has none.
    fn words(&self, trial: &mut Trial, state: &State) -> Result<Option<(String, Words)>> {
        self.prepare(trial, state)?;
        let words = trial.words(&state.name, &self.call)?;
        if self.mark != "effect" {
            return Ok(Some((self.call.clone(), words)));
        }
        let since = trial.written();
        trial.timed(&words)?;
        let name = format!("RL.APPLY work <effect of {}>", self.call);
        Ok(trial.replicated(since)?.map(|words| (name, words)))
    }

    /// The calls before it, as they are printed.
    fn shown(&self) -> Vec<String> {
        let is_copy = |call: &&String| call.starts_with("COPY work other");
        let copies = self.before.iter().filter(is_copy).count();
        let copied = (copies > 0).then(|| format!("{copies} COPY of work"));
        copied.into_iter().chain(self.before.iter().filter(|call| !is_copy(call)).cloned()).collect()
    }

    fn prepare(&self, trial: &mut Trial, state: &State) -> Result<()> {
        trial.refresh(&state.name)?;
        self.before.iter().try_for_each(|call| trial.call(call).map(drop))
    }

    /// The shortest time of several repetitions. One of at most `enough` microseconds ends them.
    fn shortest(
        &self,
        trial: &mut Trial,
        state: &State,
        words: &Words,
        repetitions: u32,
        enough: u64,
    ) -> Result<u64> {
        let mut prepared = None;
        let mut shortest = u64::MAX;
        for _ in 0..repetitions {
            // A call that wrote nothing can be repeated without another copy.
            if prepared != Some(trial.written()) {
                self.prepare(trial, state)?;
                prepared = Some(trial.written());
            }
            shortest = shortest.min(trial.timed(words)?);
            if shortest <= enough || shortest > INTERRUPTION {
                break;
            }
        }
        Ok(shortest)
    }
}

/// A line for a state; `None` if the state lacks what it names.
fn parsed(state: &State, line: &str) -> Option<Hard> {
    let (mark, calls) = line.split_once(": ").unwrap_or(("", line));
    // Small values are not worth a line each.
    if mark == "linear" && state.entries < 1000 {
        return None;
    }
    let calls = calls.split(' ').map(|word| replaced(state, word)).collect::<Option<Vec<_>>>()?.join(" ");
    let mut before: Vec<String> = calls.split("; ").map(str::to_string).collect();
    let call = before.pop()?;
    Some(Hard { mark: mark.to_string(), before, call })
}

fn replaced(state: &State, word: &str) -> Option<String> {
    let (name, end) = word.split_at(word.trim_end_matches(';').len());
    let joint: Vec<String> = limits(state, |limit| !limit.contains("COUNTREFUSED"));
    let debts: Vec<String> = limits(state, |limit| {
        !["COUNTREFUSED", "SMOOTH", "CONCURRENT"].iter().any(|word| limit.contains(word))
    });
    let all = limits(state, |_| true);
    let listed = |limits: &[String]| (!limits.is_empty()).then(|| multi(limits));
    let replaced = match name {
        "@now" => (state.last + 1).to_string(),
        "@lag" => (state.last - 1).to_string(),
        "@mid" => (T0 + HOUR / 2).to_string(),
        "@half" => state.half.to_string(),
        "@later" => (T0 + 5 * HOUR).to_string(),
        "@back" => BACK.to_string(),
        "@9999" => LATEST.to_string(),
        "%most" => state.most.to_string(),
        "%some" => (state.most / 2).to_string(),
        "$own" => own(all.first()?),
        "$limit" => all.first()?.clone(),
        "$limits" => listed(&joint)?,
        "$debt" => own(debts.first()?),
        "$refund" => debts.first()?.clone(),
        "$refunds" => listed(&debts)?,
        "$others" => (1..64).map(|i| format!("COPY work other{i}")).collect::<Vec<_>>().join("; "),
        "$keys" => (1..64).fold("work".to_string(), |names, i| format!("{names} other{i}")),
        "$held" => (state.id)(500_000),
        other => other.to_string(),
    };
    Some(replaced + end)
}

/// The limits of a state that satisfy a condition. A lease is asked for under a new id.
fn limits(state: &State, chosen: impl Fn(&str) -> bool) -> Vec<String> {
    let chosen = state.limits.iter().filter(|limit| chosen(limit));
    chosen.map(|limit| limit.replace('#', "new")).collect()
}
