//! The run of `make soak` in short: five seconds and a hundred connections.

#[test]
fn a_crowd_with_rude_and_killed_clients_is_served_without_a_fault() {
    let faults = ratelimit_testing::soak::run(5, 100);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
