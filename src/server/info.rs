//! `INFO ratelimit`.

use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;

use redis_module::raw::RedisModuleInfoCtx;
use redis_module::{InfoContext, RedisResult, basic_info_command_handler};
use redis_module_macros::info_command_handler;

use super::guard::guarded;
use super::stats::{ERRORS, counts};

/// Replaces the crate's handler, which writes a stack trace into a crash report before it asks anyone: in a signal
/// handler, where nothing may be allocated.
pub(super) unsafe extern "C" fn info_outside_crashes(ctx: *mut RedisModuleInfoCtx, for_crash_report: c_int) {
    if for_crash_report == 0 {
        guarded((), || basic_info_command_handler(&InfoContext::new(ctx), false));
    }
}

/// Version, build, and the counters: requests admitted and refused by each limiter, and errors.
#[info_command_handler]
fn info(context: &InfoContext, _for_crash_report: bool) -> RedisResult<()> {
    let mut section = context.builder().add_section("");
    section = section.field("version", env!("CARGO_PKG_VERSION"))?;
    section = section.field("build", option_env!("RATELIMIT_BUILD").unwrap_or("unknown"))?;
    section = section.field("errors", ERRORS.load(Relaxed))?;
    for (name, admitted, refused) in counts() {
        let name = name.to_ascii_lowercase();
        section = section.field(&format!("{name}_admitted"), admitted)?;
        section = section.field(&format!("{name}_refused"), refused)?;
    }
    section.build_section()?.build_info().map(|_| ())
}
