//! How the cost of a call grows: with the entries of a log, the leases of a table, the limits of a call. As tables of
//! instructions, and as plots in `docs/plots`.
//!
//! Each key is prepared on a server that runs free, and loaded by those under callgrind: else preparing would take hours.

use super::audience::Audience;
use super::instructions;
use super::load::{PIPELINE, Size, prepare};
use super::plot::{Line, Plot, Scale};
use super::row::{Answer, Load, PLAIN, Row};
use super::{Result, Selection, grouped};
use ratelimit_testing::{Server, call, ints};

const DECADES: [u32; 6] = [1, 10, 100, 1000, 10_000, 100_000];

/// The row for a size.
type RowOf = fn(u32) -> Row;

/// Instructions of a call over a number that its row depends on.
struct Sweep {
    plot: Plot<'static>,
    sizes: &'static [u32],
    /// The fewer and the more; the longer a call takes, the fewer will do.
    calls: [u32; 2],
    /// If a key holds as much as the size: a look at the first one, whose limit is a million.
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
        look: "RL.PEEK key:000000000000 SLIDINGLOG 1000000 1h",
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
        look: "RL.PEEK key:000000000000 CONCURRENT 1000000 1h id",
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

/// Prints the tables and draws the plots, of the words log, leases, limits; returns how many figures failed.
pub fn run(selection: &Selection<'_>) -> usize {
    SWEEPS.iter().filter(|sweep| selection.has(sweep.plot.name)).map(Sweep::run).sum()
}

fn log_admitted(entries: u32) -> Row {
    let call = "RL.SLIDINGLOG key:# 1000000 1h";
    Row { call, times: entries, answer: Answer::Admitted, ..PLAIN }
}

fn log_refused(entries: u32) -> Row {
    let call = kept(format!("RL.SLIDINGLOG key:# {entries} 1h"));
    Row { call, times: entries, answer: Answer::Refused, writes: false, ..PLAIN }
}

fn lease_acquired(leases: u32) -> Row {
    Row { call: "RL.CONCURRENT key:# 1000000 1h id:#", answer: Answer::Admitted, ..leased(leases) }
}

fn lease_refused(leases: u32) -> Row {
    let call = kept(format!("RL.CONCURRENT key:# {leases} 1h id:#"));
    Row { call, answer: Answer::Refused, writes: false, ..leased(leases) }
}

/// Random ids would soon come again, and renew.
fn leased(leases: u32) -> Row {
    Row { prepare: "RL.CONCURRENT key:# 1000000 1h held:#", times: leases, load: Load::Once, ..PLAIN }
}

fn limits_on_one_key(limits: u32) -> Row {
    let windows = (0..limits).map(|i| format!(" LIMIT FIXEDWINDOW 1000000 {}ms", 3_600_000 + i));
    let call = kept(format!("RL.MULTI 1 key:#{}", windows.collect::<String>()));
    Row { call, answer: Answer::AllAdmitted, ..PLAIN }
}

fn limit_on_many_keys(keys: u32) -> Row {
    let names: Vec<String> = (0..keys).map(|i| format!("key{i:02}:#")).collect();
    let call = kept(format!("RL.MULTI {keys} {} LIMIT FIXEDWINDOW 1000000 1h", names.join(" ")));
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
        let args = ["--dir".into(), dir];
        instructions::between(self.calls, &args, Audience::Nobody, |server, calls| {
            prepared.put(server, calls)
        })
    }
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
pub fn real(count: u64) -> f64 {
    count as f64
}

/// Draws a plot; 1 if that failed.
pub fn drawn(plot: &Plot<'_>, lines: &[Line]) -> usize {
    let Err(error) = plot.draw(lines) else { return 0 };
    println!("{}.svg: ERROR, not drawn: {error}", plot.name);
    1
}
