//! What there is in a world.

use ratelimit_core::{Span, Time};

use super::believed::Beliefs;
use super::callers::Callers;
use super::copies::Copies;
use super::event::NODES;
use super::fair_lines::FairLines;
use super::settings::Settings;
use super::tally::Tally;
use super::tokens::Tokens;
use crate::T0;

/// Clocks stay between these instants.
pub(super) const EARLIEST: Time = Time::from_micros(1_000_000_000_000_000);
pub(super) const LATEST: Time = Time::from_micros(4_000_000_000_000_000);
/// How long some things of lines take: leases that have ended are read in steps, and callers are tried once a millisecond.
pub(super) const MOMENT: Span = Span::from_millis(8);

/// A world.
pub(super) struct World {
    pub(super) copies: Copies,
    pub(super) settings: Settings,
    pub(super) beliefs: Beliefs,
    pub(super) fair_lines: FairLines,
    pub(super) tokens: Tokens,
    pub(super) callers: Callers,
    /// Whether something has happened that a server finds by its periodic tasks only.
    pub(super) is_unseen: bool,
    /// Whether each check is made at each event.
    pub(super) is_thorough: bool,
    pub(super) tally: Tally,
}

impl World {
    pub(super) fn new(is_thorough: bool) -> World {
        let settings = Settings::default();
        World {
            copies: Copies::new(NODES, &settings, T0),
            settings,
            beliefs: Beliefs::default(),
            fair_lines: FairLines::default(),
            tokens: Tokens::default(),
            callers: Callers::default(),
            is_unseen: false,
            is_thorough,
            tally: Tally::default(),
        }
    }

    /// Whether a check is made that is made at one event in `times`.
    pub(super) fn is_checked(&self, times: u64) -> bool {
        self.is_thorough || self.tally.count().is_multiple_of(times)
    }
}
