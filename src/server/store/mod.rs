//! What a key holds, and how a call reads and changes it.

mod apply;
pub mod buffer;
pub mod discard;
pub mod handle;
pub mod key;
pub mod native_type;
pub mod open_key;
pub mod payload;
pub mod value;
