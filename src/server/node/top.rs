//! The keys that are refused most on this node, for `RL.TOP`. They are neither saved nor replicated.

use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ratelimit_core::Period;
use ratelimit_core::top::{Seed, Windows};
use ratelimit_language::TopCall;

use super::clock::clock;
use super::dice::random_words;
use crate::server::entry::reply::TopKey;

/// `None` if no call was refused since the settings were set.
static WINDOWS: Mutex<Option<Windows<Seed>>> = Mutex::new(None);

/// Counts a refusal for a key of a database. A window has at most `most` entries.
pub fn count(database: c_int, key: &[u8], most: usize, window: Period) {
    let mut windows = windows();
    let windows = windows.get_or_insert_with(|| {
        let [seed] = random_words();
        Windows::new(window, most, Seed(seed))
    });
    windows.count(clock(), database.cast_unsigned(), key);
}

/// The keys that are refused most.
pub fn top_keys(asked: TopCall) -> Vec<TopKey> {
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
