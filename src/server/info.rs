//! The section of the module in `INFO`.

use std::ffi::c_int;

use redis_module::raw::RedisModuleInfoCtx;
use redis_module::{InfoContext, RedisResult, basic_info_command_handler};
use redis_module_macros::info_command_handler;

use super::guard::guarded;
use super::propagation;
use super::stats::{counts, errors, refused_in_shadow};

/// Writes the section, except into a crash report.
///
/// It replaces the handler of the crate `redis_module`, which adds a stack trace to a crash report. A crash report is
/// written in a signal handler, which must not allocate.
pub(super) unsafe extern "C" fn info_outside_crashes(ctx: *mut RedisModuleInfoCtx, for_crash_report: c_int) {
    if for_crash_report == 0 {
        guarded((), || basic_info_command_handler(&InfoContext::new(ctx), false));
    }
}

/// Adds version, build, the number of errors, whether effects are sent,
/// and the requests that each limiter admitted and refused.
#[info_command_handler]
fn info(context: &InfoContext, _for_crash_report: bool) -> RedisResult<()> {
    let mut section = context.builder().add_section("");
    section = section.field("version", env!("CARGO_PKG_VERSION"))?;
    section = section.field("build", option_env!("RATELIMIT_BUILD").unwrap_or("unknown"))?;
    section = section.field("errors", errors())?;
    section = section.field("propagates", u64::from(propagation::is_enabled()))?;
    section = section.field("shadow_refused", refused_in_shadow())?;
    for (name, admitted, refused) in counts() {
        let name = name.to_ascii_lowercase();
        section = section.field(&format!("{name}_admitted"), admitted)?;
        section = section.field(&format!("{name}_refused"), refused)?;
    }
    section.build_section()?.build_info().map(|_| ())
}
