//! Numbers and durations, as callers write them.

use core::fmt;

/// Parses a decimal integer as Redis does, without sign, leading zeros or spaces.
#[inline(always)]
pub fn integer(bytes: &[u8]) -> Option<u64> {
    // Nearly all arguments are so short that they need no other check.
    if let [b'1'..=b'9', ..] | b"0" = bytes
        && bytes.len() <= 18
    {
        let mut number = 0;
        for byte in bytes {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            number = number * 10 + u64::from(digit);
        }
        return Some(number);
    }
    long_integer(bytes)
}

/// [`integer`] for long integers.
#[inline(never)]
fn long_integer(bytes: &[u8]) -> Option<u64> {
    let text = str::from_utf8(bytes).ok().filter(|_| matches!(bytes, [b'1'..=b'9', ..]));
    text.and_then(|text| text.parse().ok())
}

/// Parses a duration, in milliseconds: an integer with a unit, or 0. It saturates, and every range ends before.
pub fn duration(word: &[u8]) -> Option<u64> {
    let (number, unit) = match word {
        [number @ .., b'm', b's'] => (number, 1),
        [number @ .., b's'] => (number, SECOND),
        [number @ .., b'm'] => (number, 60 * SECOND),
        [number @ .., b'h'] => (number, 3600 * SECOND),
        [number @ .., b'd'] => (number, DAY),
        [number @ .., b'w'] => (number, 7 * DAY),
        b"0" => return Some(0),
        _ => return None,
    };
    Some(integer(number)?.saturating_mul(unit))
}

/// In milliseconds.
pub(crate) const SECOND: u64 = 1000;
pub(crate) const DAY: u64 = 24 * 3600 * SECOND;

/// A duration in milliseconds, as a call writes it: with the largest unit of which it is a multiple.
pub struct Duration(pub u64);

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Duration(millis) = *self;
        let units = [(DAY, "d"), (3600 * SECOND, "h"), (60 * SECOND, "m"), (SECOND, "s")];
        let unit = units.into_iter().find(|(length, _)| millis > 0 && millis.is_multiple_of(*length));
        let (length, name) = unit.unwrap_or((1, "ms"));
        write!(f, "{}{name}", millis / length)
    }
}

/// Parses a decimal number.
pub(crate) fn real(word: &[u8]) -> Option<f64> {
    str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn integers_are_parsed_as_redis_parses_them() {
        assert_eq!(integer(b"0"), Some(0));
        assert_eq!(integer(b"999999999999999999"), Some(999_999_999_999_999_999));
        assert_eq!(integer(b"1000000000000000000"), Some(1_000_000_000_000_000_000));
        assert_eq!(integer(b"9223372036854775808"), Some(1 << 63));
        for not_one in
            ["", "-", "-7", "+1", "01", "-0", " 1", "1 ", "1.0", "1e3", "0x1", "18446744073709551616"]
        {
            assert_eq!(integer(not_one.as_bytes()), None, "{not_one:?}");
        }
        for not_one in [&b"1\0"[..], b"1:", b"1/", b"\xb2", b"1\xff", b"1\xb2"] {
            assert_eq!(integer(not_one), None, "{not_one:?}");
        }
    }

    #[test]
    fn a_duration_is_shown_as_it_is_written() {
        for (millis, text) in [
            (0, "0ms"),
            (1, "1ms"),
            (1500, "1500ms"),
            (60_000, "1m"),
            (90_000, "90s"),
            (36_500 * DAY, "36500d"),
        ] {
            assert_eq!(Duration(millis).to_string(), text);
        }
    }

    #[test]
    fn a_duration_has_a_unit() {
        let day = 86_400_000;
        for (word, millis) in [
            ("0", 0),
            ("0ms", 0),
            ("0w", 0),
            ("1ms", 1),
            ("1500ms", 1500),
            ("90s", 90_000),
            ("5m", 300_000),
            ("1h", 3_600_000),
            ("1d", day),
            ("2w", 14 * day),
            ("36500d", 36_500 * day),
            ("3153600000000ms", 36_500 * day),
            ("999999999999999999w", u64::MAX),
            ("18446744073709551615w", u64::MAX),
        ] {
            assert_eq!(duration(word.as_bytes()), Some(millis), "{word}");
        }
        let wrong = [
            "",
            "1",
            "60",
            "00",
            "ms",
            "s",
            "d",
            "1S",
            "1D",
            "1MS",
            "1Ms",
            "1mS",
            "1sec",
            "1min",
            "1y",
            "1M",
            "1 s",
            "1s ",
            "01s",
            "+1s",
            "-1s",
            "-0s",
            "1.5s",
            "1e3s",
            "1_000s",
            "1h30m",
            "1ss",
            "1msms",
            "1sm",
            "1us",
            "s1",
            "18446744073709551616ms",
        ];
        for word in wrong {
            assert_eq!(duration(word.as_bytes()), None, "{word}");
        }
    }
}
