//! The share of requests that a sketch refuses falsely, beside the formula.

use ratelimit_core::Period;
use ratelimit_core::limiter::Rate;
use ratelimit_core::state::Blueprint;

use super::common::{SHAPES, hash_key, number, percent, progress, shape};
use super::exact::{ITEMS, Outcome, Pair};
use super::traffic::{Spread, Traffic, chances};

/// About how many items are ahead at a time, as long as few are refused falsely.
const LOADS: [f64; 4] = [1_000.0, 5_000.0, 20_000.0, 80_000.0];
/// Measured requests of a row.
const REQUESTS: u64 = 4_000_000;
/// How often a row takes the shares.
const SAMPLES: u64 = 50;

/// The sums of a row.
#[derive(Default)]
struct Sums {
    cells_ahead: f64,
    items_ahead: f64,
    formula: f64,
    power: f64,
    /// Requests that the item's own GCRA would admit, and those of them that the sketch refused.
    fair: u64,
    falsely: u64,
    /// The same for items that come for the first time.
    first: u64,
    first_falsely: u64,
    rightly: u64,
}

pub fn run(seed: u64) {
    println!("\nFalse refusals, one request a second for each item (max_burst 0)");
    head();
    for spread in [Spread::Uniform, Spread::Zipf] {
        for (width, depth) in SHAPES {
            for load in LOADS {
                row(spread, (width, depth), load, 0, seed);
            }
        }
    }
    println!("\nThe same with max_burst 3, so that few items are refused by their own limit");
    head();
    for spread in [Spread::Uniform, Spread::Zipf] {
        for load in LOADS {
            row(spread, SHAPES[0], load, 3, seed);
        }
    }
    println!(
        "n: items whose own arrival time is ahead of now, counted exactly; p: the share of cells that are ahead;"
    );
    println!(
        "p^d: so all d cells of a new item are ahead; formula: (1 - (1 - 1/w)^n)^d, the same from n instead of p;"
    );
    println!("first: of items that come for the first time, the share refused: compare it with the formula;");
    println!("false: of requests that the item's own GCRA would admit, the share that the sketch refused;");
    println!(
        "rightly: of all requests, the share that the item's own GCRA refuses, too; firsts: how many items came first."
    );
    println!(
        "Where many are refused, the formula is too low: who is admitted had a cell that was not ahead, so n such items"
    );
    println!("hold more cells than n random ones. p^d needs no n.");
    println!(
        "With max_burst 3 a new item is refused only if its cells are over 3 s ahead, so less often than p^d."
    );
}

fn head() {
    println!(
        "{:<8} {:>11} {:>7} {:>8} {:>10} {:>10} {:>10} {:>10} {:>8} {:>9}",
        "items", "w x d", "n", "p", "p^d", "formula", "first", "false", "rightly", "firsts"
    );
}

fn row(spread: Spread, (width, depth): (u32, u32), load: f64, burst: u64, seed: u64) {
    progress(format_args!("{spread:?} {width} x {depth}, {load} items ahead, max_burst {burst}"));
    let rate = Rate {
        limit: (burst + 1).try_into().expect("above zero"),
        count: 1.try_into().expect("above zero"),
        period: Period::from_millis(1000.try_into().expect("above zero")),
    };
    let mut pair = Pair::new(rate, Blueprint { shape: shape(width, depth), hash_key: hash_key(seed) });
    let mut traffic = Traffic::new(spread, seed);
    let mut came = vec![false; usize::try_from(ITEMS).expect("a number")];
    let apart = 1e6 / per_second(spread, load);
    // Before the measurement the items that are ahead become as many as they stay: some seconds.
    let warm = whole(number(4 * (burst + 1)) * 1e6 / apart).min(4 * REQUESTS);
    let mut sums = Sums::default();
    for i in 0..warm + REQUESTS {
        let at = whole(number(i) * apart);
        let item = traffic.next();
        let outcome = pair.ask(item, at);
        let first = !std::mem::replace(&mut came[item], true);
        if i < warm {
            continue;
        }
        sums.count(outcome, first);
        if i % (REQUESTS / SAMPLES) == 0 {
            sums.sample(&pair, at, width, depth);
        }
    }
    sums.print(spread, width, depth);
}

impl Sums {
    fn count(&mut self, outcome: Outcome, first: bool) {
        if outcome == Outcome::Rightly {
            self.rightly += 1;
            return;
        }
        let falsely = u64::from(outcome == Outcome::Falsely);
        (self.fair, self.falsely) = (self.fair + 1, self.falsely + falsely);
        if first {
            (self.first, self.first_falsely) = (self.first + 1, self.first_falsely + falsely);
        }
    }

    fn sample(&mut self, pair: &Pair, at: u64, width: u32, depth: u32) {
        let (share, items) = (pair.cells_ahead(at), number(pair.items_ahead(at)));
        let depth = i32::try_from(depth).expect("a depth");
        self.cells_ahead += share;
        self.power += share.powi(depth);
        self.items_ahead += items;
        self.formula += (1.0 - (1.0 - 1.0 / f64::from(width)).powf(items)).powi(depth);
    }

    fn print(&self, spread: Spread, width: u32, depth: u32) {
        let mean = |sum: f64| sum / number(SAMPLES);
        let share = |part, all| if all == 0 { "-".into() } else { percent(number(part) / number(all)) };
        println!(
            "{:<8} {:>11} {:>7.0} {:>8} {:>10} {:>10} {:>10} {:>10} {:>8} {:>9}",
            format!("{spread:?}"),
            format!("{width} x {depth}"),
            mean(self.items_ahead),
            percent(mean(self.cells_ahead)),
            percent(mean(self.power)),
            percent(mean(self.formula)),
            share(self.first_falsely, self.first),
            share(self.falsely, self.fair),
            share(self.rightly, REQUESTS),
            self.first,
        );
    }
}

/// The requests per second that keep about this many items ahead.
///
/// An item that comes x times a second is ahead for x / (1 + x) of the time, if it is refused while it is ahead.
fn per_second(spread: Spread, load: f64) -> f64 {
    let chances: Vec<f64> = chances(spread).collect();
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..50 {
        let middle: f64 = f64::midpoint(low, high);
        let ahead: f64 = chances.iter().map(|chance| middle * chance / (1.0 + middle * chance)).sum();
        if ahead < load { low = middle } else { high = middle }
    }
    low
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, far below 2^53")]
fn whole(number: f64) -> u64 {
    number as u64
}
