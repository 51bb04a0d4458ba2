//! What a key holds, and how a call reads and changes it.
//!
//! - `handle.rs` has the server's handle of a key of any type, `open_key.rs` the value behind it, `key/` its limits.
//! - `value.rs` has the layout of a value in memory, `discard.rs` frees large ones, `native_type.rs` saves and copies them.
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
pub mod value;
