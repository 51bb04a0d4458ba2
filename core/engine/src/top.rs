//! The keys that are refused most on a node, for `RL.TOP`. They are neither saved nor replicated.

use ratelimit_core::top::{Seed, Windows};
use ratelimit_core::{Period, Time};
use ratelimit_language::TopCall;

use crate::reply::TopKey;

/// The keys that are refused most.
pub struct Top(
    /// `None` if no call was refused since the settings were set.
    Option<Windows<Seed>>,
);

impl Top {
    pub(crate) const NONE: Top = Top(None);

    /// Counts a refusal for a key of a database. A window has at most `most` entries. `seed` returns a number that no client can
    /// predict.
    pub fn count(
        &mut self,
        now: Time,
        (database, key): (i32, &[u8]),
        (most, window): (usize, Period),
        seed: impl FnOnce() -> u64,
    ) {
        let windows = self.0.get_or_insert_with(|| Windows::new(window, most, Seed(seed())));
        windows.count(now, database.cast_unsigned(), key);
    }

    pub fn keys(&mut self, now: Time, asked: TopCall) -> Vec<TopKey> {
        let Some(windows) = &mut self.0 else { return Vec::new() };
        let top = if asked.previous { windows.previous(now) } else { windows.current(now) };
        let keys = top.sorted().into_iter().map(|top| TopKey {
            key: top.key.to_vec(),
            database: top.database,
            count: top.count,
            error: top.error,
        });
        keys.take(asked.count).collect()
    }

    pub fn forget(&mut self) {
        self.0 = None;
    }
}
