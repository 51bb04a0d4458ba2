//! What a run has seen so far: calls, latencies, and what should not have been.

use std::time::Duration;

/// Each power of two of microseconds is cut into so many steps: figures are true to 3 %.
const STEPS: u64 = 32;

#[derive(Default)]
pub struct Tally {
    pub calls: u64,
    /// Errors that the calls were meant to end in.
    pub intended: u64,
    /// Connections that the server closed.
    pub closed: u64,
    /// Answers that should have been others.
    pub wrong: Vec<String>,
    /// Calls by latency.
    steps: Vec<u64>,
    longest: Duration,
}

impl Tally {
    pub fn answered(&mut self, latency: Duration) {
        self.calls += 1;
        self.longest = self.longest.max(latency);
        let step = step(latency);
        if self.steps.len() <= step {
            self.steps.resize(step + 1, 0);
        }
        self.steps[step] += 1;
    }

    pub fn wrong(&mut self, what: String) {
        // The first few tell it all.
        if self.wrong.len() < 20 {
            self.wrong.push(what);
        }
    }

    pub fn add(&mut self, other: Tally) {
        self.calls += other.calls;
        self.intended += other.intended;
        self.closed += other.closed;
        self.wrong.extend(other.wrong);
        self.longest = self.longest.max(other.longest);
        self.steps.resize(self.steps.len().max(other.steps.len()), 0);
        self.steps.iter_mut().zip(other.steps).for_each(|(ours, theirs)| *ours += theirs);
    }

    /// `p50 0.21 ms, p99 …, p99.9 …, longest …`
    pub fn latencies(&self) -> String {
        let at = |part: f64| millis(self.percentile(part));
        format!("p50 {}, p99 {}, p99.9 {}, longest {} ms", at(0.5), at(0.99), at(0.999), millis(self.longest))
    }

    /// The latency that this part of all calls did not exceed.
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]
    fn percentile(&self, part: f64) -> Duration {
        let mut rest = (self.calls as f64 * part).ceil() as u64;
        for (step, calls) in self.steps.iter().enumerate() {
            if *calls >= rest {
                return latency(step as u64 + 1).min(self.longest);
            }
            rest -= calls;
        }
        self.longest
    }
}

fn millis(latency: Duration) -> String {
    format!("{:.2}", latency.as_secs_f64() * 1000.0)
}

fn step(latency: Duration) -> usize {
    let micros = u64::try_from(latency.as_micros()).unwrap();
    let power = micros.checked_ilog2().unwrap_or(0).saturating_sub(STEPS.ilog2());
    usize::try_from(u64::from(power) * STEPS + (micros >> power)).unwrap()
}

/// The least latency of a step.
fn latency(step: u64) -> Duration {
    let power = (step / STEPS).saturating_sub(1);
    Duration::from_micros((step - power * STEPS) << power)
}
