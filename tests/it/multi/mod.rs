//! `RL.MULTI`, `RL.MULTIPEEK` and `RL.MULTIREFUND`: several limits in one call, on several keys or on one.

mod one_key;
mod several_keys;
