//! The net under everything that the server calls.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body`; if it panics, `otherwise` is the result. A panic that went on into the server would abort it.
pub fn guarded<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}
