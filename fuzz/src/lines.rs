//! The words of a limiter, from bytes.

use crate::bytes::Bytes;
use crate::limit::{AnyLimiter, Bounds, Request, Row, Words, find};

/// 2^53 - 1.
pub const MOST: u64 = (1 << 53) - 1;
/// A hundred years, in milliseconds.
pub const CENTURY: u64 = 3_153_600_000_000;

/// Small, so that a short history meets them.
pub const BOUNDS: Bounds = Bounds { leases: 300, log_entries: 200 };

/// How many forms of a limiter [`line`] knows.
pub const FORMS: u8 = 14;

/// The words of a limiter of this form: what a caller would say behind the key, without the options that all share.
pub fn line(form: u8, bytes: &mut Bytes<'_>) -> String {
    let mut count = |most| bytes.number(1, most);
    match form % FORMS {
        0 => format!("TOKENBUCKET {} {} {}", count(MOST), count(MOST), count(CENTURY)),
        1 => format!("TOKENBUCKET {} {} {} BATCH", count(MOST), count(MOST), count(CENTURY)),
        2 => format!("LEAKYBUCKET {} {} {}", count(MOST), count(MOST), count(CENTURY)),
        3 => format!("GCRA {} {} {}", count(MOST) - 1, count(MOST), count(CENTURY)),
        4 => format!("FIXEDWINDOW {} {}", count(MOST), count(CENTURY)),
        5 => format!("FIXEDWINDOW {} {} ALIGNED", count(MOST), count(CENTURY)),
        6 => format!("SLIDINGWINDOW {} {}", count(MOST), count(CENTURY)),
        7 => {
            let (limit, precision, parts) = (count(MOST), count(CENTURY), count(1024));
            let precision = precision.min(CENTURY / parts);
            format!("SLIDINGWINDOW {limit} {} PRECISION {precision}", precision * parts)
        }
        8 => format!("SLIDINGLOG {} {}", count(BOUNDS.log_entries), count(CENTURY)),
        9 => {
            let (limit, window, gap) = (count(BOUNDS.log_entries), count(CENTURY), count(CENTURY) - 1);
            let counting = if gap % 2 == 0 { " COUNTREFUSED" } else { "" };
            format!("SLIDINGLOG {limit} {window} GAP {}{counting}", gap / 2)
        }
        10 => format!("UNIFORM {}", count(CENTURY)),
        11 => {
            let (permits, period, burst) = (count(MOST), count(CENTURY), count(CENTURY) - 1);
            format!("SMOOTH {permits} {period} BURST {burst} MAXWAIT {}", count(CENTURY) - 1)
        }
        12 => {
            let (permits, period, warmup) = (count(MOST), count(CENTURY), count(CENTURY));
            format!("SMOOTH {permits} {period} WARMUP {warmup} COLDFACTOR {}.5", count(999))
        }
        _ => {
            let (capacity, ttl) = (count(BOUNDS.leases), count(CENTURY));
            let (id, reserved) = (count(40), count(capacity + 1) - 1);
            let critical = if id % 8 == 0 { " CRITICAL" } else { "" };
            format!("CONCURRENT {capacity} {ttl} holder{id} RESERVED {reserved}{critical}")
        }
    }
}

/// The row and the limiter that these words name; `None` if it would take too long to refill.
pub fn parse(line: &str) -> Option<(&'static Row, AnyLimiter<'_>)> {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let (name, parameters) = words.split_first()?;
    let row = find(name)?;
    let mut words = Words::new(parameters, BOUNDS);
    Some((row, (row.parse)(&mut words, &mut Request::default()).ok()?))
}
