//! A plot of each scene: limits, good requests a second, and their p99, over time.

use std::ops::Range;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use ratelimit_laws::fleet::Trial;

use super::worlds::Scene;

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// What is compared, in the order of the colours.
pub const LIMITS: [&str; 6] =
    ["ADAPT", "ADAPT GRADIENT", "fixed", "fixed, four times", "AIMD in each", "Gradient2 in each"];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const SIZE: (u32, u32) = (800, 760);
/// To be told apart by people who see few colours, too.
const COLOURS: [RGBColor; LIMITS.len()] = [
    RGBColor(0, 90, 160),
    RGBColor(213, 94, 0),
    RGBColor(0, 0, 0),
    RGBColor(150, 150, 150),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
];
/// The points of a line.
const POINTS: usize = 100;

/// The points of each line: what is shown of these seconds.
type Shows = fn(&Trial, Range<usize>) -> f64;

pub fn draw(scene: &Scene, trials: &[Trial]) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/plots");
    std::fs::create_dir_all(&folder)?;
    let file = folder.join(format!("adaptive-{}.svg", scene.name));
    let area = SVGBackend::new(&file, SIZE).into_drawing_area();
    // Also where the page is dark.
    area.fill(&WHITE)?;
    let area = area.titled(scene.story, ("sans-serif", 17))?;
    let (names, area) = area.split_vertically(22);
    for ((name, colour), x) in LIMITS.iter().zip(COLOURS).zip((64..).step_by(120)) {
        names.draw(&PathElement::new([(x, 10), (x + 20, 10)], colour.stroke_width(3)))?;
        names.draw(&Text::new(*name, (x + 26, 4), ("sans-serif", 12)))?;
    }
    let [limits, goodput, p99] = &area.split_evenly((3, 1))[..] else { return Ok(()) };
    panel(limits, "limit of the fleet", trials, true, at_the_end)?;
    panel(goodput, "good requests a second", trials, false, Trial::goodput)?;
    panel(p99, "p99 in ms", trials, true, Trial::p99)?;
    area.present()?;
    Ok(())
}

fn panel(area: &Area<'_>, unit: &str, trials: &[Trial], logarithmic: bool, shows: Shows) -> Result<()> {
    let lines: Vec<Vec<(f64, f64)>> = trials.iter().map(|trial| points(trial, shows)).collect();
    let all = || lines.iter().flatten().filter(|(_, y)| *y > 0.0);
    let last = all().map(|(x, _)| *x).fold(1.0, f64::max);
    let most = all().map(|(_, y)| *y).fold(1.0, f64::max);
    let least = all().map(|(_, y)| *y).fold(most, f64::min);
    let mut chart = ChartBuilder::on(area);
    chart.margin(8).margin_right(24).x_label_area_size(24).y_label_area_size(64);
    if logarithmic {
        let chart = chart.build_cartesian_2d(0.0..last, (least * 0.8..most * 1.2).log_scale())?;
        lines_in(chart, unit, &lines, |y| y.max(least))
    } else {
        let chart = chart.build_cartesian_2d(0.0..last, 0.0..most * 1.1)?;
        lines_in(chart, unit, &lines, |y| y)
    }
}

fn lines_in<'a, Y>(
    mut chart: ChartContext<'a, SVGBackend<'a>, Cartesian2d<plotters::coord::types::RangedCoordf64, Y>>,
    unit: &str,
    lines: &[Vec<(f64, f64)>],
    shown: impl Fn(f64) -> f64,
) -> Result<()>
where
    Y: Ranged<ValueType = f64> + plotters::coord::ranged1d::ValueFormatter<f64>,
{
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .label_style(("sans-serif", 13))
        .axis_desc_style(("sans-serif", 14))
        .x_labels(7)
        .y_labels(6)
        .x_label_formatter(&|x| format!("{x:.0} s"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .y_desc(unit)
        .draw()?;
    for (points, colour) in lines.iter().zip(COLOURS) {
        let points = points.iter().map(|(x, y)| (*x, shown(*y)));
        chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
    }
    Ok(())
}

fn at_the_end(trial: &Trial, part: Range<usize>) -> f64 {
    trial.limits.get(part.end - 1).copied().unwrap_or_default()
}

fn points(trial: &Trial, shows: Shows) -> Vec<(f64, f64)> {
    let step = trial.limits.len() / POINTS;
    let steps = (0..POINTS).map(|point| point * step..(point + 1) * step);
    #[allow(clippy::cast_precision_loss, reason = "seconds of some hours")]
    steps.map(|part| (part.end as f64, shows(trial, part))).collect()
}
