//! How the cost of a call grows: with the keys of a server, the entries of a log, the leases of a table, the limits
//! of a call. As tables, and as plots in `docs/plots`.
//!
//! The number of keys is told by CPU time, for the caches decide: three servers hold as many keys of a kind each and
//! are called in turn. All else is told by instructions. There each key is prepared on a server that runs free, and
//! loaded by those under callgrind: else preparing would take hours.

use std::thread::sleep;
use std::time::Duration;

use super::instructions;
use super::load::{PIPELINE, Size, prepare};
use super::plot::{Line, Plot, Scale};
use super::rows::{Answer, Load, PLAIN, Row};
use super::support::{Server, call, info, ints, text, wait_for};
use super::{Result, Selection, grouped};

const ROUNDS: usize = 7;
const DECADES: [u32; 6] = [1, 10, 100, 1000, 10_000, 100_000];

/// Hours, so that no key goes before the last one has come; and in the middle of a burst, so that no measured call
/// has to move an expiry.
const KEYS: [Row; 3] = [
    Row { name: "SET PX", call: "SET key:# 1 PX 3600000", ..PLAIN },
    Row {
        name: "RL.GCRA admitted",
        call: "RL.GCRA key:# 1000000 1000000 3600000",
        prepare: "RL.GCRA key:# 1000000 1000000 3600000 COST 500000",
        answer: Answer::Admitted,
        ..PLAIN
    },
    Row { name: "RL.GCRA refused", call: "RL.GCRA key:# 0 1 3600000", answer: Answer::Refused, ..PLAIN },
];

/// The row for a size.
type RowOf = fn(u32) -> Row;

/// Instructions of a call over a number that its row depends on.
struct Sweep {
    plot: Plot<'static>,
    sizes: &'static [u32],
    /// The fewer and the more; the longer a call takes, the fewer will do.
    calls: [u32; 2],
    /// If a key holds as much as the size: a look at the first one, of which so many of a million are taken.
    look: &'static str,
    rows: [(&'static str, RowOf); 2],
}

const SWEEPS: [Sweep; 3] = [
    Sweep {
        plot: Plot {
            name: "log",
            title: "RL.SLIDINGLOG",
            across: "live entries per key",
            up: "instructions per call",
            scale: Scale::Linear,
        },
        sizes: &DECADES,
        calls: [1024, 6016],
        look: "RL.PEEK key:000000000000 SLIDINGLOG 1000000 3600000",
        rows: [("admitted", log_admitted), ("refused", log_refused)],
    },
    Sweep {
        plot: Plot {
            name: "leases",
            title: "RL.CONCURRENT",
            across: "leases held per key",
            up: "instructions per call",
            scale: Scale::Linear,
        },
        sizes: &DECADES,
        calls: [512, 2560],
        look: "RL.PEEK key:000000000000 CONCURRENT 1000000 3600000 id",
        rows: [("acquire", lease_acquired), ("refused", lease_refused)],
    },
    Sweep {
        plot: Plot {
            name: "limits",
            title: "RL.MULTI of fixed windows, admitted",
            across: "limits per call",
            up: "instructions per call",
            scale: Scale::Log,
        },
        sizes: &[1, 2, 4, 8, 16, 32, 64],
        calls: [256, 2240],
        look: "",
        rows: [("on one key", limits_on_one_key), ("on as many keys", limit_on_many_keys)],
    },
];

/// Prints the tables and draws the plots, of the words keys, log, leases, limits; returns how many figures failed.
pub fn run(most_keys: u32, selection: &Selection<'_>) -> usize {
    let mut failed = 0;
    if selection.has("keys") {
        failed += keys(most_keys);
    }
    for sweep in SWEEPS.iter().filter(|sweep| selection.has(sweep.plot.name)) {
        failed += sweep.run();
    }
    failed
}

fn log_admitted(entries: u32) -> Row {
    let call = "RL.SLIDINGLOG key:# 1000000 3600000";
    Row { call, times: entries, answer: Answer::Admitted, ..PLAIN }
}

fn log_refused(entries: u32) -> Row {
    let call = kept(format!("RL.SLIDINGLOG key:# {entries} 3600000"));
    Row { call, times: entries, answer: Answer::Refused, ..PLAIN }
}

fn lease_acquired(leases: u32) -> Row {
    Row { call: "RL.CONCURRENT key:# 1000000 3600000 id:#", answer: Answer::Admitted, ..leased(leases) }
}

fn lease_refused(leases: u32) -> Row {
    let call = kept(format!("RL.CONCURRENT key:# {leases} 3600000 id:#"));
    Row { call, answer: Answer::Refused, ..leased(leases) }
}

/// Random ids would soon come again, and renew.
fn leased(leases: u32) -> Row {
    Row { prepare: "RL.CONCURRENT key:# 1000000 3600000 held:#", times: leases, load: Load::Once, ..PLAIN }
}

fn limits_on_one_key(limits: u32) -> Row {
    let windows = (0..limits).map(|i| format!(" LIMIT FIXEDWINDOW 1000000 {}", 3_600_000 + i));
    let call = kept(format!("RL.MULTI 1 key:#{}", windows.collect::<String>()));
    Row { call, answer: Answer::AllAdmitted, ..PLAIN }
}

fn limit_on_many_keys(keys: u32) -> Row {
    let names: Vec<String> = (0..keys).map(|i| format!("key{i:02}:#")).collect();
    let call = kept(format!("RL.MULTI {keys} {} LIMIT FIXEDWINDOW 1000000 3600000", names.join(" ")));
    Row { call, answer: Answer::AllAdmitted, ..PLAIN }
}

/// The call of a row that is made up; there are few.
fn kept(call: String) -> &'static str {
    call.leak()
}

impl Sweep {
    fn run(&self) -> usize {
        let [(first, _), (second, _)] = self.rows;
        println!("\n{}: {}", self.plot.title, self.plot.up);
        println!("{:>20} {first:>18} {second:>18}", self.plot.across);
        let mut lines: Vec<Line> = self.rows.iter().map(|(name, _)| (*name, Vec::new())).collect();
        let mut failed = 0;
        for size in self.sizes {
            print!("{:>20}", grouped(u64::from(*size)));
            for ((_, row), (_, points)) in self.rows.iter().zip(&mut lines) {
                match self.measure(&row(*size), *size) {
                    Ok(count) => {
                        print!(" {:>18}", grouped(count));
                        points.push((f64::from(*size), real(count)));
                    }
                    Err(error) => {
                        failed += 1;
                        print!(" ERROR, not measured: {error}");
                    }
                }
            }
            println!();
        }
        failed + drawn(&self.plot, &lines)
    }

    fn measure(&self, row: &Row, size: u32) -> Result<u64> {
        // As many keys as load soon under callgrind: the more, the nearer is what a call finds to what was prepared.
        let keys = if self.look.is_empty() { 1000 } else { (100_000 / size).min(20_000) };
        let [_, most] = self.calls;
        let server = Server::start(&[]);
        let prepared =
            prepare(&server, row, Size { connections: 10, pipeline: PIPELINE, keys, calls: most, most })?;
        let mut con = server.connection();
        if !self.look.is_empty() {
            let taken = 1_000_000 - ints(&mut con, self.look)[2];
            if taken != i64::from(size) {
                return Err(format!("{taken} instead of {size} are held").into());
            }
        }
        call(&mut con, &["SAVE"])?;
        let dir = server.dir().to_string_lossy().into_owned();
        instructions::between(self.calls, &["--dir", &dir], |server, calls| prepared.put(server, calls))
    }
}

/// What one kind of key costs where there are so many.
struct Figures {
    micros: Vec<f64>,
    bytes: f64,
}

fn keys(most: u32) -> usize {
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
        let before = used(&server)?;
        let prepared = prepare(&server, row, size)?;
        settle(&server);
        let bytes = (used(&server)? - before) / f64::from(keys);
        held.push((server, prepared, Figures { micros: Vec::new(), bytes }));
    }
    for _ in 0..ROUNDS {
        for (server, prepared, figures) in &mut held {
            figures.micros.push(prepared.put(server, size.calls)?);
        }
    }
    held.into_iter().map(|(server, _, figures)| all_there(&server, keys).map(|()| figures)).collect()
}

fn used(server: &Server) -> Result<f64> {
    let used = info(&mut server.connection(), "memory", "used_memory");
    Ok(used.ok_or("no used_memory")?.parse()?)
}

/// Waits until the server has moved its keys into the tables that it has last made for them: it does so little by
/// little, at the expense of whoever calls.
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

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
fn real(count: u64) -> f64 {
    count as f64
}

/// Draws a plot; 1 if that failed.
fn drawn(plot: &Plot<'_>, lines: &[Line]) -> usize {
    let Err(error) = plot.draw(lines) else { return 0 };
    println!("{}.svg: ERROR, not drawn: {error}", plot.name);
    1
}
