//! What README, SECURITY and `docs/` say is what the module does.

mod monitoring;
mod readme;
mod reference;
mod sessions;
mod summary;
