//! The buffer for payloads, which calls pass on so that no call allocates one.

use std::cell::Cell;

/// Most payloads are shorter, so the buffer does not grow while one is written.
const CAPACITY: usize = 128;

static BUFFER: Buffer = Buffer(Cell::new(Vec::new()));

struct Buffer(Cell<Vec<u8>>);

// SAFETY: only commands use the buffer, and the server runs commands one at a time, under its lock.
unsafe impl Sync for Buffer {}

/// Takes the buffer, or makes one if another key of the call has it.
#[inline(always)]
pub fn take() -> Vec<u8> {
    let mut buffer = BUFFER.0.take();
    buffer.reserve(CAPACITY);
    buffer
}

/// Puts the buffer back for the next call.
#[inline(always)]
pub fn put_back(mut buffer: Vec<u8>) {
    if buffer.capacity() > 0 {
        buffer.clear();
        BUFFER.0.set(buffer);
    }
}
