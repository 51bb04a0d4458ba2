#![no_main]
//! `words` under libFuzzer.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ratelimit_fuzz::words::check(bytes));
