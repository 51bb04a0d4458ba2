//! Commands that do only what every command of a module must do. The cost of their calls is the server's own share of
//! the cost of our calls, and its lower bound. `make bench WHAT=instructions` builds this module and loads it beside ours.

use std::ffi::{c_char, c_int};

use redis_module::raw::{
    self, REDISMODULE_READ, REDISMODULE_WRITE, RedisModule_CloseKey, RedisModule_CreateCommand,
    RedisModule_OpenKey, RedisModule_Replicate, RedisModule_ReplyWithArray, RedisModule_ReplyWithLongLong,
    RedisModule_SetModuleOptions, RedisModule_SignalModifiedKey, RedisModuleCtx, RedisModuleString,
};

const OK: c_int = raw::Status::Ok as c_int;
const ERR: c_int = raw::Status::Err as c_int;

/// As long as the effect of a call on a small state.
const PAYLOAD: [u8; 24] = [0; 24];

/// Replies five integers, as long as a limiter's.
extern "C" fn reply(ctx: *mut RedisModuleCtx, _: *mut *mut RedisModuleString, _: c_int) -> c_int {
    // SAFETY: the context of the running command; the functions are there since the module was loaded.
    unsafe {
        RedisModule_ReplyWithArray.unwrap_unchecked()(ctx, 5);
        for integer in [0, 500, 499, 0, 10] {
            RedisModule_ReplyWithLongLong.unwrap_unchecked()(ctx, integer);
        }
    }
    OK
}

/// Opens the key as if to change it, and closes it.
extern "C" fn open(ctx: *mut RedisModuleCtx, argv: *mut *mut RedisModuleString, argc: c_int) -> c_int {
    // SAFETY: the arity promises a key.
    unsafe {
        let mode = (REDISMODULE_READ | REDISMODULE_WRITE).cast_signed();
        let key = RedisModule_OpenKey.unwrap_unchecked()(ctx, *argv.add(1), mode);
        RedisModule_CloseKey.unwrap_unchecked()(key);
    }
    reply(ctx, argv, argc)
}

/// Opens it, signals it, and sends its name and a payload to replicas and the AOF.
extern "C" fn write(ctx: *mut RedisModuleCtx, argv: *mut *mut RedisModuleString, argc: c_int) -> c_int {
    // SAFETY: the arity promises a key; the format asks for a string object and a buffer with its length.
    unsafe {
        let key = *argv.add(1);
        RedisModule_SignalModifiedKey.unwrap_unchecked()(ctx, key);
        let (command, format) = (c"FL.APPLY".as_ptr(), c"sb".as_ptr());
        RedisModule_Replicate.unwrap_unchecked()(ctx, command, format, key, PAYLOAD.as_ptr(), PAYLOAD.len());
    }
    open(ctx, argv, argc)
}

type Command = extern "C" fn(*mut RedisModuleCtx, *mut *mut RedisModuleString, c_int) -> c_int;

#[unsafe(no_mangle)]
extern "C" fn RedisModule_OnLoad(
    ctx: *mut RedisModuleCtx,
    _: *mut *mut RedisModuleString,
    _: c_int,
) -> c_int {
    let commands: [(_, Command, _); 4] = [
        (c"fl.reply", reply, c"readonly fast"),
        (c"fl.open", open, c"readonly fast"),
        (c"fl.write", write, c"write deny-oom fast"),
        (c"fl.apply", reply, c"write"),
    ];
    // SAFETY: the context of the load; the names are C strings; closing a key must not signal it once more.
    unsafe {
        let name: *const c_char = c"floor".as_ptr();
        if raw::Export_RedisModule_Init(ctx, name, 1, raw::REDISMODULE_APIVER_1.cast_signed()) != OK {
            return ERR;
        }
        let no_signal = raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED.cast_signed();
        RedisModule_SetModuleOptions.unwrap_unchecked()(ctx, no_signal);
        let create = RedisModule_CreateCommand.unwrap_unchecked();
        let made = commands.map(|(name, command, flags)| {
            create(ctx, name.as_ptr(), Some(command), flags.as_ptr(), 1, 1, 1) == OK
        });
        if made == [true; 4] { OK } else { ERR }
    }
}
