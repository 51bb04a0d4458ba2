//! The longest turn of the server's event loop while much ends at once: leases, holds, hungers, and waits.
//!
//! No call need be long for that: the server's timer frees leases and wakes callers too. So a connection of its own sends
//! `PING`, and the longest time until a reply is taken. The shortest of two repetitions counts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use super::search::{made, slow_calls};
use super::table::{blocks, expanded};
use ratelimit_testing::client::Client;
use ratelimit_testing::{Server, clock, info, text, wait_for};

const SETTINGS: &str = "--maxclients 15000 --slowlog-max-len 1000 --ratelimit.max-holds 100000 --ratelimit.hunger 1d \
    --ratelimit.max-waiters-per-key 10000 --ratelimit.max-tenants 100000 --ratelimit.max-block 1d";
const LEFT: Duration = Duration::from_secs(15);
/// For how long turns are watched before anything ends.
const REST: Duration = Duration::from_secs(2);

/// Prints the longest call and the longest turn of each scene; returns the number of those that are too long.
pub fn run(most: u64) -> usize {
    println!("\nMicroseconds of the longest call, and of the longest turn at rest and beside the calls");
    let scenes = blocks("scene").map(|(name, lines)| {
        let times = [play(&lines), play(&lines)];
        let (call, words) = times.iter().map(|times| &times.0).min().expect("a call");
        let (rest, turn) =
            times.iter().map(|times| (times.1, times.2)).min_by_key(|(_, turn)| *turn).expect("a turn");
        // What the server and the machine take at rest is not the module's.
        let met = *call <= most && turn <= rest + u128::from(most);
        println!("{name}: {call}, {rest}, {turn}: {}; {words}", if met { "met" } else { "missed" });
        usize::from(!met)
    });
    scenes.sum()
}

fn play(lines: &[&str]) -> ((u64, String), u128, u128) {
    let server = &Server::start(&SETTINGS.split_whitespace().collect::<Vec<_>>());
    let con = &mut server.connection();
    text(con, "CONFIG SET slowlog-log-slower-than -1");
    let (began, mut callers) = ((Instant::now(), clock(con)), Vec::new());
    let watch = lines.iter().position(|line| *line == "watch").expect("watch");
    let mut act = |line: &&str| act(server, began, &mut callers, line);
    lines[..watch].iter().for_each(&mut act);
    let rest = longest_turn(server, || sleep(REST));
    text(con, "CONFIG SET slowlog-log-slower-than 100");
    let turn = longest_turn(server, || lines[watch + 1..].iter().for_each(act));
    text(con, "CONFIG SET slowlog-log-slower-than -1");
    let ours = slow_calls(con, 1000).into_iter().filter(|(_, call)| call.starts_with("RL."));
    (ours.max().unwrap_or((100, "none is longer".into())), rest, turn)
}

/// The longest time until a reply to `PING` meanwhile, in microseconds.
fn longest_turn(server: &Server, act: impl FnOnce()) -> u128 {
    let over = AtomicBool::new(false);
    scope(|scope| {
        let turns = scope.spawn(|| {
            let (con, mut longest) = (&mut server.connection(), Duration::ZERO);
            while !over.load(Ordering::Relaxed) {
                let began = Instant::now();
                text(con, "PING");
                longest = longest.max(began.elapsed());
            }
            longest
        });
        act();
        over.store(true, Ordering::Relaxed);
        turns.join().expect("no panic").as_micros()
    })
}

/// Does what a line of a scene says. The scene began at this time, here and by the server's clock.
fn act(server: &Server, began: (Instant, u64), callers: &mut Vec<Client>, line: &str) {
    let con = &mut server.connection();
    let (verb, rest) = line.split_once(' ').expect(line);
    let (first, calls) = rest.split_once(' ').unwrap_or((rest, ""));
    let (count, instants) = (first.parse().unwrap_or(0), vec![("clock", began.1 * 1_000_000)]);
    let call = |i| expanded(calls, i, &instants);
    let mut in_turn = |i| {
        let replies: Vec<String> = call(i).split("; ").map(|call| text(con, call)).collect();
        sleep(Duration::from_millis(1));
        replies[0].contains(&first.replace('~', " "))
    };
    match verb {
        "repeat" => (0..count).for_each(|i| _ = in_turn(i)),
        "until" => wait_for(first, || in_turn(0)),
        "sleep" => sleep(Duration::from_secs((began.1 + count).saturating_sub(clock(con)))),
        "fill" => made(con, count, call).expect(line),
        _ => {
            for i in 0..count {
                let left = LEFT.saturating_sub(began.0.elapsed()).as_millis();
                let mut caller = Client::connect(server.port);
                caller.send(&call(i).replace("$left", &format!("{left}ms")));
                callers.push(caller);
            }
            wait_for(line, || info(con, "ratelimit", "ratelimit_waiting") == Some(count.to_string()));
        }
    }
}
