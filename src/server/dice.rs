//! Chance, from the server.

use super::api::api;

/// A number from 0 up to but not 1, each as likely as any other.
pub fn chance() -> f64 {
    let mut bytes = [0; 8];
    // SAFETY: the server fills the buffer that it is given the length of.
    unsafe { api!(RedisModule_GetRandomBytes(bytes.as_mut_ptr(), bytes.len())) };
    #[allow(clippy::cast_precision_loss, reason = "53 bits, which an f64 holds exactly")]
    let numerator = (u64::from_le_bytes(bytes) >> 11) as f64;
    numerator / 2f64.powi(53)
}
