//! The settings of a node in memory.

use std::sync::atomic::Ordering::Relaxed;

use ratelimit_engine::memory::Memory;

/// Changes a setting, as `CONFIG SET` does. `false` if there is none of this name.
pub fn set(memory: &Memory, name: &str, value: u64) -> bool {
    let settings = &memory.node().settings;
    let numbers = [
        &settings.max_leases,
        &settings.max_log_entries,
        &settings.max_holds,
        &settings.max_sketch_bytes,
        &settings.max_waiters,
        &settings.max_waiters_per_key,
        &settings.max_tenants,
        &settings.top,
        &settings.record,
    ];
    let lengths = [
        ("hunger", &settings.hunger),
        ("max-block", &settings.max_block),
        ("top-window", &settings.top_window),
    ];
    if let Some(number) = numbers.into_iter().find(|number| number.name == name) {
        number.value.store(value.cast_signed(), Relaxed);
    } else if let Some((_, length)) = lengths.into_iter().find(|(known, _)| *known == name) {
        length.millis.store(value, Relaxed);
    } else {
        return false;
    }
    if value == 0 && ["hunger", "max-tenants"].contains(&name) {
        memory.node().waiting.with(|state| state.lines.end_all_hungers(memory.now()));
    }
    true
}
