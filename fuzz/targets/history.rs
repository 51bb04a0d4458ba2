#![no_main]
//! `history` under libFuzzer.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ratelimit_fuzz::history::check(bytes));
