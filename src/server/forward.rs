//! Running a command of the server's own, and passing its reply on.

use std::ffi::CStr;

use redis_module::raw::{RedisModuleCallReply, RedisModuleCtx, ReplyType};

use super::api::api;
use super::call::Call;
use ratelimit_language::Error;

/// What a command of the server's replied; freed when dropped.
pub struct ServerReply(*mut RedisModuleCallReply);

impl Call<'_> {
    /// Runs a command of the server's on the key at a place, with the arguments from another place on. Replicas and
    /// the AOF get that command, as the server writes it down: with what it made of a `*`.
    pub fn forward(&self, command: &CStr, key: usize, from: usize) -> Result<ServerReply, Error> {
        let key = self.argument(key)?;
        let rest = self.strings(from);
        // SAFETY: the context and arguments of the running command; the format says: replicate it, reply errors too,
        // a string object, and a list of them with its length.
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
        // SAFETY: the reply is there until it is dropped.
        unsafe { api!(RedisModule_CallReplyType(self.0)) == ReplyType::Error as i32 }
    }

    /// # Safety
    ///
    /// `ctx` is the context of the command that was given this reply, and has not replied yet.
    pub(super) unsafe fn send(&self, ctx: *mut RedisModuleCtx) {
        // SAFETY: by the contract.
        unsafe { api!(RedisModule_ReplyWithCallReply(ctx, self.0)) };
    }
}

impl Drop for ServerReply {
    fn drop(&mut self) {
        // SAFETY: the reply is ours, and nobody else has it.
        unsafe { api!(RedisModule_FreeCallReply(self.0)) };
    }
}
