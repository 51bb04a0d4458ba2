//! A fleet of 20 processes and its backend: what an adaptive limit of requests in progress comes to, beside a
//! fixed one and beside the rules of libraries in each process. No server is needed. The plots are kept in `docs/plots`.
//!
//! ```text
//! cargo bench -p ratelimit-benches --bench adaptive -- [slow] [steady] [random] [two-kinds] [disk] [silent] [few] [doubles]
//! ```

mod plot;
mod worlds;

use std::env;
use std::ops::Range;

use ratelimit_core::adapt::Rule;
use ratelimit_laws::fleet::{Aimd, Each, Fixed, Found, Gradient2, Limit, Trial};

use plot::{LIMITS, Result};
use worlds::{Scene, scenes};

/// The largest limit that is found.
const CEILING: u32 = 1000;

fn main() -> Result<()> {
    let words: Vec<String> = env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    for scene in
        scenes().iter().filter(|scene| words.is_empty() || words.iter().any(|word| word == scene.name))
    {
        println!("\n{}: {}\n", scene.name, scene.story);
        let trials: Vec<Trial> =
            limits(scene).iter_mut().map(|limit| scene.world.run(limit.as_mut())).collect();
        table(scene, &trials);
        plot::draw(scene, &trials)?;
    }
    Ok(())
}

fn limits(scene: &Scene) -> Vec<Box<dyn Limit>> {
    let processes = scene.world.fleet.iter().map(|(_, processes)| *processes).max().unwrap_or(0);
    let slow = if scene.world.reports { scene.slow } else { 0 };
    vec![
        Box::new(Found::by(Rule::Failures, CEILING, slow)),
        Box::new(Found::by(Rule::Latency, CEILING, 0)),
        Box::new(Fixed { limit: scene.knee, held: 0 }),
        Box::new(Fixed { limit: 4 * scene.knee, held: 0 }),
        Box::new(Each::new(processes, || Aimd::new(if slow > 0 { slow } else { u64::MAX }))),
        Box::new(Each::new(processes, Gradient2::default)),
    ]
}

/// For each part of the time: the limit in the middle, between which it was, good requests a second, and their p99.
fn table(scene: &Scene, trials: &[Trial]) {
    print!("{:<18}", "");
    for part in &scene.parts {
        print!(" | {:>40}", format!("{} to {} s", part.start, part.end));
    }
    println!("\n{:<18}{}", "", " |  limit       from..to   goodput   p99 ms".repeat(scene.parts.len()));
    for (name, trial) in LIMITS.iter().zip(trials) {
        print!("{name:<18}");
        for part in &scene.parts {
            let (least, most) = trial.range(part.clone());
            print!(
                " | {:>6.0} {:>6.0}..{:<6.0} {:>9.1} {:>8.0}",
                middle(&trial.limits, part),
                least,
                most,
                trial.goodput(part.clone()),
                trial.p99(part.clone())
            );
        }
        println!();
    }
}

fn middle(limits: &[f64], part: &Range<usize>) -> f64 {
    let mut limits = limits.get(part.clone()).unwrap_or_default().to_vec();
    limits.sort_by(f64::total_cmp);
    limits.get(limits.len() / 2).copied().unwrap_or_default()
}
