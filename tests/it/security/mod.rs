//! Who may call which command on which key.

mod access_control;
mod categories;
