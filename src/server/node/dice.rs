//! Random numbers from the server.

use crate::server::api::api;

/// Returns a random number of the uniform distribution on [0, 1).
pub fn chance() -> f64 {
    let [word] = random_words();
    #[allow(clippy::cast_precision_loss, reason = "53 bits, which an f64 holds exactly")]
    let numerator = (word >> 11) as f64;
    numerator / 2f64.powi(53)
}

/// Returns random words that no client can predict: the server hashes a seed that it reads from `/dev/urandom`.
pub fn random_words<const N: usize>() -> [u64; N] {
    [(); N].map(|()| {
        let mut bytes = [0; 8];
        // SAFETY: the server writes at most as many bytes as the buffer has.
        unsafe { api!(RedisModule_GetRandomBytes(bytes.as_mut_ptr(), bytes.len())) };
        u64::from_le_bytes(bytes)
    })
}
