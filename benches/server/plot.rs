//! Lines over a logarithmic axis, drawn into `docs/plots`.

use std::ops::Range;
use std::path::Path;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::prelude::*;

use super::{Result, grouped};

/// The second axis: from zero, or by powers of ten.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    Linear,
    Log,
}

pub struct Plot<'a> {
    /// Of the file, without `.svg`.
    pub name: &'a str,
    pub title: &'a str,
    pub across: &'a str,
    pub up: &'a str,
    pub scale: Scale,
}

/// What a line is called, and its points.
pub type Line = (&'static str, Vec<(f64, f64)>);

const SIZE: (u32, u32) = (720, 400);
/// To be told apart by people who see few colours, too.
const COLOURS: [RGBColor; 3] = [RGBColor(0, 90, 160), RGBColor(213, 94, 0), RGBColor(110, 110, 110)];
/// How much of an axis is left free beyond its points.
const ROOM: f64 = 0.04;

impl Plot<'_> {
    /// Draws those lines that have points; what the file held before is lost.
    pub fn draw(&self, lines: &[Line]) -> Result<()> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/plots");
        std::fs::create_dir_all(&folder)?;
        let file = folder.join(format!("{}.svg", self.name));
        let points = || lines.iter().flat_map(|(_, points)| points);
        let mut sizes: Vec<f64> = points().map(|(x, _)| *x).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        if sizes.is_empty() {
            return Ok(());
        }
        let area = SVGBackend::new(&file, SIZE).into_drawing_area();
        // Also where the page is dark.
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(self.title, ("sans-serif", 20))
            .margin(12)
            .margin_right(30)
            .x_label_area_size(48)
            .y_label_area_size(78)
            .build_cartesian_2d(Axis::marked(sizes), Axis::over(self.scale, points().map(|(_, y)| *y)))?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.12))
            .label_style(("sans-serif", 14))
            .axis_desc_style(("sans-serif", 15))
            .x_desc(self.across)
            .y_desc(self.up)
            .draw()?;
        for ((label, points), colour) in lines.iter().zip(COLOURS) {
            let line = LineSeries::new(points.iter().copied(), colour.filled().stroke_width(2));
            let stroke = move |(x, y)| PathElement::new([(x, y), (x + 22, y)], colour.stroke_width(3));
            chart.draw_series(line.point_size(4))?.label(*label).legend(stroke);
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .margin(12)
            .legend_area_size(30)
            .label_font(("sans-serif", 14))
            .background_style(WHITE)
            .border_style(BLACK.mix(0.2))
            .draw()?;
        area.present()?;
        Ok(())
    }
}

struct Axis {
    scale: Scale,
    range: Range<f64>,
    marks: Vec<f64>,
}

impl Axis {
    /// A logarithmic one with a mark at each of these values, which are in order.
    fn marked(marks: Vec<f64>) -> Axis {
        let (first, last) = (marks[0], marks[marks.len() - 1]);
        let room = (last / first).powf(ROOM).max(1.1);
        Axis { scale: Scale::Log, range: first / room..last * room, marks }
    }

    /// One with round marks: from zero five to ten, or powers of ten.
    fn over(scale: Scale, values: impl Iterator<Item = f64> + Clone) -> Axis {
        let (low, high) = (values.clone().fold(f64::MAX, f64::min), values.fold(0.0, f64::max));
        let power = 10f64.powf(high.log10().floor());
        let range = match scale {
            Scale::Linear => 0.0..high * (1.0 + 2.0 * ROOM),
            Scale::Log => 10f64.powf(low.log10().floor())..10.0 * power,
        };
        let marks: Vec<f64> = match scale {
            Scale::Linear => {
                let steps = [0.1, 0.2, 0.5, 1.0].map(|part| part * power);
                let step = steps.into_iter().find(|step| range.end / step < 10.0).unwrap_or(power);
                (0..10).map(|i| f64::from(i) * step).collect()
            }
            Scale::Log => (0..10).map(|i| range.start * 10f64.powi(i)).collect(),
        };
        let marks = marks.into_iter().filter(|mark| *mark <= range.end * 1.001).collect();
        Axis { scale, range, marks }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    #[allow(clippy::cast_possible_truncation, reason = "a pixel")]
    fn map(&self, value: &f64, (start, end): (i32, i32)) -> i32 {
        let along = |value: f64| if self.scale == Scale::Log { value.ln() } else { value };
        let (low, high) = (along(self.range.start), along(self.range.end));
        start + (f64::from(end - start) * (along(*value) - low) / (high - low)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.marks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and below 2^53")]
    fn format(value: &f64) -> String {
        let whole = (value - value.round()).abs() <= 1e-6 * value.abs();
        if whole { grouped(value.round() as u64) } else { format!("{value:.1}") }
    }
}
