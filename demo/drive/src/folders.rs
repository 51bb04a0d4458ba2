//! Where pictures are kept, in `target/demo`: those of lessons, and a chart of every trial.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use ratelimit_demo::lesson::{FAIRNESS, LESSONS, Lesson};
use ratelimit_demo::picture;
use ratelimit_demo::settings::Settings;
use ratelimit_demo::strategies::STRATEGIES;
use ratelimit_demo::traffic::Shape;
use ratelimit_demo_drive::trials::Trial;

pub fn keep_lesson(lesson: &Lesson, picture: &str) -> Result<(), String> {
    keep(&folder().join(drawn(lesson)), picture)
}

pub fn keep_chart(settings: &Settings, trial: &Trial) -> Result<(), String> {
    let svg = picture::draw(settings, trial.strategy, &trial.series, &trial.figures);
    keep(&folder().join(chart(settings.shape, trial.strategy.id)), &svg)
}

/// A page with all pictures and charts that there are, also those of earlier runs; returns its path.
pub fn keep_index() -> Result<PathBuf, String> {
    let mut page =
        String::from("<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>What gets through</title>\n");
    page += "<style>:root { color-scheme: light dark; font-family: system-ui }</style>\n";
    for lesson in LESSONS.iter().chain([&FAIRNESS]).filter(|lesson| folder().join(drawn(lesson)).exists()) {
        let _ = writeln!(page, "<img src=\"{}\" alt=\"{}\">", drawn(lesson), lesson.caption());
    }
    for shape in Shape::ALL {
        let _ = writeln!(page, "<h2>{}</h2>\n<p>{}</p>", shape.title(), shape.story());
        let all = STRATEGIES.iter().map(|strategy| (strategy, chart(shape, strategy.id)));
        for (strategy, chart) in all.filter(|(_, chart)| folder().join(chart).exists()) {
            let _ = writeln!(page, "<img src=\"{chart}\" alt=\"{}\">", strategy.name());
        }
    }
    let path = folder().join("index.html");
    keep(&path, &page)?;
    Ok(path)
}

fn folder() -> PathBuf {
    tree().join("target/demo")
}

fn drawn(lesson: &Lesson) -> String {
    format!("lessons/{}.svg", lesson.id)
}

fn chart(shape: Shape, strategy: &str) -> String {
    format!("{}/{strategy}.svg", shape.id())
}

/// The tree that cargo runs this in, which need not be the one in which it was compiled.
fn tree() -> PathBuf {
    let tree = env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&tree).ancestors().nth(2).unwrap_or(Path::new(".")).into()
}

fn keep(path: &Path, text: &str) -> Result<(), String> {
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, text));
    written.map_err(|error| format!("{}: {error}", path.display()))
}
