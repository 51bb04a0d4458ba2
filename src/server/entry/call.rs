//! A call of a command: its context and its arguments.

use std::cell::Cell;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ops::RangeBounds;
use std::slice;

use ratelimit_engine::host::Host;
use ratelimit_engine::reply::Reply;
use ratelimit_language::{Arguments, Error};
use redis_module::raw::{RedisModuleCtx, RedisModuleString};

use super::forward::ServerReply;
use crate::server::api::bytes;
use crate::server::node::{NODE, copies};
use crate::server::waiting::Trial;

/// Nearly all calls have at most this many arguments to parse.
const ON_THE_STACK: usize = 48;

/// A running call.
pub struct Call<'a> {
    pub(in crate::server) ctx: *mut RedisModuleCtx,
    argv: &'a [*mut RedisModuleString],
    /// The number of open keys.
    pub(in crate::server) open: Cell<usize>,
    /// Set if the caller waits, and the call runs again in a context without a client of its own.
    pub(in crate::server) again: Option<&'a Trial>,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        ctx: *mut RedisModuleCtx,
        argv: &'a [*mut RedisModuleString],
        again: Option<&'a Trial>,
    ) -> Self {
        Call { ctx, argv, open: Cell::new(0), again }
    }

    /// The argument at `place`. The command's name is at place 0.
    pub(in crate::server) fn argument(&self, place: usize) -> Result<*mut RedisModuleString, Error> {
        match self.argv.get(place) {
            Some(argument) => Ok(*argument),
            None => Err(Error::Arity),
        }
    }

    /// The arguments from the place `from` on.
    pub(in crate::server) fn strings(&self, from: usize) -> &'a [*mut RedisModuleString] {
        self.argv.get(from..).unwrap_or(&[])
    }

    /// The bytes of the argument at `place`.
    pub(in crate::server) fn word(&self, place: usize) -> Result<&'a [u8], Error> {
        self.argument(place).map(bytes)
    }

    /// Parses the arguments at `places`.
    pub(in crate::server) fn parse<T>(
        &self,
        places: impl RangeBounds<usize>,
        parse: impl FnOnce(&mut Arguments<'_, 'a>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        // Only a very long call allocates.
        let mut buffer = [const { MaybeUninit::uninit() }; ON_THE_STACK];
        let allocated: Vec<&'a [u8]>;
        let strings =
            self.argv.get((places.start_bound().cloned(), places.end_bound().cloned())).unwrap_or(&[]);
        let words = if strings.len() <= ON_THE_STACK {
            filled(&mut buffer, strings)
        } else {
            allocated = strings.iter().map(|string| bytes(*string)).collect();
            &allocated
        };
        parse(&mut Arguments::new(words, NODE.settings.bounds()))
    }

    /// The call whose words are the arguments of this one.
    pub(in crate::server) fn inner(&self) -> Call<'a> {
        Call { ctx: self.ctx, argv: self.strings(1), open: Cell::new(0), again: None }
    }

    /// Whether the call's effects are sent. Those of a caller that waited always are: a change that is not sent is counted in
    /// the context of a client, and such a call has none.
    #[inline(always)]
    pub(in crate::server) fn sends_effects(&self) -> bool {
        copies::may_exist() || self.again.is_some()
    }

    /// Counts a change that is not sent because nothing can receive it. Save points (`save 60 1000`) count changes.
    pub(in crate::server) fn count_change(&self) {
        // The server counts the change, and discards the call, or writes it where no copy reads it (`copies.rs`).
        // No cheaper function of the server counts a change.
        self.send_on();
    }

    /// Runs one of the server's own commands on the key at the place `key`, with the arguments from the place `from`
    /// on. It is replicated as that command.
    pub fn forward(&self, command: &CStr, key: usize, from: usize) -> Result<ServerReply, Error> {
        // SAFETY: context and arguments are those of the running command.
        unsafe { ServerReply::of(self.ctx, command, self.argument(key)?, self.strings(from)) }
    }

    /// Passes the reply of such a command on. It is the call's reply.
    pub fn pass_on(&self, reply: &ServerReply) -> Reply {
        // SAFETY: the context is that of the running command, which has not replied yet.
        unsafe { reply.send(self.ctx) };
        Reply::Sent
    }
}

/// Fills a buffer with the bytes of strings, and returns the filled part: those that fit.
#[inline(always)]
fn filled<'b, 'a>(
    buffer: &'b mut [MaybeUninit<&'a [u8]>],
    strings: &[*mut RedisModuleString],
) -> &'b [&'a [u8]] {
    let mut count = 0;
    for (word, string) in buffer.iter_mut().zip(strings) {
        word.write(bytes(*string));
        count += 1;
    }
    // SAFETY: the first `count` words were written.
    unsafe { slice::from_raw_parts(buffer.as_ptr().cast(), count) }
}
