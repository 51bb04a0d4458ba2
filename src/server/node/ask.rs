//! What the server says of itself when it is asked.

use std::ffi::CStr;
use std::ptr::null;
use std::slice;

use redis_module::raw::RedisModuleCtx;

use crate::server::api::api;

/// Whether these fields of a section of `INFO` all have this value.
///
/// # Safety
///
/// `ctx` is a valid context.
pub unsafe fn fields_are(ctx: *mut RedisModuleCtx, section: &CStr, names: &[&CStr], value: &CStr) -> bool {
    // SAFETY: the caller keeps the contract. A field is null or a C string of the data, which are freed last.
    unsafe {
        let data = api!(RedisModule_GetServerInfo(ctx, section.as_ptr()));
        let all = names.iter().all(|name| {
            let field = api!(RedisModule_ServerInfoGetFieldC(data, name.as_ptr()));
            !field.is_null() && CStr::from_ptr(field) == value
        });
        api!(RedisModule_FreeServerInfo(ctx, data));
        all
    }
}

/// Whether a setting has this value; false if the server does not say.
///
/// # Safety
///
/// `ctx` is a valid context.
pub unsafe fn setting_is(ctx: *mut RedisModuleCtx, name: &CStr, value: &CStr) -> bool {
    // SAFETY: the caller keeps the contract. The format `cc` takes two C strings. The server accepts null for a reply, and
    // returns null for an element that a reply lacks. The bytes belong to the reply, which is freed last.
    unsafe {
        let reply =
            api!(RedisModule_Call(ctx, c"CONFIG".as_ptr(), c"cc".as_ptr(), c"GET".as_ptr(), name.as_ptr()));
        if reply.is_null() {
            return false;
        }
        let held = api!(RedisModule_CallReplyArrayElement(reply, 1));
        let mut length = 0;
        let bytes =
            if held.is_null() { null() } else { api!(RedisModule_CallReplyStringPtr(held, &raw mut length)) };
        let is = !bytes.is_null() && slice::from_raw_parts(bytes.cast::<u8>(), length) == value.to_bytes();
        api!(RedisModule_FreeCallReply(reply));
        is
    }
}
