//! The words of a limiter, from bytes: a form of the language's table with numbers of its own, and options.

use ratelimit_core::{AnyLimiter, MAX_COUNT, Span};
use ratelimit_language::{Arguments, Bounds, FORMS, Form, Request, find};

use crate::bytes::Bytes;

/// The longest duration, in milliseconds.
pub const CENTURY: u64 = Span::CENTURY.as_micros() / 1000;

/// Small, so that a short history reaches them.
pub const BOUNDS: Bounds = Bounds { leases: 300, log_entries: 200, ..Bounds::DEFAULT };

/// The number of forms.
#[allow(clippy::cast_possible_truncation, reason = "checked by the next line")]
pub const FORM_COUNT: u8 = FORMS.len() as u8;
const _: () = assert!(2 * FORMS.len() <= 256, "a byte chooses a form, and whether the history is tame");

/// The limiter's name and parameters, and options of its own.
///
/// Each placeholder gets a number of its own. A new form is fuzzed as soon as it is in the table; one with a new
/// placeholder panics here until the placeholder has numbers.
pub fn line(form: u8, bytes: &mut Bytes<'_>) -> String {
    let template = template(form);
    let limits = limits(template);
    // Sub-buckets must tile the window.
    let tiles = template.contains("{tenth}").then(|| {
        let (precision, parts) = (bytes.number(1, CENTURY), bytes.number(1, 1024));
        (precision.min(CENTURY / parts), parts)
    });
    let mut words = Vec::new();
    for word in template.split(' ') {
        words.push(match (word, tiles) {
            ("{limit}", _) => bytes.number(1, limits).to_string(),
            ("{burst}", _) => (bytes.number(1, limits) - 1).to_string(),
            ("{period}", Some((precision, parts))) => format!("{}ms", precision * parts),
            ("{tenth}", Some((precision, _))) => format!("{precision}ms"),
            ("{period}" | "{interval}", _) => format!("{}ms", bytes.number(1, CENTURY)),
            // A number of the template is a duration too.
            ("{gap}" | "0", _) => format!("{}ms", bytes.number(1, CENTURY) - 1),
            ("HOUR", _) => pick(bytes, &["HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"]).to_owned(),
            ("+05:45", _) => {
                pick(bytes, &["+05:45", "UTC", "Europe/Lisbon", "Pacific/Apia", "-14:00"]).to_owned()
            }
            ("{id}", _) => format!("holder{}", bytes.number(1, 40)),
            (word, _) if word.starts_with('{') => panic!("no numbers for {word} of {template}"),
            (word, _) => word.to_owned(),
        });
    }
    let capacity = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    words.join(" ") + &options(template, capacity, bytes)
}

fn pick(bytes: &mut Bytes<'_>, words: &[&'static str]) -> &'static str {
    words[usize::from(bytes.byte()) % words.len()]
}

/// Options that no form has.
fn options(template: &str, capacity: u64, bytes: &mut Bytes<'_>) -> String {
    match template.split(' ').next() {
        Some("PENALTY") => format!(" GROW {} FORGIVE {}ms", bytes.number(1, 1000), bytes.number(1, CENTURY)),
        Some("SLIDINGLOG") if template.contains("GAP") && bytes.number(0, 1) == 1 => " COUNTREFUSED".into(),
        Some("SMOOTH") if template.contains("WARMUP") => {
            format!(" COLDFACTOR {}.5", bytes.number(1, 999))
        }
        Some("SMOOTH") => format!(" BURST {}ms", bytes.number(0, CENTURY - 1)),
        Some("CONCURRENT") => {
            let critical = if bytes.number(0, 3) == 3 { " CRITICAL" } else { "" };
            format!(" RESERVED {}{critical}", bytes.number(0, capacity))
        }
        _ => String::new(),
    }
}

pub fn template(form: u8) -> &'static str {
    let form: &Form = &FORMS[usize::from(form) % FORMS.len()];
    form.template()
}

/// The largest limit: the operator's bound, where there is one.
fn limits(template: &str) -> u64 {
    match template.split(' ').next() {
        Some("SLIDINGLOG") => BOUNDS.log_entries,
        Some("CONCURRENT") => BOUNDS.leases,
        _ => MAX_COUNT,
    }
}

/// The limiter that these words name; `None` if it would take too long to refill.
pub fn parse(line: &str) -> Option<AnyLimiter<'_>> {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let (name, parameters) = words.split_first()?;
    let row = find(name)?;
    (row.parse)(&mut Arguments::new(parameters, BOUNDS), &mut Request::default()).ok()
}
