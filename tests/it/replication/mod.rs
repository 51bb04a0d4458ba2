//! Replicas and append-only files hold what the primary holds, also over a failover and an upgrade.

mod copies_agree;
mod failover;
mod payloads;
mod random_histories;
mod rolling_upgrade;
