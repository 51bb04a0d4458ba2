//! The demo: its page and its charts say what comes of the trials, the same each time.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ratelimit_demo::figures::{Figures, Share};
use ratelimit_demo::memory::Memory;
use ratelimit_demo::picture;
use ratelimit_demo::reply::Reply;
use ratelimit_demo::settings::{Keys, Settings};
use ratelimit_demo::strategies::{STRATEGIES, Strategy, find, limiters};
use ratelimit_demo::traffic::{Arrival, Shape};
use ratelimit_demo::trial::{self, Fate, Outcome};

use super::trials::{Recording, Trial, drive, table};
use crate::support::Server;

fn strategy(id: &str) -> &'static Strategy {
    find(id).unwrap()
}

fn tried(settings: &Settings) -> Vec<Trial> {
    let arrivals = settings.arrivals();
    let trial = |strategy| Trial::of(settings, strategy, &arrivals, &mut Memory::new()).unwrap();
    STRATEGIES.iter().map(trial).collect()
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The table of a shape, as the page has it between the marks.
fn part(shape: Shape) -> String {
    let settings = Settings::from(shape);
    format!("```text\n{}\n```\n", table(&settings, &tried(&settings)))
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
        let title = format!("<summary>{}</summary>\n\n{}", shape.title(), shape.story());
        assert!(unwrapped(&page).contains(&unwrapped(&title)), "the page has no: {title}");
    }
    if page != expected {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shapes.md");
        fs::write(&file, expected).unwrap();
        panic!(
            "trials tell something else: diff docs/shapes.md {0}; if they should, copy {0} there",
            file.display()
        );
    }
}

fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The dice of a server have no seed. Tenants stay hungry by its own clock, so theirs is no trial that comes out the same.
#[test]
fn a_trial_comes_out_as_on_the_page_on_every_server() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let settings = Settings { rate: 4, limit: 27, burst: 13, workers: 2, ..Shape::Rising.into() };
    let arrivals = settings.arrivals();
    let mut refusing = 0;
    for strategy in STRATEGIES.iter().filter(|strategy| strategy.id != "concurrent-tenant") {
        let memory = Trial::of(&settings, strategy, &arrivals, &mut Memory::new()).unwrap();
        refusing += usize::from(memory.figures.all.admitted < memory.figures.all.offered);
        let trial = drive(con, &settings, strategy, &arrivals, Recording::No).unwrap();
        assert_eq!(trial.figures, memory.figures, "{}", strategy.id);
        assert_eq!(trial.series.through, memory.series.through, "{}", strategy.id);
    }
    assert!(refusing > 20, "only {refusing} refused anything");
}

#[test]
fn a_chart_has_a_colour_for_all_that_it_names() {
    let settings = Settings::from(Shape::Abuser);
    let trial = &tried(&settings)[0];
    assert_coloured(&picture::draw(&settings, trial.strategy, &trial.series, &trial.figures));
}

/// Every colour has a value by day and one by night, and every class but those of plain text has a rule.
pub fn assert_coloured(svg: &str) {
    let (head, _) = svg.split_once("</style>").unwrap();
    let all = |begin: &str, end: char| -> BTreeSet<&str> {
        svg.split(begin).skip(1).map(|rest| rest.split(end).next().unwrap()).collect()
    };
    for colour in all("var(", ')') {
        assert_eq!(head.matches(&format!(" {colour}: #")).count(), 2, "{colour} by day and by night");
    }
    let classes: BTreeSet<&str> = all("class=\"", '"').into_iter().flat_map(|all| all.split(' ')).collect();
    for class in &classes {
        let styled = [" ", ",", ")", "."].iter().any(|end| head.contains(&format!(".{class}{end}")));
        assert!(styled || ["shape", "number", "unit"].contains(class), "no rule for {class}");
    }
    assert!(classes.len() > 8 && all("var(", ')').len() > 5, "{head}");
}

#[test]
fn every_limiter_has_a_strategy() {
    let without: Vec<&str> = limiters()
        // No shape of traffic lasts for hours, as the windows of a calendar do.
        .filter(|limiter| *limiter != "CALENDAR")
        .filter(|limiter| {
            !STRATEGIES.iter().any(|strategy| strategy.name().split(' ').any(|word| word == *limiter))
        })
        .collect();
    assert!(without.is_empty(), "{without:?}");
}

#[test]
fn as_many_requests_come_as_the_rate_says() {
    for shape in Shape::ALL {
        for period in [1000, 10_000, 30_000] {
            let settings = Settings { rate: 60, period, ..shape.into() };
            let offered = settings.arrivals().len() as u64;
            let expected = settings.rate * settings.duration() / 1000;
            let id = shape.id();
            // Chance has its say: three parts of a hundred are several times what it takes in an hour of minutes.
            let apart = offered.abs_diff(expected) * 100;
            let few = if expected < 1000 { 15 } else { 3 };
            assert!(apart < few * expected, "{id}: {offered} came, {expected} should, a period of {period}");
        }
    }
}

#[test]
fn figures_are_those_of_a_history_that_can_be_counted_by_hand() {
    let settings = Settings { period: 1000, ..Shape::Abuser.into() };
    let second = 1_000_000;
    let admitted = |user, asked, from, until| Outcome {
        asked,
        user,
        cost: 1,
        fate: Fate::Admitted { from, until },
        reply: Reply::Integer(0),
    };
    let refused = |user, asked, retry| Outcome {
        asked,
        user,
        cost: 1,
        fate: Fate::Refused { retry },
        reply: Reply::Integer(1),
    };
    let mut outcomes = vec![
        // The third is a period after the first, which is not within it, and a microsecond less after the second.
        admitted(1, 0, 0, 3 * second),
        admitted(1, 1, 1, 3 * second),
        admitted(1, second, second, 3 * second),
        // When one ends another begins: never more than three at work.
        admitted(2, 3 * second, 3 * second, 4 * second),
        // Waits until after the end.
        admitted(0, 59 * second, 60 * second, 61 * second),
        refused(0, 59 * second, Some(250)),
        refused(2, 59 * second, Some(7)),
    ];
    let figures = Figures::of(&settings, &outcomes);
    let expected = Figures {
        all: Share { offered: 7, admitted: 5 },
        normal: Some(Share { offered: 5, admitted: 4 }),
        peak: 2,
        wait: 1000,
        retry: Some(250),
        at_work: 3,
        late: 1,
    };
    assert_eq!(figures, expected);
    let shared = Settings { keys: Keys::Shared, ..settings };
    outcomes.push(admitted(2, 3 * second + 1, 3 * second + 1, 4 * second));
    outcomes.push(admitted(3, 3 * second + 2, 3 * second + 2, 4 * second));
    outcomes.push(refused(1, 3 * second + 3, None));
    assert_eq!(Figures::of(&settings, &outcomes).peak, 2, "a key each");
    assert_eq!(Figures::of(&shared, &outcomes).peak, 3, "one for all");
    assert_eq!(Figures::of(&shared, &outcomes).retry, None, "never is longer than anything");
}

#[test]
fn whoever_comes_when_another_is_done_finds_a_worker() {
    let settings = Settings { workers: 1, service: 500, ..Shape::Steady.into() };
    let arrivals = [0, 499_999, 500_000].map(|at| Arrival { at, user: 0, cost: 1 });
    let outcomes = trial::run(&settings, strategy("concurrent"), &arrivals, &mut Memory::new()).unwrap();
    let admitted: Vec<bool> =
        outcomes.iter().map(|outcome| matches!(outcome.fate, Fate::Admitted { .. })).collect();
    assert_eq!(admitted, [true, false, true]);
}

#[test]
fn a_limit_that_finds_itself_falls_while_the_backend_is_slow_and_rises_again() {
    let settings = Settings::from(Shape::Slow);
    let outcomes =
        trial::run(&settings, strategy("concurrent-adapt"), &settings.arrivals(), &mut Memory::new())
            .unwrap();
    let third = settings.duration() * 1000 / 3;
    // The limit at the end of each third.
    let limits = [1, 2, 3].map(|end| {
        let before = outcomes.iter().rfind(|outcome| outcome.asked < end * third);
        before.map(|outcome| outcome.reply)
    });
    let [
        Some(Reply::Five([_, first, ..])),
        Some(Reply::Five([_, slow, ..])),
        Some(Reply::Five([_, last, ..])),
    ] = limits
    else {
        panic!("no limits: {limits:?}")
    };
    assert!(first >= 10 && slow < first / 2 && last > slow, "{limits:?}");
}
