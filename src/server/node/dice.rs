//! Random numbers from the server.

use crate::server::api::api;

/// Returns a random word that no client can predict: the server hashes a seed that it reads from `/dev/urandom`.
pub fn random_word() -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: the server writes at most as many bytes as the buffer has.
    unsafe { api!(RedisModule_GetRandomBytes(bytes.as_mut_ptr(), bytes.len())) };
    u64::from_le_bytes(bytes)
}
