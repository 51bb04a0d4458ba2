//! `INFO ratelimit`.

use std::sync::atomic::Ordering::Relaxed;

use redis_module::{InfoContext, RedisResult};
use redis_module_macros::info_command_handler;

use super::guard::guarded;
use super::stats::{ADMITTED, ERRORS, REFUSED};
use crate::limit::CATALOG;

/// Version, build, and the counters: requests admitted and refused by each limiter, and errors.
#[info_command_handler]
fn info(context: &InfoContext, for_crash_report: bool) -> RedisResult<()> {
    if for_crash_report {
        // In a signal handler, where nothing may be allocated.
        return Ok(());
    }
    // What calls this has no net of its own.
    guarded(Ok(()), || add_fields(context))
}

fn add_fields(context: &InfoContext) -> RedisResult<()> {
    let mut section = context.builder().add_section("");
    section = section.field("version", env!("CARGO_PKG_VERSION"))?;
    section = section.field("build", option_env!("RATELIMIT_BUILD").unwrap_or("unknown"))?;
    section = section.field("errors", ERRORS.load(Relaxed))?;
    for (row, (admitted, refused)) in CATALOG.iter().zip(ADMITTED.iter().zip(&REFUSED)) {
        let name = row.name.to_ascii_lowercase();
        section = section.field(&format!("{name}_admitted"), admitted.load(Relaxed))?;
        section = section.field(&format!("{name}_refused"), refused.load(Relaxed))?;
    }
    section.build_section()?.build_info().map(|_| ())
}
