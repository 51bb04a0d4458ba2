//! Sentinels replace a primary that was killed amid calls: what replicas acknowledged counts, and the limit goes on.
//!
//! (`cluster/promotion.rs` does it with a cluster, whose replicas elect each other.)

use redis::{Connection, Value};

use crate::support::called::{CALLED, CALLERS, LIMIT, remaining, set_policy, words};
use crate::support::contents::contents;
use crate::support::load::{Course, Load};
use crate::support::sentinel::{Client, Watched};
use crate::support::{call, ints, refused, simple, text};

#[test]
fn what_the_replicas_acknowledged_survives_a_killed_primary_and_the_limit_goes_on() {
    let mut watched = Watched::start();
    let load = begin(&watched);
    load.all_go_on(100);
    watched.kill_primary();
    load.all_go_on(100);
    // With what it wrote down itself, which may be more than it sent to its replicas.
    watched.nodes[0].start_again();
    agrees(&watched, load);
}

#[test]
fn and_one_that_is_replaced_in_good_order() {
    let watched = Watched::start();
    let load = begin(&watched);
    load.all_go_on(100);
    watched.replace();
    watched.successor();
    load.all_go_on(100);
    agrees(&watched, load);
}

/// Whether the new primary knows what was acknowledged before and after it took over, and the old one knows no more.
fn agrees(watched: &Watched, load: Load<Tally>) {
    watched.settle();
    load.all_go_on(20);

    let tallies: Vec<Tally> = load.finish().chunks(CALLERS).map(sum).collect();
    let con = &mut watched.successor().connection();
    for (line, tally) in CALLED.iter().zip(tallies) {
        let found = LIMIT - remaining(con, line);
        let (acknowledged, doubtful) = (tally.acknowledged.len(), tally.doubtful);
        println!("{line}: acknowledged {acknowledged}, found {found}, in doubt {doubtful}");
        let found = usize::try_from(found).unwrap();
        assert!((acknowledged..=acknowledged + doubtful).contains(&found), "{line}");
        for lease in tally.acknowledged.iter().filter(|_| line.contains('#')) {
            let key = if line.contains("MULTI") { "all" } else { "lease" };
            assert_eq!(ints(con, &format!("RL.RENEW {key} 1h {lease}")), [1], "{line}");
        }
        use_up(con, line);
    }
    assert_eq!(text(con, "WAIT 2 0"), "2");
    let kept = contents(watched.successor());
    assert_eq!(kept.len(), CALLED.len());
    for node in &watched.nodes {
        assert_eq!(contents(node), kept, "on port {}", node.port);
    }
}

/// Takes all that remains, at once, and is refused from then on.
fn use_up(con: &mut Connection, line: &str) {
    let cost = format!(" COST {}", remaining(con, line));
    let rest = line.replace('#', "rest").replace(" LIMIT", &format!("{cost} LIMIT")) + &cost;
    assert!(!refused(&call(con, &words(&rest)).unwrap()), "{rest}");
    assert_eq!(remaining(con, line), 0, "{line}");
    assert!(refused(&call(con, &words(line)).unwrap()), "{line}");
}

#[derive(Default)]
struct Tally {
    /// The names of the calls that were admitted, and are with the replicas.
    acknowledged: Vec<String>,
    /// How many calls were cut off before that.
    doubtful: usize,
}

/// Clients that call a line each, and wait for the replicas after each call.
fn begin(watched: &Watched) -> Load<Tally> {
    set_policy(&watched.nodes[0]);
    watched.settle();
    let callers = CALLED.iter().flat_map(|line| (0..CALLERS).map(move |caller| (line, caller)));
    Load::start(callers.map(|(line, caller)| {
        let client = watched.client();
        move |course: &Course| call_on(client, line, caller, course)
    }))
}

fn call_on(mut client: Client, line: &str, caller: usize, course: &Course) -> Tally {
    let mut tally = Tally::default();
    // Both replicas: either may be elected. From then on there is one, until the old primary is back.
    let mut replicas = 2;
    for number in 0.. {
        if course.is_enough() {
            break;
        }
        let name = format!("{caller}-{number}");
        let admitted = client.call(&line.replace('#', &name)).inspect(|reply| {
            assert!(!refused(reply), "{line}: {}", simple(reply));
        });
        if let Err(error) = &admitted {
            assert!(!error.to_string().contains("policy"), "{line}: {error}");
        }
        // On a new connection `WAIT` would ask about nothing. One that was demoted meanwhile answers with an error.
        if let Ok(with) = admitted.and_then(|_| client.call(&format!("WAIT {replicas} 0"))) {
            assert!(matches!(with, Value::Int(with) if with >= replicas), "{line}: {with:?}");
            tally.acknowledged.push(name);
            course.goes_on();
        } else {
            tally.doubtful += 1;
            replicas = 1;
        }
    }
    tally
}

fn sum(tallies: &[Tally]) -> Tally {
    tallies.iter().fold(Tally::default(), |mut sum, tally| {
        sum.acknowledged.extend_from_slice(&tally.acknowledged);
        sum.doubtful += tally.doubtful;
        sum
    })
}
