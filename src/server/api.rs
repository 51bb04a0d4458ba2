//! The functions of the server that the module calls.
//!
//! Each is a pointer that the server fills in at load; it stays null if the server lacks the function. The module needs
//! those in the list below. If one is missing, the load fails with a line in the log that names it. The code that calls
//! any other function first checks its pointer.

use std::ffi::{c_int, c_void};
use std::slice;

use redis_module::raw::{
    RedisModule_SubscribeToServerEvent, RedisModuleCtx, RedisModuleEvent, RedisModuleString, Status,
};

/// The status that the server's functions return on success.
pub const OK: c_int = Status::Ok as c_int;

/// Calls a needed function, in an unsafe block. Its pointer is not null, because the load fails if [`missing`] finds
/// one that is. A function that is not in the list below does not compile.
macro_rules! api {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        let () = $crate::server::api::listed::$function;
        (redis_module::raw::$function.unwrap_unchecked())($($argument),*)
    }};
}
pub(super) use api;

macro_rules! needed {
    ($($function:ident)*) => {
        /// Returns the first needed function that the server lacks.
        fn first_missing() -> Option<&'static str> {
            // SAFETY: the server wrote the pointers before the module's code ran, on this thread. They do not change.
            unsafe {
                $({
                    let function = redis_module::raw::$function;
                    if function.is_none() {
                        return Some(stringify!($function));
                    }
                })*
            }
            None
        }

        /// A name for each needed function.
        #[allow(non_upper_case_globals, dead_code, reason = "names of functions; the crate calls two of them")]
        pub(super) mod listed {
            $(pub const $function: () = ();)*
        }
    };
}

needed! {
    RedisModule_AbortBlock
    RedisModule_AvoidReplicaTraffic
    RedisModule_BlockClient
    RedisModule_BlockClientOnKeys
    RedisModule_Call
    RedisModule_CallReplyArrayElement
    RedisModule_CallReplyStringPtr
    RedisModule_CallReplyType
    RedisModule_CloseKey
    RedisModule_CreateCommand
    RedisModule_CreateDataType
    RedisModule_CreateString
    RedisModule_CreateSubcommand
    RedisModule_CreateTimer
    RedisModule_DigestAddStringBuffer
    RedisModule_DigestEndSequence
    RedisModule_EmitAOF
    RedisModule_Free
    RedisModule_FreeCallReply
    RedisModule_FreeServerInfo
    RedisModule_FreeString
    RedisModule_FreeThreadSafeContext
    RedisModule_GetAbsExpire
    RedisModule_GetBlockedClientPrivateData
    RedisModule_GetClientId
    RedisModule_GetClusterNodeInfo
    RedisModule_GetCommand
    RedisModule_GetContextFlags
    RedisModule_GetDbIdFromOptCtx
    RedisModule_GetDetachedThreadSafeContext
    RedisModule_GetKeyNameFromOptCtx
    RedisModule_GetMyClusterID
    RedisModule_GetRandomBytes
    RedisModule_GetSelectedDb
    RedisModule_GetServerInfo
    RedisModule_GetThreadSafeContext
    RedisModule_GetTypeMethodVersion
    RedisModule_HoldString
    RedisModule_InfoAddFieldCString
    RedisModule_InfoAddSection
    RedisModule_IsKeysPositionRequest
    RedisModule_KeyAtPosWithFlags
    RedisModule_KeyType
    RedisModule_LoadConfigs
    RedisModule_LoadStringBuffer
    RedisModule_MallocSize
    RedisModule_ModuleTypeGetType
    RedisModule_ModuleTypeGetValue
    RedisModule_ModuleTypeSetValue
    RedisModule_NotifyKeyspaceEvent
    RedisModule_OpenKey
    RedisModule_RegisterBoolConfig
    RedisModule_RegisterNumericConfig
    RedisModule_RegisterStringConfig
    RedisModule_Replicate
    RedisModule_ReplicateVerbatim
    RedisModule_ReplyWithArray
    RedisModule_ReplyWithCallReply
    RedisModule_ReplyWithDouble
    RedisModule_ReplyWithError
    RedisModule_ReplyWithLongLong
    RedisModule_ReplyWithMap
    RedisModule_ReplyWithNull
    RedisModule_ReplyWithSimpleString
    RedisModule_ReplyWithStringBuffer
    RedisModule_SaveStringBuffer
    RedisModule_SelectDb
    RedisModule_ServerInfoGetFieldC
    RedisModule_SetAbsExpire
    RedisModule_SetCommandInfo
    RedisModule_SetDisconnectCallback
    RedisModule_SetModuleOptions
    RedisModule_StopTimer
    RedisModule_StringPtrLen
    RedisModule_UnblockClient
    RedisModule_UnlinkKey
    RedisModule_ValueLength
}

/// Subscribes to an event of the server; false if the server lacks it. A module has one callback for each event.
///
/// # Safety
///
/// `ctx` is the context of the load.
pub unsafe fn subscribe(
    ctx: *mut RedisModuleCtx,
    id: u64,
    callback: unsafe extern "C" fn(*mut RedisModuleCtx, RedisModuleEvent, u64, *mut c_void),
) -> bool {
    // SAFETY: the caller keeps the contract, and the server wrote the pointer before the module's code ran.
    unsafe {
        let event = RedisModuleEvent { id, dataver: 1 };
        RedisModule_SubscribeToServerEvent
            .is_some_and(|subscribe| subscribe(ctx, event, Some(callback)) == OK)
    }
}

/// Returns the first needed function that the server lacks. A test can pretend that one is missing.
pub fn missing(pretended: Option<&'static str>) -> Option<&'static str> {
    pretended.or_else(first_missing)
}

/// The bytes of a string of the server.
pub fn bytes<'a>(string: *mut RedisModuleString) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: the string outlives the result, and its bytes do not change: it is an argument of the running command, or one
    // that the caller keeps. The pointer is never null, even if the length is 0.
    unsafe {
        let start = api!(RedisModule_StringPtrLen(string, &raw mut length));
        slice::from_raw_parts(start.cast(), length)
    }
}
