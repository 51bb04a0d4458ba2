//! What errors and explanations show: a caller's words, durations, names of limits, and guesses.

use alloc::vec::Vec;
use core::fmt;

use ratelimit_core::{Kind, Name, Span};

use crate::number::Duration;
use crate::vocabulary::UNITS;

/// The most bytes of a caller's word that are shown.
const MAX_SHOWN: usize = 64;

/// A caller's word, escaped and cut off.
pub fn shown(word: &[u8]) -> impl fmt::Display {
    Cut(word)
}

struct Cut<'a>(&'a [u8]);

impl fmt::Display for Cut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.get(..MAX_SHOWN) {
            Some(begin) if begin.len() < self.0.len() => write!(f, "{}...", begin.escape_ascii()),
            _ => write!(f, "{}", self.0.escape_ascii()),
        }
    }
}

/// The name of a limit, such as `GCRA of 1m`.
pub struct Shown(pub Name);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(name) = *self;
        let (limiter, mode) = name.kind.title();
        let length = name.length.span();
        write!(f, "{limiter}")?;
        if let Some(unit) = calendar_unit(name) {
            write!(f, " {unit}")?;
        } else {
            // These options, and those below, give a limit another name.
            f.write_str(match mode {
                "batch" => " BATCH",
                "aligned" => " ALIGNED",
                _ => "",
            })?;
            if length > Span::ZERO {
                write!(f, " of {}", Duration(length.as_millis_up()))?;
            }
        }
        let option = match mode {
            "precision" => " with PRECISION",
            "warming" => " with WARMUP",
            _ => "",
        };
        f.write_str(option)?;
        f.write_str(match (name.length.is_shadow(), option) {
            (false, _) => "",
            (true, "") => " with SHADOW",
            (true, _) => " and SHADOW",
        })
    }
}

/// The unit in the name of a calendar's limit.
fn calendar_unit(name: Name) -> Option<&'static str> {
    let mut units = UNITS.iter().filter(|_| name.kind == Kind::Page);
    units.find(|(_, unit)| unit.length() == name.length.span()).map(|(word, _)| *word)
}

/// `; did you mean …?`, or nothing if no known word is near.
#[derive(Clone, Copy)]
pub(crate) struct Guess<'n>(Option<&'n str>);

impl<'n> Guess<'n> {
    /// The [nearest] known word, in upper or lower case.
    pub(crate) fn of(word: &[u8], known: impl Iterator<Item = &'n str>) -> Guess<'n> {
        Guess(nearest(word, known).into_iter().next())
    }
}

impl fmt::Display for Guess<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |known| write!(f, "; did you mean {known}?"))
    }
}

/// The known words that are near to `word`, the nearest first: with an edit distance of at most 2, and less than half of their
/// letters.
pub(crate) fn nearest<'n>(word: &[u8], known: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    nearest_within(2, word, known)
}

/// As [`nearest`], with an edit distance of at most `most`.
pub(crate) fn nearest_within<'n>(
    most: usize,
    word: &[u8],
    known: impl Iterator<Item = &'n str>,
) -> Vec<&'n str> {
    let near = known.filter_map(|known| {
        let most = (known.len().saturating_sub(1) / 2).min(most);
        Some((distance(word, known.as_bytes(), most)?, known))
    });
    let mut near: Vec<(usize, &str)> = near.collect();
    near.sort_by_key(|(distance, _)| *distance);
    near.into_iter().map(|(_, known)| known).collect()
}

/// The least number of letters to insert, delete, replace, or exchange with the next one (optimal string alignment);
/// `None` if it is above `most`. A call asks for it of many names, so it stops early, and allocates nothing.
fn distance(one: &[u8], other: &[u8], most: usize) -> Option<usize> {
    if one.len().abs_diff(other.len()) > most {
        return None;
    }
    let is_same = |(a, b): &(&u8, &u8)| a.eq_ignore_ascii_case(b);
    let same = one.iter().zip(other).take_while(is_same).count();
    let (one, other) = (one.get(same..)?, other.get(same..)?);
    if one.is_empty() && other.is_empty() {
        return Some(0);
    }
    let most = most.checked_sub(1)?;
    let exchanged = match (one, other) {
        ([a, b, ..], [c, d, ..]) if is_same(&(a, d)) && is_same(&(b, c)) => 2,
        _ => usize::MAX,
    };
    let after = [(1, 0), (0, 1), (1, 1), (exchanged, exchanged)];
    let distances = after.into_iter().filter_map(|(a, b)| distance(one.get(a..)?, other.get(b..)?, most));
    distances.min().map(|distance| distance + 1)
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn the_nearest_known_word_is_guessed() {
        let known = ["COST", "AT", "BLOCK", "GCRA", "plan:free"];
        for (word, guess) in [
            ("COTS", "; did you mean COST?"),
            ("grca", "; did you mean GCRA?"),
            ("plan:fre", "; did you mean plan:free?"),
            ("BLOKC", "; did you mean BLOCK?"),
            ("COSTS", "; did you mean COST?"),
            ("", ""),
            ("A", ""),
            ("xyz", ""),
            ("OS", ""),
        ] {
            assert_eq!(Guess::of(word.as_bytes(), known.into_iter()).to_string(), guess, "{word}");
        }
    }

    /// As its definition has it: letter by letter, and however far.
    fn defined(one: &[u8], other: &[u8]) -> usize {
        let ([a, one_rest @ ..], [b, other_rest @ ..]) = (one, other) else { return one.len() + other.len() };
        let replaced = defined(one_rest, other_rest) + usize::from(a != b);
        let least = replaced.min(defined(one_rest, other) + 1).min(defined(one, other_rest) + 1);
        match (one_rest, other_rest) {
            ([c, one @ ..], [d, other @ ..]) if a == d && b == c => least.min(defined(one, other) + 1),
            _ => least,
        }
    }

    #[test]
    fn a_distance_is_exact_up_to_the_most_that_is_asked_for() {
        let words =
            || (0..3_usize.pow(5)).map(|word| [0, 1, 2, 3, 4].map(|at| b"ab-"[word / 3_usize.pow(at) % 3]));
        let word = |word: &[u8]| word.iter().copied().filter(|letter| *letter != b'-').collect::<Vec<u8>>();
        for one in words() {
            for other in words() {
                let (one, other) = (word(&one), word(&other));
                let exact = defined(&one, &other);
                for most in 0..=2 {
                    assert_eq!(
                        distance(&one, &other, most),
                        (exact <= most).then_some(exact),
                        "{one:?} {other:?}"
                    );
                }
            }
        }
    }
}
