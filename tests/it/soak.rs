//! The run of `make soak` in short: five seconds and a hundred connections.

#[path = "../../benches/soak/calls.rs"]
mod calls;
#[path = "../../benches/soak/crowd.rs"]
mod crowd;
#[path = "../../benches/soak/rude.rs"]
mod rude;
#[path = "../../benches/soak/soak.rs"]
mod run;
#[path = "../../benches/soak/tally.rs"]
mod tally;

#[test]
fn a_crowd_with_rude_and_killed_clients_is_served_without_a_fault() {
    let faults = run::run(5, 100);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
