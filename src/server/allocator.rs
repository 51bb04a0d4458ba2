//! The allocator of the module.
//!
//! It allocates with the server's functions, so that the server counts the memory: `used_memory`, `maxmemory`. These
//! functions take no alignment. They promise 8 bytes only: a server that is built without jemalloc, and on another C
//! library than GNU's (musl), stores the length of an allocation in the 8 bytes before it.
//!
//! A type with a larger alignment gets memory from the system, which the server does not count. The values of keys must
//! not have such a type, because the server measures and moves their memory with its own functions.

use std::alloc::{GlobalAlloc, Layout, System};

#[cfg(not(test))]
use redis_module::alloc::RedisAlloc as Server;
// Unit tests run without a server.
#[cfg(test)]
use std::alloc::System as Server;

/// The alignment, in bytes, that the server's functions promise.
const PROMISED: usize = 8;

/// The memory of every value comes from the server, which measures and moves it.
const _: () = assert!(ratelimit_value::ALIGNMENT <= PROMISED, "a value of the system's memory");

pub struct Allocator;

// The trait's `realloc` calls these, as that of `RedisAlloc` does.
//
// SAFETY: both allocators keep the trait's contract for the layouts that they get. Memory goes back to the allocator that
// it came from, because its alignment never changes.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        unsafe { if layout.align() <= PROMISED { Server.alloc(layout) } else { System.alloc(layout) } }
    }

    /// The server takes large zeroed memory from the system as it is. Filling it would take milliseconds for a large sketch.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract. `dealloc` frees the server's zeroed memory as it frees the other. The
        // server aligns any size to 8 bytes.
        unsafe {
            if layout.align() > PROMISED {
                return System.alloc_zeroed(layout);
            }
            #[cfg(not(test))]
            if let Some(calloc) = redis_module::raw::RedisModule_Calloc {
                return calloc(1, layout.size()).cast();
            }
            Server.alloc_zeroed(layout)
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract, and the alignment is that of the allocation.
        unsafe {
            if layout.align() <= PROMISED {
                Server.dealloc(memory, layout);
            } else {
                System.dealloc(memory, layout);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_keeps_its_bytes_when_it_grows() {
        for align in [1, 8, 16, 64, 4096] {
            let layout = Layout::from_size_align(24, align).unwrap();
            // SAFETY: the layout is not empty, and each pointer is used as long as its memory lives.
            unsafe {
                let memory = Allocator.alloc_zeroed(layout);
                assert_eq!(memory.addr() % align, 0);
                assert_eq!(memory.cast::<[u8; 24]>().read(), [0; 24]);
                memory.write_bytes(7, 24);
                let grown = Allocator.realloc(memory, layout, 10_000);
                assert_eq!(grown.addr() % align, 0);
                assert_eq!(grown.cast::<[u8; 24]>().read(), [7; 24]);
                Allocator.dealloc(grown, Layout::from_size_align(10_000, align).unwrap());
            }
        }
    }
}
