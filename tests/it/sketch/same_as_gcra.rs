//! Against `RL.GCRA` with a key for each item.

use redis::Connection;

use super::START;
use crate::support::dice::Dice;
use crate::support::{Server, ints};

/// The replies of the sketch, and of a key of the item's own.
fn both(con: &mut Connection, item: u64, rest: &str) -> [Vec<i64>; 2] {
    [format!("RL.SKETCH sketch {item} {rest}"), format!("RL.GCRA gcra:{item} {rest}")]
        .map(|line| ints(con, &line))
}

#[test]
fn the_default_shape_answers_as_a_key_for_each_of_ten_items() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let mut dice = Dice::new(52);
    let (mut now, mut admitted, mut refused) = (START, 0, 0);
    // Each interval is a whole number of microseconds.
    let parameters = ["4 10 1s", "9 4 2s", "0 1 50ms", "2 1000 1s", "30 8 1s"];
    for _ in 0..600 {
        now += match dice.below(20) {
            0 => dice.below(3_000_000),
            1..=8 => 0,
            _ => dice.below(60_000),
        };
        let (item, cost) = (dice.below(10), dice.pick(&["0", "1", "1", "1", "2", "3", "5", "40"]));
        let rest = format!("{} COST {cost} AT {now}", dice.pick(&parameters));
        let [sketch, gcra] = both(con, item, &rest);
        assert_eq!(sketch, gcra, "{item}: {rest}");
        if sketch[0] == 0 { admitted += 1 } else { refused += 1 }
    }
    assert!(admitted > 100 && refused > 100, "{admitted} admitted, {refused} refused");
}

#[test]
fn what_a_crowded_sketch_admits_a_key_for_each_item_admits_too() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let mut dice = Dice::new(53);
    let (mut now, mut admitted, mut refused) = (START, 0, 0);
    for _ in 0..3000 {
        now += dice.below(4000);
        // A third of a millisecond is no whole number of microseconds.
        let (item, cost) = (dice.below(30) * dice.below(10), 1 + dice.below(3));
        let rest = format!("6 3000 1s COST {cost} AT {now}");
        let rest = if item % 2 == 0 { format!("6 70 1s COST {cost} AT {now}") } else { rest };
        if ints(con, &format!("RL.SKETCH sketch {item} {rest} WIDTH 8 DEPTH 2"))[0] == 1 {
            refused += 1;
            continue;
        }
        admitted += 1;
        assert_eq!(ints(con, &format!("RL.GCRA gcra:{item} {rest}"))[0], 0, "{item}: {rest}");
    }
    assert!(admitted > 500 && refused > 500, "{admitted} admitted, {refused} refused");
}

#[test]
fn an_interval_that_is_rounded_up_admits_a_few_microseconds_later() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    // One in 142,857 1/7 us. Each charge may round up by a microsecond.
    for number in 0..100 {
        let [sketch, gcra] = both(con, 7, &format!("6 7 1s AT {}", START + number * 1_000_000 / 7 + number));
        assert_eq!([sketch[0], gcra[0]], [0, 0], "{number}");
        assert!((0..=1).contains(&(sketch[4] - gcra[4])), "{number}: {sketch:?} {gcra:?}");
    }
}
