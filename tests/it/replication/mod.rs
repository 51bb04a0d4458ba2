//! Replicas and append-only files hold what the primary holds, also over a failover and an upgrade.

mod attach_an_aof;
mod attach_and_leave;
mod failover;
mod fencing;
mod holds;
mod payloads;
mod random_histories;
mod return_and_promote;
mod rolling_upgrade;
mod unsent_effects;
