//! Runs of many calls, of which each is timed: those that fill a state, and those that change a large one little by
//! little. They find the call at which something grows, shrinks or is tidied up.
//!
//! The machine interrupts some of a million calls. So a run with slow calls is made again. A call counts if it is slow
//! each time, with its shortest time.

use super::report::{Findings, Found};
use super::states::{HOUR, State, T0, id};
use super::trial::Trial;
use crate::Result;

/// How often a run is made if some calls are slow each time.
const PASSES: usize = 3;
/// The calls of a run, where it is not the size of the state that decides.
const CALLS: u32 = 200_000;
const MILLION: u32 = 1_000_000;

/// Calls on a fresh copy of a state.
pub struct Run<'a> {
    pub what: String,
    family: &'a str,
    /// The state that is copied; a missing key if `None`.
    base: Option<&'a str>,
    calls: u32,
    line: Box<dyn Fn(u32) -> String + 'a>,
}

/// Makes the calls that fill a state, and keeps it.
pub fn fill(trial: &mut Trial, state: &State, most: u64, findings: &mut Findings) -> Result<()> {
    let run = Run {
        what: format!("calls that fill {}", state.name),
        family: state.family,
        base: state.base,
        calls: state.calls,
        line: Box::new(|i| with_id(&(state.fill)(i))),
    };
    make(trial, &run, most, findings)?;
    trial.keep(&state.name)
}

fn with_id(line: &str) -> String {
    line.replace('#', "holder")
}

/// Makes a run, and records its slow calls. `work` stays as the run leaves it.
pub fn make(trial: &mut Trial, run: &Run<'_>, most: u64, findings: &mut Findings) -> Result<()> {
    let mut slow: Vec<(String, u64)> = Vec::new();
    for pass in 0..PASSES {
        trial.copy(run.base)?;
        let again = trial.pipelined(run.calls, &run.line, most)?;
        slow = if pass == 0 { again } else { in_both(&slow, &again) };
        if slow.is_empty() {
            break;
        }
    }
    findings.made += u64::from(run.calls);
    for (call, micros) in slow {
        findings.record(
            run.family,
            Found { micros, call, after: vec![format!("some of the {} {}", run.calls, run.what)] },
        );
    }
    Ok(())
}

/// The calls that are in both, with their shorter times.
fn in_both(some: &[(String, u64)], others: &[(String, u64)]) -> Vec<(String, u64)> {
    let pairs = some.iter().filter_map(|(call, micros)| {
        let (_, again) = others.iter().find(|(other, _)| other == call)?;
        Some((call.clone(), *micros.min(again)))
    });
    pairs.collect()
}

/// The runs on states that were filled.
pub fn long(states: &[State]) -> Vec<Run<'_>> {
    let mut runs = Vec::new();
    for state in states {
        let last = state.last;
        let mut add = |what: &str, calls: u32, line: fn(u32, u64) -> String| {
            let what = format!("calls that {what} {}", state.name);
            let line = Box::new(move |i| line(i, last));
            runs.push(Run { what, family: state.family, base: Some(&state.name), calls, line });
        };
        match state.name.as_str() {
            "leases" => {
                add("release, in another order,", MILLION, |i, last| {
                    let other = u32::try_from(u64::from(i) * 7919 % u64::from(MILLION)).unwrap();
                    format!("RL.RELEASE work {} AT {last}", id(other))
                });
                add("renew", CALLS, |i, last| {
                    format!("RL.RENEW work 2h {} AT {}", id(i), last + u64::from(i))
                });
                add("take leases as those of others end, on", CALLS, |i, last| {
                    format!(
                        "RL.CONCURRENT work 1000000 1m new:{i} AT {}",
                        last + u64::from(i) * HOUR / u64::from(CALLS)
                    )
                });
            }
            "leases-expired" => add("take leases after most have expired, on", CALLS, |i, _| {
                format!("RL.CONCURRENT work 1000000 1m new:{i} AT {}", T0 + HOUR / 2 + u64::from(i))
            }),
            "log" => {
                add("enter as old entries leave, on", CALLS, |i, _| {
                    format!("RL.SLIDINGLOG work 1000000 1h AT {}", T0 + HOUR + u64::from(i) * 20_000)
                });
                add("enter after half has left, on", CALLS, |i, _| {
                    format!("RL.SLIDINGLOG work 1000000 1h AT {}", T0 + HOUR + 500_000_000 + u64::from(i))
                });
                add("refund", CALLS, |i, last| {
                    format!("RL.REFUND work SLIDINGLOG 1000000 1h COST 5 AT {}", last + u64::from(i))
                });
                add("force", CALLS, |i, last| {
                    format!("RL.SLIDINGLOG work 1000000 1h FORCE AT {}", last + u64::from(i) * 1000)
                });
            }
            "log-refused" => add("are refused by", CALLS, |i, last| {
                format!("RL.SLIDINGLOG work 1000000 1h COUNTREFUSED AT {}", last + u64::from(i) * 1000)
            }),
            _ => {}
        }
    }
    runs
}
