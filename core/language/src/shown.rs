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
    word.get(..MAX_SHOWN).unwrap_or(word).escape_ascii()
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
            // The options that give a limit another name.
            f.write_str(match mode {
                "batch" => " BATCH",
                "aligned" => " ALIGNED",
                "precision" => " with PRECISION",
                "warming" => " with WARMUP",
                _ => "",
            })?;
            if length > Span::ZERO {
                write!(f, " of {}", Duration(length.as_millis_up()))?;
            }
        }
        f.write_str(if name.length.is_shadow() { " with SHADOW" } else { "" })
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
    pub(crate) const NONE: Guess<'n> = Guess(None);

    /// The known word with the least edit distance to `word`, in upper or lower case: at most 2, and less than half of its
    /// letters.
    pub(crate) fn of(word: &[u8], known: impl Iterator<Item = &'n str>) -> Guess<'n> {
        let near = known.map(|known| (distance(word, known.as_bytes()), known));
        let near = near.filter(|(distance, known)| *distance <= 2 && 2 * distance < known.len());
        Guess(near.min_by_key(|(distance, _)| *distance).map(|(_, known)| known))
    }
}

impl fmt::Display for Guess<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |known| write!(f, "; did you mean {known}?"))
    }
}

/// The least number of letters to insert, delete, replace, or exchange with the next one (optimal string alignment).
/// Words of very different lengths count as far apart.
fn distance(one: &[u8], other: &[u8]) -> usize {
    if one.len().abs_diff(other.len()) > 2 {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (row, a) in one.iter().enumerate() {
        let mut this = Vec::with_capacity(last.len());
        this.push(row + 1);
        for (column, b) in other.iter().enumerate() {
            let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX - 1);
            let differs = usize::from(!a.eq_ignore_ascii_case(b));
            let least =
                (at(&last, column) + differs).min(at(&last, column + 1) + 1).min(at(&this, column) + 1);
            let previous = |word: &[u8], end: usize| end.checked_sub(1).and_then(|at| word.get(at)).copied();
            let exchanged = previous(one, row).is_some_and(|p| p.eq_ignore_ascii_case(b))
                && previous(other, column).is_some_and(|p| p.eq_ignore_ascii_case(a));
            this.push(if exchanged { least.min(at(&before, column - 1) + 1) } else { least });
        }
        before = core::mem::replace(&mut last, this);
    }
    last.last().copied().unwrap_or(0)
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
}
