//! Runs one of the server's own commands, and passes its reply on.

use std::ffi::CStr;

use ratelimit_language::Error;
use redis_module::raw::{RedisModuleCallReply, RedisModuleCtx, ReplyType};

use super::call::Call;
use crate::server::api::api;

/// The reply of one of the server's own commands. Dropping it frees it.
pub struct ServerReply(*mut RedisModuleCallReply);

impl Call<'_> {
    /// Runs one of the server's own commands on the key at the place `key`, with the arguments from the place `from`
    /// on.
    ///
    /// That command is replicated, with the id that the server generated if the argument was `*`.
    pub fn forward(&self, command: &CStr, key: usize, from: usize) -> Result<ServerReply, Error> {
        let key = self.argument(key)?;
        let rest = self.strings(from);
        // SAFETY: context and arguments are those of the running command. The format `sv` takes a string object, then a
        // list of them and its length. `!` replicates the command, and `E` returns errors as replies.
        let reply = unsafe {
            api!(RedisModule_Call(
                self.ctx,
                command.as_ptr(),
                c"!Esv".as_ptr(),
                key,
                rest.as_ptr(),
                rest.len()
            ))
        };
        if reply.is_null() { Err(Error::Internal) } else { Ok(ServerReply(reply)) }
    }
}

impl ServerReply {
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
