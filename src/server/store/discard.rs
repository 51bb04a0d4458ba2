//! Frees large limits on another thread, as the server does with large keys.

use std::thread::Builder;

use ratelimit_core::state::StoredLimit;
use ratelimit_core::{State, with_kept};

/// The most allocations that are freed at once. As in the server: freeing fewer is cheaper than another thread.
const AT_ONCE: usize = 64;

/// Frees a limit that was removed from a set.
pub fn discard(limit: StoredLimit) {
    let effort = with_kept!(&limit.state, state => state.effort());
    if effort > AT_ONCE {
        // If no thread can be made, the closure frees the limit as it is dropped here.
        _ = Builder::new().name("ratelimit-free".into()).spawn(move || drop(limit));
    }
}
