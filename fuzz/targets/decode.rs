#![no_main]
//! `decode` under libFuzzer.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ratelimit_fuzz::decode::check(bytes));
