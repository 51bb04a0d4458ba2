//! The scenes of the page: what their sentences say is counted here once more, from the outcomes alone.

use std::collections::BTreeSet;

use ratelimit_demo::figures::Figures;
use ratelimit_demo::headline::Headline;
use ratelimit_demo::memory::Memory;
use ratelimit_demo::scenes::{SCENES, STORY, Scene};
use ratelimit_demo::settings::{Keys, Settings};
use ratelimit_demo::strategies::{Strategy, find};
use ratelimit_demo::traffic::{ABUSER, Arrival, Shape};
use ratelimit_demo::trial::{self, Fate, Outcome};

const SECOND: u64 = 1_000_000;

struct Played {
    settings: Settings,
    arrivals: Vec<Arrival>,
    lanes: [Vec<Outcome>; 2],
    sentence: String,
}

fn play(scene: &Scene) -> Played {
    let settings = Settings::from(scene.shape);
    let arrivals = settings.arrivals();
    let headline = Headline::of(scene.shape);
    let strategies = scene.pair.map(|id| find(id).unwrap());
    let lanes =
        strategies.map(|strategy| trial::run(&settings, strategy, &arrivals, &mut Memory::new()).unwrap());
    let number = |lane: usize| headline.over_time(&settings, &lanes[lane]).last().unwrap().1;
    let names = strategies.map(Strategy::name);
    let pair = [(&*names[0], number(0)), (&*names[1], number(1))];
    let sentence = headline.sentence(&settings, &lanes[0], pair);
    Played { settings, arrivals, lanes, sentence }
}

fn scene(shape: Shape) -> Played {
    play(SCENES.iter().find(|scene| scene.shape == shape).unwrap())
}

fn from(outcome: &Outcome) -> Option<u64> {
    if let Fate::Admitted { from, .. } = outcome.fate { Some(from) } else { None }
}

/// The most that requests cost whose instants are within any time of this length: each such time may begin with a request.
fn most_within(length: u64, outcomes: &[Outcome]) -> u64 {
    let through: Vec<(u64, u64)> =
        outcomes.iter().filter_map(|outcome| Some((from(outcome)?, outcome.cost))).collect();
    let sum = |begin: u64| {
        through.iter().filter(|(at, _)| (begin..begin + length).contains(at)).map(|(_, cost)| cost).sum()
    };
    through.iter().map(|(at, _)| sum(*at)).max().unwrap_or(0)
}

fn most_at_work(outcomes: &[Outcome]) -> u64 {
    let works = |at: u64, outcome: &&Outcome| matches!(outcome.fate, Fate::Admitted { from, until } if (from..until).contains(&at));
    let begin = outcomes.iter().filter_map(from);
    begin.map(|at| outcomes.iter().filter(|outcome| works(at, outcome)).count() as u64).max().unwrap_or(0)
}

fn admitted(outcomes: &[Outcome], counts: impl Fn(u64) -> bool) -> u64 {
    outcomes.iter().filter(|outcome| counts(outcome.user) && from(outcome).is_some()).count() as u64
}

#[test]
fn every_scene_of_the_story_says_what_comes_of_it() {
    let said: Vec<String> = SCENES[..STORY].iter().map(|scene| play(scene).sentence).collect();
    let expected = [
        "FIXEDWINDOW ALIGNED lets 200 requests through within 10 s, and SLIDINGLOG lets 100 through. The limit is 100.",
        "FIXEDWINDOW ALIGNED lets 77 requests of all users through within one second, and FIXEDWINDOW lets 35 through.",
        "With TOKENBUCKET up to 54 requests are at work at a time, and with CONCURRENT up to 10 are. There are 10 workers.",
        "CONCURRENT lets 377 of the other tenants' 560 requests through, and CONCURRENT TENANT lets 559 through.",
        "SLIDINGWINDOW lets 348 of the abuser's 600 requests through, and MULTI SLIDINGWINDOW PENALTY lets 205 through.",
        "SLIDINGLOG lets 1,123 tokens through within 10 s, and SLIDINGLOG COST lets 100 through. The limit is 100.",
    ];
    assert_eq!(said, expected);
}

/// The numbers of a sentence, in order.
fn numbers(sentence: &str) -> Vec<u64> {
    let words = sentence.replace(',', "");
    words.split(|letter: char| !letter.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn the_numbers_of_every_sentence_are_those_of_the_trials() {
    for each in &SCENES {
        let Played { settings, arrivals, lanes, sentence } = play(each);
        let both = |count: &dyn Fn(&[Outcome]) -> u64| [count(&lanes[0]), count(&lanes[1])];
        let of_users = |counts: fn(u64) -> bool| {
            let came = arrivals.iter().filter(|arrival| counts(arrival.user)).count() as u64;
            let [one, two] = both(&|lane| admitted(lane, counts));
            vec![one, came, two]
        };
        let expected = match each.shape {
            Shape::Edge | Shape::Budget | Shape::Steady | Shape::Bursts => {
                let [one, two] = both(&|lane| most_within(settings.period * 1000, lane));
                vec![one, settings.period / 1000, two, settings.limit]
            }
            Shape::Crowd => both(&|lane| most_within(SECOND, lane)).to_vec(),
            Shape::Slow => [&both(&most_at_work)[..], &[settings.workers]].concat(),
            Shape::Tenants => of_users(|user| user != ABUSER),
            Shape::Abuser => of_users(|user| user == ABUSER),
            Shape::Rising => of_users(|_| true),
        };
        assert_eq!(numbers(&sentence), expected, "{sentence}");
    }
}

/// What the stories of the scenes say of their traffic.
#[test]
fn the_traffic_of_a_scene_is_what_its_story_says() {
    let Played { arrivals, settings, .. } = scene(Shape::Crowd);
    let first = |user| arrivals.iter().find(|arrival| arrival.user == user).unwrap().at;
    assert_eq!(settings.shape.users(), 20);
    for user in 0..20 {
        assert!(
            (0..2 * SECOND).contains(&(first(user) - user * SECOND / 2)),
            "{user} begins at {}",
            first(user)
        );
    }
    assert_eq!((settings.rate, settings.keys), (60, Keys::Each));

    let Played { arrivals, lanes, .. } = scene(Shape::Tenants);
    let of = |counts: fn(u64) -> bool| {
        let middle = arrivals.iter().filter(|arrival| (15..45).contains(&(arrival.at / SECOND)));
        middle.filter(|arrival| counts(arrival.user)).count()
    };
    let (greedy, others) = (of(|user| user == ABUSER), of(|user| user != ABUSER));
    assert!(greedy > 4 * others, "{greedy} and {others}");
    // The others' requests would fit: they need less than half of the workers. Neither strategy admits more than there are.
    assert!(others as u64 * 500 < 30_000 * 10 / 2, "{others}");
    for lane in &lanes {
        assert_eq!(most_at_work(lane), 10);
    }

    let costs: BTreeSet<u64> = scene(Shape::Budget).arrivals.iter().map(|arrival| arrival.cost).collect();
    assert_eq!(costs, (1..=20).collect());
}

#[test]
fn a_ban_reaches_only_the_abuser() {
    let Played { settings, lanes, .. } = scene(Shape::Abuser);
    for lane in &lanes {
        let others = Figures::of(&settings, lane).normal.unwrap();
        assert_eq!((others.admitted, others.offered), (285, 285));
    }
}

#[test]
fn the_first_second_of_a_scene_has_requests() {
    for each in &SCENES {
        let settings = Settings::from(each.shape);
        let duration = settings.duration() * 1000;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "microseconds of a scene"
        )]
        let at = |part: f64| (part * duration as f64) as u64;
        let (begin, end) = (at(each.plays.0), at(each.plays.1));
        assert!(begin < end && end <= duration, "{}", each.title);
        // It plays in ten seconds.
        let first = begin..begin + (end - begin) / 10;
        let came = settings.arrivals().iter().filter(|arrival| first.contains(&arrival.at)).count();
        assert!(came >= 3, "{}: {came}", each.title);
    }
}
