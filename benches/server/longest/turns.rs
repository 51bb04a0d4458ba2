//! The longest turn of the server's event loop while much ends at once: leases, holds, hungers, and waits.
//!
//! No call need be long for that: the server's timer frees leases and wakes callers too. So a connection of its own sends `PING`, and
//! the longest time until a reply is taken. The system can interrupt the server, so the shortest of several repetitions counts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use redis::{Connection, Value};

use super::states::id;
use crate::grouped;
use crate::load::pipelines;
use ratelimit_testing::client::Client;
use ratelimit_testing::{Server, call, clock, info, text, wait_for};

const MILLION: u32 = 1_000_000;
const MOST_HOLDS: u32 = 100_000;
const HUNGRY: u32 = 100_000;
const CALLERS: u32 = 10_000;
const REPETITIONS: usize = 2;
/// For how long turns are watched before anything ends. At that time nothing of the module's runs.
const REST: Duration = Duration::from_secs(2);
const BATCH: u32 = 10_000;

/// What makes a state, and the calls that are timed on it while the turns are watched.
type Scene = (&'static str, fn(&Server) -> Vec<Client>, fn(&Server));

const SCENES: [Scene; 4] = [
    ("1,000,000 leases of as many tenants expire, one caller waits", leases, until_freed),
    ("100,000 holds end", holds, settle),
    ("100,000 tenants are hungry, and end", hungry, until_sated),
    ("10,000 callers time out", callers, until_left),
];

/// Prints the longest call and the longest turn of each scene; returns the number of those that are too long.
pub fn run(most: u64) -> usize {
    println!(
        "\nMicroseconds, the shortest of {REPETITIONS} repetitions: a turn is a PING beside the calls, at rest one beside PINGs"
    );
    println!(
        "{:<60} {:>12} {:>7} {:>12}  bound, longest call",
        "all at once", "longest call", "at rest", "longest turn"
    );
    SCENES.into_iter().map(|scene| print(scene, most)).sum()
}

fn print(scene: Scene, most: u64) -> usize {
    let times: Vec<_> = (0..REPETITIONS).map(|_| play(scene)).collect();
    let (longest, call) = times.iter().map(|times| times.call.clone()).min().unwrap_or_default();
    let Times { at_rest, turn, .. } = times.iter().min_by_key(|times| times.turn).expect("a repetition");
    // What the server and the machine take at rest is not the module's.
    let met = longest <= most && *turn <= at_rest + u128::from(most);
    let told = if met { "met" } else { "missed" };
    println!(
        "{:<60} {:>12} {at_rest:>7} {turn:>12}  {}: {told}, {call}",
        scene.0,
        grouped(longest),
        grouped(most)
    );
    usize::from(!met)
}

/// The longest call with its words, and the longest turns in microseconds.
struct Times {
    call: (u64, String),
    at_rest: u128,
    turn: u128,
}

fn play((_, make, calls): Scene) -> Times {
    let server = Server::start(&[
        "--maxclients",
        "15000",
        "--slowlog-max-len",
        "1000",
        "--ratelimit.max-holds",
        "100000",
        "--ratelimit.max-waiters-per-key",
        "10000",
        "--ratelimit.max-tenants",
        "100000",
        "--ratelimit.hunger",
        "1d",
        "--ratelimit.max-block",
        "1d",
    ]);
    let con = &mut server.connection();
    text(con, "CONFIG SET slowlog-log-slower-than -1");
    let clients = make(&server);
    text(con, "CONFIG SET slowlog-log-slower-than 100");
    let at_rest = longest_turn(&server, |server| {
        let (con, began) = (&mut server.connection(), Instant::now());
        while began.elapsed() < REST {
            text(con, "PING");
            sleep(Duration::from_millis(1));
        }
    });
    let turn = longest_turn(&server, calls);
    text(con, "CONFIG SET slowlog-log-slower-than -1");
    drop(clients);
    Times { call: longest_call(con), at_rest, turn }
}

/// The longest time until a reply to `PING` beside these calls, in microseconds.
fn longest_turn(server: &Server, calls: impl FnOnce(&Server)) -> u128 {
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
        calls(server);
        over.store(true, Ordering::Relaxed);
        turns.join().expect("no panic").as_micros()
    })
}

/// The longest call of the slow log that is the module's.
fn longest_call(con: &mut Connection) -> (u64, String) {
    let Ok(Value::Array(entries)) = call(con, &["SLOWLOG", "GET", "1000"]) else { panic!("no slow log") };
    let calls = entries.iter().filter_map(super::trial::slow_call);
    let ours = calls.filter(|(call, _)| call.starts_with("RL.")).map(|(call, micros)| (micros, call));
    ours.max().unwrap_or((100, "none is longer".into()))
}

fn filled(server: &Server, count: u32, line: impl Fn(u32) -> String) {
    let check = |reply: &Value| match reply {
        Value::ServerError(error) => Err(format!("{error:?}").into()),
        _ => Ok(()),
    };
    pipelines(&mut server.connection(), BATCH, count, line, check).expect("the calls");
}

fn look(con: &mut Connection) {
    for line in ["RL.INFO k", "RL.CONCURRENT k 1 1h one TENANT all", "RL.PEEK k CONCURRENT 9 1h two"] {
        text(con, line);
    }
    sleep(Duration::from_millis(1));
}

fn leases(server: &Server) -> Vec<Client> {
    let con = &mut server.connection();
    let began = clock(con);
    let at = began * 1_000_000;
    filled(server, MILLION, |i| {
        format!("RL.CONCURRENT k 1000000 90s {} TENANT {} AT {at}", id(i), id(i + MILLION))
    });
    let mut caller = Client::connect(server.port);
    caller.send("RL.CONCURRENT k 1000000 1h all COST 1000000 TENANT all BLOCK 1h");
    wait_for("a caller", || waiting(server) == 1);
    sleep(Duration::from_secs((began + 86).saturating_sub(clock(con))));
    vec![caller]
}

/// Calls meanwhile, and for some time after the caller has all leases, while the timer frees those that have ended.
fn until_freed(server: &Server) {
    let con = &mut server.connection();
    wait_for("the leases", || {
        look(con);
        waiting(server) == 0
    });
    (0..1000).for_each(|_| look(con));
}

fn holds(server: &Server) -> Vec<Client> {
    let at = clock(&mut server.connection()) * 1_000_000;
    filled(server, MOST_HOLDS, |i| format!("RL.FIXEDWINDOW k 1000000 1h HOLD {} 20s AT {at}", id(i)));
    Vec::new()
}

fn settle(server: &Server) {
    let con = &mut server.connection();
    for line in [
        "RL.EXPLAIN RL.FIXEDWINDOW k 1000000 1h",
        "RL.INFO k",
        "RL.SETTLE k none FIXEDWINDOW 1000000 1h COST 1",
    ] {
        text(con, line);
    }
    let at = clock(con) * 1_000_000 + 20_000_000;
    for call in 0..1000 {
        text(con, &format!("RL.FIXEDWINDOW k 1000000 1h HOLD new:{call} 20s AT {at}"));
    }
}

fn hungry(server: &Server) -> Vec<Client> {
    text(&mut server.connection(), "RL.CONCURRENT k 1 1h held TENANT holder");
    filled(server, HUNGRY, |i| format!("RL.CONCURRENT k 1 1h {} TENANT {}", id(i), id(i)));
    Vec::new()
}

fn until_sated(server: &Server) {
    let con = &mut server.connection();
    for line in ["RL.INFO k", "RL.CONCURRENT k 1 1h one TENANT one", "RL.RELEASE k held"] {
        text(con, line);
    }
    text(con, "RL.CONCURRENT k 1 1h one TENANT one");
    text(con, "CONFIG SET ratelimit.hunger 0");
    wait_for("hungers end", || {
        text(con, "RL.CONCURRENT k 1 1h two TENANT two");
        sleep(Duration::from_millis(1));
        !text(con, "RL.INFO k").contains("tenants_count, 1000")
    });
}

fn callers(server: &Server) -> Vec<Client> {
    text(&mut server.connection(), "RL.CONCURRENT k 1 1h held");
    let end = Instant::now() + Duration::from_secs(15);
    let mut clients = Vec::new();
    for caller in 0..CALLERS {
        let mut client = Client::connect(server.port);
        let left = end.saturating_duration_since(Instant::now()).as_millis();
        client.send(&format!("RL.CONCURRENT k 1 1h {caller} TENANT {} BLOCK {left}ms", caller % 1000));
        clients.push(client);
    }
    wait_for("all callers", || waiting(server) == CALLERS);
    clients
}

fn until_left(server: &Server) {
    wait_for("all callers have left", || {
        sleep(Duration::from_millis(1));
        waiting(server) == 0
    });
}

fn waiting(server: &Server) -> u32 {
    info(&mut server.connection(), "ratelimit", "ratelimit_waiting")
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}
