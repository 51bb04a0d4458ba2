//! Keys of other types, transactions and many clients, and the documentation of the commands.

mod atomicity;
mod introspection;
mod keys_and_ids;
mod wrong_calls;
