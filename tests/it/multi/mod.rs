//! `RL.MULTI`, `RL.MULTIPEEK` and `RL.MULTIREFUND`: several limits in one call, on several keys or on one.

mod atomicity;
mod holds;
mod one_key;
mod one_key_clock_and_expiry;
mod one_key_copies;
mod release;
mod requests;
mod several_keys;
mod shadow;
