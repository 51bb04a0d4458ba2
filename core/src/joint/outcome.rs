//! The answers to a call with several limits, and for which limits it can wait.

use alloc::vec::Vec;

use super::pair::Pair;
use super::{Joint, Part};
use crate::answer::{Answer, Verdict};
use crate::limits::Limits;
use crate::line::Claim;
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

    /// The pairs that refuse the call, because of the limit or because others come before it: the index of each.
    fn refusing_pairs(&self) -> impl Iterator<Item = (usize, &Pair<'p, 'a>)> {
        let pairs = self.pairs.iter().enumerate();
        pairs.filter(|(index, pair)| self.ahead(*index).is_some() || !pair.admits() && !pair.part.is_shadow())
    }

    /// The limits of leases that were asked by a refused call that does not wait. For each: the index of its key, the limit, what
    /// the call asked of the line, and whether this limit alone refused the call, for want of room or because others come before it.
    /// Not the limit that alone refused the call because its cost never fits.
    pub fn hungry<K: Limits>(
        &self,
        keys: &[K],
    ) -> impl Iterator<Item = (usize, &'p Part<'a>, Claim<&'a [u8]>, bool)> {
        let refusing: Vec<usize> = self.refusing_pairs().map(|(index, _)| index).collect();
        let pairs = self.pairs.iter().enumerate().filter(|(_, pair)| pair.can_be_behind());
        pairs.filter_map(move |(index, pair)| {
            let claim = pair.claim(keys.get(pair.key)?, |claim, _| claim);
            let alone = refusing == [index];
            let counts = claim.pool.is_some() && !(alone && pair.verdict() == Some(Verdict::NEVER));
            counts.then_some((pair.key, pair.part, claim, alone))
        })
    }

    /// What an admitted call asked of the lines in which it could stand: the index of the key, the limit, and what it asked.
    pub fn granted<K: Limits>(
        &self,
        keys: &[K],
    ) -> impl Iterator<Item = (usize, &'p Part<'a>, Claim<&'a [u8]>)> {
        self.pairs.iter().filter(|pair| pair.stands).filter_map(|pair| {
            let claim = pair.claim(keys.get(pair.key)?, |claim, _| claim);
            Some((pair.key, pair.part, claim))
        })
    }

    /// The leases that an admitted call renewed: the index of the key, and the id.
    pub fn renewed(&self) -> impl Iterator<Item = (usize, &'p [u8])> {
        let pairs = self.pairs.iter().filter(|pair| pair.can_be_behind() && !pair.stands);
        pairs.filter_map(|pair| Some((pair.key, pair.part.lease_id()?)))
    }

    /// What the pair of this index asks of its line. `limits` are those of its key.
    pub fn claim(&self, pair: usize, limits: &impl Limits) -> Option<Claim<&'a [u8]>> {
        Some(self.pairs.get(pair)?.claim(limits, |claim, _| claim))
    }

    /// What the call settled for a tenant: the index of the key, the limit, and the held and the actual cost.
    pub fn settled_for_tenant(&self) -> impl Iterator<Item = (usize, &'p Part<'a>, u64, u64)> {
        let pairs = self.pairs.iter().filter(|pair| pair.part.tenant.is_some());
        pairs.filter_map(|pair| Some((pair.key, pair.part, pair.held?.cost, pair.part.cost)))
    }

    /// The limits that refuse the call and for which it can wait. Returns for each the index of the pair and of its key, the limit,
    /// and the retry if no other caller waited, zero if it has room. `None` if the call must not wait, because another limit
    /// refuses it, or it can never be admitted.
    pub fn waits_for(&self) -> Option<Vec<(usize, usize, &'p Part<'a>, Span)>> {
        let waits = self.refusing_pairs().map(|(index, pair)| {
            let retry = pair.verdict().map_or(Some(Span::ZERO), Verdict::time_to_room)?;
            pair.can_be_behind().then_some((index, pair.key, pair.part, retry))
        });
        waits.collect()
    }
}
