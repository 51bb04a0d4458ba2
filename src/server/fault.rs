//! A load of a value that panics on purpose, to test that panics are caught.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static ARMED: AtomicBool = AtomicBool::new(false);

/// Makes the next load of a value panic.
pub fn arm_load() {
    ARMED.store(true, Relaxed);
}

pub(super) fn panic_if_armed() {
    assert!(!ARMED.swap(false, Relaxed), "on purpose, while loading");
}
