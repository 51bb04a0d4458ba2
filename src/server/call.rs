//! One call of a command: the arguments, and the door that no panic passes.

use std::ffi::c_int;
use std::ops::RangeBounds;
use std::slice;

use redis_module::raw::{RedisModuleCtx, RedisModuleString};

use super::api::{OK, api};
use super::guard::guarded;
use super::register::{Command, numbered};
use super::reply::{self, Reply};
use super::stats;
use ratelimit_language::{Arguments, Error};

/// As many words as nearly every call has, or more; and as many as those that name several limits have.
const FEW: usize = 8;
const SOME: usize = 48;

/// A call in progress.
pub struct Call<'a> {
    pub(super) ctx: *mut RedisModuleCtx,
    argv: &'a [*mut RedisModuleString],
}

impl<'a> Call<'a> {
    /// The argument at a place; the command's name is at 0.
    pub(super) fn argument(&self, place: usize) -> Result<*mut RedisModuleString, Error> {
        self.argv.get(place).copied().ok_or(Error::Arity)
    }

    /// The arguments from a place on.
    pub(super) fn strings(&self, from: usize) -> &'a [*mut RedisModuleString] {
        self.argv.get(from..).unwrap_or(&[])
    }

    /// The bytes of the arguments from a place on.
    pub fn arguments(&self, from: usize) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.strings(from).iter().map(|string| bytes(*string))
    }

    /// How many arguments there are, with the command's name.
    pub fn len(&self) -> usize {
        self.argv.len()
    }

    /// Parses the arguments at these places.
    pub fn parse<T>(
        &self,
        places: impl RangeBounds<usize>,
        parse: impl FnOnce(&mut Arguments<'_, 'a>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        // So that no call but a very wordy one allocates.
        let mut few: [&'a [u8]; FEW] = [&[]; FEW];
        let mut some: [&'a [u8]; SOME];
        let many: Vec<&'a [u8]>;
        let strings =
            self.argv.get((places.start_bound().cloned(), places.end_bound().cloned())).unwrap_or(&[]);
        let words = if strings.len() <= FEW {
            filled(&mut few, strings)
        } else if strings.len() <= SOME {
            some = [&[]; SOME];
            filled(&mut some, strings)
        } else {
            many = strings.iter().map(|string| bytes(*string)).collect();
            &many
        };
        parse(&mut Arguments::new(words, stats::bounds()))
    }

    /// Sends the arguments as they are to replicas and the AOF; for commands that look at no clock.
    pub fn replicate_verbatim(&self) {
        // SAFETY: `ctx` is the context of the running command.
        unsafe { api!(RedisModule_ReplicateVerbatim(self.ctx)) };
    }
}

/// The bytes of these strings, for which there is room.
#[inline(always)]
fn filled<'b, 'a>(room: &'b mut [&'a [u8]], strings: &[*mut RedisModuleString]) -> &'b [&'a [u8]] {
    room.iter_mut().zip(strings).for_each(|(word, string)| *word = bytes(*string));
    room.get(..strings.len()).unwrap_or(&[])
}

fn bytes<'a>(string: *mut RedisModuleString) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: `string` is an argument of the running command and lives as long as the call; its bytes are not
    // changed meanwhile. The pointer is never null, also when the length is 0.
    unsafe {
        let start = api!(RedisModule_StringPtrLen(string, &raw mut length));
        slice::from_raw_parts(start.cast(), length)
    }
}

/// Where the server enters a command.
///
/// A panic that left this function would abort the server. It becomes an error reply instead; a command replies
/// last, so nothing was replied before.
pub extern "C" fn enter<C: Command>(
    ctx: *mut RedisModuleCtx,
    argv: *mut *mut RedisModuleString,
    argc: c_int,
) -> c_int {
    let replied = guarded(false, || {
        // SAFETY: the server passes `argc` arguments, which live as long as the call.
        let argv = unsafe { slice::from_raw_parts(argv, usize::try_from(argc).unwrap_or(0)) };
        if let Some(flags) = numbered(C::KEYS) {
            // SAFETY: the context of a command, which was entered to be run, or to tell its keys.
            if unsafe { api!(RedisModule_IsKeysPositionRequest(ctx)) } != 0 {
                tell_keys(&Call { ctx, argv }, flags);
                return true;
            }
        }
        let reply = C::run(&Call { ctx, argv }).unwrap_or_else(Reply::Error);
        // SAFETY: `ctx` is the context of the running command, which has replied nothing so far.
        unsafe { reply::send(ctx, &reply) };
        true
    });
    if !replied {
        // SAFETY: as above: sending a reply is the last thing that a command does, and does not panic.
        unsafe { reply::send(ctx, &Reply::Error(Error::Internal)) };
    }
    OK
}

/// Tells the server where the keys are of a command whose first argument says how many there are. A cluster asks for
/// them in this way only.
fn tell_keys(call: &Call<'_>, flags: u32) {
    let keys = u64::try_from(call.len()).unwrap_or(0).saturating_sub(2);
    // A number that cannot be right is for the command itself to tell.
    let count = call.parse(1..2, |words| words.number("numkeys", 1, keys)).unwrap_or(0);
    for place in (2..).take(usize::try_from(count).unwrap_or(0)) {
        // SAFETY: the context of a command that was asked for its keys.
        unsafe { api!(RedisModule_KeyAtPosWithFlags(call.ctx, place, flags.cast_signed())) };
    }
}
