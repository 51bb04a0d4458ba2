//! The words of limits, without the options of a request: of `GCRA 9 10 1s COST 2` these are `GCRA 9 10 1s`.
//!
//! They are taken from words that were parsed, so what follows a word is known.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::iter::Peekable;
use core::slice::Iter;

use crate::argument::{Argument, Values};
use crate::arguments::{Arguments, is};
use crate::calls::SketchCall;
use crate::catalog::{Row, find};
use crate::shown::shown;
use crate::vocabulary::{
    AT, BLOCK, COST, CRITICAL, DEPTH, FAIR, FENCE, FORCE, HOLD, ID, ITEM, LIMIT, MAX_BURST, MAXWAIT, ON,
    PARTIAL, PERIOD, RATE, RESERVE, RESERVED, SHADOW, TENANT, UNIT, WEIGHT, WIDTH,
};

type Words<'w, 'a> = Peekable<Iter<'w, &'a [u8]>>;

/// The options of a request, and how many words follow each.
const OF_REQUEST: [(Argument, usize); 13] = [
    (COST, 1),
    (AT, 1),
    (ON, 1),
    (SHADOW, 0),
    (PARTIAL, 0),
    (FORCE, 0),
    (RESERVE, 0),
    (HOLD, 2),
    (BLOCK, 1),
    (TENANT, 1),
    (WEIGHT, 1),
    (FAIR, 0),
    (FENCE, 0),
];

/// The words of the limit of a limiter's own command: the arguments after the key.
pub fn own_words(row: &Row, arguments: &Arguments<'_, '_>) -> String {
    let mut text = String::from(row.name());
    limit(row.arguments(), &mut arguments.rest().iter().peekable(), &mut text);
    text
}

/// The words of a sketch, and the item: the arguments of its command after the key.
pub fn sketch_words(arguments: &Arguments<'_, '_>) -> String {
    let mut words = arguments.rest().iter().peekable();
    let item = words.next().copied().unwrap_or_default();
    let mut text = String::from(SketchCall::NAME);
    limit(&[ITEM, MAX_BURST, RATE, PERIOD, WIDTH, DEPTH], &mut words, &mut text);
    _ = write!(text, " for {}", shown(item));
    text
}

/// The words of each limit of a call: the arguments from the options before the first limit on.
pub fn words_of_limits(arguments: &Arguments<'_, '_>) -> Vec<String> {
    each(arguments.rest(), true)
}

/// The words of each limit of a policy, which has no ids of leases.
pub(crate) fn words_of_policy(words: &[&[u8]]) -> Vec<String> {
    each(words, false)
}

fn each(words: &[&[u8]], has_ids: bool) -> Vec<String> {
    let mut words = words.iter().peekable();
    let mut limits = Vec::new();
    options(&[], &mut words, &mut String::new());
    // The word `LIMIT`, then the limiter's name.
    while let Some(row) = words.next().and_then(|_| words.next()).and_then(|name| find(name)) {
        let mut text = String::from(row.name());
        let arguments: Vec<Argument> =
            row.arguments().iter().filter(|argument| has_ids || argument.name != ID.name).copied().collect();
        limit(&arguments, &mut words, &mut text);
        limits.push(text);
    }
    limits
}

/// Adds the parameters and the own options of a limiter. The first of its arguments is the key, or stands for it.
fn limit(arguments: &[Argument], words: &mut Words<'_, '_>, text: &mut String) {
    for argument in arguments.iter().skip(1).take_while(|argument| !argument.is_option()) {
        let Some(word) = words.next() else { return };
        if argument.name == UNIT.name {
            _ = write!(text, " {}", shown(&word.to_ascii_uppercase()));
        } else {
            _ = write!(text, " {}", shown(word));
        }
    }
    options(arguments, words, text);
}

/// How many words follow an option of a request; `None` if the word is none. `takes` is whether the limiter has an option of this
/// name: beside `RESERVE`, `MAXWAIT` is of the request, and beside `RESERVED`, `CRITICAL` is the limiter's own.
pub fn of_request(word: &[u8], takes: impl Fn(&str) -> bool) -> Option<usize> {
    let option = OF_REQUEST.iter().find(|(option, _)| is(word, option.name));
    option
        .map(|(_, values)| *values)
        .or((is(word, MAXWAIT.name) && takes(RESERVE.name)).then_some(1))
        .or((is(word, CRITICAL.name) && !takes(RESERVED.name)).then_some(0))
}

/// Adds the own options of a limiter with these arguments, and skips those of the request.
fn options(arguments: &[Argument], words: &mut Words<'_, '_>, text: &mut String) {
    let takes = |name: &str| arguments.iter().any(|argument| argument.name == name);
    while let Some(word) = words.next_if(|word| !is(word, LIMIT.name)) {
        if let Some(values) = of_request(word, takes) {
            words.by_ref().take(values).for_each(drop);
        } else if let Some(own) = arguments.iter().find(|own| own.is_option() && is(word, own.name)) {
            _ = write!(text, " {}", own.name);
            if own.values != Values::Flag
                && let Some(value) = words.next()
            {
                _ = write!(text, " {}", shown(value));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Bounds;

    fn split(line: &str) -> Vec<&[u8]> {
        line.split(' ').map(str::as_bytes).collect()
    }

    #[test]
    fn a_limit_has_its_parameters_and_own_options_only() {
        for (call, words) in [
            ("gcra 15 30 1m cost 2 reserve maxwait 3s at 1", "GCRA 15 30 1m"),
            (
                "calendar 5 month tz Europe/Lisbon Anchor 3 hold a 1m",
                "CALENDAR 5 MONTH TZ Europe/Lisbon ANCHOR 3",
            ),
            ("SMOOTH 5 1s MAXWAIT 2s WARMUP 1s COST 3", "SMOOTH 5 1s MAXWAIT 2s WARMUP 1s"),
            (
                "CONCURRENT 5 1s LIMIT RESERVED 2 TENANT CRITICAL WEIGHT 3 CRITICAL BLOCK 1s",
                "CONCURRENT 5 1s LIMIT RESERVED 2 CRITICAL",
            ),
            ("SLIDINGLOG 5 1s PARTIAL GAP 1ms COUNTREFUSED", "SLIDINGLOG 5 1s GAP 1ms COUNTREFUSED"),
        ] {
            let call = split(call);
            let row = find(call[0]).expect("a limiter");
            assert_eq!(own_words(row, &Arguments::new(&call[1..], Bounds::DEFAULT)), words);
        }
        let sketch = split("a\u{7f}b 9 10 1s cost 2 depth 2");
        let words = sketch_words(&Arguments::new(&sketch, Bounds::DEFAULT));
        assert_eq!(words, r"SKETCH 9 10 1s DEPTH 2 for a\x7fb");
    }

    #[test]
    fn each_limit_of_a_call_or_a_policy_has_its_words() {
        let call = split(
            "HOLD LIMIT 1m limit gcra 9 10 1s on 2 LIMIT CONCURRENT 5 1s LIMIT SHADOW LIMIT UNIFORM 1s",
        );
        let words = words_of_limits(&Arguments::new(&call, Bounds::DEFAULT));
        assert_eq!(words, ["GCRA 9 10 1s", "CONCURRENT 5 1s LIMIT", "UNIFORM 1s"]);
        let policy = split("SHADOW LIMIT CONCURRENT 5 1s RESERVED 1 LIMIT PENALTY 3 1s 1s GROW 2 COST 2");
        assert_eq!(words_of_policy(&policy), ["CONCURRENT 5 1s RESERVED 1", "PENALTY 3 1s 1s GROW 2"]);
    }
}
