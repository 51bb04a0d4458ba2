//! The five integers that an answer becomes for whoever asked. Until they are made, "never" is no number.

use super::{Answer, Gauge, Verdict};
use crate::time::Span;

impl Answer {
    /// limited, limit, remaining, `retry_after` and `reset_after` in milliseconds: the order that redis-cell made standard.
    pub fn five(&self) -> [i64; 5] {
        let Answer { verdict, gauge: Gauge { limit, remaining, reset } } = *self;
        let (limited, retry) = match verdict {
            Verdict::Admit { wait } => (0, millis(wait)),
            Verdict::Refuse { retry: Some(retry) } => (1, millis(retry)),
            Verdict::Refuse { retry: None } => (1, -1),
        };
        [limited, integer(limit), integer(remaining), retry, millis(reset)]
    }

    /// redis-cell's: in seconds, and -1 where nothing needs to be waited for.
    pub fn cell(&self) -> [i64; 5] {
        let Answer { verdict, gauge: Gauge { limit, remaining, reset } } = *self;
        let (limited, retry) = match verdict {
            Verdict::Admit { .. } => (0, -1),
            Verdict::Refuse { retry } => (1, retry.map_or(-1, secs)),
        };
        [limited, integer(limit), integer(remaining), retry, secs(reset)]
    }
}

fn secs(span: Span) -> i64 {
    integer(span.as_secs_up())
}

fn millis(span: Span) -> i64 {
    integer(span.as_millis_up())
}

pub fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
