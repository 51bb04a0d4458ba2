//! A chart as a file of its own: what it shows stands in it, and its colours are the page's, by day and by night.

use std::fmt::Write;

use crate::chart;
use crate::figures::{Figures, Series};
use crate::settings::{Keys, Settings};
use crate::strategies::Strategy;
use crate::traffic::Shape;

const PAGE: &str = include_str!("../page/page.css");
/// Where the page begins to style what a chart names.
const CHART: &str = "/* The charts name these. */";
/// Pixels: of all of it, above the chart, and around everything.
const WIDTH: u64 = 360;
const ABOVE: u64 = 98;
const MARGIN: u64 = 10;

/// An SVG that can be shown as an image.
pub fn draw(settings: &Settings, strategy: &Strategy, series: &Series, figures: &Figures) -> String {
    let plots = chart::plots(settings, strategy, series, WIDTH - 2 * MARGIN);
    #[allow(clippy::cast_precision_loss, reason = "pixels")]
    let height = (ABOVE + MARGIN) as f64 + chart::height(settings);
    let (name, shape) = (strategy.name(), settings.shape.title());
    let (caption, notes) = (caption(settings, figures), notes(settings, figures));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"title desc\">\n\
         <title id=\"title\">{name}: {shape}</title>\n\
         <desc id=\"desc\">Requests per second over time, offered and what got through. {} {}.</desc>\n\
         <style>\n{}</style>\n\
         <rect class=\"card\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n\
         <g transform=\"translate({MARGIN} 0)\">\n",
        settings.shape.story(),
        alternative(settings, figures),
        style(),
        WIDTH - 1,
        height - 1.0,
    );
    for (class, y, text) in
        [("name", 22, &*name), ("shape", 39, shape), ("caption", 57, &caption), ("caption", 72, &notes)]
    {
        let _ = writeln!(svg, "<text class=\"{class}\" y=\"{y}\">{text}</text>");
    }
    legend(settings.shape, &mut svg);
    let _ = writeln!(svg, "<g class=\"chart\" transform=\"translate(0 {ABOVE})\">{plots}</g>\n</g>\n</svg>");
    svg
}

/// What got through, in a line.
pub fn caption(settings: &Settings, figures: &Figures) -> String {
    let Figures { all, peak, .. } = figures;
    let keys = settings.keys == Keys::Each && settings.shape.users() > 1;
    let (whose, period) = (if keys { " per user" } else { "" }, seconds(settings.period));
    format!("{} of {} admitted, at most {peak}{whose} in any {period}", all.admitted, all.offered)
}

/// What else there is to know of this traffic; may be nothing.
pub fn notes(settings: &Settings, figures: &Figures) -> String {
    let normal =
        figures.normal.map(|share| format!("{} of the normal users' {}", share.admitted, share.offered));
    let waits = (figures.wait > 0).then(|| format!("waits up to {}", seconds(figures.wait)));
    let work = settings.shape.is_about_the_backend().then(|| format!("at most {} at work", figures.at_work));
    let notes: Vec<String> = [normal, waits, work].into_iter().flatten().collect();
    notes.join(", ")
}

/// All of it in one sentence, for those who do not see it.
pub fn alternative(settings: &Settings, figures: &Figures) -> String {
    let (caption, notes) = (caption(settings, figures), notes(settings, figures));
    if notes.is_empty() { caption } else { format!("{caption}; {notes}") }
}

fn seconds(millis: u64) -> String {
    let digits = format!("{}.{:03}", millis / 1000, millis % 1000);
    format!("{} s", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// What the colours mean.
fn legend(shape: Shape, svg: &mut String) {
    let entries = [
        (true, "offered", "offered"),
        (true, "through", "got through"),
        (shape.has_abuser(), "abuser", "of that the abuser's"),
        (shape.is_about_the_backend(), "work", "at work"),
    ];
    for ((_, class, text), x) in entries.into_iter().filter(|(shown, ..)| *shown).zip([0, 78, 176]) {
        let _ = writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{x}.5\" y=\"80.5\" width=\"10\" height=\"9\"/>\
             <text class=\"caption\" x=\"{}\" y=\"89\">{text}</text>",
            x + 16
        );
    }
}

/// The page's colours and its rules for charts, and what is only here.
fn style() -> String {
    let colours = PAGE.lines().filter_map(|line| {
        let (name, both) = line.trim().strip_prefix("--")?.split_once(": light-dark(")?;
        let (light, dark) = both.strip_suffix(");")?.split_once(", ")?;
        Some((name, light, dark))
    });
    let (mut day, mut night) = (String::new(), String::new());
    for (name, light, dark) in colours {
        let _ = write!(day, " --{name}: {light};");
        let _ = write!(night, " --{name}: {dark};");
    }
    let charts = PAGE.split_once(CHART).map_or("", |(_, rest)| rest);
    let charts = charts.split_once("\n\n").map_or(charts, |(rules, _)| rules);
    format!(
        ":root {{{day} }}\n\
         @media (prefers-color-scheme: dark) {{ :root {{{night} }} }}\n\
         .card {{ fill: var(--card); stroke: var(--rule); }}\n\
         text {{ font: 11.5px system-ui, -apple-system, \"Segoe UI\", Roboto, sans-serif; fill: var(--soft); }}\n\
         .name {{ font-size: 13px; font-weight: 600; fill: var(--ink); }}\n\
         .caption {{ fill: var(--ink); }}{charts}\n"
    )
}
