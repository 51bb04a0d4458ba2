//! What a caller is told, and how it is sent.

use std::ffi::CString;

use redis_module::raw::RedisModuleCtx;

use super::api::api;
use super::forward::ServerReply;
use super::stats;
use ratelimit_core::Answer;
use ratelimit_core::decide::clamped;
use ratelimit_language::Error;

pub enum Reply {
    /// The five integers of every limiter.
    Answer(Answer),
    /// And how much was granted, as a sixth.
    Granted(Answer, u64),
    /// The shedder's: limited or not, and the chance that it was.
    Chance(bool, f64),
    /// The answer for all, and an array of the answer of each.
    Several(Vec<Answer>),
    /// redis-cell's: in seconds, and -1 where nothing needs to be waited for.
    Cell(Answer),
    /// What a command of the server's replied.
    Forwarded(ServerReply),
    Integer(u64),
    Null,
    Ok,
    Lines(&'static [String]),
    Map(Vec<(&'static str, Value)>),
    Error(Error),
}

pub enum Value {
    Integer(i64),
    Real(f64),
    Text(&'static str),
    Maps(Vec<Vec<(&'static str, Value)>>),
}

/// Sends a reply.
///
/// # Safety
///
/// `ctx` is the context of a running command that has not replied yet.
pub unsafe fn send(ctx: *mut RedisModuleCtx, reply: &Reply) {
    // SAFETY: by the contract, and every string is a C string that lives until the call returns.
    unsafe {
        match reply {
            Reply::Answer(answer) => {
                api!(RedisModule_ReplyWithArray(ctx, 5));
                send_five(ctx, answer);
            }
            Reply::Granted(answer, granted) => {
                api!(RedisModule_ReplyWithArray(ctx, 6));
                send_five(ctx, answer);
                api!(RedisModule_ReplyWithLongLong(ctx, clamped(*granted)));
            }
            Reply::Chance(limited, chance) => {
                api!(RedisModule_ReplyWithArray(ctx, 2));
                api!(RedisModule_ReplyWithLongLong(ctx, (*limited).into()));
                api!(RedisModule_ReplyWithDouble(ctx, *chance));
            }
            Reply::Several(answers) => {
                api!(RedisModule_ReplyWithArray(ctx, 2));
                if let Some(all) = Answer::all(answers.iter().copied()) {
                    api!(RedisModule_ReplyWithArray(ctx, 5));
                    send_five(ctx, &all);
                }
                api!(RedisModule_ReplyWithArray(ctx, clamped(answers.len() as u64)));
                for answer in answers {
                    api!(RedisModule_ReplyWithArray(ctx, 5));
                    send_five(ctx, answer);
                }
            }
            Reply::Cell(answer) => {
                api!(RedisModule_ReplyWithArray(ctx, 5));
                for integer in answer.integers_of_cell() {
                    api!(RedisModule_ReplyWithLongLong(ctx, integer));
                }
            }
            Reply::Forwarded(reply) => reply.send(ctx),
            Reply::Integer(number) => _ = api!(RedisModule_ReplyWithLongLong(ctx, clamped(*number))),
            Reply::Null => _ = api!(RedisModule_ReplyWithNull(ctx)),
            Reply::Ok => _ = api!(RedisModule_ReplyWithSimpleString(ctx, c"OK".as_ptr())),
            Reply::Lines(lines) => {
                api!(RedisModule_ReplyWithArray(ctx, clamped(lines.len() as u64)));
                for line in *lines {
                    text(ctx, line);
                }
            }
            Reply::Map(fields) => send_map(ctx, fields),
            Reply::Error(error) => send_error(ctx, *error),
        }
    }
}

/// # Safety
///
/// As for `send`, in an array.
unsafe fn send_five(ctx: *mut RedisModuleCtx, answer: &Answer) {
    for integer in answer.integers() {
        // SAFETY: by the contract.
        unsafe { api!(RedisModule_ReplyWithLongLong(ctx, integer)) };
    }
}

/// # Safety
///
/// As for `send`, or in a list.
unsafe fn send_map(ctx: *mut RedisModuleCtx, fields: &[(&'static str, Value)]) {
    // SAFETY: by the contract.
    unsafe {
        api!(RedisModule_ReplyWithMap(ctx, clamped(fields.len() as u64)));
        for (name, value) in fields {
            text(ctx, name);
            match value {
                Value::Integer(number) => _ = api!(RedisModule_ReplyWithLongLong(ctx, *number)),
                Value::Real(number) => _ = api!(RedisModule_ReplyWithDouble(ctx, *number)),
                Value::Text(value) => text(ctx, value),
                Value::Maps(maps) => {
                    api!(RedisModule_ReplyWithArray(ctx, clamped(maps.len() as u64)));
                    for map in maps {
                        send_map(ctx, map);
                    }
                }
            }
        }
    }
}

/// # Safety
///
/// As for `send`.
unsafe fn text(ctx: *mut RedisModuleCtx, text: &str) {
    // SAFETY: by the contract; the server copies the bytes.
    unsafe { api!(RedisModule_ReplyWithStringBuffer(ctx, text.as_ptr().cast(), text.len())) };
}

/// # Safety
///
/// As for `send`.
#[cold]
unsafe fn send_error(ctx: *mut RedisModuleCtx, error: Error) {
    stats::count_error();
    // SAFETY: by the contract, and the message is a C string that lives until the call returns.
    unsafe {
        if error == Error::Arity {
            // The server names the command in it, as for its own.
            api!(RedisModule_WrongArity(ctx));
        } else {
            let message = CString::new(error.to_string()).unwrap_or_default();
            api!(RedisModule_ReplyWithError(ctx, message.as_ptr()));
        }
    }
}
