//! A clock for collections that never goes back.
//!
//! If the server's clock was set back, a state moves to the new time: each of its instants moves by the same step.
//! A collection may hold a million of them. So it stores *ticks* instead of instants, and a [`Timeline`] relates the two.
//! Time that passes adds ticks. A move changes `last` only, so it takes the same time for every collection.
//!
//! ```text
//!                            last        tick   an entry made at 12:00:00
//! charge at 12:00:00         12:00:00       0   tick 0, age 0 s
//! charge at 12:00:05         12:00:05   5,000   tick 0, age 5 s
//! move to 11:00:00           11:00:00   5,000   tick 0, age 5 s
//! ```

use crate::time::{Span, Time};

/// Microseconds that have passed, in 96 bits. They do not overflow: a change adds at most [`Time::LATEST`], 8,030 years.
/// 96 bits hold 3 * 10^11 times that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(super) struct Tick {
    /// The number of times that `micros` overflowed.
    pub(super) era: u32,
    pub(super) micros: u64,
}

impl Tick {
    pub(super) fn plus(self, span: Span) -> Tick {
        let (micros, overflowed) = self.micros.overflowing_add(span.as_micros());
        Tick { era: self.era.wrapping_add(u32::from(overflowed)), micros }
    }

    /// The time since an earlier tick, which is less than [`Span::FOREVER`] ago.
    pub(super) fn since(self, earlier: Tick) -> Span {
        Span::from_micros(self.micros.wrapping_sub(earlier.micros))
    }
}

/// The instant of the last charge, and its tick.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Timeline {
    pub(super) last: Time,
    pub(super) tick: Tick,
}

impl Timeline {
    /// Sets the instant of the last charge. An earlier instant is a move: no time passes.
    pub(super) fn set(&mut self, last: Time) {
        *self = Timeline { last, tick: self.tick_at(last) };
    }

    /// The instant of a tick after the last charge; the epoch if it is not after it.
    pub(super) fn until(&self, tick: Tick) -> Time {
        if tick > self.tick { self.last.plus(tick.since(self.tick)) } else { Time::EPOCH }
    }

    /// The tick of an instant at or after the last charge.
    pub(super) fn tick_at(&self, now: Time) -> Tick {
        self.tick.plus(now.since(self.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_count_on_past_an_overflow() {
        let end = Tick { era: 0, micros: u64::MAX };
        let later = end.plus(Span::from_micros(5));
        assert!(end < later);
        assert_eq!(later.since(end), Span::from_micros(5));
    }

    #[test]
    fn time_passes_forward_only() {
        let mut timeline = Timeline::default();
        timeline.set(Time::from_micros(100));
        timeline.set(Time::from_micros(40));
        assert_eq!(timeline.tick.micros, 100);
        timeline.set(Time::from_micros(50));
        assert_eq!(timeline.tick.micros, 110);
    }
}
