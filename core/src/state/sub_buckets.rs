//! A window divided into sub-buckets of equal length, and the count of each.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::codec::{Reader, put, put_words};
use super::{Figure, LimitState, State};
use crate::count::MAX_STORED;
use crate::kind::Kind;
use crate::time::{Period, Span, Time};

/// The most sub-buckets of a window. It bounds the memory of a key and the duration of a call.
pub const MAX_BUCKETS: u64 = 1024;

/// The sum of all counts fits.
const _: () = assert!(MAX_STORED.checked_mul(MAX_BUCKETS).is_some());

/// A window divided into sub-buckets of equal length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tiles {
    pub(crate) window: Period,
    /// The length of a sub-bucket.
    pub(crate) precision: Period,
}

/// The number of a sub-bucket, which is its start divided by the precision, and its count.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bucket {
    pub(crate) number: u64,
    pub(crate) count: u64,
}

/// The sub-buckets that were charged, oldest first.
#[derive(Clone, PartialEq, Debug)]
pub struct Buckets {
    /// `None` in a blank state.
    pub(crate) tiles: Option<Tiles>,
    pub(crate) last: Time,
    pub(crate) buckets: VecDeque<Bucket>,
    /// The sum of all counts.
    pub(crate) total: u64,
}

/// The change that a call makes to the sub-buckets. Applying it twice has the same effect as applying it once.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub(crate) tiles: Tiles,
    pub(crate) last: Time,
    /// Buckets before this number are dropped.
    pub(crate) first: u64,
    /// This bucket replaces those from its number on. If its count is 0, they are removed.
    pub(crate) newest: Bucket,
    /// `newest` replaces only the bucket of its number, and later buckets stay.
    pub(crate) keeps_later: bool,
}

impl Tiles {
    /// `None` if the precision does not divide the window into at most [`MAX_BUCKETS`] parts.
    pub fn new(window: Period, precision: Period) -> Option<Tiles> {
        let (whole, part) = (window.micros().get(), precision.micros());
        let tiles = whole.is_multiple_of(part.get()) && whole / part <= MAX_BUCKETS;
        tiles.then_some(Tiles { window, precision })
    }

    /// The number of the bucket that contains `at`.
    pub fn number(self, at: Time) -> u64 {
        self.precision.number(at)
    }

    /// The number of the oldest bucket that counts at `now`.
    pub fn first(self, now: Time) -> u64 {
        (self.number(now) + 1).saturating_sub(self.window.micros().get() / self.precision.micros())
    }

    /// When a bucket leaves the window.
    pub fn leaves(self, bucket: Bucket) -> Time {
        self.start(bucket.number).plus(self.window.span())
    }

    /// When the bucket of a number begins.
    pub fn start(self, number: u64) -> Time {
        Time::from_micros(number.saturating_mul(self.precision.micros().get()))
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Tiles> {
        Tiles::new(Period::of(reader.span()?)?, Period::of(reader.span()?)?)
    }
}

impl Bucket {
    fn decode(reader: &mut Reader<'_>) -> Option<Bucket> {
        let number = reader.word_up_to(Time::HORIZON.as_micros())?;
        Some(Bucket { number, count: reader.word_up_to(MAX_STORED)? })
    }
}

impl Buckets {
    pub fn new(tiles: Tiles, now: Time) -> Buckets {
        Buckets { tiles: Some(tiles), last: now, ..Buckets::blank() }
    }

    /// All counts in one bucket: the one that contains `last` when the window is divided into these tiles.
    pub fn merged(&self, tiles: Tiles) -> Bucket {
        Bucket { number: tiles.number(self.last), count: self.total.min(MAX_STORED) }
    }

    /// Window and precision; zero in a blank state.
    fn lengths(&self) -> [Span; 2] {
        self.tiles.map_or([Span::ZERO; 2], |Tiles { window, precision }| [window.span(), precision.span()])
    }

    fn push(&mut self, newest: Bucket) {
        self.total += newest.count;
        self.buckets.push_back(newest);
    }

    /// Replaces the buckets from the number of `newest` on.
    fn replace_from(&mut self, newest: Bucket) {
        while self.buckets.back().is_some_and(|bucket| bucket.number >= newest.number) {
            self.pop_newest();
        }
        if newest.count > 0 {
            // A forged change may drop too few buckets, but the memory must stay bounded.
            while self.buckets.len() as u64 >= MAX_BUCKETS {
                self.pop_oldest();
            }
            self.push(newest);
        }
    }

    /// Replaces or removes the bucket of this number, if there is one.
    fn replace(&mut self, bucket: Bucket) {
        let Ok(index) = self.buckets.binary_search_by_key(&bucket.number, |bucket| bucket.number) else {
            return;
        };
        let old = if bucket.count == 0 {
            self.buckets.remove(index)
        } else {
            self.buckets.get_mut(index).map(|old| core::mem::replace(old, bucket))
        };
        self.total = self.total - old.map_or(0, |old| old.count) + bucket.count;
    }

    fn pop_oldest(&mut self) {
        self.total -= self.buckets.pop_front().map_or(0, |bucket| bucket.count);
    }

    fn pop_newest(&mut self) {
        self.total -= self.buckets.pop_back().map_or(0, |bucket| bucket.count);
    }
}

impl LimitState for Buckets {
    fn until(&self, _: Span) -> Time {
        let leaves = |tiles: Tiles| self.buckets.back().map(|newest| tiles.leaves(*newest));
        self.tiles.and_then(leaves).unwrap_or(Time::EPOCH)
    }
}

impl State for Buckets {
    const KIND: Kind = Kind::Buckets;
    type Change<'a> = Change;

    fn last(&self) -> Time {
        self.last
    }

    fn blank() -> Buckets {
        Buckets { tiles: None, last: Time::EPOCH, buckets: VecDeque::new(), total: 0 }
    }

    fn apply(&mut self, change: Change) {
        if self.tiles != Some(change.tiles) {
            let merged = self.merged(change.tiles);
            (self.buckets, self.total) = (VecDeque::new(), 0);
            if merged.count > 0 {
                self.push(merged);
            }
        }
        while self.buckets.front().is_some_and(|bucket| bucket.number < change.first) {
            self.pop_oldest();
        }
        if change.keeps_later {
            self.replace(change.newest);
            // A forged change may leave buckets of the future.
            let current = change.tiles.number(change.last);
            while self.buckets.back().is_some_and(|bucket| bucket.number > current) {
                self.pop_newest();
            }
        } else {
            self.replace_from(change.newest);
        }
        (self.tiles, self.last) = (Some(change.tiles), change.last);
    }

    fn encode_change(change: &Change, out: &mut Vec<u8>) {
        let Tiles { window, precision } = change.tiles;
        let [window, precision] = [window, precision].map(|period| period.micros().get());
        let Bucket { number, count } = change.newest;
        put_words(out, [window, precision, change.last.as_micros(), change.first, number, count]);
        out.push(change.keeps_later.into());
    }

    fn decode_change(reader: &mut Reader<'_>) -> Option<Change> {
        let (tiles, last) = (Tiles::decode(reader)?, reader.instant()?);
        let first = reader.word()?;
        let newest = Bucket::decode(reader)?;
        let keeps_later = reader.byte().filter(|byte| *byte < 2)? == 1;
        let sound = first <= newest.number && newest.number <= tiles.number(last);
        sound.then_some(Change { tiles, last, first, newest, keeps_later })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let [window, precision] = self.lengths().map(Span::as_micros);
        put_words(out, [window, precision, self.last.as_micros(), self.buckets.len() as u64]);
        for bucket in &self.buckets {
            put(out, bucket.number);
            put(out, bucket.count);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Buckets> {
        let (tiles, last) = (Tiles::decode(reader)?, reader.instant()?);
        let mut state = Buckets::new(tiles, last);
        let current = tiles.number(last);
        for _ in 0..reader.word_up_to(MAX_BUCKETS)? {
            let bucket = Bucket::decode(reader)?;
            let in_order = state.buckets.back().is_none_or(|previous| previous.number < bucket.number);
            if !in_order || bucket.number > current || bucket.count == 0 {
                return None;
            }
            state.push(bucket);
        }
        Some(state)
    }

    fn heap_bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<Bucket>()
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        let [_, precision] = self.lengths();
        figure("precision_ms", Figure::Length(precision));
        figure("buckets", Figure::Count(self.buckets.len() as u64));
        figure("count", Figure::Count(self.total.min(MAX_STORED)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::millis;

    #[test]
    fn a_bucket_can_be_corrected_and_later_ones_stay() {
        let tiles = Tiles::new(millis(10_000), millis(1000)).unwrap();
        let mut state = Buckets::new(tiles, Time::from_millis(9000));
        for number in 0..5 {
            state.push(Bucket { number, count: 10 });
        }
        let mut correct = |number, count| {
            let newest = Bucket { number, count };
            let change = Change { tiles, last: state.last, first: 0, newest, keeps_later: true };
            state.apply(change);
            state.apply(change);
            let counts: Vec<_> = state.buckets.iter().map(|bucket| (bucket.number, bucket.count)).collect();
            assert_eq!(state.total, counts.iter().map(|(_, count)| count).sum::<u64>());
            counts
        };
        assert_eq!(correct(1, 7), [(0, 10), (1, 7), (2, 10), (3, 10), (4, 10)]);
        assert_eq!(correct(2, 0), [(0, 10), (1, 7), (3, 10), (4, 10)]);
        // There is no such bucket.
        assert_eq!(correct(2, 5), [(0, 10), (1, 7), (3, 10), (4, 10)]);
        // A forged change goes back in time.
        let newest = Bucket { number: 1, count: 7 };
        state.apply(Change { tiles, last: Time::from_millis(3999), first: 0, newest, keeps_later: true });
        let mut bytes = Vec::new();
        state.encode(&mut bytes);
        assert_eq!(Buckets::decode(&mut Reader::new(&bytes)).map(|copy| copy.total), Some(27));
    }

    #[test]
    fn stored_buckets_are_in_order_and_each_is_there_once() {
        let tiles = Tiles::new(millis(10_000), millis(1000)).unwrap();
        let decoded = |numbers: [u64; 2]| {
            let mut state = Buckets::new(tiles, Time::from_millis(9000));
            state.buckets.extend(numbers.map(|number| Bucket { number, count: 10 }));
            let mut bytes = Vec::new();
            state.encode(&mut bytes);
            Buckets::decode(&mut Reader::new(&bytes)).map(|copy| copy.total)
        };
        assert_eq!(
            [[1, 2], [2, 2], [2, 1], [8, 9], [8, 10]].map(decoded),
            [Some(20), None, None, Some(20), None]
        );
    }

    #[test]
    fn the_sum_is_that_of_all_buckets_after_any_changes() {
        let tiles = Tiles::new(millis(1_024_000), millis(1000)).unwrap();
        let mut state = Buckets::blank();
        let mut apply = |tiles, first, number, count| {
            let last = Time::from_millis((number + 1) * 1000);
            state.apply(Change { tiles, last, first, newest: Bucket { number, count }, keeps_later: false });
            let sum = state.buckets.iter().map(|bucket| bucket.count).sum::<u64>();
            assert_eq!(state.total, sum, "bucket {number}");
            state.buckets.len() as u64
        };
        // These drop no bucket, as forged changes may. The oldest ones make room.
        for number in 0..MAX_BUCKETS + 9 {
            assert_eq!(apply(tiles, 0, number, number + 1), (number + 1).min(MAX_BUCKETS));
        }
        assert_eq!(apply(tiles, 100, MAX_BUCKETS, 7), MAX_BUCKETS - 99);
        assert_eq!(apply(tiles, 100, 500, 0), 400);
        let coarse = Tiles::new(millis(1_024_000), millis(2000)).unwrap();
        assert_eq!(apply(coarse, 0, 600, 3), 2);
    }
}
