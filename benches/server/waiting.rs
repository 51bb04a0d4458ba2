//! A thousand clients that want ten leases: waiting in the server, polling, and a semaphore of a script and messages.
//!
//! Each client takes a lease, works, releases it and asks again. Then how exactly those are granted who wait for time.

use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use redis::{Connection, Value};

use super::Result;
use ratelimit_testing::{
    PATIENCE, Server, call, connect, info, ints, main_thread_seconds, refused, simple, text, used_memory,
    wait_for,
};

const CAPACITY: usize = 10;
/// How long a client holds a lease.
const WORK: Duration = Duration::from_millis(20);
/// How long a lease lasts that is not released: `retry_after` is at most so long.
const TTL: &str = "1s";
/// Who asked so much earlier and is granted later was overtaken. The clients' own threads are late by less.
const OVERTAKEN: Duration = Duration::from_millis(50);
/// The least buffer for replies is 1,024 bytes, and there is none for calls.
const SMALL: u64 = 2048;
/// A thousand threads need little.
const STACK: usize = 256 * 1024;

#[derive(Clone, Copy)]
enum Way {
    /// `RL.CONCURRENT ... BLOCK`.
    Block,
    /// `RL.CONCURRENT ... BLOCK`, from this number of tenants.
    Tenants(usize),
    /// `RL.CONCURRENT`, again after `retry_after`.
    PollAsTold,
    /// `RL.CONCURRENT`, again after so many ms.
    Poll(u64),
    /// A counter of free permits, a script that takes one, and a message for each that is given back.
    Messages,
}

const WAYS: [(&str, Way); 5] = [
    ("RL.CONCURRENT BLOCK", Way::Block),
    ("BLOCK TENANT, 50 tenants", Way::Tenants(50)),
    ("polling after retry_after", Way::PollAsTold),
    ("polling each 20 ms", Way::Poll(20)),
    ("script, PUBLISH, SUBSCRIBE", Way::Messages),
];

const TAKE: &str = r"
local free = tonumber(redis.call('GET', KEYS[1]) or ARGV[1])
if free < 1 then
    return 0
end
redis.call('SET', KEYS[1], free - 1)
return 1
";
const GIVE: &str = r"
redis.call('INCR', KEYS[1])
return redis.call('PUBLISH', KEYS[2], 1)
";

/// A lease that was asked for. It was not granted if the time was over before.
struct Job {
    asked: Instant,
    held: Option<(Instant, Instant)>,
}

/// Prints the tables; returns how many rows failed.
pub fn run(clients: usize, seconds: u64) -> usize {
    println!("{clients} clients, {CAPACITY} leases, each held for {} ms", WORK.as_millis());
    println!(
        "{:<27} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "", "jobs/s", "of poss.", "p50 ms", "p99 ms", "CPU us", "wait p50", "longest", "overtook"
    );
    let mut failed = 0;
    for (name, way) in WAYS {
        if let Err(error) = contest(name, way, clients, seconds) {
            failed += 1;
            println!("{name:<27} ERROR, not measured: {error}");
        }
    }
    println!("of poss.: of what the releases allow; p50, p99: from a release to the grant that it allows;");
    println!(
        "CPU: of the server, per job; wait: seconds until a grant; overtook: grants before one who asked earlier"
    );
    failed + bytes_per_waiter(clients) + in_time()
}

fn contest(name: &str, way: Way, clients: usize, seconds: u64) -> Result<()> {
    let server = Server::start(&["--maxclients", "10000"]);
    let mut con = server.connection();
    let end = Instant::now() + Duration::from_secs(1 + seconds);
    let before = main_thread_seconds(&mut con);
    let port = server.port;
    let threads: Vec<JoinHandle<Vec<Job>>> =
        (0..clients).map(|id| small_thread(move || jobs(port, way, id, end))).collect();
    let jobs: Vec<Job> = threads.into_iter().flat_map(|thread| thread.join().expect("a client")).collect();
    let cpu = main_thread_seconds(&mut con) - before;
    let mut held: Vec<&Job> = jobs.iter().filter(|job| job.held.is_some()).collect();
    held.sort_by_key(|job| granted(job));
    if held.len() < 10 * CAPACITY {
        return Err(format!("only {} jobs", held.len()).into());
    }
    let mut releases: Vec<Instant> = jobs.iter().filter_map(|job| Some(job.held?.1)).collect();
    releases.sort();
    let first = granted(held[0]);
    let lasted = releases.last().expect("a release").duration_since(first).as_secs_f64();
    let delays = sorted(
        held.iter()
            .skip(CAPACITY)
            .zip(&releases)
            .map(|(job, release)| granted(job).saturating_duration_since(*release)),
    );
    let mean_held =
        jobs.iter().filter_map(|job| job.held).map(|(from, to)| to.duration_since(from)).sum::<Duration>()
            / u32::try_from(held.len())?;
    let [granted_jobs, capacity, overtook] = [held.len(), CAPACITY, overtook(&jobs, &held)].map(number);
    let possible = capacity / mean_held.as_secs_f64() * lasted;
    let waits = sorted(
        jobs.iter().map(|job| job.held.map_or(end, |(from, _)| from).saturating_duration_since(job.asked)),
    );
    println!(
        "{name:<27} {:>7.0} {:>8.1}% {:>9.2} {:>9.2} {:>9.0} {:>8.2}s {:>8.2}s {:>8.1}%",
        granted_jobs / lasted,
        100.0 * granted_jobs / possible,
        millis(part(&delays, 50)),
        millis(part(&delays, 99)),
        1e6 * cpu / granted_jobs,
        part(&waits, 50).as_secs_f64(),
        part(&waits, 100).as_secs_f64(),
        100.0 * overtook / granted_jobs,
    );
    Ok(())
}

fn small_thread<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    thread::Builder::new().stack_size(STACK).spawn(body).expect("a thread")
}

fn granted(job: &Job) -> Instant {
    job.held.expect("a job that was granted").0
}

/// The number of grants to a caller that asked later than another one that still waits.
fn overtook(jobs: &[Job], held: &[&Job]) -> usize {
    let mut earliest = jobs.iter().filter(|job| job.held.is_none()).map(|job| job.asked).min();
    let mut count = 0;
    for job in held.iter().rev() {
        count += usize::from(earliest.is_some_and(|earliest| earliest + OVERTAKEN < job.asked));
        earliest = Some(earliest.map_or(job.asked, |earliest| earliest.min(job.asked)));
    }
    count
}

/// What one client does until the time is over.
fn jobs(port: u16, way: Way, number: usize, end: Instant) -> Vec<Job> {
    let mut con = patient(port);
    let mut messages = matches!(way, Way::Messages).then(|| patient(port));
    let mut messages = messages.as_mut().map(|con| {
        let mut messages = con.as_pubsub();
        messages.subscribe("given").expect("a subscription");
        messages.set_read_timeout(Some(Duration::from_secs(1))).expect("a timeout");
        messages
    });
    let mut sha = |script| simple(&call(&mut con, &["SCRIPT", "LOAD", script]).expect("a script"));
    let take = format!("EVALSHA {} 1 free {CAPACITY}", sha(TAKE));
    let give = format!("EVALSHA {} 2 free given", sha(GIVE));
    let mut jobs = Vec::new();
    while Instant::now() < end {
        let asked = Instant::now();
        let is_granted = match &mut messages {
            None => lease(&mut con, way, number, end),
            Some(messages) => loop {
                if ints(&mut con, &take) == [1] {
                    break true;
                }
                if Instant::now() > end {
                    break false;
                }
                // A message that was lost is one second.
                _ = messages.get_message();
            },
        };
        if !is_granted {
            jobs.push(Job { asked, held: None });
            break;
        }
        let from = Instant::now();
        sleep(WORK);
        let to = Instant::now();
        match way {
            Way::Messages => drop(text(&mut con, &give)),
            _ => assert_eq!(ints(&mut con, &format!("RL.RELEASE leases {number}")), [1]),
        }
        jobs.push(Job { asked, held: Some((from, to)) });
    }
    jobs
}

/// Takes a lease; false if it is not granted in time.
fn lease(con: &mut Connection, way: Way, number: usize, end: Instant) -> bool {
    let ask = format!("RL.CONCURRENT leases {CAPACITY} {TTL} {number}");
    loop {
        let left = end.saturating_duration_since(Instant::now()).as_millis().max(1);
        let reply = match way {
            Way::Block => ints(con, &format!("{ask} BLOCK {left}ms")),
            Way::Tenants(tenants) => {
                ints(con, &format!("{ask} BLOCK {left}ms TENANT tenant-{}", number % tenants))
            }
            _ => ints(con, &ask),
        };
        if reply[0] == 0 {
            return true;
        }
        let pause = match way {
            Way::Block | Way::Tenants(_) | Way::Messages => return false,
            Way::PollAsTold => reply[3].unsigned_abs(),
            Way::Poll(millis) => millis,
        };
        sleep(Duration::from_millis(pause).min(end.saturating_duration_since(Instant::now())));
        if Instant::now() >= end {
            return false;
        }
    }
}

/// A connection that waits longer for a reply than any caller waits in the server.
fn patient(port: u16) -> Connection {
    let con = connect(port).expect("a connection");
    con.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    con
}

/// Prints the server's memory for each client that waits, besides that of a connection at rest: when all have begun to
/// wait, and when the server has freed the buffers that it read their calls into.
fn bytes_per_waiter(clients: usize) -> usize {
    let server = Server::start(&["--maxclients", "10000"]);
    let mut con = server.connection();
    ints(&mut con, "RL.CONCURRENT leases 1 1h first");
    let mut waiting: Vec<Connection> = (0..clients).map(|_| patient(server.port)).collect();
    for con in &mut waiting {
        text(con, "PING");
    }
    wait_for("connections at rest", || with_buffers(&mut con) == 0);
    let before = used_memory(&mut con);
    for (id, con) in waiting.iter_mut().enumerate() {
        let mut call = redis::cmd("RL.CONCURRENT");
        call.arg(&["leases", "1", "1h"]).arg(format!("client-{id}")).arg(&["BLOCK", "0"]);
        con.send_packed_command(&call.get_packed_command()).expect("a call");
    }
    wait_for("all to wait", || waits(&mut con) == clients);
    let began = Instant::now();
    let per_waiter =
        |con: &mut Connection| (used_memory(con) - before) / i64::try_from(clients).expect("a number");
    let first = per_waiter(&mut con);
    wait_for("the buffers to be freed", || with_buffers(&mut con) == 0);
    let seconds = began.elapsed().as_secs_f64();
    println!("{first} bytes a waiter at first, {} after {seconds:.1} s", per_waiter(&mut con));
    0
}

/// The connections, but for this one, that have more than small buffers. Redis frees them some seconds after a call.
fn with_buffers(con: &mut Connection) -> usize {
    let list = text(con, "CLIENT LIST TYPE normal");
    let own = "cmd=client|list";
    list.lines().filter(|line| !line.contains(own) && buffers(line) > SMALL).count()
}

/// The bytes of the buffers for calls and replies, in a line of `CLIENT LIST`. Valkey and Redis name them alike.
fn buffers(line: &str) -> u64 {
    let of = |name| line.split(' ').find_map(|field| field.strip_prefix(name)?.parse::<u64>().ok());
    ["qbuf=", "qbuf-free=", "rbs="].into_iter().filter_map(of).sum()
}

fn waits(con: &mut Connection) -> usize {
    info(con, "ratelimit", "ratelimit_waiting").expect("the field").parse().expect("a number")
}

/// The time between two grants of the limit below, in microseconds.
const STEP: u64 = 20_000;
const BURST: u64 = 10;
const IN_TIME: u64 = 200;

/// Prints how late those are granted who wait for time alone.
fn in_time() -> usize {
    let server = Server::start(&[]);
    let mut con = server.connection();
    let limit = "RL.GCRA limit 9 50 1s";
    ints(&mut con, limit);
    let first = match call(&mut con, &["RL.INFO", "limit"]).expect("a map") {
        Value::Array(fields) => fields
            .chunks(2)
            .find_map(|field| match field {
                [name, Value::Int(micros)] if simple(name) == "last_charge_us" => Some(micros.unsigned_abs()),
                _ => None,
            })
            .expect("the field"),
        other => panic!("{other:?}"),
    };
    let mut waiting: Vec<Connection> = (0..BURST - 1 + IN_TIME).map(|_| patient(server.port)).collect();
    for con in &mut waiting {
        let call = redis::cmd("RL.GCRA").arg(&["limit", "9", "50", "1s", "BLOCK", "0"]).get_packed_command();
        con.send_packed_command(&call).expect("a call");
        // So they arrive in this order.
        sleep(Duration::from_micros(300));
    }
    let mut late = Vec::new();
    for (place, con) in (1..).zip(&mut waiting) {
        let reply = con.recv_response().expect("a reply");
        assert!(!refused(&reply), "refused: {reply:?}");
        if place >= BURST {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_micros();
            late.push(i128::try_from(now).expect("a time") - i128::from(first + STEP * (place - BURST + 1)));
        }
    }
    late.sort_unstable();
    let [least, half, most_of, most] =
        [0, late.len() / 2, late.len() * 99 / 100, late.len() - 1].map(|i| late[i]);
    println!(
        "granted by time: {least} us after the moment at the earliest, p50 {half}, p99 {most_of}, at most {most}"
    );
    usize::from(least < 0)
}

fn sorted(durations: impl Iterator<Item = Duration>) -> Vec<Duration> {
    let mut durations: Vec<Duration> = durations.collect();
    durations.sort_unstable();
    durations
}

/// The duration below which so many percent of the others are.
fn part(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() - 1) * percent / 100]
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
fn number(count: usize) -> f64 {
    count as f64
}

fn millis(duration: Duration) -> f64 {
    1000.0 * duration.as_secs_f64()
}
