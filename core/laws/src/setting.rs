//! The settings of a node in memory.

use std::sync::atomic::Ordering::Relaxed;

use ratelimit_engine::memory::Memory;

/// Changes a setting, as `CONFIG SET` does. Returns whether there is one of this name.
pub fn set(memory: &Memory, name: &str, value: u64) -> bool {
    let settings = &memory.node().settings;
    let number = match name {
        "hunger" => &settings.hunger.millis,
        "max-block" => &settings.max_block.millis,
        "top-window" => &settings.top_window.millis,
        name => {
            let numbers = [
                &settings.max_leases,
                &settings.max_log_entries,
                &settings.max_holds,
                &settings.max_sketch_bytes,
                &settings.max_waiters,
                &settings.max_waiters_per_key,
                &settings.max_tenants,
                &settings.top,
            ];
            let Some(number) = numbers.into_iter().find(|number| number.name == name) else { return false };
            number.value.store(value.cast_signed(), Relaxed);
            if value == 0 && name == "max-tenants" {
                memory.node().waiting.with(|state| state.lines.end_all_hungers(memory.now()));
            }
            return true;
        }
    };
    number.store(value, Relaxed);
    if value == 0 && name == "hunger" {
        memory.node().waiting.with(|state| state.lines.end_all_hungers(memory.now()));
    }
    true
}
