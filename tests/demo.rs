//! The demo: its memory answers as a server does, its page and charts say what comes of the trials, and on somebody's
//! server it leaves time series and nothing else.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

#[path = "../demo/drive/record.rs"]
mod record;
#[path = "support/dice.rs"]
mod seeded;
mod support;
#[path = "../demo/drive/trials.rs"]
mod trials;
#[path = "../demo/drive/wire.rs"]
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use ratelimit_demo::memory::Memory;
use ratelimit_demo::picture;
use ratelimit_demo::reply::{self, Reply};
use ratelimit_demo::settings::{Keys, RANGES, Settings};
use ratelimit_demo::strategies::{STRATEGIES, Strategy};
use ratelimit_demo::traffic::{Arrival, Shape};
use ratelimit_demo::trial;
use redis::{Connection, ConnectionLike, Value};
use seeded::Dice;
use serde_json::json;
use support::{Server, call, dump, ints, simple, text};
use trials::{Recording, Trial, drive, table};

/// The trials that the page shows and `make demo` makes.
fn settings(shape: Shape) -> Settings {
    Settings { shape, ..Settings::default() }
}

fn strategy(id: &str) -> &'static Strategy {
    STRATEGIES.iter().find(|strategy| strategy.id == id).unwrap()
}

/// Keeps what was asked, and what memory said.
struct Recorder {
    memory: Memory,
    calls: Vec<(String, Result<Reply, String>)>,
}

impl reply::Server for Recorder {
    fn call(&mut self, line: &str) -> Result<Reply, String> {
        let reply = self.memory.call(line);
        self.calls.push((line.into(), reply.clone()));
        reply
    }
}

/// How often memory and the server both said each of these.
#[derive(Default)]
struct Said {
    admitted: usize,
    refused: usize,
    thrown: usize,
    released: usize,
    errors: usize,
}

impl Recorder {
    fn new() -> Recorder {
        Recorder { memory: Memory::new(), calls: Vec::new() }
    }

    /// Each call once more, on a server.
    fn compare(&self, con: &mut Connection) -> Said {
        text(con, "FLUSHALL");
        let mut said = Said::default();
        for calls in self.calls.chunks(500) {
            let mut all = redis::Pipeline::new();
            for (line, _) in calls {
                let mut words = line.split(' ');
                all.cmd(words.next().unwrap()).arg(words.collect::<Vec<_>>());
            }
            let replies = con.req_packed_commands(&all.get_packed_pipeline(), 0, calls.len()).unwrap();
            for ((line, memory), reply) in calls.iter().zip(&replies) {
                let server = wire::read(reply).ok_or_else(|| simple(reply));
                assert!(said.same(memory, &server), "{line}: memory says {memory:?}, the server {server:?}");
            }
        }
        said
    }
}

/// A trial in memory, and then on the server.
fn agree(con: &mut Connection, settings: &Settings, strategy: &Strategy, arrivals: &[Arrival]) -> Said {
    let mut recorder = Recorder::new();
    // What is wrong with the settings, the server must say as well.
    let _ = trial::run(settings, strategy, arrivals, &mut recorder);
    recorder.compare(con)
}

impl Said {
    fn same(&mut self, memory: &Result<Reply, String>, server: &Result<Reply, String>) -> bool {
        match (memory, server) {
            (Ok(Reply::Chance(memory, chance)), Ok(Reply::Chance(server, same))) => {
                let thrown = *chance > 0.0 && *chance < 1.0;
                self.thrown += usize::from(thrown);
                (chance - same).abs() < 1e-12 && (thrown || memory == server)
            }
            (Ok(memory), Ok(server)) => {
                let count = match memory {
                    Reply::Integer(_) => &mut self.released,
                    reply if reply.limited() => &mut self.refused,
                    _ => &mut self.admitted,
                };
                *count += 1;
                memory == server
            }
            (Err(memory), Err(server)) => {
                self.errors += 1;
                memory == server
            }
            _ => false,
        }
    }
}

#[test]
fn memory_answers_every_call_as_a_server_does() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for shape in Shape::ALL {
        // Ten minutes of fewer requests, and so much less of everything else.
        let less = Settings { rate: 4, limit: 27, burst: 13, workers: 3, ..settings(shape) };
        let settings = if shape == Shape::Rising { less } else { settings(shape) };
        let arrivals = settings.arrivals();
        for strategy in &STRATEGIES {
            let said = agree(con, &settings, strategy, &arrivals);
            let about = format!("{} {}", shape.id(), strategy.id);
            assert_eq!(said.errors, 0, "{about}");
            let shed = strategy.id == "shed";
            assert!(shed || said.admitted > 50 && said.refused > 50, "{about}: nobody asked");
            assert!(!strategy.holds() || said.released > 50, "{about}: nobody released");
            let overloaded = shed && settings.shape.is_about_the_backend();
            assert!(!overloaded || said.thrown > 50, "{about}: nothing was shed");
        }
    }
}

#[test]
fn memory_answers_as_a_server_does_where_one_thing_ends_and_the_next_begins() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let settings = settings(Shape::Steady);
    // Three at once, at each moment at which a token, a turn, a gap or a window is due.
    let due = |number: u64| Arrival { at: number / 3 * 50_000, user: 0 };
    // Of seven one comes from a caller whose clock is two seconds late, of a hundred one is an hour early.
    let odd = |number: u64| match due(number) {
        Arrival { at, .. } if number % 100 == 99 => Arrival { at: at + 3_600_000_000, user: 0 },
        Arrival { at, .. } if number % 7 == 6 => Arrival { at: at.saturating_sub(2_000_000), user: 0 },
        due => due,
    };
    for strategy in &STRATEGIES {
        agree(con, &settings, strategy, &(0..1200).map(due).collect::<Vec<_>>());
        agree(con, &settings, strategy, &(0..1200).map(odd).collect::<Vec<_>>());
    }
    let mut leases = Recorder::new();
    for (line, at) in [
        ("RL.CONCURRENT door 1 1000 ann", 0),
        ("RL.CONCURRENT door 1 1000 bob", 999_999),
        // Ended by itself.
        ("RL.RELEASE door ann", 1_000_000),
        ("RL.CONCURRENT door 1 1000 bob", 1_000_000),
        ("RL.RELEASE door bob", 1_999_999),
        ("RL.RELEASE door bob", 1_999_999),
    ] {
        reply::Server::call(&mut leases, &format!("{line} AT {}", trial::START + at)).unwrap();
    }
    let said = leases.compare(con);
    assert_eq!((said.admitted, said.refused, said.released), (2, 1, 3));
}

#[test]
fn memory_answers_as_a_server_does_whatever_is_set() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let mut dice = Dice::new(7);
    let (mut refused, mut errors) = (0, 0);
    for _ in 0..60 {
        let settings = any_settings(&mut dice);
        for strategy in [dice.pick(&STRATEGIES), dice.pick(&STRATEGIES)] {
            let said = agree(con, &settings, strategy, &settings.arrivals());
            refused += said.refused;
            errors += said.errors;
        }
    }
    assert!(refused > 1000 && errors > 0, "{refused} refused, {errors} errors");
}

fn any_settings(dice: &mut Dice) -> Settings {
    let shapes = [Shape::Steady, Shape::Bursts, Shape::Edge, Shape::Abuser, Shape::Slow];
    let mut given = json!({ "shape": dice.pick(&shapes).id(), "shared": dice.one_in(3) });
    for range in &RANGES {
        // Tight limits bind more often.
        let most = if dice.one_in(2) { range.least + (range.most - range.least) / 10 } else { range.most };
        given[range.name] = json!(range.least + dice.below(most - range.least + 1));
    }
    given["rate"] = json!(1 + dice.below(20));
    Settings::from_json(&given).unwrap()
}

fn tried(settings: &Settings) -> Vec<Trial> {
    let arrivals = settings.arrivals();
    let trial = |strategy| Trial::of(settings, strategy, &arrivals, &mut Memory::new()).unwrap();
    STRATEGIES.iter().map(trial).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The table of a shape and its charts, as the page has them between the marks.
fn part(shape: Shape) -> String {
    let settings = settings(shape);
    let trials = tried(&settings);
    let mut part = format!("```text\n{}\n```\n\n", table(&settings, &trials));
    for Trial { strategy, figures, .. } in &trials {
        let (name, told) = (strategy.name(), picture::alternative(&settings, figures));
        // The dice fall differently each time.
        let thrown = strategy.id == "shed" && figures.all.admitted < figures.all.offered;
        let about = if thrown { "about " } else { "" };
        let title = shape.title().to_lowercase();
        let _ = writeln!(part, "![{name}, {title}: {about}{told}](demo/{}/{}.svg)", shape.id(), strategy.id);
    }
    part
}

#[test]
fn the_page_says_what_comes_of_the_trials() {
    let page = fs::read_to_string(root().join("docs/shapes.md")).unwrap();
    let mut expected = page.clone();
    for shape in Shape::ALL {
        let begin = format!("<!-- trials: {} -->\n", shape.id());
        let (before, rest) = expected.split_once(&begin).unwrap_or_else(|| panic!("no {begin}"));
        let (_, after) = rest.split_once("<!-- end -->\n").unwrap();
        expected = format!("{before}{begin}{}<!-- end -->\n{after}", part(shape));
        let title = format!("## {}\n\n{}", shape.title(), shape.story());
        assert!(unwrapped(&page).contains(&unwrapped(&title)), "the page has no: {title}");
    }
    if page != expected {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shapes.md");
        fs::write(&file, expected).unwrap();
        panic!("trials tell something else: diff docs/shapes.md {}", file.display());
    }
}

fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_charts_show_what_comes_of_the_trials() {
    let mut expected = BTreeSet::new();
    for shape in Shape::ALL {
        let settings = settings(shape);
        for Trial { strategy, series, figures } in tried(&settings) {
            let file = root().join(format!("docs/demo/{}/{}.svg", shape.id(), strategy.id));
            let drawn = fs::read_to_string(&file).unwrap_or_default();
            let same = drawn == picture::draw(&settings, strategy, &series, &figures);
            // The dice fall differently each time.
            assert!(same || strategy.id == "shed", "{} is out of date: run `make demo`", file.display());
            expected.insert(file);
        }
    }
    let folders = fs::read_dir(root().join("docs/demo")).unwrap().map(|folder| folder.unwrap().path());
    let files = |folder: PathBuf| fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    assert_eq!(folders.flat_map(files).collect::<BTreeSet<_>>(), expected, "charts of what is there no more");
}

#[test]
fn a_chart_has_a_colour_for_all_that_it_names() {
    let settings = settings(Shape::Abuser);
    let trial = &tried(&settings)[0];
    let svg = picture::draw(&settings, trial.strategy, &trial.series, &trial.figures);
    let (head, _) = svg.split_once("</style>").unwrap();
    let all = |begin: &str, end: char| -> BTreeSet<String> {
        svg.split(begin).skip(1).map(|rest| rest.split(end).next().unwrap().to_string()).collect()
    };
    for colour in all("var(", ')') {
        assert_eq!(head.matches(&format!(" {colour}: #")).count(), 2, "{colour} by day and by night");
    }
    for class in all("class=\"", '"') {
        let styled = [" ", ",", ")"].iter().any(|end| head.contains(&format!(".{class}{end}")));
        assert!(styled || ["shape", "number", "unit"].contains(&&*class), "no rule for {class}");
    }
    assert!(all("class=\"", '"').len() > 8 && all("var(", ')').len() > 5, "{head}");
}

/// Every key and what it holds.
fn everything(con: &mut Connection) -> BTreeMap<String, Value> {
    let Value::Array(keys) = call(con, &["KEYS", "*"]).unwrap() else { panic!("KEYS") };
    keys.iter().map(|key| (simple(key), dump(con, &simple(key)))).collect()
}

/// A stranger's keys: with the names that trials use, and with the demo's own beginning.
fn move_in(con: &mut Connection) {
    text(con, "SET everybody mine");
    text(con, "SET ratelimit-demo:mine 1");
    text(con, "RPUSH user:0 mine");
    ints(con, "RL.CONCURRENT user:1 10 600000 request-1");
}

/// A hash takes a field and a value where a series takes a time and a count, so these stand in for a server that has
/// time series.
const TIME_SERIES: [&str; 6] =
    ["--rename-command", "HSET", "TS.ADD", "--rename-command", "TOUCH", "TS.CREATE"];

#[test]
fn time_series_hold_what_got_through_and_nothing_else_is_left() {
    let server = Server::start(&TIME_SERIES);
    let con = &mut server.connection();
    assert_eq!(record::is_possible(con), Ok(true));
    move_in(con);
    let mut expected = everything(con);
    let settings = Settings { keys: Keys::Shared, ..settings(Shape::Abuser) };
    let arrivals = settings.arrivals();
    for id in ["fixed-window-aligned", "gcra-reserve", "concurrent", "multi"] {
        let memory = Trial::of(&settings, strategy(id), &arrivals, &mut Memory::new()).unwrap();
        // The second time replaces what the first one recorded.
        for _ in 0..2 {
            let trial = drive(con, &settings, strategy(id), &arrivals, Recording::TimeSeries).unwrap();
            assert_eq!(trial.figures, memory.figures, "{id}");
        }
        let key = format!("ratelimit-demo:abuser:{id}:through");
        let late = memory.figures.late;
        assert_eq!(points(con, &key), (120, memory.figures.all.admitted - late), "{id}");
        expected.insert(key.clone(), dump(con, &key));
    }
    let key = "ratelimit-demo:abuser:offered".to_string();
    assert_eq!(points(con, &key), (120, arrivals.len() as u64));
    expected.insert(key.clone(), dump(con, &key));
    assert_eq!(everything(con), expected);
}

/// How many there are in what stands in for a series, and their sum; the first and the last where they belong.
fn points(con: &mut Connection, key: &str) -> (usize, u64) {
    let Value::Array(all) = call(con, &["HGETALL", key]).unwrap() else { panic!("{key}") };
    let number = |value: &Value| simple(value).parse::<u64>().unwrap();
    let points: BTreeMap<u64, u64> =
        all.chunks(2).map(|point| (number(&point[0]), number(&point[1]))).collect();
    let (first, last) = (points.keys().next().unwrap(), points.keys().last().unwrap());
    assert_eq!((*first, *last), (trial::START / 1000, trial::START / 1000 + 59_500), "{key}");
    (points.len(), points.values().sum())
}

#[test]
fn a_server_without_time_series_keeps_nothing() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    assert_eq!(record::is_possible(con), Ok(false));
    move_in(con);
    let before = everything(con);
    let settings = settings(Shape::Abuser);
    let arrivals = settings.arrivals();
    drive(con, &settings, strategy("sliding-log"), &arrivals, Recording::No).unwrap();
    assert_eq!(everything(con), before);
    // A trial that breaks off leaves as little.
    text(con, "ACL SETUSER default -rl.release");
    let Err(error) = drive(con, &settings, strategy("concurrent"), &arrivals, Recording::No) else {
        panic!()
    };
    assert!(error.starts_with("RL.RELEASE user:") && error.contains("no permissions"), "{error}");
    assert_eq!(everything(con), before);
}

#[test]
fn series_of_somebody_elses_kind_are_left_alone() {
    let server = Server::start(&TIME_SERIES);
    let con = &mut server.connection();
    text(con, "SET ratelimit-demo:steady:offered mine");
    let before = everything(con);
    let settings = settings(Shape::Steady);
    let drove = drive(con, &settings, strategy("uniform"), &settings.arrivals(), Recording::TimeSeries);
    let Err(error) = drove else { panic!() };
    assert!(error.contains("WRONGTYPE") || error.contains("WrongType"), "{error}");
    assert_eq!(everything(con), before);
}
