//! How the cost of a call grows with the keys of a server, and what a key takes: as a table, and as plots.
//!
//! The cost is CPU time, because it depends on the caches. Three servers hold the same number of keys, each of one kind, and are
//! called in turn.

use std::thread::sleep;
use std::time::Duration;

use super::audience::Audience;
use super::growth::{drawn, real};
use super::load::{PIPELINE, Size, prepare};
use super::plot::{Line, Plot, Scale};
use super::row::{Answer, PLAIN, Row};
use super::{Result, Selection, grouped, spread};
use ratelimit_testing::{Server, call, info, text, used_memory, wait_for};

const ROUNDS: usize = 7;

/// Hours, so that no key goes before the last one has come; and in the middle of a burst, so that no measured call
/// has to move an expiry.
const KEYS: [Row; 3] = [
    Row { name: "SET PX", call: "SET key:# 1 PX 3600000", ..PLAIN },
    Row {
        name: "RL.GCRA admitted",
        call: "RL.GCRA key:# 1000000 1000000 1h",
        prepare: "RL.GCRA key:# 1000000 1000000 1h COST 500000",
        answer: Answer::Admitted,
        ..PLAIN
    },
    Row {
        name: "RL.GCRA refused",
        call: "RL.GCRA key:# 0 1 1h",
        answer: Answer::Refused,
        writes: false,
        ..PLAIN
    },
];

/// What one kind of key costs where there are so many.
struct Figures {
    micros: Vec<f64>,
    bytes: f64,
}

/// Prints the table and draws the plots, if asked for the word keys; returns how many figures failed.
pub fn run(most: u32, selection: &Selection<'_>) -> usize {
    if !selection.has("keys") {
        return 0;
    }
    println!(
        "\nKeys: server CPU per call, median of {ROUNDS} rounds, and its ratio to SET PX in the same round"
    );
    println!("{:>12}  {:<18} {:>8} {:>10} {:>14}", "keys", "call", "us", "x SET PX", "bytes per key");
    let lines = || KEYS.iter().map(|row| (row.name, Vec::new())).collect::<Vec<Line>>();
    let (mut micros, mut ratios, mut bytes) = (lines(), lines(), lines());
    let mut failed = 0;
    for keys in (3..).map(|power| 10u32.pow(power)).take_while(|keys| *keys <= most) {
        let across = grouped(u64::from(keys));
        let figures = match among(keys) {
            Ok(figures) => figures,
            Err(error) => {
                failed += 1;
                println!("{across:>12}  ERROR, not measured: {error}");
                continue;
            }
        };
        for (place, row) in KEYS.iter().enumerate() {
            let own = &figures[place];
            let to_set_px = own.micros.iter().zip(&figures[0].micros).map(|(own, set_px)| own / set_px);
            let (us, ratio) = (median(own.micros.clone()), median(to_set_px.collect()));
            println!("{across:>12}  {:<18} {us:>8.2} {ratio:>10.2} {:>14.0}", row.name, own.bytes);
            for (lines, figure) in [(&mut micros, us), (&mut ratios, ratio), (&mut bytes, own.bytes)] {
                lines[place].1.push((f64::from(keys), figure));
            }
        }
    }
    ratios.remove(0);
    let plot = |name, title, up| Plot { name, title, across: "keys", up, scale: Scale::Linear };
    failed
        + drawn(&plot("keys", "CPU time", "microseconds per call"), &micros)
        + drawn(&plot("keys-ratio", "CPU time next to SET key value PX ms", "times SET PX"), &ratios)
        + drawn(&plot("keys-bytes", "Memory", "bytes per key"), &bytes)
}

/// The three kinds where there are so many keys of each.
fn among(keys: u32) -> Result<Vec<Figures>> {
    let size = Size { connections: 50, pipeline: PIPELINE, keys, calls: 200_000, most: 200_000 };
    let mut held = Vec::new();
    for row in &KEYS {
        let server = Server::start(&[]);
        // What a server keeps of every command that was ever called is no key's.
        prepare(&server, row, Size { keys: 1, ..size })?;
        settle(&server);
        call(&mut server.connection(), &["FLUSHALL", "SYNC"])?;
        let before = used_memory(&mut server.connection());
        let prepared = prepare(&server, row, size)?;
        settle(&server);
        let grown = u64::try_from(used_memory(&mut server.connection()) - before)?;
        let bytes = real(grown) / f64::from(keys);
        // A changed setting has made it send effects for a while.
        Audience::Nobody.join(&server)?;
        held.push((server, prepared, Figures { micros: Vec::new(), bytes }));
    }
    for _ in 0..ROUNDS {
        for (server, prepared, figures) in &mut held {
            figures.micros.push(prepared.put(server, size.calls)?);
        }
    }
    held.into_iter().map(|(server, _, figures)| all_there(&server, keys).map(|()| figures)).collect()
}

/// Waits until the server has moved its keys into its latest tables. It moves a few in each call, which makes these calls
/// slower.
fn settle(server: &Server) {
    let mut con = server.connection();
    text(&mut con, "CONFIG SET hz 500");
    // To look takes as long as there are keys, and meanwhile nothing is moved: so not too often.
    wait_for("the tables", || {
        sleep(Duration::from_secs(1));
        !text(&mut con, "DEBUG HTSTATS 0").contains("rehashing target")
    });
    text(&mut con, "CONFIG SET hz 10");
}

/// Whether a server has so many keys: none has expired meanwhile, and no call has made one.
fn all_there(server: &Server, keys: u32) -> Result<()> {
    let keyspace = info(&mut server.connection(), "keyspace", "db0").unwrap_or_default();
    let expected = format!("keys={keys},");
    if keyspace.starts_with(&expected) {
        Ok(())
    } else {
        Err(format!("{keyspace} instead of {expected}").into())
    }
}

fn median(numbers: Vec<f64>) -> f64 {
    spread(numbers).0
}
