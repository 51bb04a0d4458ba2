//! What `RL.EXPLAIN key` says of a key, for people: a sentence for each limit that it holds.
//!
//! ```text
//! user:7 holds 2 limits; it expires in 1 m 59 s
//! 1. GCRA of 1m: last charged 1 s ago; fully reset in 3 s
//! 2. FIXEDWINDOW of 1h: 7 used; last charged 1 s ago; fully reset in 59 m
//! ```
//!
//! The most that a limit admits is a parameter of each call, and not stored, so a sentence says what is used.

use core::fmt;

use ratelimit_core::{Figure, Kind, Name, Span, Time};

use crate::explanation::Rough;
use crate::shown::Shown;

/// A limit that a key holds, or another value.
pub struct Held<'h> {
    pub name: Name,
    pub figures: &'h [(&'static str, Figure)],
    /// When it is fully reset; `None` of a value that is no limit.
    pub until: Option<Time>,
    /// Of leases: their number, their cost, and when the next one ends.
    pub leases: Option<(u64, u64, Option<Span>)>,
    /// The number of callers that wait for it.
    pub waiting: usize,
    pub now: Time,
}

impl Held<'_> {
    fn count(&self, name: &str) -> Option<u64> {
        self.figures.iter().find_map(|(figure, value)| match value {
            Figure::Count(count) if *figure == name => Some(*count),
            _ => None,
        })
    }

    fn at(&self, name: &str) -> Option<Time> {
        self.figures.iter().find_map(|(figure, value)| match value {
            Figure::At(time) if *figure == name => Some(*time),
            _ => None,
        })
    }

    fn used(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |name| self.count(name).unwrap_or(0);
        match self.name.kind {
            Kind::Strikes => match self.at("ban_end_us").map(|end| end.since(self.now)) {
                Some(left) if left > Span::ZERO => write!(f, "banned for {}; ", Rough(left)),
                _ => write!(f, "{} strikes; ", count("strikes")),
            },
            Kind::Counts => {
                let (current, previous) = (count("current"), count("previous"));
                write!(f, "{current} used in the window of the last charge, {previous} in the one before; ")
            }
            Kind::Log => write!(f, "{} used at the last charge; ", count("stored_cost")),
            Kind::Buckets => write!(f, "{} used at the last charge; ", count("count")),
            Kind::Level | Kind::Batch => match self.figures.iter().find(|(name, _)| *name == "tokens") {
                Some((_, Figure::Signed(tokens))) => write!(f, "{tokens} left at the last charge; "),
                _ => Ok(()),
            },
            Kind::Water => write!(f, "{} in the queue at the last charge; ", count("level")),
            _ => self.count("count").map_or(Ok(()), |count| write!(f, "{count} used; ")),
        }
    }
}

impl fmt::Display for Held<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", Shown(self.name))?;
        let left = self.until.map(|until| until.since(self.now));
        if let (Kind::Cells, Some(width), Some(depth)) =
            (self.name.kind, self.count("width"), self.count("depth"))
        {
            write!(f, "{depth} rows of {width} cells; ")?;
        }
        if let Some((leases, cost, next)) = self.leases {
            match (leases, next) {
                (0, _) | (_, None) => write!(f, "no lease is held; ")?,
                (1, Some(next)) => write!(f, "1 lease holds {cost}; it ends in {}; ", Rough(next))?,
                (_, Some(next)) => {
                    write!(f, "{leases} leases hold {cost}; the next ends in {}; ", Rough(next))?;
                }
            }
            if let (Some(limit), Some(ceiling)) = (self.count("limit"), self.count("ceiling")) {
                write!(f, "it adapts: its limit is {limit} of {ceiling}; ")?;
            }
        } else if left != Some(Span::ZERO) {
            self.used(f)?;
        }
        let last = self.at("last_charge_us").unwrap_or(self.now);
        match (self.now.since(last), last.since(self.now)) {
            (Span::ZERO, Span::ZERO) => write!(f, "last charged now")?,
            (Span::ZERO, ahead) => {
                write!(f, "its last charge is {} ahead of this server's clock", Rough(ahead))?;
            }
            (ago, _) => write!(f, "last charged {} ago", Rough(ago))?,
        }
        match left {
            None => {}
            Some(Span::ZERO) => write!(f, "; fully reset")?,
            Some(left) => write!(f, "; fully reset in {}", Rough(left))?,
        }
        match self.waiting {
            0 => Ok(()),
            1 => write!(f, "; on this node 1 caller waits for it"),
            waiting => write!(f, "; on this node {waiting} callers wait for it"),
        }
    }
}
