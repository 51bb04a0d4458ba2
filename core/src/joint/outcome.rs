//! The answers to a call with several limits, and for which limits it can wait.

use alloc::vec::Vec;

use super::pair::Pair;
use super::{Joint, Part};
use crate::answer::{Answer, Verdict};
use crate::time::{Span, Time};

impl<'p, 'a> Joint<'p, 'a> {
    /// The latest instant at which the call's pairs of a key were decided, and the longest of their resets.
    pub fn reset(&self, key: usize) -> (Time, Span) {
        let pairs = self.pairs.iter().filter(|pair| pair.key == key && pair.changes());
        let ends = pairs.map(|pair| (pair.ask.now(), pair.reset()));
        ends.reduce(|(a, long), (b, longer)| (a.max(b), long.max(longer))).unwrap_or((self.at, Span::ZERO))
    }

    /// Whether a limit of a key got a cost back.
    pub fn gave_back(&self, key: usize) -> bool {
        self.pairs.iter().any(|pair| pair.key == key && pair.refunded)
    }

    /// The answer of each pair, in order.
    pub fn answers(&self) -> impl Iterator<Item = Answer> {
        self.pairs.iter().filter_map(Pair::answer)
    }

    /// The combined answer. Shadows do not enter it, and penalties only if they refuse. If none enters it, the call is
    /// admitted without a wait, and the gauge is that of all pairs.
    #[inline(always)]
    pub fn combined(&self) -> Option<Answer> {
        let entering = self.pairs.iter().filter(|pair| pair.enters()).filter_map(Pair::answer);
        Answer::all(entering).or_else(|| {
            let all = Answer::all(self.answers())?;
            Some(Answer { verdict: Verdict::ADMIT, ..all })
        })
    }

    /// The number, from 1, of the pair that binds: the one that refuses longest, or that admits with the least remaining. Of
    /// equals the first; durations compare in milliseconds. 0 if no pair enters the combined answer.
    #[inline(always)]
    pub fn binding(&self) -> u64 {
        let entering = self.pairs.iter().zip(1..).filter(|(pair, _)| pair.enters());
        let slack = |(pair, _): &(&Pair<'_, '_>, u64)| pair.answer().map(|answer| answer.slack());
        // `min_by_key` returns the first of equals.
        entering.min_by_key(slack).map_or(0, |(_, number)| number)
    }

    /// Whether a limit of a key that is no shadow refuses the call.
    pub fn refuses(&self, key: usize) -> bool {
        self.pairs.iter().any(|pair| pair.key == key && !pair.part.is_shadow() && !pair.admits())
    }

    /// Whether a shadow refuses the call.
    pub fn refuses_in_shadow(&self) -> bool {
        self.pairs.iter().any(Pair::refuses_in_shadow)
    }

    /// The indices of the limits that are no shadows and refuse the call, on any of their keys.
    pub fn refusing(&self) -> impl Iterator<Item = usize> {
        self.limits_that(|pair| !pair.part.is_shadow() && !pair.admits())
    }

    /// The indices of the shadows that refuse the call, on any of their keys.
    pub fn refusing_in_shadow(&self) -> impl Iterator<Item = usize> {
        self.limits_that(Pair::refuses_in_shadow)
    }

    /// The indices of the limits of which a pair is chosen, each once.
    fn limits_that(&self, chosen: fn(&Pair<'p, 'a>) -> bool) -> impl Iterator<Item = usize> {
        let is_chosen =
            move |limit: &usize| self.pairs.iter().any(|pair| pair.limit == *limit && chosen(pair));
        (0..self.parts.len()).filter(is_chosen)
    }

    /// The limits that refuse the call and for which it can wait. Returns for each the index of its key, the limit, and the
    /// retry if no other caller waited, zero if it has room. `None` if the call must not wait, because another limit refuses
    /// it, or it can never be admitted.
    pub fn waits_for(&self) -> Option<Vec<(usize, &'p Part<'a>, Span)>> {
        let behind = self.behind.iter().flat_map(|behind| &behind.0);
        let is_behind = |index: usize| behind.clone().any(|(behind, _)| *behind == index);
        let pairs = self.pairs.iter().enumerate();
        let refusing =
            pairs.filter(|(index, pair)| is_behind(*index) || !pair.admits() && !pair.part.is_shadow());
        let waits = refusing.map(|(_, pair)| {
            let retry = match pair.verdict() {
                Some(Verdict::Refuse { retry }) => retry?,
                _ => Span::ZERO,
            };
            pair.can_be_behind().then_some((pair.key, pair.part, retry))
        });
        waits.collect()
    }
}
