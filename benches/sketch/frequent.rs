//! How exact the counter of frequent keys is, for the refusals of skewed traffic.

use std::collections::HashSet;
use std::time::Instant;

use ratelimit_core::Period;
use ratelimit_core::limiter::Rate;
use ratelimit_core::state::{Blueprint, Shape};
use ratelimit_core::top::{Seed, Top};

use super::common::{grouped, hash_key, number, progress};
use super::exact::{ITEMS, Outcome, Pair};
use super::traffic::{Spread, Traffic};

const ENTRIES: [usize; 3] = [100, 1000, 10_000];
const REQUESTS: u64 = 10_000_000;
/// Microseconds between two requests.
const APART: u64 = 20;

pub fn run(seed: u64) {
    progress(format_args!("frequent keys, {} requests", grouped(REQUESTS)));
    let refused = refusals(seed);
    let mut exact = vec![0_u64; usize::try_from(ITEMS).expect("a number")];
    for item in &refused {
        exact[*item] += 1;
    }
    let mut order: Vec<usize> = (0..exact.len()).collect();
    order.sort_by_key(|item| std::cmp::Reverse(exact[*item]));
    let different = exact.iter().filter(|count| **count > 0).count();
    println!(
        "\nRL.TOP: {} refusals of {} items, Zipf",
        grouped(refused.len() as u64),
        grouped(different as u64)
    );
    println!(
        "{:>8} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8}",
        "entries", "off by", "error", "bound", "of 10", "of 100", "ns"
    );
    for entries in ENTRIES {
        row(entries, seed, &refused, &exact, &order);
    }
    println!(
        "off by: the largest difference of a count from the true one; error: the largest that is replied;"
    );
    println!(
        "bound: refusals / entries; of 10, of 100: how many of the true first 10 and 100 are among the first"
    );
    println!("10 and 100 of the reply; ns: for each refusal that is counted, with making its key.");
}

/// The items that a sketch refused, in order.
fn refusals(seed: u64) -> Vec<usize> {
    let rate = Rate {
        limit: 1.try_into().expect("above zero"),
        count: 1.try_into().expect("above zero"),
        period: Period::from_millis(1000.try_into().expect("above zero")),
    };
    let shape = Shape::new(262_144, 4).expect("a shape");
    let mut pair = Pair::new(rate, Blueprint { shape, hash_key: hash_key(seed) });
    let mut traffic = Traffic::new(Spread::Zipf, seed);
    let mut ask = |i| {
        let item = traffic.next();
        (pair.ask(item, i * APART) != Outcome::Admitted).then_some(item)
    };
    (0..REQUESTS).filter_map(&mut ask).collect()
}

fn row(entries: usize, seed: u64, refused: &[usize], exact: &[u64], order: &[usize]) {
    let mut top = Top::new(entries, Seed(seed));
    let began = Instant::now();
    for item in refused {
        top.count(0, &key(*item));
    }
    let nanos = 1e9 * began.elapsed().as_secs_f64() / number(refused.len() as u64);
    let counts: Vec<(usize, u64, u64)> =
        top.sorted().iter().map(|top| (item(top.key), top.count, top.error)).collect();
    let off = counts.iter().map(|(item, count, _)| count.abs_diff(exact[*item])).max();
    let error = counts.iter().map(|(_, _, error)| *error).max();
    let bound = (refused.len() / entries) as u64;
    for (item, count, error) in &counts {
        let exact = exact[*item];
        assert!(
            exact <= *count && *count <= exact + error && *error <= bound,
            "item {item} is outside its bounds"
        );
    }
    let found = |first: usize| {
        let told: HashSet<usize> = counts.iter().take(first).map(|(item, ..)| *item).collect();
        order[..first].iter().filter(|item| told.contains(item)).count()
    };
    println!(
        "{entries:>8} {:>10} {:>10} {:>10} {:>8} {:>8} {nanos:>8.0}",
        grouped(off.unwrap_or(0)),
        grouped(error.unwrap_or(0)),
        grouped(bound),
        found(10),
        found(100),
    );
}

/// The name of an item, of 16 bytes.
fn key(item: usize) -> [u8; 16] {
    let mut name = *b"item:...........";
    name[8..].copy_from_slice(&item.to_be_bytes());
    name
}

fn item(key: &[u8]) -> usize {
    usize::from_be_bytes(key[8..].try_into().expect("a name"))
}
