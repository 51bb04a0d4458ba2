//! What a client may send, and what it is told: numbers, options, keys and ids, errors, documentation.

mod atomicity;
mod introspection;
mod keys_and_ids;
mod numbers;
mod syntax_errors;
