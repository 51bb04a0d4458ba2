//! The bound of Space-Saving, over the wire.

use std::collections::HashMap;

use super::{entry, top};
use crate::support::Server;
use crate::support::dice::Dice;
use crate::support::kinds::flood;

const ENTRIES: i64 = 50;
const REFUSALS: i64 = 20_000;

#[test]
fn counts_are_within_their_errors_and_these_within_the_bound() {
    let args = ["--ratelimit.top", "50", "--ratelimit.top-window", "86400000"];
    let server = Server::start(&args);
    let con = &mut server.connection();
    let mut dice = Dice::new(54);
    let mut exact: HashMap<String, i64> = HashMap::new();
    // The quotient of two even numbers is close to a Zipf distribution.
    let keys: Vec<String> = (0..REFUSALS)
        .map(|_| format!("key:{}", (1 + dice.below(100_000)) / (1 + dice.below(100_000))))
        .collect();
    for key in &keys {
        *exact.entry(key.clone()).or_default() += 1;
    }
    assert!(exact.len() > 100, "{} keys", exact.len());
    flood(con, keys.iter().map(|key| format!("RL.GCRA {key} 0 1 1h COST 2")));
    let found = top(con, "COUNT 10000");
    assert_eq!(found.len(), 50);
    assert!(found.is_sorted_by(|one, other| one.2 >= other.2), "{found:?}");
    assert_eq!(found.iter().map(|entry| entry.2).sum::<i64>(), REFUSALS);
    let bound = REFUSALS / ENTRIES;
    for (key, database, count, error) in &found {
        let exact = exact[key];
        assert!(exact <= *count && *count <= exact + error, "{key}: {exact}, {count}, {error}");
        assert!(*error <= bound && *database == 0, "{key}: {error}");
    }
    for (key, exact) in exact.iter().filter(|(_, exact)| **exact > bound) {
        assert!(found.iter().any(|entry| entry.0 == *key), "{key}: {exact}");
    }
    // Half of all quotients are 0, and a quarter are 1.
    assert_eq!(
        top(con, "COUNT 2"),
        [entry("key:0", 0, exact["key:0"], 0), entry("key:1", 0, exact["key:1"], 0)]
    );
}
