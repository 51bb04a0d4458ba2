//! Several limits in one request: how it is written, and what each is asked for.
//!
//! ```text
//! [COST cost] [AT at] [FORCE] LIMIT limiter parameter ... [ON i] [COST cost] [LIMIT ...]
//! ```

use super::catalog::{AnyLimiter, Row, find, with_limiter};
use super::several::Name;
use super::words::{Manner, Request, Words};
use super::{Error, Limiter, State};

/// The most pairs of a limit and a key.
pub const MOST_PAIRS: usize = 64;

/// What a command of several limits is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    Take,
    Probe,
    GiveBack,
}

/// A limit that is asked for.
pub struct Part<'a> {
    pub limiter: AnyLimiter<'a>,
    pub name: Name,
    pub cost: u64,
    /// The only key it is for, from 0; all if not said.
    pub on: Option<usize>,
}

impl Part<'_> {
    pub fn is_for(&self, key: usize) -> bool {
        self.on.is_none_or(|on| on == key)
    }
}

/// Reads all that follows so many keys.
pub fn parse<'a>(
    words: &mut Words<'_, 'a>,
    keys: u64,
    purpose: Purpose,
) -> Result<(Request, Vec<Part<'a>>), Error> {
    words.end_options_at("LIMIT", keys);
    let mut defaults = Request::default();
    words.options(&mut defaults, |_, _| Ok(false))?;
    let manner = defaults.manner();
    match (manner, purpose) {
        _ if defaults.on.is_some() => return Err(Error::Syntax),
        (Manner::Strict, _) | (Manner::Force, Purpose::Take) => {}
        _ => return Err(Error::Syntax),
    }
    // Who is forced, or gives back, must be able to be in debt.
    let may_owe = manner == Manner::Force || purpose == Purpose::GiveBack;
    let mut parts = Vec::new();
    while words.next_section() {
        // Before more is read: a call of a megabyte must not cost more than one of a page.
        if parts.len() == MOST_PAIRS {
            return Err(Error::TooManyPairs);
        }
        let row = find(words.word()?).ok_or(Error::Syntax)?;
        let mut own = Request::default();
        let limiter = (row.parse)(words, &mut own)?;
        let (name, counts_refused) =
            with_limiter!(&limiter, limiter => (name(limiter), limiter.counts_refused()));
        let allowed = own.at.is_none() && own.manner() == Manner::Strict && !counts_refused;
        if !allowed || may_owe && !row.allows.debt {
            return Err(Error::Syntax);
        }
        let on = own.on.and_then(|on| usize::try_from(on - 1).ok());
        parts.push(Part { limiter, name, cost: cost(row, &own, &defaults), on });
    }
    if parts.is_empty() { Err(Error::Syntax) } else { Ok((defaults, parts)) }
}

fn name<L: Limiter>(limiter: &L) -> Name {
    Name { kind: L::State::KIND, span: limiter.span() }
}

/// What a limit costs: its own, or the default; but a lease and a passage are one each, unless all is only looked at.
fn cost(row: &Row, own: &Request, defaults: &Request) -> u64 {
    let default = defaults.cost();
    let one_each = matches!(row.name, "CONCURRENT" | "UNIFORM") && default > 0;
    own.own_cost().unwrap_or(if one_each { 1 } else { default })
}
