//! Calls that made sense, and no longer do: their arguments are replaced by unexpected ones, left out, repeated and moved.

use crate::support::dice::Dice;

/// Numbers at and past the ends of what a command, a count, a float or a machine takes.
const NUMBERS: [&str; 44] = [
    "0",
    "1",
    "-1",
    "2",
    "63",
    "64",
    "65",
    "1023",
    "1024",
    "1025",
    "65535",
    "65536",
    "1000000",
    "1000001",
    "4294967295",
    "4294967296",
    "3153600000000",
    "3153600000001",
    "9007199254740990",
    "9007199254740991",
    "9007199254740992",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "1000000000000000",
    "999999999999999",
    "253402300799999999",
    "253402300800000000",
    "01",
    "-0",
    "+1",
    "1.5",
    "0.1e1",
    "1e308",
    "-1e-400",
    "nan",
    "inf",
    "-inf",
    "0x10",
    "1 ",
];

const WORDS: [&str; 41] = [
    "COST",
    "AT",
    "PARTIAL",
    "FORCE",
    "RESERVE",
    "MAXWAIT",
    "BATCH",
    "ALIGNED",
    "PRECISION",
    "GAP",
    "COUNTREFUSED",
    "BURST",
    "WARMUP",
    "COLDFACTOR",
    "RESERVED",
    "CRITICAL",
    "ADAPT",
    "GRADIENT",
    "FLOOR",
    "START",
    "BACKOFF",
    "SLOW",
    "OUTCOME",
    "TENANT",
    "WEIGHT",
    "FAIR",
    "LIMIT",
    "ON",
    "HOLD",
    "TIER",
    "OF",
    "GOOD",
    "BAD",
    "DELAY",
    "RAMP",
    "GCRA",
    "CONCURRENT",
    "SHED",
    "MULTI",
    "*",
    "%s%n%p",
];

/// Lengths around which something may change, the last ones seldom.
const LENGTHS: [usize; 12] = [0, 1, 2, 20, 255, 256, 257, 4096, 65_535, 65_536, 70_000, 1 << 20];

/// Spoils the words of a call; its name stays.
pub fn spoil(words: &mut Vec<Vec<u8>>, dice: &mut Dice) {
    for _ in 0..=dice.below(3) {
        let length = words.len();
        let place = 1 + dice.index(length);
        match dice.below(12) {
            0..=3 if place < length => words[place] = word(dice),
            4 => words.insert(place.min(length), word(dice)),
            5 if place < length => _ = words.remove(place),
            6 if place < length => {
                let other = 1 + dice.index(length - 1);
                words.swap(place, other);
            }
            7 => words.truncate(place),
            // An option once more, with its value or without.
            8 if place < length => {
                let again = words[place..(place + 1 + dice.index(2)).min(length)].to_vec();
                words.extend(again);
            }
            9 if place < length => {
                let end = words[place..].to_vec();
                let times = if dice.one_in(4) { 70 } else { 1 };
                (0..times).for_each(|_| words.extend_from_slice(&end));
            }
            10 if place < length => words[place].make_ascii_lowercase(),
            11 if place < length && !words[place].is_empty() => {
                let at = dice.index(words[place].len());
                words[place][at] = dice.byte();
            }
            _ => {}
        }
    }
}

fn word(dice: &mut Dice) -> Vec<u8> {
    match dice.below(8) {
        0..=3 => dice.pick(&NUMBERS).as_bytes().to_vec(),
        4 | 5 => dice.pick(&WORDS).as_bytes().to_vec(),
        6 => {
            let length = dice.index(30);
            dice.bytes(length)
        }
        _ => {
            let few = if dice.one_in(20) { LENGTHS.len() } else { LENGTHS.len() - 4 };
            let length = LENGTHS[dice.index(few)];
            let byte = if dice.one_in(2) { b'9' } else { dice.byte() };
            vec![byte; length]
        }
    }
}
