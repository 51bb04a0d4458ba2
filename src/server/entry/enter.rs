//! The function by which the server runs a command, or asks for the keys of its arguments.
//!
//! The server has checked the number of arguments. `waiting/` keeps [`run`] for a caller that waits, and calls it when
//! `serve.rs` tries the caller.

use std::ffi::c_int;
use std::ops::Range;
use std::slice;

use ratelimit_engine::command::told;
use ratelimit_engine::host::Host;
use ratelimit_engine::reply::Reply;
use ratelimit_language::{Error, KeyUse, Keys};
use redis_module::raw::{RedisModuleCtx, RedisModuleString};

use super::call::Call;
use super::command::{Command, key_flags};
use super::reply;
use crate::server::api::{OK, api};
use crate::server::guard::guarded;
use crate::server::node::NODE;
use crate::server::waiting::{self, Trial};

/// The function that the server calls to run a command.
pub extern "C" fn enter<C: Command>(
    ctx: *mut RedisModuleCtx,
    argv: *mut *mut RedisModuleString,
    argc: c_int,
) -> c_int {
    // SAFETY: `argv` has `argc` arguments, which live as long as the call.
    let argv = unsafe { slice::from_raw_parts(argv, usize::try_from(argc).unwrap_or(0)) };
    run::<C>(ctx, argv, None);
    OK
}

/// Runs a command. With a trial its caller waits, and the trial notes the reply.
///
/// A panic that reached the server would abort it, so it becomes an error reply. A command sends its reply last, so a
/// command that panics has sent none.
fn run<C: Command>(ctx: *mut RedisModuleCtx, argv: &[*mut RedisModuleString], again: Option<&Trial>) {
    let replied = guarded(false, || {
        let call = Call::new(ctx, argv, again);
        if let Keys::Counted(key_use) | Keys::FirstAndBehind(key_use) | Keys::OfInner(key_use) =
            C::DOCUMENTATION.keys
        {
            // SAFETY: `ctx` is the context of a command that was entered to be run or to report its keys.
            if unsafe { api!(RedisModule_IsKeysPositionRequest(ctx)) } != 0 {
                report_keys(&call, key_use, C::keys(&call));
                return true;
            }
        }
        let reply = C::run(&call).unwrap_or_else(|error| failed::<C>(&call, error));
        match again {
            // SAFETY: `ctx` is the context of the running command, which has sent no reply yet.
            None => unsafe { reply::send_or(ctx, reply, |wait| waiting::block(&call, run::<C>, wait)) },
            Some(trial) => trial.end(reply),
        }
        true
    });
    if !replied {
        NODE.counts.errors.add_one();
        if again.is_none() {
            // SAFETY: `ctx` is the context of the running command. Sending a reply does not panic, so none was sent.
            unsafe { reply::send(ctx, &Reply::INTERNAL) };
        }
    }
}

#[cold]
fn failed<C: Command>(call: &Call<'_>, error: Error) -> Reply {
    NODE.counts.errors.add_one();
    Reply::Error(told(call, &C::DOCUMENTATION, error))
}

/// Reports the places of the keys to the server. A cluster learns the keys of some commands in this way only.
///
/// A call may end before its key. The server reads the word at each place that is reported, whether there is one or not.
fn report_keys(call: &Call<'_>, key_use: KeyUse, [first, more]: [Range<usize>; 2]) {
    for place in
        first.chain(more).filter(|place| *place < call.len()).filter_map(|place| c_int::try_from(place).ok())
    {
        // SAFETY: `ctx` is the context of a command that was entered to report its keys.
        unsafe { api!(RedisModule_KeyAtPosWithFlags(call.ctx, place, key_flags(key_use).cast_signed())) };
    }
}
