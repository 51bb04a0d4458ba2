//! What a key holds, and how a call of the engine opens and changes it.
//!
//! - `handle.rs` has the server's handle of a key of any type, `slot.rs` the value behind it; `several.rs` opens several keys.
//! - `discard.rs` frees large values, `native_type.rs` saves and copies them. The crate `ratelimit-value` has their layout.
//! - `buffer.rs` lends memory to payloads.

pub mod buffer;
pub mod discard;
pub mod handle;
pub mod native_type;
pub mod several;
pub mod slot;
