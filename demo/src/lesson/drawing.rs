//! A lesson as an SVG: the caption, and two panels side by side. It can be read on a phone, where it is half as wide, and
//! its background is its own, by day and by night.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::measure::{Drawn, Measure, TENANTS};
use super::parts::{Lesson, Tried};
use crate::chart::{Plot, real, seconds, x};
use crate::figures::from;
use crate::settings::Settings;
use crate::trial::{Fate, Outcome};

/// What is drawn, and from which outcomes.
pub struct Picture<'a> {
    pub lesson: &'a Lesson,
    pub settings: &'a Settings,
    pub tried: &'a [Tried],
}

/// Pixels: of all of it, around everything, and of a panel.
const WIDTH: f64 = 640.0;
const MARGIN: f64 = 16.0;
const PANEL: f64 = 304.0;
/// Where the plots begin, and how high they are.
const TOP: f64 = 184.0;
const HEIGHT: f64 = 124.0;
/// Of one row of the strip below a plot: a line for each request.
const ROW: f64 = 14.0;
/// Between two rows, or a row and the plot.
const BETWEEN: f64 = 6.0;
/// More requests than this would fill the strip.
const MOST_IN_STRIP: usize = 2500;

impl Picture<'_> {
    pub fn draw(&self) -> String {
        let (lesson, bottom) = (self.lesson, self.bottom());
        let height = bottom + 58.0;
        let said = self.tried.iter().map(|tried| format!("{}: {}.", tried.name, tried.verdict));
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"title desc\">\n\
             <title id=\"title\">{}</title>\n<desc id=\"desc\">{} {}</desc>\n<style>\n{}</style>\n\
             <rect class=\"card\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"10\"/>\n",
            lesson.caption(),
            lesson.story,
            said.collect::<Vec<_>>().join(" "),
            include_str!("style.css"),
            WIDTH - 1.0,
            height - 1.0,
        );
        let [first, second] = lesson.title;
        for (class, y, line) in [("title", 36, first), ("title", 64, second), ("story", 92, lesson.story)] {
            let _ = writeln!(svg, "<text class=\"{class}\" x=\"{MARGIN}\" y=\"{y}\">{line}</text>");
        }
        let drawn: Vec<Drawn> = self.tried.iter().map(|tried| self.measure(tried)).collect();
        let most = drawn.iter().map(Drawn::most).fold(lesson.mark.map_or(0.0, |(_, at)| real(at)), f64::max);
        for (place, (tried, drawn)) in (0..).zip(self.tried.iter().zip(&drawn)) {
            let left = MARGIN + f64::from(place) * PANEL;
            let _ = write!(svg, "<g transform=\"translate({left} 0)\">");
            self.panel(tried, drawn, most, &mut svg);
            svg.push_str("</g>\n");
        }
        self.legend(height - 14.0, &mut svg);
        svg + "</svg>\n"
    }

    fn measure(&self, tried: &Tried) -> Drawn {
        self.lesson.measure.of(self.settings, &tried.outcomes, self.lesson.view, self.lesson.apart)
    }

    /// Where the axis of time is.
    fn bottom(&self) -> f64 {
        let rows = if self.has_strip() { 2.0 * (ROW + BETWEEN) } else { 0.0 };
        TOP + HEIGHT + rows + 2.0
    }

    fn has_strip(&self) -> bool {
        !matches!(self.lesson.measure, Measure::Held { .. })
            && self.tried.iter().all(|tried| tried.outcomes.len() <= MOST_IN_STRIP)
    }

    fn panel(&self, tried: &Tried, drawn: &Drawn, most: f64, svg: &mut String) {
        let _ = write!(svg, "<text class=\"name\" y=\"126\">{}</text>", tried.name);
        let _ = write!(svg, "<text class=\"verdict\" y=\"150\">{}</text>", tried.verdict);
        let plot = Plot::new(PANEL, TOP, HEIGHT, most);
        plot.frame(&self.lesson.measure.unit(self.settings), svg);
        for (class, values) in &drawn.areas {
            plot.area(class, values, svg);
        }
        self.dots(&plot, drawn, svg);
        self.edges(svg);
        if let Some((name, value)) = self.lesson.mark {
            plot.mark(name, real(value), svg);
        }
        if self.has_strip() {
            self.strip(&tried.outcomes, svg);
        }
        seconds(self.lesson.view, PANEL, self.bottom(), svg);
    }

    fn dots(&self, plot: &Plot, drawn: &Drawn, svg: &mut String) {
        for class in ["through", "refused"] {
            let own = drawn.dots.iter().filter(|(of, ..)| *of == class);
            let dots = own.filter_map(|(_, at, value)| Some((self.x(*at)?, plot.y(*value))));
            let dots: BTreeSet<String> = dots.map(|(x, y)| format!("M{x:.1} {y:.1}h.01")).collect();
            if !dots.is_empty() {
                let path: String = dots.into_iter().collect();
                let _ = write!(svg, "<path class=\"dots {class}\" d=\"{path}\"/>");
            }
        }
    }

    /// Where windows on the clock end. A single one has a name.
    fn edges(&self, svg: &mut String) {
        for x in self.lesson.edges.iter().filter_map(|edge| self.x(edge * 1000)) {
            let _ = write!(svg, "<path class=\"edge\" d=\"M{x:.1} {TOP}V{}\"/>", self.bottom());
            if self.lesson.edges.len() == 1 {
                let (x, y) = (x - 5.0, TOP + 16.0);
                let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"end\">edge</text>");
            }
        }
    }

    /// A line for each request: when it came, and whether it was refused; below, when it got through.
    fn strip(&self, outcomes: &[Outcome], svg: &mut String) {
        let top = TOP + HEIGHT + BETWEEN;
        let refused = |outcome: &&Outcome| matches!(outcome.fate, Fate::Refused { .. });
        let asked = |outcome: &Outcome| outcome.asked;
        self.lines("offered", top, outcomes.iter().map(asked), svg);
        self.lines("refused", top, outcomes.iter().filter(refused).map(asked), svg);
        self.lines("through", top + ROW + BETWEEN, outcomes.iter().filter_map(from), svg);
        for (name, y) in [("came", top), ("acted", top + ROW + BETWEEN)] {
            let (x, y) = (x(PANEL, 0.0) - 3.0, y + ROW - 4.0);
            let _ = write!(svg, "<text class=\"row\" x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{name}</text>");
        }
    }

    /// A line a pixel wide for each instant; those that touch are one bar.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "half pixels of a picture")]
    fn lines(&self, class: &str, top: f64, instants: impl Iterator<Item = u64>, svg: &mut String) {
        let halves = instants.filter_map(|at| self.x(at)).map(|x| (x * 2.0).round() as u64);
        let halves: Vec<u64> = halves.collect::<BTreeSet<_>>().into_iter().collect();
        let mut path = String::new();
        for bar in halves.chunk_by(|a, b| b - a <= 2) {
            let (first, width) = (real(bar[0]) / 2.0 - 0.5, real(bar[bar.len() - 1] - bar[0]) / 2.0 + 1.0);
            let _ = write!(path, "M{first} {top}h{width}v{ROW}h-{width}z");
        }
        let _ = write!(svg, "<path class=\"line {class}\" d=\"{path}\"/>");
    }

    /// Where an instant is in a panel, if it is shown; in microseconds.
    fn x(&self, at: u64) -> Option<f64> {
        let (from, until) = (self.lesson.view.0 * 1000, self.lesson.view.1 * 1000);
        (from..until).contains(&at).then(|| x(PANEL, real(at - from) / real(until - from)))
    }

    fn legend(&self, y: f64, svg: &mut String) {
        let is_area = matches!(self.lesson.measure, Measure::Rate { .. });
        let mut entries = [
            (true, if is_area { "offered" } else { "line offered" }, "came"),
            (self.has_strip(), "refused", "refused"),
            (true, "through", "got through"),
            (self.lesson.apart.is_some(), "apart", "of the sixth"),
        ];
        if let Measure::Held { tenants } = self.lesson.measure {
            let held = |place| (true, TENANTS[place], tenants[place]);
            entries = [held(0), held(1), held(2), (false, "", "")];
        }
        for ((_, class, text), x) in entries.into_iter().filter(|(shown, ..)| *shown).zip([50, 130, 230, 350])
        {
            let (top, after) = (y - 9.5, x + 16);
            let _ = write!(
                svg,
                "<rect class=\"{class}\" x=\"{x}.5\" y=\"{top}\" width=\"10\" height=\"9\"/><text x=\"{after}\" y=\"{y}\">{text}</text>"
            );
        }
        svg.push('\n');
    }
}
