//! All strategies on one shape of traffic, and the table of what came of it.

use std::fmt::Write;

use ratelimit_demo::figures::{Figures, Series, Share};
use ratelimit_demo::reply::Server;
use ratelimit_demo::settings::Settings;
use ratelimit_demo::strategies::Strategy;
use ratelimit_demo::traffic::Arrival;
use ratelimit_demo::trial;
use redis::Connection;

use super::record;
use super::wire::Wire;

pub struct Trial {
    pub strategy: &'static Strategy,
    pub series: Series,
    pub figures: Figures,
}

impl Trial {
    pub fn of(
        settings: &Settings,
        strategy: &'static Strategy,
        arrivals: &[Arrival],
        server: &mut dyn Server,
    ) -> Result<Trial, String> {
        let outcomes = trial::run(settings, strategy, arrivals, server)?;
        let series = Series::of(settings, &outcomes);
        Ok(Trial { strategy, series, figures: Figures::of(settings, &outcomes) })
    }
}

/// Whether a server is to keep what got through.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Recording {
    TimeSeries,
    No,
}

/// A trial on a real server, of which nothing is left there but what is recorded.
pub fn drive(
    con: &mut Connection,
    settings: &Settings,
    strategy: &'static Strategy,
    arrivals: &[Arrival],
    recording: Recording,
) -> Result<Trial, String> {
    let trial = on_server(con, |server| Trial::of(settings, strategy, arrivals, server))?;
    if recording == Recording::TimeSeries {
        record::offered(con, settings.shape, &trial.series)?;
        record::through(con, settings.shape, strategy.id, &trial.series)?;
    }
    Ok(trial)
}

/// What is asked of a server whose keys are deleted afterwards.
pub fn on_server<T>(
    con: &mut Connection,
    ask: impl FnOnce(&mut dyn Server) -> Result<T, String>,
) -> Result<T, String> {
    let prefix = own_prefix();
    let mut wire = Wire::new(con, &prefix);
    let asked = ask(&mut wire);
    let cleared = wire.clear();
    let asked = asked?;
    cleared?;
    Ok(asked)
}

/// A prefix that no other run has: it contains the process and the instant.
fn own_prefix() -> String {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    format!("ratelimit-demo:trial:{}-{}:", std::process::id(), now.as_nanos())
}

/// A line for each strategy: the requests offered and admitted, the most within any period, the longest wait of an admitted
/// request, the most at work at a time; and if one caller hammers, the requests of the others that were admitted.
pub fn table(settings: &Settings, trials: &[Trial]) -> String {
    let period = format!("in any {} s", settings.period / 1000);
    let mut table = row("", ["offered", "admitted", &period, "wait ms", "at work"]);
    if settings.shape.has_abuser() {
        table += "  normal users'";
    }
    for Trial { strategy, figures, .. } in trials {
        let Figures { all, peak, wait, at_work, .. } = figures;
        let cells = [all.offered, all.admitted, *peak, *wait, *at_work].map(|number| number.to_string());
        table.push('\n');
        table += &row(&strategy.name(), cells.each_ref().map(String::as_str));
        if let Some(Share { offered, admitted }) = figures.normal {
            let share = format!("{admitted} of {offered}");
            let _ = write!(table, "  {share:>13}");
        }
    }
    table
}

fn row(name: &str, cells: [&str; 5]) -> String {
    let cells = cells.map(|cell| format!("  {cell:>9}"));
    format!("{name:<28}{}", cells.concat())
}
