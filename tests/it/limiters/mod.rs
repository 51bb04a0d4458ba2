//! What of limiters only a server shows. What each replies, call by call, is in `tests/sessions`.

mod queues;
mod server;
