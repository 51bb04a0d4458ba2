//! Stops panics in the functions that the server calls.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body`, and returns `otherwise` if it panics. A panic that reached the server would abort it.
pub fn guarded<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}
