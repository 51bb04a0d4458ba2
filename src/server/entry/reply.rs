//! How the replies of commands are sent.

use std::ffi::CString;
use std::mem::forget;

use ratelimit_core::Answer;
use ratelimit_core::answer::clamped;
use ratelimit_engine::reply::{FieldValue, Fields, Reply, TopKey};
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
    let client = Client(ctx);
    match reply {
        Reply::Answer(answer) => client.integers(answer.integers()),
        Reply::Six(answer, sixth) => client.six(answer, *sixth),
        Reply::SixAndEach(answer, sixth, each) => {
            client.array(2);
            client.six(answer, *sixth);
            client.each(each);
        }
        Reply::Chance(limited, chance) => {
            client.array(2);
            client.integer((*limited).into());
            client.real(*chance);
        }
        Reply::Answers(combined, each) => {
            client.array(2);
            client.answers(combined, each);
        }
        Reply::Settled(combined, each, held) => {
            client.array(3);
            client.answers(combined, each);
            client.integer(clamped(*held));
        }
        Reply::Cell(answer) => client.integers(answer.integers_of_cell()),
        Reply::Sent => {}
        Reply::Integer(number) => client.integer(clamped(*number)),
        Reply::Null => client.null(),
        Reply::Ok => client.ok(),
        Reply::Lines(lines) => {
            client.array(lines.len());
            for line in lines {
                client.text(line);
            }
        }
        Reply::Map(fields) => client.map(fields),
        Reply::Top(keys) => {
            client.array(keys.len());
            for TopKey { key, database, count, error } in keys {
                client.array(4);
                client.bytes(key);
                for number in [u64::from(*database), *count, *error] {
                    client.integer(clamped(number));
                }
            }
        }
        Reply::Error(error) => client.error(error),
        Reply::Wait(_) => client.error(&Error::Internal),
    }
}

/// The client of a running command. Only [`send`] and [`send_or`] make one, so its context is valid, and no reply was sent
/// before.
struct Client(*mut RedisModuleCtx);

impl Client {
    /// Begins an array; its elements follow.
    fn array(&self, length: usize) {
        // SAFETY: the context is valid, as for every client.
        unsafe { api!(RedisModule_ReplyWithArray(self.0, clamped(length as u64))) };
    }

    #[inline(always)]
    fn integers<const N: usize>(&self, integers: [i64; N]) {
        self.array(integers.len());
        for integer in integers {
            self.integer(integer);
        }
    }

    fn six(&self, answer: &Answer, sixth: u64) {
        let [limited, limit, remaining, retry, reset] = answer.integers();
        self.integers([limited, limit, remaining, retry, reset, clamped(sixth)]);
    }

    /// Sends the combined answer, then the answer of each limit.
    #[inline(always)]
    fn answers(&self, combined: &Answer, each: &[Answer]) {
        self.integers(combined.integers());
        self.each(each);
    }

    #[inline(always)]
    fn each(&self, each: &[Answer]) {
        self.array(each.len());
        for answer in each {
            self.integers(answer.integers());
        }
    }

    fn integer(&self, integer: i64) {
        // SAFETY: the context is valid, as for every client.
        unsafe { api!(RedisModule_ReplyWithLongLong(self.0, integer)) };
    }

    fn real(&self, number: f64) {
        // SAFETY: the context is valid, as for every client.
        unsafe { api!(RedisModule_ReplyWithDouble(self.0, number)) };
    }

    fn text(&self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn bytes(&self, bytes: &[u8]) {
        // SAFETY: the context is valid, as for every client. The server copies the bytes.
        unsafe { api!(RedisModule_ReplyWithStringBuffer(self.0, bytes.as_ptr().cast(), bytes.len())) };
    }

    fn null(&self) {
        // SAFETY: the context is valid, as for every client.
        unsafe { api!(RedisModule_ReplyWithNull(self.0)) };
    }

    fn ok(&self) {
        // SAFETY: the context is valid, as for every client.
        unsafe { api!(RedisModule_ReplyWithSimpleString(self.0, c"OK".as_ptr())) };
    }

    fn map(&self, fields: &Fields) {
        // SAFETY: the context is valid, as for every client.
        unsafe { api!(RedisModule_ReplyWithMap(self.0, clamped(fields.len() as u64))) };
        for (name, value) in fields {
            self.text(name);
            match value {
                FieldValue::Integer(integer) => self.integer(*integer),
                FieldValue::Real(number) => self.real(*number),
                FieldValue::Text(text) => self.text(text),
                FieldValue::Bytes(bytes) => self.bytes(bytes),
                FieldValue::Maps(maps) => {
                    self.array(maps.len());
                    for map in maps {
                        self.map(map);
                    }
                }
            }
        }
    }

    #[cold]
    fn error(&self, error: &Error) {
        if *error == Error::Arity {
            // SAFETY: the context is valid, as for every client. The server writes the command's name into the text.
            unsafe { api!(RedisModule_WrongArity(self.0)) };
            return;
        }
        let message = CString::new(error.to_string()).unwrap_or_default();
        // SAFETY: the context is valid, as for every client, and the server copies the message.
        unsafe { api!(RedisModule_ReplyWithError(self.0, message.as_ptr())) };
    }
}
