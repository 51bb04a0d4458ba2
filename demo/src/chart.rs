//! One chart: plots above one another over the same time. They show requests per second, offered and admitted; the number
//! admitted within the last period, against the limit; and the number at work, if the backend matters. The SVG names
//! classes, and the page that shows it sets their colours.
//!
//! The charts of all strategies on the same traffic have the same scales, so that they can be laid side by side.
//! Drawn by hand: steps over two axes are less than what any library for it brings into a browser.

use std::fmt::Write;

use crate::figures::{SLOTS, Series};
use crate::settings::{Keys, Settings};
use crate::strategies::Strategy;

/// The default width of a chart, in pixels.
pub const WIDTH: u64 = 360;

/// Of the first plot between its axes, and of those below it.
const HEIGHT: f64 = 90.0;
const LOWER: f64 = 56.0;
/// Around plots, for what is written there; above one that is what it shows.
const LEFT: f64 = 34.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 20.0;
/// Between a plot and what is written above the next one.
const BETWEEN: f64 = 10.0;
/// A step narrower than this cannot be made out.
const NARROWEST: f64 = 4.0;

/// The chart, as an `svg` element.
pub fn draw(settings: &Settings, strategy: &Strategy, series: &Series, width: u64) -> String {
    let (plots, height) = (plots(settings, strategy, series, width), height(settings));
    let width = across(width);
    format!("<svg viewBox=\"0 0 {width} {height}\" class=\"chart\" aria-hidden=\"true\">{plots}</svg>")
}

#[allow(clippy::cast_precision_loss, reason = "pixels")]
fn across(width: u64) -> f64 {
    width.clamp(200, 2000) as f64
}

/// Of the whole chart.
pub fn height(settings: &Settings) -> f64 {
    let lower = if settings.shape.is_about_the_backend() { 2.0 } else { 1.0 };
    TOP + HEIGHT + lower * (BETWEEN + TOP + LOWER) + BOTTOM
}

/// What is in it.
pub fn plots(settings: &Settings, strategy: &Strategy, series: &Series, width: u64) -> String {
    let width = across(width);
    let mut svg = String::new();
    let mut top = TOP;
    requests(settings, strategy, series, width, &mut svg);
    top += HEIGHT + BETWEEN + TOP;
    within(settings, strategy, series, (width, top), &mut svg);
    if settings.shape.is_about_the_backend() {
        top += LOWER + BETWEEN + TOP;
        work(settings, series, (width, top), &mut svg);
    }
    seconds((0, settings.duration()), width, top + LOWER, &mut svg);
    svg
}

fn requests(settings: &Settings, strategy: &Strategy, series: &Series, width: f64, svg: &mut String) {
    let per_second = |counts: &[u64]| {
        let (counts, parts) = steps(counts, width, |a, b| a + b);
        let second = 1000.0 / real(series.slot * parts);
        counts.into_iter().map(|count| real(count) * second).collect()
    };
    let (offered, through): (Vec<f64>, Vec<f64>) = (per_second(&series.offered), per_second(&series.through));
    let plot = Plot::new(width, TOP, HEIGHT, offered.iter().chain(&through).copied().fold(1.0, f64::max));
    plot.frame("requests per second", svg);
    plot.area("offered", &offered, svg);
    plot.area("through", &through, svg);
    if settings.shape.has_abuser() {
        plot.area("abuser", &per_second(&series.abuser), svg);
    }
    // Many keys have no limit together.
    if strategy.limits_rate() && (settings.shape.users() == 1 || settings.keys == Keys::Shared) {
        plot.mark("limit", real(settings.limit) * 1000.0 / real(settings.period), svg);
    }
}

fn within(settings: &Settings, strategy: &Strategy, series: &Series, place: (f64, f64), svg: &mut String) {
    let (width, top) = place;
    let (within, _) = steps(&series.within, width, u64::max);
    let most = within.iter().copied().fold(series.most_within.max(settings.limit), u64::max);
    let plot = Plot::new(width, top, LOWER, real(most));
    let each = settings.shape.users() > 1 && settings.keys == Keys::Each;
    let of = if each { "one user's in" } else { "through within" };
    plot.frame(&format!("{of} the last {} s", settings.period / 1000), svg);
    plot.area("through", &within.into_iter().map(real).collect::<Vec<_>>(), svg);
    if strategy.limits_rate() {
        plot.mark("limit", real(settings.limit), svg);
    }
}

fn work(settings: &Settings, series: &Series, place: (f64, f64), svg: &mut String) {
    let (width, top) = place;
    let (at_work, _) = steps(&series.at_work, width, u64::max);
    let most = at_work.iter().copied().fold(series.most_at_work.max(settings.workers), u64::max);
    let plot = Plot::new(width, top, LOWER, real(most));
    plot.frame("at work at a time", svg);
    plot.area("work", &at_work.into_iter().map(real).collect::<Vec<_>>(), svg);
    plot.mark("workers", real(settings.workers), svg);
}

/// The values to draw, and how many slots each combines: several become one if they would be too narrow.
fn steps(slots: &[u64], width: f64, join: fn(u64, u64) -> u64) -> (Vec<u64>, u64) {
    if width - LEFT - RIGHT >= NARROWEST * real(SLOTS as u64) {
        return (slots.to_vec(), 1);
    }
    (slots.chunks(2).filter_map(|pair| pair.iter().copied().reduce(join)).collect(), 2)
}

/// The axis of time, below all plots; from one instant to another, in milliseconds.
pub(crate) fn seconds((from, until): (u64, u64), width: f64, bottom: f64, svg: &mut String) {
    let (from, until) = (real(from) / 1000.0, real(until) / 1000.0);
    let step = step(until - from, (width / 56.0).max(2.0));
    for at in marks(step, until).filter(|at| *at >= from) {
        let x = x(width, (at - from) / (until - from));
        let unit = if at + step > until { " s" } else { "" };
        let _ = write!(svg, "<path class=\"tick\" d=\"M{x:.1} {bottom}v4\"/>");
        let _ = write!(
            svg,
            "<text class=\"number\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{at}{unit}</text>",
            bottom + 16.0
        );
    }
}

/// How far to the right of a chart an instant is that comes after this part of its time.
pub(crate) fn x(width: f64, part: f64) -> f64 {
    LEFT + part * (width - LEFT - RIGHT)
}

/// A place between two axes.
pub(crate) struct Plot {
    right: f64,
    top: f64,
    bottom: f64,
    most: f64,
    step: f64,
}

impl Plot {
    /// One that has room for values up to `most`.
    pub(crate) fn new(width: f64, top: f64, height: f64, most: f64) -> Plot {
        let step = step(most, height / 18.0);
        // Numbers stand beside lines, and there is one at least.
        let most = if most % step < step * 0.9 { most.max(step) } else { (most / step).ceil() * step };
        Plot { right: width - RIGHT, top, bottom: top + height, most, step }
    }

    pub(crate) fn y(&self, value: f64) -> f64 {
        self.bottom - value / self.most * (self.bottom - self.top)
    }

    /// The lines that values are read off at, their numbers, and the unit.
    pub(crate) fn frame(&self, unit: &str, svg: &mut String) {
        for value in marks(self.step, self.most) {
            let (y, right) = (self.y(value), self.right);
            let class = if value == 0.0 { "axis" } else { "grid" };
            let _ = write!(svg, "<path class=\"{class}\" d=\"M{LEFT} {y:.1}H{right}\"/>");
            let (x, y) = (LEFT - 6.0, y + 4.0);
            let _ = write!(
                svg,
                "<text class=\"number\" x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{value}</text>"
            );
        }
        let _ = write!(svg, "<text class=\"unit\" x=\"{LEFT}\" y=\"{:.1}\">{unit}</text>", self.top - 7.0);
    }

    /// Steps from one to the next, filled down to the axis.
    #[allow(clippy::float_cmp, reason = "of equal counts, which are equally high")]
    pub(crate) fn area(&self, class: &str, values: &[f64], svg: &mut String) {
        let step = (self.right - LEFT) / real(values.len() as u64);
        let mut path = format!("M{LEFT} {:.1}", self.bottom);
        let mut count = 0;
        for stretch in values.chunk_by(|a, b| a == b) {
            count += stretch.len() as u64;
            let _ = write!(path, "V{:.1}H{:.1}", self.y(stretch[0]), LEFT + step * real(count));
        }
        let _ = write!(svg, "<path class=\"{class}\" d=\"{path}V{:.1}Z\"/>", self.bottom);
    }

    /// A line across, on a paler one, so that it can be seen on an area as well; and what it stands for.
    pub(crate) fn mark(&self, name: &str, value: f64, svg: &mut String) {
        if value > self.most {
            return;
        }
        let (y, right) = (self.y(value), self.right);
        for class in ["halo", "limit"] {
            let _ = write!(svg, "<path class=\"{class}\" d=\"M{LEFT} {y:.1}H{right}\"/>");
        }
        let (y, value) = (self.top - 7.0, (value * 10.0).round() / 10.0);
        let _ = write!(
            svg,
            "<text class=\"unit\" x=\"{right}\" y=\"{y:.1}\" text-anchor=\"end\">{name} {value}</text>"
        );
    }
}

/// A round step of which at most so many reach this far.
fn step(far: f64, most: f64) -> f64 {
    let power = 10f64.powf((far / most).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
    steps.into_iter().find(|step| far / step <= most).unwrap_or(10.0 * power).max(1.0)
}

fn marks(step: f64, far: f64) -> impl Iterator<Item = f64> {
    (0..).map(move |i| f64::from(i) * step).take_while(move |mark| *mark <= far * 1.001)
}

#[allow(clippy::cast_precision_loss, reason = "counts and times of a trial are below 2^53")]
pub(crate) fn real(number: u64) -> f64 {
    number as f64
}
