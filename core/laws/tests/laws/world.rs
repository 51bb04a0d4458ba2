//! Worlds of fixed seeds, in which no law is broken, and histories in which one was. `make simulate` takes new seeds.

use ratelimit_laws::world::{BROKEN_ONCE, Event, Tally, replay, simulate};

/// The events of a world.
const EVENTS: usize = 2000;
/// The worlds: some ten seconds.
const SEEDS: std::ops::Range<u64> = 0..120;

#[test]
fn nothing_that_goes_wrong_breaks_a_law() {
    let mut tally = Tally::default();
    for seed in SEEDS {
        match simulate(seed, EVENTS) {
            Ok(more) => tally.add(&more),
            Err(failure) => panic!("{failure}"),
        }
    }
    println!("{tally}");
    // Each kind of event came, and led where it should.
    for name in Event::NAMES {
        assert!(tally.events.contains_key(name), "{name} in\n{tally}");
    }
    for (name, least) in [
        ("callers that were admitted at last", 1000),
        ("callers waiting at a failover", 100),
        ("callers waiting at a crash", 100),
        ("holds open at a failover", 100),
        ("holds open at a crash", 100),
        ("hungry tenants", 1000),
        ("lines of several tenants", 1000),
        ("policies changed while callers wait", 500),
        ("units lost at a failover", 500),
        ("units lost at a crash", 500),
        ("full copies", 50),
        ("calls that were explained before", 1000),
        ("callers that waited rightly", 10_000),
        ("errors", 1000),
        ("calls that a model decided too", 3000),
        ("calls that the model of fair lines decided too", 3000),
        ("waits that the model of fair lines ended too", 500),
        ("callers that waited alone", 50),
    ] {
        let count = tally.reached.get(name).copied().unwrap_or(0);
        assert!(count >= least, "{name}: {count} in\n{tally}");
    }
}

#[test]
fn the_same_seed_makes_the_same_history() {
    let [one, two] = [(); 2].map(|()| simulate(77, EVENTS).unwrap_or_else(|failure| panic!("{failure}")));
    assert_eq!(one, two);
}

#[test]
fn each_event_can_be_read_from_its_line() {
    let events = "call DEL x\nunit DEL x; RL.GCRA y 1 1 1s\npass 1500\nstep 2 -77\nhangup 3\ndeliver 1 9\ncut 1\njoin 1\nbroken 2\n\
                  promote 1\ncrash 5\nrewrite false\nexpire\nevict 3\npause true\nset hunger 0\ncron\ntry\nquiet";
    let read: Vec<Event> = events.lines().map(|line| Event::of(line).expect("an event")).collect();
    assert_eq!(read.iter().map(Event::to_string).collect::<Vec<_>>().join("\n"), events);
    assert!(Event::of("fly").is_none());
    replay(&read).expect("a history without a fault");
}

#[test]
fn what_broke_a_law_once_breaks_none_any_more() {
    for (name, history) in BROKEN_ONCE {
        let events: Vec<Event> = history.lines().map(|line| Event::of(line).expect("an event")).collect();
        replay(&events).unwrap_or_else(|why| panic!("{name}: {why}"));
    }
}
