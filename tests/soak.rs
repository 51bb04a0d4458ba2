//! The run of `make soak` in short: five seconds and a hundred connections.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

#[path = "../benches/soak/calls.rs"]
mod calls;
#[path = "../benches/soak/crowd.rs"]
mod crowd;
#[path = "support/dice.rs"]
mod dice;
#[path = "../benches/soak/rude.rs"]
mod rude;
#[path = "../benches/soak/soak.rs"]
mod soak;
mod support;
#[path = "../benches/soak/tally.rs"]
mod tally;

#[test]
fn a_crowd_with_rude_and_killed_clients_is_served_without_a_fault() {
    let faults = soak::run(5, 100);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
