//! What README, SECURITY and `docs/` say is what the module does.

mod monitoring;
mod readme;
pub mod reference;
pub mod sessions;
pub mod summary;
