//! The section of the module in `INFO`.

use std::ffi::{CString, c_int};
use std::fmt::Write;

use redis_module::raw::RedisModuleInfoCtx;
use redis_module::{InfoContext, RedisResult, basic_info_command_handler};
use redis_module_macros::info_command_handler;

use super::version::{BUILD, VERSION};
use super::{NODE, copies};
use crate::server::api::{OK, api};
use crate::server::guard::guarded;

/// Writes the section, except into a crash report.
///
/// It replaces the handler of the crate `redis_module`, which adds a stack trace to a crash report. A crash report is
/// written in a signal handler, which must not allocate.
pub unsafe extern "C" fn info_outside_crashes(ctx: *mut RedisModuleInfoCtx, for_crash_report: c_int) {
    if for_crash_report == 0 {
        guarded((), || {
            basic_info_command_handler(&InfoContext::new(ctx), false);
            // SAFETY: the server passes a context.
            unsafe { add_policies(ctx) };
        });
    }
}

/// The most lines of policies and their limits.
const MOST_LINES: usize = 1000;

/// Adds a section with the number and the digest of the policies, and with the counts of the first ones and their limits.
/// It lists each policy with all its limits, or not at all.
///
/// The builder of the crate `redis_module` compares each field with all before it, which takes too long for a thousand.
///
/// # Safety
///
/// `ctx` is the context of a running `INFO`.
unsafe fn add_policies(ctx: *mut RedisModuleInfoCtx) {
    // SAFETY: the caller keeps the contract.
    if unsafe { api!(RedisModule_InfoAddSection(ctx, c"policies".as_ptr())) } != OK {
        return; // The caller asks for other sections.
    }
    let add = |name: String, value: String| {
        let [name, value] = [name, value].map(|text| CString::new(text).unwrap_or_default());
        // SAFETY: the caller keeps the contract, and the server copies the strings.
        unsafe { api!(RedisModule_InfoAddFieldCString(ctx, name.as_ptr(), value.as_ptr())) };
    };
    // A policy has a limit at least.
    let (count, first, digest) = {
        let policies = NODE.policies();
        (policies.len(), policies.first(MOST_LINES / 2), policies.digest())
    };
    add("policies".into(), count.to_string());
    add("policies_digest".into(), format!("{digest:016x}"));
    let mut lines = 0;
    for (number, (name, stored)) in (1..).zip(first) {
        lines += 1 + stored.limits().count();
        if lines > MOST_LINES {
            break;
        }
        let line = format!("name={name},version={}", stored.version);
        add(format!("policy_{number}"), with_counts(line, &stored.counts.by_name()));
        for (limit, (words, counts)) in (1..).zip(stored.limits()) {
            let line = with_counts(format!("limit={words}"), &counts.by_name());
            add(format!("policy_{number}_limit_{limit}"), line);
        }
    }
}

/// Adds counts to the line of a policy or a limit.
fn with_counts(mut line: String, counts: &[(&str, u64)]) -> String {
    for (count, value) in counts {
        _ = write!(line, ",{count}={value}");
    }
    line
}

/// Adds version, build, the number of errors, whether effects are sent, how many calls are recorded,
/// and the requests that each limiter admitted and refused.
#[info_command_handler]
fn info(context: &InfoContext, _for_crash_report: bool) -> RedisResult<()> {
    let mut section = context.builder().add_section("");
    section = section.field("version", VERSION)?;
    section = section.field("build", BUILD)?;
    section = section.field("errors", NODE.counts.errors.get())?;
    section = section.field("propagates", u64::from(copies::may_exist()))?;
    section = section.field("shadow_refused", NODE.counts.refused_in_shadow.get())?;
    let [waiting, granted, timed_out] = NODE.waiting.counts();
    section = section.field("waiting", waiting)?;
    section = section.field("max_waiters", NODE.settings.most_waiters() as u64)?;
    section = section.field("waited_granted", granted)?;
    section = section.field("waited_timeout", timed_out)?;
    for (name, value) in NODE.record().counts() {
        section = section.field(name, value)?;
    }
    for (name, admitted, refused) in NODE.counts.decisions() {
        let name = name.to_ascii_lowercase();
        section = section.field(&format!("{name}_admitted"), admitted)?;
        section = section.field(&format!("{name}_refused"), refused)?;
    }
    section.build_section()?.build_info().map(|_| ())
}
