//! A long run: a crowd of connections, some of them rude and some killed, while memory, latency and errors are
//! watched.

mod calls;
mod crowd;
mod rude;
mod tally;

use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::Connection;

use crate::{Server, call, info, main_thread_seconds, text, wait_for};
use calls::POLICY;
use crowd::Crowd;
use rude::{LIMIT, Rude};
use tally::Tally;

/// How often figures are printed, if the run is long enough.
const REPORT: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(500);
/// Connections that are killed at each look.
const KILLED: usize = 2;
/// The bytes that the last third of the run may use more than the middle third, besides a twentieth: for the buffers of
/// clients that do not read.
const ROOM: u64 = 4 << 20;
/// Files besides those of the crowd.
const FILES: u64 = 200;

/// Returns what is wrong, each in a line.
pub fn run(seconds: u32, connections: u32) -> Vec<String> {
    let connections = allow_files(connections);
    // Keys come and go until as many expire as are made: so long it takes before memory can be compared.
    let server = Server::start(&["--maxclients", "10000", "--ratelimit.top", "30"]);
    let con = &mut server.connection();
    call(con, &["CONFIG", "SET", "client-output-buffer-limit", LIMIT]).unwrap();
    text(con, "SET string x");
    text(con, POLICY);
    let (run_id, quiet) = (of(con, "server", "run_id"), server.log().len());
    let mut faults = Vec::new();

    let begun = Instant::now();
    let length = Duration::from_secs(seconds.into());
    let crowd = Crowd::start(server.port, connections);
    let (rude, threads) = Rude::start(server.port);
    let (mut all, mut memory, mut killed) = (Tally::default(), Vec::new(), 0);
    let (mut reported, mut busy) = (begun, main_thread_seconds(con));
    let mut recent = Tally::default();
    while begun.elapsed() < length {
        sleep(LOOK);
        memory.push(of(con, "memory", "used_memory").parse::<u64>().unwrap());
        for _ in 0..KILLED {
            // Each in turn; one that has just gone by itself is not there any more.
            let port = crowd.port(killed * 7919 + memory.len());
            let line = format!("CLIENT KILL ADDR 127.0.0.1:{port}");
            killed += usize::from(call(con, &line.split(' ').collect::<Vec<_>>()).is_ok());
        }
        recent.add(crowd.tally());
        if reported.elapsed() >= REPORT {
            let so_far = main_thread_seconds(con);
            print(begun, reported, &recent, so_far - busy, *memory.last().unwrap());
            (reported, busy) = (Instant::now(), so_far);
            all.add(std::mem::take(&mut recent));
        }
    }
    rude.end();
    all.add(recent);
    all.add(crowd.end());
    for thread in threads {
        thread.join().unwrap();
    }

    let count = |number: &std::sync::atomic::AtomicU64| number.load(Ordering::Relaxed);
    println!(
        "in all {} calls, {} errors as intended, {} others; {}",
        all.calls,
        all.intended,
        all.wrong.len(),
        all.latencies()
    );
    println!(
        "{killed} connections killed, {} seen closed; {} left in mid-command, {} while they waited; {} cut off that did not read",
        all.closed,
        count(&rude.halves),
        count(&rude.impatient),
        count(&rude.cut_off)
    );
    faults.extend(all.wrong.clone());
    if all.closed != killed as u64 {
        faults.push(format!("{killed} connections were killed, but {} were closed", all.closed));
    }
    if count(&rude.tolerated) > 0 || count(&rude.halves) == 0 {
        faults.push(format!("{} that did not read were not cut off", count(&rude.tolerated)));
    }
    faults.extend(growth(&memory));
    // The server may have yet to notice that the last ones have left.
    wait_for("nobody to wait", || of(con, "ratelimit", "ratelimit_waiting") == "0");
    let waited = ["granted", "timeout"].map(|how| of(con, "ratelimit", &format!("ratelimit_waited_{how}")));
    println!("{} were granted what they waited for, {} waited in vain", waited[0], waited[1]);
    if waited.iter().any(|count| count == "0") {
        faults.push(format!("granted after a wait, and timed out: {waited:?}"));
    }
    if text(con, "PING") != "PONG" || of(con, "server", "run_id") != run_id {
        faults.push("the server is another one".to_string());
    }
    faults.extend(complaints(&server.log()[quiet..]));
    faults
}

fn of(con: &mut Connection, section: &str, field: &str) -> String {
    info(con, section, field).unwrap_or_else(|| panic!("INFO {section} tells no {field}"))
}

#[allow(clippy::cast_precision_loss)]
fn print(begun: Instant, since: Instant, recent: &Tally, busy: f64, memory: u64) {
    let seconds = since.elapsed().as_secs_f64();
    println!(
        "{:>5.0} s  {:>7.0} calls/s  {}  {:>3.0} % CPU  {:.1} MB",
        begun.elapsed().as_secs_f64(),
        recent.calls as f64 / seconds,
        recent.latencies(),
        100.0 * busy / seconds,
        memory as f64 / 1e6
    );
}

/// What the last third of the run used more than the middle third, if that is too much.
fn growth(memory: &[u64]) -> Option<String> {
    let third = memory.len() / 3;
    if third == 0 {
        return None;
    }
    // The middle one of each: the buffers of a client that does not read come and go.
    let middle = |samples: &[u64]| {
        let mut samples = samples.to_vec();
        samples.sort_unstable();
        samples[samples.len() / 2]
    };
    let thirds: Vec<u64> = memory.chunks(third).take(3).map(middle).collect();
    println!("used_memory by thirds: {thirds:?}");
    (thirds[2] > thirds[1] + thirds[1] / 20 + ROOM).then(|| format!("memory grows by thirds: {thirds:?}"))
}

/// Warnings in the log, but for those of clients that were cut off as they should be.
fn complaints(log: &str) -> Vec<String> {
    let meant = |line: &str| line.contains("overcoming of output buffer limits");
    log.lines()
        .filter(|line| line.contains(" # ") && !meant(line))
        .map(|line| format!("the log: {line}"))
        .collect()
}

/// Raises the limit of open files, and lowers the number of connections to it.
fn allow_files(connections: u32) -> usize {
    let mut files = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointers are to a structure of our own.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut files);
        files.rlim_cur = files.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const files);
    }
    let most = files.rlim_max.saturating_sub(FILES);
    if most < u64::from(connections) {
        println!("only {most} connections: see `ulimit -n`");
    }
    usize::try_from(most.min(connections.into())).unwrap()
}
