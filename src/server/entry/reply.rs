//! How the replies of commands are sent.

use std::ffi::CString;
use std::mem::forget;

use ratelimit_core::answer::clamped;
use ratelimit_engine::reply::{Receiver, Reply};
use ratelimit_engine::waiting::Wait;
use ratelimit_language::Error;
use redis_module::raw::RedisModuleCtx;

use crate::server::api::api;

/// Sends a reply, or calls `wait` if there is none yet.
///
/// # Safety
///
/// `ctx` is the context of a running command that has not replied yet.
#[inline(always)]
pub unsafe fn send_or(ctx: *mut RedisModuleCtx, reply: Reply, wait: impl FnOnce(Box<Wait>)) {
    match reply {
        // The most frequent reply, without another call.
        Reply::Answer(answer) => {
            Client(ctx).integers(answer.integers());
            // An answer owns nothing. Without this, a function would be called to drop it.
            forget(reply);
        }
        Reply::Wait(begun) => wait(begun),
        // SAFETY: the caller keeps the contract.
        other => unsafe { send(ctx, &other) },
    }
}

/// Sends a reply of any kind except a wait.
///
/// # Safety
///
/// As for [`send_or`].
pub unsafe fn send(ctx: *mut RedisModuleCtx, reply: &Reply) {
    reply.send(&mut Client(ctx));
}

/// The client of a running command. Only [`send`] and [`send_or`] make one, so its context is valid, and no reply was sent
/// before.
struct Client(*mut RedisModuleCtx);

impl Receiver for Client {
    fn array(&mut self, length: usize) {
        // SAFETY: the context is valid, as for every client.
        unsafe { api!(RedisModule_ReplyWithArray(self.0, clamped(length as u64))) };
    }

    fn map(&mut self, length: usize) {
        // SAFETY: the context is valid, as for every client.
        unsafe { api!(RedisModule_ReplyWithMap(self.0, clamped(length as u64))) };
    }

    fn integer(&mut self, integer: i64) {
        // SAFETY: the context is valid, as for every client.
        unsafe { api!(RedisModule_ReplyWithLongLong(self.0, integer)) };
    }

    fn real(&mut self, number: f64) {
        // SAFETY: the context is valid, as for every client.
        unsafe { api!(RedisModule_ReplyWithDouble(self.0, number)) };
    }

    fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: the context is valid, as for every client. The server copies the bytes.
        unsafe { api!(RedisModule_ReplyWithStringBuffer(self.0, bytes.as_ptr().cast(), bytes.len())) };
    }

    fn null(&mut self) {
        // SAFETY: the context is valid, as for every client.
        unsafe { api!(RedisModule_ReplyWithNull(self.0)) };
    }

    fn ok(&mut self) {
        // SAFETY: the context is valid, as for every client.
        unsafe { api!(RedisModule_ReplyWithSimpleString(self.0, c"OK".as_ptr())) };
    }

    #[cold]
    fn error(&mut self, error: &Error) {
        let message = CString::new(error.to_string()).unwrap_or_default();
        // SAFETY: the context is valid, as for every client, and the server copies the message.
        unsafe { api!(RedisModule_ReplyWithError(self.0, message.as_ptr())) };
    }
}
