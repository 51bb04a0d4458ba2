//! Time in slots, and what happened in each: how many instants, or the most that there were at once.

/// Stretches of the same length that follow one another, in microseconds from the start of a trial.
#[derive(Clone, Copy)]
pub struct Slots {
    pub from: u64,
    pub length: u64,
    pub count: usize,
}

/// How many there are, from each instant at which that changes.
pub type Changes = Vec<(u64, u64)>;

impl Slots {
    /// How many of the instants are in each slot.
    pub fn counts(&self, instants: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut counts = vec![0; self.count];
        for past in instants.filter_map(|at| at.checked_sub(self.from)) {
            let place = usize::try_from(past / self.length).unwrap_or(usize::MAX);
            if let Some(count) = counts.get_mut(place) {
                *count += 1;
            }
        }
        counts
    }

    /// The most in each slot; where one begins, there are as many as there were when the last one ended.
    pub fn most(&self, of: &[Changes]) -> Vec<u64> {
        let mut slots = vec![0; self.count];
        for changes in of {
            let mut changes = changes.iter().peekable();
            let mut now = 0;
            while let Some((_, count)) = changes.next_if(|(at, _)| *at < self.from) {
                now = *count;
            }
            for (place, most) in slots.iter_mut().enumerate() {
                *most = now.max(*most);
                let end = self.from + (place as u64 + 1) * self.length;
                while let Some((_, count)) = changes.next_if(|(at, _)| *at < end) {
                    now = *count;
                    *most = now.max(*most);
                }
            }
        }
        slots
    }
}

/// How many of these stretches of time there are at a time; half-open, as windows are.
pub fn at_once(stretches: impl Iterator<Item = (u64, u64)>) -> Changes {
    let mut changes: Vec<(u64, i64)> = stretches.flat_map(|(from, until)| [(from, 1), (until, -1)]).collect();
    // Of one instant the ends come first.
    changes.sort_unstable();
    let mut now = 0;
    let after = |(at, change)| {
        now += change;
        (at, i64::unsigned_abs(now))
    };
    changes.into_iter().map(after).collect()
}

/// The most at any time.
pub fn most(of: &[Changes]) -> u64 {
    of.iter().flatten().map(|(_, count)| *count).max().unwrap_or(0)
}
