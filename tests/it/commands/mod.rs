//! Requests: their numbers, options, keys and ids, the errors they get, and the documentation of the commands.

mod atomicity;
mod introspection;
mod keys_and_ids;
mod numbers;
mod syntax_errors;
mod wrong_calls;
