//! One line that says what matters of a limiter's reply, and that is checked against it:
//!
//! ```text
//! → refused, 0 of 15 left this minute, retry in 2 s, reset in 1 min 30 s, by limit 2
//! ```
//!
//! Clauses stand in any order. Words behind what is checked are free.

use redis::Value;

/// Panics unless the reply is what the line says.
pub fn check(line: &str, reply: &Value) {
    let reply = Reply::of(reply).unwrap_or_else(|| panic!("{line}: not a limiter's reply: {reply:?}"));
    for clause in line.split(", ") {
        let words: Vec<&str> = clause.split(' ').collect();
        let told = match words.as_slice() {
            ["admitted", ..] => reply.combined[0] == 0,
            ["refused", ..] => reply.combined[0] == 1,
            ["limit", n, ..] => reply.combined[1] == number(n),
            ["left", "of", "each:", left @ ..] => {
                reply.each == left.iter().map(|n| number(n)).collect::<Vec<_>>()
            }
            [n, "left", ..] => reply.combined[2] == number(n),
            [n, "of", limit, "left", ..] => {
                reply.combined[2] == number(n) && reply.combined[1] == number(limit)
            }
            ["retry", "never", ..] => reply.combined[3] == -1,
            ["retry" | "wait", "in" | "for", duration @ ..] => reply.combined[3] == milliseconds(duration),
            ["reset", "in", duration @ ..] => reply.combined[4] == milliseconds(duration),
            ["by", "limit", n, ..] | ["granted" | "settled", n, ..] => {
                reply.combined.get(5) == Some(&number(n))
            }
            _ => panic!("{line}: nobody can check {clause:?}"),
        };
        assert!(
            told,
            "{line}: {clause:?}, but the reply is {:?}, and for each limit {:?}",
            reply.combined, reply.each
        );
    }
}

struct Reply {
    /// The five integers, and a sixth if there is one.
    combined: Vec<i64>,
    /// What each limit of several has left.
    each: Vec<i64>,
}

impl Reply {
    fn of(reply: &Value) -> Option<Self> {
        let elements = array(reply)?;
        if let Some(combined) = integers(elements) {
            return (combined.len() >= 5).then_some(Self { combined, each: Vec::new() });
        }
        let [combined, limits, held @ ..] = elements else { return None };
        let limits: Option<Vec<_>> = array(limits)?.iter().map(|limit| integers(array(limit)?)).collect();
        Some(Self {
            combined: [integers(array(combined)?)?, integers(held)?].concat(),
            each: limits?.iter().map(|limit| limit[2]).collect(),
        })
    }
}

fn array(value: &Value) -> Option<&[Value]> {
    if let Value::Array(elements) = value { Some(elements) } else { None }
}

fn integers(values: &[Value]) -> Option<Vec<i64>> {
    values.iter().map(|value| if let Value::Int(n) = value { Some(*n) } else { None }).collect()
}

fn number(word: &str) -> i64 {
    word.replace(',', "").parse().unwrap_or_else(|_| panic!("{word:?} is no number"))
}

/// Of words such as `1 min 30 s`; what follows the last unit is free.
#[expect(clippy::cast_possible_truncation, reason = "a page's durations are far below 2^53")]
fn milliseconds(words: &[&str]) -> i64 {
    let mut sum = 0.0;
    for pair in words.chunks(2) {
        let &[amount, unit] = pair else { break };
        let Ok(amount) = amount.replace(',', "").parse::<f64>() else { break };
        sum += amount
            * match unit {
                "ms" => 1.0,
                "s" => 1e3,
                "min" => 6e4,
                "h" => 36e5,
                "d" | "day" | "days" => 864e5,
                _ => panic!("{unit:?} is no unit of time"),
            };
    }
    sum.round() as i64
}

mod tests {
    use super::*;

    fn reply(numbers: &[i64]) -> Value {
        Value::Array(numbers.iter().copied().map(Value::Int).collect())
    }

    #[test]
    fn what_a_line_says_is_compared_with_the_reply() {
        let refused = reply(&[1, 15, 0, 1500, 5_400_000, 2]);
        check(
            "refused, 0 of 15 left this minute, retry in 1.5 s, reset in 1 h 30 min from now, by limit 2",
            &refused,
        );
        let full = Value::Array(vec![
            refused,
            Value::Array(vec![reply(&[0, 9, 7, 0, 1]), reply(&[1, 15, 0, 9, 9])]),
        ]);
        check("refused, left of each: 7 0", &full);
    }

    #[test]
    fn a_wrong_clause_fails() {
        for clause in
            ["admitted", "1 left", "limit 14", "0 of 14 left", "retry in 1 s", "retry never", "reset in 1 s"]
        {
            let wrong = std::panic::catch_unwind(|| check(clause, &reply(&[1, 15, 0, 1500, 5_400_000])));
            assert!(wrong.is_err(), "{clause}");
        }
        assert!(std::panic::catch_unwind(|| check("fine", &reply(&[0, 1, 1, 0, 0]))).is_err());
    }
}
