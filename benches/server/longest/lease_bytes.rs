//! The bytes that a table of leases takes, after histories that leave it half empty.
//!
//! A table may waste memory where leases were released. So the bytes a lease are counted all along each history, and
//! the highest are printed: those that `MEMORY USAGE` replies, and those by which the server's data grew.

use std::collections::VecDeque;

use redis::Connection;

use super::states::{SECOND, T0, id};
use crate::load::pipelines;
use crate::{Result, grouped};
use ratelimit_testing::dice::Dice;
use ratelimit_testing::{Server, call, info, ints};

/// The bound of SECURITY.md: for a key, and for each lease with an id of 16 bytes.
const FOR_THE_KEY: u64 = 2000;
const FOR_A_LEASE: u64 = 110 + 16;
/// With fewer leases, the bytes of the key itself weigh more than theirs.
const FEWEST: u64 = 200;
/// The most leases of a history.
const HELD: u32 = 20_000;
const MILLISECOND: u64 = 1000;

/// Calls that are made before the bytes are counted again, and the instant of the last one.
type Step = (Vec<String>, u64);

/// Prints the highest bytes of each history; returns the number of those over the bound.
pub fn run() -> usize {
    println!("\nBytes a lease, besides {FOR_THE_KEY} a key: the highest of each history");
    println!("{:<64} {:>12} {:>12}  bound", "history", "MEMORY USAGE", "server");
    let histories: [(&str, Box<dyn Iterator<Item = Step>>); 3] = [
        ("takes 64, releases 63 of an earlier batch, until 20,000 are held", Box::new(batches())),
        ("2,000 short jobs a second beside 300 long ones, for a minute", Box::new(jobs())),
        ("a million random calls on up to 20,000 leases", Box::new(random())),
    ];
    histories.into_iter().map(|(name, steps)| print(name, steps)).sum()
}

fn print(name: &str, steps: impl Iterator<Item = Step>) -> usize {
    match highest(steps) {
        Ok([usage, used]) => {
            let met = usage.max(used) <= FOR_A_LEASE;
            let told = if met { "met" } else { "missed" };
            println!("{name:<64} {:>12} {:>12}  {FOR_A_LEASE}: {told}", grouped(usage), grouped(used));
            usize::from(!met)
        }
        Err(error) => {
            println!("{name:<64} ERROR, not measured: {error}");
            1
        }
    }
}

/// The highest bytes a lease: those that `MEMORY USAGE` replies, and those by which the server's data grew.
fn highest(steps: impl Iterator<Item = Step>) -> Result<[u64; 2]> {
    // The server keeps a histogram of each command's latencies, unless told not to.
    let server = Server::start(&["--slowlog-log-slower-than", "-1", "--latency-tracking", "no"]);
    let mut con = server.connection();
    // What the server keeps of a command that was called once is not the key's.
    for line in ["RL.PEEK key CONCURRENT 1000000 1s id", "MEMORY USAGE key SAMPLES 0"] {
        call(&mut con, &line.split(' ').collect::<Vec<_>>())?;
    }
    let before = data(&mut con)?;
    let mut highest = [0, 0];
    for (lines, at) in steps {
        // The buffers of this connection are freed with it.
        let mut caller = server.connection();
        let count = u32::try_from(lines.len())?;
        pipelines(&mut caller, 1000, count, |i| lines[i as usize].clone(), |_| Ok(()))?;
        call(&mut caller, &["QUIT"])?;
        drop(caller);
        let peek = ints(&mut con, &format!("RL.PEEK key CONCURRENT 1000000 1s id AT {at}"));
        let held = 1_000_000 - u64::try_from(peek[2])?;
        if held < FEWEST {
            continue;
        }
        let usage = u64::try_from(ints(&mut con, "MEMORY USAGE key SAMPLES 0")[0])?;
        let used = data(&mut con)?.saturating_sub(before);
        for (highest, bytes) in highest.iter_mut().zip([usage, used]) {
            *highest = (bytes.saturating_sub(FOR_THE_KEY) / held).max(*highest);
        }
    }
    Ok(highest)
}

/// The bytes that the server uses, without the buffers of connections.
fn data(con: &mut Connection) -> Result<u64> {
    Ok(info(con, "memory", "used_memory_dataset").ok_or("no used_memory_dataset")?.parse()?)
}

fn take(i: u32, ttl: u64, at: u64) -> String {
    format!("RL.CONCURRENT key 1000000 {ttl}ms {} AT {at}", id(i))
}

fn release(i: u32, at: u64) -> String {
    format!("RL.RELEASE key {} AT {at}", id(i))
}

/// Batches of 64 leases. Of each, all but one are released eight batches later.
fn batches() -> impl Iterator<Item = Step> {
    let round = |round: u32| -> Vec<String> {
        let at = T0 + u64::from(round) * MILLISECOND;
        let taken = (0..64).map(|i| take(64 * round + i, 3_600_000, at));
        let earlier = round.checked_sub(8);
        let released =
            earlier.into_iter().flat_map(|earlier| (1..64).map(move |i| release(64 * earlier + i, at)));
        taken.chain(released).collect()
    };
    (0..HELD / 100).map(move |hundred| {
        let rounds = 100 * hundred..100 * (hundred + 1);
        let at = T0 + u64::from(rounds.end) * MILLISECOND;
        (rounds.flat_map(round).collect(), at)
    })
}

/// Two short jobs start each millisecond and end within half a second. Long ones renew every ten seconds.
fn jobs() -> impl Iterator<Item = Step> {
    let mut dice = Dice::new(3);
    let mut ends: Vec<VecDeque<u32>> = vec![VecDeque::new(); 500];
    let long = |i: u32| u32::MAX - i;
    (0..600).map(move |tenth: u32| {
        let mut lines = Vec::new();
        for milli in 100 * tenth..100 * (tenth + 1) {
            let at = T0 + u64::from(milli) * MILLISECOND;
            let due = std::mem::take(&mut ends[milli as usize % 500]);
            lines.extend(due.into_iter().map(|job| release(job, at)));
            for job in [2 * milli, 2 * milli + 1] {
                lines.push(take(job, 30_000, at));
                ends[(milli as usize + 1 + dice.index(499)) % 500].push_back(job);
            }
            lines.extend((0..300).filter(|i| milli % 10_000 == 33 * i).map(|i| take(long(i), 30_000, at)));
        }
        (lines, T0 + u64::from(100 * tenth + 99) * MILLISECOND)
    })
}

/// Half of the calls take a lease for up to a minute, or renew it.
fn random() -> impl Iterator<Item = Step> {
    let mut dice = Dice::new(4);
    (0..200u64).map(move |step| {
        let at = |i: u64| T0 + (5000 * step + i) * MILLISECOND / 10;
        let mut line = |i: u64| {
            let job = u32::try_from(dice.below(u64::from(HELD))).unwrap();
            let ttl = 1 + dice.below(60 * SECOND / MILLISECOND);
            match dice.below(4) {
                0 | 1 => take(job, ttl, at(i)),
                2 => format!("RL.RENEW key {ttl}ms {} AT {}", id(job), at(i)),
                _ => release(job, at(i)),
            }
        };
        ((0..5000).map(&mut line).collect(), at(5000))
    })
}
