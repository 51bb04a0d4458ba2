//! Random numbers from the server.

use super::api::api;

/// Returns a random number of the uniform distribution on [0, 1).
pub fn chance() -> f64 {
    let mut bytes = [0; 8];
    // SAFETY: the server writes at most as many bytes as the buffer has.
    unsafe { api!(RedisModule_GetRandomBytes(bytes.as_mut_ptr(), bytes.len())) };
    #[allow(clippy::cast_precision_loss, reason = "53 bits, which an f64 holds exactly")]
    let numerator = (u64::from_le_bytes(bytes) >> 11) as f64;
    numerator / 2f64.powi(53)
}
