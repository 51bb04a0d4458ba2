//! What each limiter replies, call by call.

mod adaptive;
mod calendar;
mod clock_set_back;
mod holds;
mod partial_force_reserve;
mod penalty;
mod queues;
mod refund;
mod scenarios;
mod shed;
mod sliding_log;
mod throttle;
mod waits;
