//! What a key holds, and how a call reads and changes it.
//!
//! - `handle.rs` has the server's handle of a key of any type, `open_key.rs` the value behind it, `key/` its limits.
//! - `discard.rs` frees large values, `native_type.rs` saves and copies them. The crate `ratelimit-value` has their layout.
//! - `payload.rs` has the bytes of an effect, which replicas and the AOF receive. `apply.rs` applies them, on this node too.
//! - `buffer.rs` lends memory to payloads.

mod apply;
pub mod buffer;
pub mod discard;
pub mod handle;
pub mod key;
pub mod native_type;
pub mod open_key;
pub mod payload;
