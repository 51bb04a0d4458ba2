//! The options that all limiters share.

use ratelimit_core::{MAX_COUNT, Manner, Span, Time};

use crate::arguments::{Arguments, is, once};
use crate::error::Error;

/// The options that all limiters share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Request {
    cost: Option<u64>,
    /// The instant at which to decide; the server's clock if `None`.
    pub at: Option<Time>,
    manner: Option<Manner>,
    max_wait: Option<Span>,
    /// The number, from 1, of the only key that the limit applies to; all keys of the call if `None`.
    pub on: Option<u64>,
}

impl Request {
    /// The cost; 1 if the caller gave none.
    pub fn cost(&self) -> u64 {
        self.cost.unwrap_or(1)
    }

    /// The cost, if the caller gave one.
    pub fn own_cost(&self) -> Option<u64> {
        self.cost
    }

    /// The manner, with the longest wait of a booking.
    pub fn manner(&self) -> Manner {
        match (self.manner, self.max_wait) {
            (Some(Manner::Reserve { .. }), Some(longest)) => Manner::Reserve { longest },
            (manner, _) => manner.unwrap_or_default(),
        }
    }

    /// Whether `MAXWAIT` is given without `RESERVE`.
    pub(crate) fn contradicts_itself(&self) -> bool {
        self.max_wait.is_some() && !matches!(self.manner, Some(Manner::Reserve { .. }))
    }

    /// Reads the value of an option. Returns whether `word` is one of these options.
    #[inline]
    pub(crate) fn option(&mut self, word: &[u8], arguments: &mut Arguments<'_, '_>) -> Result<bool, Error> {
        if is(word, "COST") {
            once(&mut self.cost, arguments.number("COST", 0, MAX_COUNT))?;
        } else if is(word, "AT") {
            once(&mut self.at, arguments.instant())?;
        } else if is(word, "PARTIAL") {
            once(&mut self.manner, Ok(Manner::Partial))?;
        } else if is(word, "FORCE") {
            once(&mut self.manner, Ok(Manner::Force))?;
        } else if is(word, "RESERVE") {
            once(&mut self.manner, Ok(Manner::Reserve { longest: Span::FOREVER }))?;
        } else if let Some(keys) = arguments.keys_of_section()
            && is(word, "ON")
        {
            once(&mut self.on, arguments.number("ON", 1, keys))?;
        } else if is(word, "MAXWAIT") {
            once(&mut self.max_wait, arguments.duration_or_zero("MAXWAIT"))?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}
