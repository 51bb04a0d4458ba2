//! The lessons: their pictures are those that `make demo` draws, they say what they promise, and the page shows them.

use std::fs;
use std::ops::Range;

use ratelimit_demo::lesson::{FAIRNESS, LESSONS, Lesson};
use ratelimit_demo::memory::Memory;
use ratelimit_demo::settings::Settings;
use ratelimit_demo::strategies::find;
use ratelimit_demo::traffic::Shape;
use ratelimit_demo::trial::{self, Fate, Outcome};
use ratelimit_demo_drive::line;

use super::charts::{assert_coloured, root};
use super::trials::on_server;
use crate::support::Server;

const SECOND: u64 = 1_000_000;
/// Where `make demo` draws.
const DRAWN: &str = "target/demo/lessons";

fn drawn(lesson: &Lesson) -> String {
    let picture = lesson
        .picture(|settings, strategy, arrivals| trial::run(settings, strategy, arrivals, &mut Memory::new()));
    picture.unwrap()
}

fn lesson(id: &str) -> String {
    drawn(LESSONS.iter().find(|lesson| lesson.id == id).unwrap())
}

/// The texts of a class, in order.
fn texts<'s>(svg: &'s str, class: &str) -> Vec<&'s str> {
    let begin = format!("<text class=\"{class}\"");
    let text = |rest: &'s str| rest.split_once('>').unwrap().1.split_once("</text>").unwrap().0;
    svg.split(&begin).skip(1).map(text).collect()
}

/// Is `docs/pictures` up to date? The README shows this picture, so it is kept; `make site` draws the others.
#[test]
fn the_picture_that_is_kept_is_the_one_that_is_drawn() {
    let kept = fs::read_to_string(root().join("docs/pictures/edge.svg")).unwrap();
    assert!(kept == lesson("edge"), "edge.svg is out of date: run `make demo`, and copy it from {DRAWN}");
}

#[test]
fn a_server_draws_the_same_pictures_each_time() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for lesson in &LESSONS {
        let picture = lesson.picture(|settings, strategy, arrivals| {
            on_server(con, |server| trial::run(settings, strategy, arrivals, server))
        });
        assert!(picture.unwrap() == drawn(lesson), "{}", lesson.id);
    }
}

#[test]
fn tenants_take_turns_in_the_line_of_a_server() {
    let picture = line::picture().unwrap();
    let kept = fs::read_to_string(root().join("docs/pictures/fairness.svg")).unwrap();
    assert!(kept == picture, "fairness.svg is out of date: run `make demo`, and copy it from {DRAWN}");
    assert_eq!(texts(&picture, "verdict"), ["Cid waits up to 15.4 s", "Cid waits up to 0.2 s"]);
    assert_coloured(&picture);
    assert_fits(&picture, FAIRNESS.id);
    let page = fs::read_to_string(root().join("docs/fairness.md")).unwrap();
    assert!(page.contains(&format!("![{}](pictures/fairness.svg)\n", FAIRNESS.caption())));
}

/// Where the page has a caption in bold, `tools/site` puts the picture.
#[test]
fn the_page_has_every_lesson_with_its_caption() {
    let page = fs::read_to_string(root().join("docs/shapes.md")).unwrap();
    for lesson in &LESSONS {
        let caption = lesson.caption();
        let place = match lesson.id {
            "edge" => format!("![{caption}](pictures/edge.svg)\n"),
            id => format!("**{caption}** <!-- pictures/{id}.svg -->\n"),
        };
        assert_eq!(page.matches(&place).count(), 1, "{place}");
    }
    assert_eq!(page.matches("pictures/").count(), LESSONS.len());
}

#[test]
fn lessons_say_what_they_promise() {
    for (id, first, second) in [
        ("edge", "200 in one second", "100 in one second"),
        ("stampede", "20 in one second", "100 in one second"),
        // The burst of 50, and what is refilled in less than 10 s.
        ("burst", "149 in 10 s", "100 in 10 s"),
        ("portions", "pauses of 0.1 s", "pauses of 6.7 s"),
        ("reserve", "46 of 190 refused", "0 refused, 0.9 s of wait"),
        // What is stored, 10, and 10 more. Or one each 300 ms, the first at once.
        ("warmup", "20 in the first second", "4 in the first second"),
        // Three times 100 in 30 s, or once; then 5 per second for 15 s.
        ("hammering", "375 of 675 through", "175 of 675 through"),
        ("neighbours", "210 of the others' 285", "285 of the others' 285"),
        ("slow", "54 at work at a time", "10 at work at a time"),
        ("shedding", "5247 of 9011 through", "7517 of 9011 through"),
    ] {
        assert_eq!(texts(&lesson(id), "verdict"), [first, second], "{id}");
    }
}

/// What the pages say below the picture of shedding.
#[test]
fn shedding_begins_when_workers_are_busy_and_goes_on_while_they_are_idle() {
    let settings = Settings::from(Shape::Rising);
    let arrivals = settings.arrivals();
    let outcomes = |id| trial::run(&settings, find(id).unwrap(), &arrivals, &mut Memory::new()).unwrap();
    let (bucket, shed) = (outcomes("token-bucket"), outcomes("shed"));
    let refused = |outcome: &&Outcome| matches!(outcome.fate, Fate::Refused { .. });
    let first = |outcomes: &[Outcome]| outcomes.iter().find(refused).unwrap().asked / SECOND;
    assert_eq!([first(&bucket), first(&shed)], [163, 287]);

    let later = 450 * SECOND..550 * SECOND;
    let came: Vec<&Outcome> = shed.iter().filter(|outcome| later.contains(&outcome.asked)).collect();
    assert_eq!((came.len(), came.into_iter().filter(refused).count()), (1479, 415));
    let possible = settings.workers * (later.end - later.start);
    assert!(1479 * settings.service * 1000 < possible, "the workers cannot do all");
    let worked: u64 = shed.iter().filter_map(|outcome| work(outcome, &later)).sum();
    let share = worked * 100 / possible;
    assert!((45..=55).contains(&share), "{share} % of the workers are busy");
}

/// How long a request is worked on within these instants.
fn work(outcome: &Outcome, within: &Range<u64>) -> Option<u64> {
    let Fate::Admitted { from, until } = outcome.fate else { return None };
    Some(until.min(within.end).saturating_sub(from.max(within.start)))
}

#[test]
fn a_picture_has_a_colour_for_all_that_it_names() {
    for id in ["edge", "apart", "shedding"] {
        assert_coloured(&lesson(id));
    }
}

/// On a phone letters are larger, and there is as much room as before.
#[test]
fn every_line_of_a_picture_fits_on_a_phone() {
    for lesson in &LESSONS {
        assert_fits(&drawn(lesson), lesson.id);
    }
}

fn assert_fits(svg: &str, id: &str) {
    for (class, most) in [("title", 43), ("story", 72), ("name", 25), ("verdict", 24)] {
        for text in texts(svg, class) {
            assert!(text.len() <= most, "{id}: {text:?} has {} letters", text.len());
        }
    }
}
