//! Runs one of the server's own commands, and passes its reply on.

use std::ffi::CStr;

use ratelimit_language::Error;
use redis_module::raw::{RedisModuleCallReply, RedisModuleCtx, RedisModuleString, ReplyType};

use crate::server::api::api;

/// The reply of one of the server's own commands. Dropping it frees it.
pub struct ServerReply(*mut RedisModuleCallReply);

impl ServerReply {
    /// Runs a command. It is replicated, with the id that the server generated if the argument was `*`.
    ///
    /// # Safety
    ///
    /// The context and the strings are those of the running command.
    pub unsafe fn of(
        ctx: *mut RedisModuleCtx,
        command: &CStr,
        key: *mut RedisModuleString,
        rest: &[*mut RedisModuleString],
    ) -> Result<ServerReply, Error> {
        // SAFETY: the caller keeps the contract. The format `sv` takes a string object, then a list of them and its
        // length. `!` replicates the command, and `E` returns errors as replies.
        let reply = unsafe {
            let (name, format) = (command.as_ptr(), c"!Esv".as_ptr());
            api!(RedisModule_Call(ctx, name, format, key, rest.as_ptr(), rest.len()))
        };
        if reply.is_null() { Err(Error::Internal) } else { Ok(ServerReply(reply)) }
    }

    pub fn is_error(&self) -> bool {
        // SAFETY: the reply is freed only when `self` is dropped.
        unsafe { api!(RedisModule_CallReplyType(self.0)) == ReplyType::Error as i32 }
    }

    /// Replies with it to the client.
    ///
    /// # Safety
    ///
    /// `ctx` is the context of the command that ran the server's command, and has not replied yet.
    pub unsafe fn send(&self, ctx: *mut RedisModuleCtx) {
        // SAFETY: the caller keeps the contract, and the reply has not been freed.
        unsafe { api!(RedisModule_ReplyWithCallReply(ctx, self.0)) };
    }
}

impl Drop for ServerReply {
    fn drop(&mut self) {
        // SAFETY: `forward` owns the reply that the server returned, and nothing uses it afterwards.
        unsafe { api!(RedisModule_FreeCallReply(self.0)) };
    }
}
