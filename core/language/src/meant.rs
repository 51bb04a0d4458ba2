//! Other words that people write for options.

use crate::arguments::is;
use crate::shown::nearest;
use crate::vocabulary::{AT, BLOCK, COST, FORCE, HOLD, LIMIT, SHADOW, TENANT, TZ};

/// Other words for options.
pub(crate) const MEANT: [(&str, &str); 19] = [
    ("QUANTITY", COST.name),
    ("AMOUNT", COST.name),
    ("TOKENS", COST.name),
    ("UNITS", COST.name),
    ("POINTS", COST.name),
    ("HITS", COST.name),
    ("N", COST.name),
    ("WAIT", BLOCK.name),
    ("TIMEOUT", BLOCK.name),
    ("TIMEZONE", TZ.name),
    ("ZONE", TZ.name),
    ("NOW", AT.name),
    ("TIME", AT.name),
    ("TIMESTAMP", AT.name),
    ("DRYRUN", SHADOW.name),
    ("USER", TENANT.name),
    ("FAIL", "DROP"),
    ("ERROR", "DROP"),
    ("SUCCESS", "OK"),
];

/// Whether a word may be meant as an option of a call with several limits.
pub(crate) fn is_like_an_option(word: &[u8]) -> bool {
    let options = [LIMIT, COST, FORCE, HOLD, BLOCK].map(|option| option.name);
    MEANT.iter().any(|(other, _)| is(word, other)) || !nearest(word, options.into_iter()).is_empty()
}
