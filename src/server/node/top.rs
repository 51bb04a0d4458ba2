//! The keys that are refused most on this node, for `RL.TOP`. They are neither saved nor replicated.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ratelimit_core::top::{Seed, Windows};
use ratelimit_language::TopAsked;

use super::clock::clock;
use super::dice::random_words;
use super::settings;
use crate::server::entry::call::{Call, bytes};

/// The most entries of a window.
pub const MOST_TOP: u64 = 10_000;

/// `None` if no call was refused since the settings were set.
static WINDOWS: Mutex<Option<Windows<Seed>>> = Mutex::new(None);

/// A key that is refused often.
pub struct TopKey {
    pub key: Vec<u8>,
    pub database: u32,
    pub count: u64,
    pub error: u64,
}

impl Call<'_> {
    /// Counts a refusal for the key that is the argument at `place`, if the settings ask for it.
    #[inline(always)]
    pub fn count_refusal(&self, place: usize) {
        if settings::counts_refusals() {
            self.count_in_top(place);
        }
    }

    #[cold]
    #[inline(never)]
    fn count_in_top(&self, place: usize) {
        let Ok(key) = self.argument(place) else { return };
        let mut windows = windows();
        let windows = windows.get_or_insert_with(|| {
            let (most, window) = settings::top();
            let [seed] = random_words();
            Windows::new(window, most, Seed(seed))
        });
        windows.count(clock(), self.database().cast_unsigned(), bytes(key));
    }
}

/// The keys that are refused most.
pub fn top_keys(asked: TopAsked) -> Vec<TopKey> {
    let mut windows = windows();
    let Some(windows) = windows.as_mut() else { return Vec::new() };
    let now = clock();
    let top = if asked.previous { windows.previous(now) } else { windows.current(now) };
    let keys = top.sorted().into_iter().map(|top| TopKey {
        key: top.key.to_vec(),
        database: top.database,
        count: top.count,
        error: top.error,
    });
    keys.take(asked.count).collect()
}

/// Forgets the keys that were refused.
pub fn forget_top() {
    *windows() = None;
}

fn windows() -> MutexGuard<'static, Option<Windows<Seed>>> {
    WINDOWS.lock().unwrap_or_else(PoisonError::into_inner)
}
