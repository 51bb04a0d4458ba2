//! Draws the pictures of all lessons; then sends six shapes of traffic through every strategy, which becomes tables and
//! charts. All drawings are in `target/demo`. A real server decides all of it.
//!
//! ```text
//! cargo run --release --package ratelimit-demo-drive -- [steady] [bursts] [edge] [abuser] [slow] [rising]
//! ```
//!
//! Each call says by `AT` when it is made, so ten minutes of traffic take about a second, and come out the same each
//! time. Of the shedder's reply only the chance is used: the throw is the trial's, from a seed. With words, only those
//! shapes.
//!
//! It starts a server of its own, or uses the one that `DEMO_SERVER` names, with the module loaded. There it leaves only
//! time series, if the server supports them. The server should be near: keys expire by its clock, at least ten
//! seconds after they are fully reset.

mod folders;

use std::env;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use ratelimit_demo::lesson::{FAIRNESS, LESSONS};
use ratelimit_demo::settings::Settings;
use ratelimit_demo::strategies::STRATEGIES;
use ratelimit_demo::traffic::{Arrival, Shape};
use ratelimit_demo::trial;
use ratelimit_demo_drive::trials::{Recording, drive, on_server, table};
use ratelimit_demo_drive::{line, record};
use ratelimit_testing::Server;
use redis::Connection;

const PATIENCE: Duration = Duration::from_secs(30);

/// What is tried, and what comes in.
type Traffic = (Settings, Vec<Arrival>);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let words: Vec<String> = env::args().skip(1).collect();
    let traffic = traffic(&words)?;
    // No argument: it may hold a password, and arguments are seen by everybody.
    if let Some(address) = env::var("DEMO_SERVER").ok().filter(|address| !address.is_empty()) {
        println!("On the server that was named.");
        try_out(&mut connect(&address)?, &traffic)
    } else {
        println!("On a server of its own.");
        folders::keep_lesson(&FAIRNESS, &line::picture()?)?;
        try_out(&mut Server::start(&[]).connection(), &traffic)
    }
}

/// What comes in: all shapes, or those that are named.
fn traffic(words: &[String]) -> Result<Vec<Traffic>, String> {
    let shape = |word: &String| {
        let all = Shape::ALL.map(Shape::id).join(", ");
        Shape::of(word).ok_or_else(|| format!("there is no traffic of the shape {word:?}, but {all}"))
    };
    let named = words.iter().map(shape).collect::<Result<Vec<_>, _>>()?;
    let shapes = if named.is_empty() { Shape::ALL.to_vec() } else { named };
    let traffic = |shape| {
        let settings = Settings::from(shape);
        (settings, settings.arrivals())
    };
    Ok(shapes.into_iter().map(traffic).collect())
}

/// To `host:port`, or to a URL such as `redis://user:password@host:port`.
fn connect(address: &str) -> Result<Connection, String> {
    let url = if address.contains("://") { address.into() } else { format!("redis://{address}") };
    let con = redis::Client::open(url).and_then(|client| {
        let con = client.get_connection_with_timeout(PATIENCE)?;
        con.set_read_timeout(Some(PATIENCE))?;
        Ok(con)
    });
    con.map_err(|error| format!("no connection to the server that was named: {error}"))
}

fn try_out(con: &mut Connection, traffic: &[Traffic]) -> Result<(), String> {
    let recording = if record::is_possible(con)? { Recording::TimeSeries } else { Recording::No };
    println!(
        "{}",
        match recording {
            Recording::TimeSeries => "It has TS.ADD: what gets through is recorded as time series, too.",
            Recording::No => "It has no TS.ADD: no time series.",
        }
    );
    draw_lessons(con)?;
    let started = Instant::now();
    let bar = bar(traffic);
    for (settings, arrivals) in traffic {
        let title = settings.shape.title();
        bar.set_message(title);
        if bar.is_hidden() {
            eprintln!("{title} ...");
        }
        let mut trials = Vec::new();
        for strategy in &STRATEGIES {
            let trial = drive(con, settings, strategy, arrivals, recording)?;
            folders::keep_chart(settings, &trial)?;
            trials.push(trial);
            bar.inc(arrivals.len() as u64);
        }
        bar.suspend(|| println!("\n{title}: {}\n\n{}", settings.shape.story(), table(settings, &trials)));
    }
    bar.finish_and_clear();
    println!("\n{} requests in {:.1} s.", bar.position(), started.elapsed().as_secs_f64());
    println!("All drawings are in {}.", folders::keep_index()?.display());
    if recording == Recording::TimeSeries {
        println!("The time series, for example: TS.MRANGE - + FILTER shape=edge data=through");
    }
    Ok(())
}

fn draw_lessons(con: &mut Connection) -> Result<(), String> {
    for lesson in &LESSONS {
        let picture = lesson.picture(|settings, strategy, arrivals| {
            on_server(con, |server| trial::run(settings, strategy, arrivals, server))
        });
        folders::keep_lesson(lesson, &picture?)?;
    }
    Ok(())
}

/// Counts requests.
fn bar(traffic: &[Traffic]) -> ProgressBar {
    let requests: usize = traffic.iter().map(|(_, arrivals)| arrivals.len() * STRATEGIES.len()).sum();
    let look = ProgressStyle::with_template("{bar:40} {percent}% {msg}");
    ProgressBar::new(requests as u64).with_style(look.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
