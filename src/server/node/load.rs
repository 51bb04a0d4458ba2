//! Loads the module: checks the server, then registers the type, the settings and the commands.

use std::ffi::CStr;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use redis_module::logging::{log_notice, log_warning};
use redis_module::raw::{RedisModule_AddACLCategory, RedisModuleCtx, register_info_function};
use redis_module::{Context, RedisString, Status};

use super::ask::fields_are;
use super::info::info_outside_crashes;
use super::version::{self, BUILD, VERSION};
use super::{NODE, events, options, settings};
use crate::policy_file;
use crate::server::api::{OK, api, missing};
use crate::server::entry::register::{Entry, register};
use crate::server::guard::guarded;
use crate::server::store::native_type;
use crate::server::waiting;

/// Whether this library is loaded already.
static IS_LOADED: AtomicBool = AtomicBool::new(false);

/// Returns the version as the server wants it.
///
/// The crate `redis_module` asks for it as soon as a load begins. A load of a library that is loaded already fails before it comes
/// to [`load`], without a reason in the log, so the reason is logged here.
pub fn version() -> u32 {
    if IS_LOADED.load(Relaxed) {
        log_warning(TWICE);
    }
    version::number()
}

const TWICE: &str =
    "ratelimit not loaded: it is loaded already. Is loadmodule in redis.conf and in an included file?";

/// Loads the module. Fails, with a line in the log, if the server lacks a function that the module needs.
pub fn load(context: &Context, arguments: &[RedisString], commands: &'static [&'static [Entry]]) -> Status {
    match guarded(Err("internal error".into()), || try_load(context, arguments, commands)) {
        Ok(()) => {
            IS_LOADED.store(true, Relaxed);
            context.log_notice(&loggable(&format!("ratelimit {VERSION} ({BUILD})")));
            Status::Ok
        }
        Err(why) => {
            context.log_warning(&loggable(&format!("ratelimit not loaded: {why}")));
            Status::Err
        }
    }
}

fn try_load(
    context: &Context,
    arguments: &[RedisString],
    commands: &'static [&'static [Entry]],
) -> Result<(), String> {
    if let Some(function) = missing(pretended_missing(arguments)?) {
        return Err(format!("the server has no {function}; Redis 7.0 or Valkey 7.2 at least is needed"));
    }
    std::panic::set_hook(Box::new(log_panic));
    let ctx = context.get_raw();
    // SAFETY: `ctx` is the context of the load.
    let is_valkey = unsafe { fields_are(ctx, c"server", &[c"server_name"], c"valkey") };
    // SAFETY: as above.
    unsafe { options::set(ctx, is_valkey) };
    if !settings::load(context) {
        return Err("the server refused the setting that its log names before this line".into());
    }
    if is_valkey {
        // SAFETY: `ctx` is the context of the load.
        unsafe { forget_unknown_settings(ctx) };
    }
    // SAFETY: `ctx` is the context of the load.
    unsafe { native_type::create(ctx, settings::policies_in_rdb()) }?;
    if let Some(warning) = policy_file::load_at_start(&settings::policy_file(), NODE.settings.bounds())? {
        context.log_warning(&loggable(&format!("ratelimit: {warning}")));
    }
    register_info_function(ctx, Some(info_outside_crashes));
    // SAFETY: `ctx` is the context of the load. Servers without categories of modules lack the function.
    let own_category =
        unsafe { RedisModule_AddACLCategory.is_some_and(|add| add(ctx, c"ratelimit".as_ptr()) == OK) };
    let commands = || commands.iter().copied().flatten();
    #[cfg(feature = "fault-injection")]
    if !arguments.is_empty() {
        take_names(context, commands().filter(|command| !command.documentation.is_own()), own_category);
    }
    // SAFETY: `ctx` is the context of the load.
    unsafe {
        waiting::prepare(ctx);
        settings::on_end_of_hungers(waiting::end_hungers);
        events::subscribe(ctx);
        waiting::subscribe(ctx);
    }
    commands().try_for_each(|command| register_or_leave_out(context, command, own_category))
}

/// Lets Valkey forget the settings of `MODULE LOADEX … CONFIG` that the module does not have.
///
/// After the load, Valkey wants to unload a module that left such settings. That fails for one with a data type, and Valkey ends
/// itself when it writes down why (its issue 4630; 9.1.2 does). It forgets them without that after a `MODULE LOADEX` with a wrong
/// syntax. While it starts, when nobody is connected, it has settings of modules that are loaded later, which it must keep.
///
/// # Safety
///
/// `ctx` is the context of the load.
unsafe fn forget_unknown_settings(ctx: *mut RedisModuleCtx) {
    // SAFETY: the caller keeps the contract. The format `ccc` takes three C strings.
    unsafe {
        if fields_are(ctx, c"clients", &[c"connected_clients"], c"0") {
            return;
        }
        log_notice(IGNORED);
        let (command, format) = (c"MODULE".as_ptr(), c"ccc".as_ptr());
        let [loadex, path, config] = [c"LOADEX", c"-", c"CONFIG"].map(CStr::as_ptr);
        let reply = api!(RedisModule_Call(ctx, command, format, loadex, path, config));
        if !reply.is_null() {
            api!(RedisModule_FreeCallReply(reply));
        }
    }
}

const IGNORED: &str =
    "ratelimit: settings of MODULE LOADEX that do not exist are ignored: see CONFIG GET ratelimit.*";

/// Registers a command. If its prefix is not the module's own, its name may be taken.
fn register_or_leave_out(context: &Context, command: &Entry, own_category: bool) -> Result<(), String> {
    let documentation = &command.documentation;
    // SAFETY: `context` is the context of the load.
    match unsafe { register(context.get_raw(), command, own_category) } {
        Some(()) => Ok(()),
        None if documentation.is_own() => Err(format!("cannot register {}", documentation.full_name())),
        None => {
            context.log_notice(&format!("ratelimit: {} is another module's", documentation.full_name()));
            Ok(())
        }
    }
}

/// Registers commands beforehand, as if another module held their names.
#[cfg(feature = "fault-injection")]
fn take_names<'e>(context: &Context, commands: impl Iterator<Item = &'e Entry>, own_category: bool) {
    for command in commands {
        // SAFETY: `context` is the context of the load.
        _ = unsafe { register(context.get_raw(), command, own_category) };
    }
}

/// Logs a panic without a stack trace.
///
/// Some servers bring an allocator that they hide from modules. Taking a stack trace would then free memory with
/// another allocator than the one that allocated it.
fn log_panic(panic: &PanicHookInfo<'_>) {
    log_warning(loggable(&format!("ratelimit: {panic}")));
}

/// A text that can be logged: the crate `redis_module` passes it on as a C format, and panics at a NUL.
fn loggable(text: &str) -> String {
    text.replace('%', "%%").replace('\0', "?")
}

/// Returns the function that a test pretends is missing. Only tests pass arguments to the module.
fn pretended_missing(arguments: &[RedisString]) -> Result<Option<&'static str>, String> {
    match arguments.iter().map(RedisString::as_slice).collect::<Vec<_>>().as_slice() {
        [] => Ok(None),
        #[cfg(feature = "fault-injection")]
        [b"WITHOUT", b"RedisModule_Replicate"] => Ok(Some("RedisModule_Replicate")),
        #[cfg(feature = "fault-injection")]
        [b"TAKEN"] => Ok(None),
        _ => Err("it takes no arguments; its settings are ratelimit.* in redis.conf".into()),
    }
}
