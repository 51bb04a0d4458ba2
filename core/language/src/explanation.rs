//! What `RL.EXPLAIN` says, for people: a verdict, and a line for each limit on each key. [`Seen`] reads from a key what an
//! answer does not say.
//!
//! ```text
//! refused by limit 2; try again in 12 d 4 h
//! 1. GCRA 15 30 1m on user:7: admits; 14 of 16 left; fully reset in 4 s
//! 2. CALENDAR 1000 MONTH TZ America/Sao_Paulo on user:7: refuses; 1000 of 1000 used; renews on 2026-12-01 00:00 -03:00
//! ```

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use core::fmt;

use ratelimit_core::adapt::{Adapted, ONE, Probe, Rule, Settings, mean_of};
use ratelimit_core::decide::when_decided;
use ratelimit_core::limiter::Local;
use ratelimit_core::state::Share;
use ratelimit_core::{
    Answer, AnyLimiter, Ask, Limiter, Limits, Manner, Name, Place, Span, State, Time, Verdict, with_limiter,
};

use crate::shown::{Shown, shown};
use crate::vocabulary::COST;

/// A duration for people: its two largest units, rounded up. From 10 s on, milliseconds are left out.
pub struct Rough(pub Span);

/// Each unit in milliseconds, and the next smaller one.
const UNITS: [(u64, &str, u64, &str); 4] = [
    (86_400_000, "d", 3_600_000, "h"),
    (3_600_000, "h", 60_000, "m"),
    (60_000, "m", 1000, "s"),
    (1000, "s", 1, "ms"),
];

impl fmt::Display for Rough {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit_of = |millis| UNITS.iter().find(|(unit, ..)| millis >= *unit);
        let exact = self.0.as_millis_up();
        let smaller = unit_of(exact).map_or(1, |(_, _, smaller, _)| *smaller);
        let step = if exact > 10_000 { smaller.max(1000) } else { smaller };
        // Rounding up may lead to a larger unit: 59 m 59.5 s is 1 h.
        let millis = exact.div_ceil(step).saturating_mul(step);
        let Some((unit, name, smaller, smaller_name)) = unit_of(millis) else {
            return write!(f, "{millis} ms");
        };
        write!(f, "{} {name}", millis / unit)?;
        match millis % unit / smaller {
            0 => Ok(()),
            rest => write!(f, " {rest} {smaller_name}"),
        }
    }
}

/// The verdict on a call. Limits are known by the numbers of their lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    Admitted {
        wait: Span,
    },
    /// A limit does not admit it.
    Forced,
    InPart {
        granted: u64,
        cost: u64,
        wait: Span,
    },
    /// The caller holds the lease already.
    Renews,
    /// The id of a hold is held already.
    Held,
    Refused {
        limit: u64,
        retry: Span,
    },
    /// The cost does not fit into the limit, which admits at most `most`.
    Never {
        limit: u64,
        cost: u64,
        most: u64,
    },
    Banned {
        limit: u64,
        left: Span,
    },
    /// The strike of this call starts the ban.
    Bans {
        limit: u64,
        ban: Span,
    },
    /// Others come first. The first of them is tried in this time; `later` is the retry if the limit has room only after that.
    Behind {
        limit: u64,
        callers: usize,
        first: Span,
        later: Option<Span>,
    },
    /// Room is kept for a tenant that is hungry for this long; `later` as above.
    Kept {
        limit: u64,
        left: Span,
        later: Option<Span>,
    },
    Waits {
        behind: usize,
        expected: Wait,
        longest: Span,
    },
}

/// How long a call is expected to wait if no other caller comes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Wait {
    /// The time until the limits have room that only time refills, and until the first caller is tried that comes before the call.
    pub least: Span,
    /// Of leases, the time until enough of them expire; a release gives them back earlier. `None` if the call waits for none.
    pub leases: Option<Span>,
}

impl Wait {
    /// What a refusal by one limit adds to the wait. `early` is whether it can have room before its retry, by a release.
    #[must_use]
    pub fn and(self, retry: Span, early: bool) -> Wait {
        if early {
            Wait { leases: Some(self.leases.map_or(retry, |leases| leases.max(retry))), ..self }
        } else {
            Wait { least: self.least.max(retry), ..self }
        }
    }
}

impl Decision {
    pub fn admits(&self) -> bool {
        matches!(
            self,
            Decision::Admitted { .. }
                | Decision::Forced
                | Decision::InPart { .. }
                | Decision::Renews
                | Decision::Held
        )
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Decision::Admitted { wait: Span::ZERO } => write!(f, "admitted"),
            Decision::Admitted { wait } => write!(f, "admitted; wait {}", Rough(wait)),
            Decision::Forced => write!(f, "admitted by FORCE, as debt"),
            Decision::InPart { granted, cost, wait } => {
                write!(f, "admitted in part: {granted} of {cost}")?;
                if wait == Span::ZERO { Ok(()) } else { write!(f, "; wait {}", Rough(wait)) }
            }
            Decision::Renews => write!(f, "admitted; renews the lease"),
            Decision::Held => write!(f, "admitted; the id is held already, so nothing is charged"),
            Decision::Refused { limit, retry } => {
                write!(f, "refused by limit {limit}; try again in {}", Rough(retry))
            }
            Decision::Never { limit, cost, most } => {
                write!(f, "refused for good by limit {limit}: a cost of {cost} is above the limit {most}")
            }
            Decision::Banned { limit, left } => write!(f, "banned for {} by limit {limit}", Rough(left)),
            Decision::Bans { limit, ban } => {
                write!(f, "refused by limit {limit}: this strike bans for {}", Rough(ban))
            }
            Decision::Behind { limit, callers, first, later } => {
                write!(f, "refused: {} for limit {limit}; the first is tried ", Waiting(callers))?;
                if first == Span::ZERO { write!(f, "now") } else { write!(f, "in {}", Rough(first)) }?;
                later.map_or(Ok(()), |retry| write!(f, "; try again in {}", Rough(retry)))
            }
            Decision::Kept { limit, left, later } => {
                let left = Rough(left);
                write!(f, "refused: limit {limit} keeps room for another tenant, at most for {left}")?;
                later.map_or(Ok(()), |retry| write!(f, "; try again in {}", Rough(retry)))
            }
            Decision::Waits { behind, expected: Wait { least, leases }, longest } => {
                write!(f, "would wait")?;
                match behind {
                    0 => {}
                    1 => write!(f, " behind 1 caller")?,
                    _ => write!(f, " behind {behind} callers")?,
                }
                // Those before it take some of what is refilled first, and when leases are released is not known.
                let is_exact = behind == 0 && leases.is_none();
                match least {
                    // The first caller may be tried only after this one has given up.
                    least if least == Span::ZERO || least > longest => {}
                    least if is_exact => write!(f, " {}", Rough(least))?,
                    least => write!(f, " at least {}", Rough(least))?,
                }
                // Without others before it, the call is admitted when the leases have expired.
                let most =
                    leases.filter(|_| behind == 0).map_or(longest, |leases| leases.max(least).min(longest));
                if leases.is_some() {
                    write!(f, " for a release")?;
                }
                write!(f, ", at most {}", Rough(most))
            }
        }
    }
}

/// A number of callers, and the verb.
struct Waiting(usize);

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Waiting(callers) = self;
        if *callers == 1 { write!(f, "1 caller waits") } else { write!(f, "{callers} callers wait") }
    }
}

/// The line of a limit on a key.
pub struct Line<'l> {
    /// From 1.
    pub number: u64,
    /// The limiter, its parameters and its own options.
    pub words: &'l str,
    pub key: &'l [u8],
    /// What the call charges this limit.
    pub cost: u64,
    pub is_shadow: bool,
    /// Whether the caller gave the instant at which to decide.
    pub has_at: bool,
    /// The option by which the call is admitted, even if the limit refuses a plain one. Empty if it is refused, or has none.
    pub admitted_by: &'static str,
    /// What the limit itself answers to a plain request.
    pub answer: Answer,
    pub seen: &'l Seen,
    /// The number of callers that wait for the limit.
    pub waiting: usize,
    /// The verdict of a penalty on the strike that a refusal of the call brings.
    pub strike: Option<Verdict>,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { seen, answer, .. } = self;
        write!(f, "{}. {}", self.number, self.words)?;
        // A COST after the last LIMIT is of that limit alone, which callers overlook, so each line shows its cost.
        if self.cost != 1 {
            write!(f, " {} {}", COST.name, self.cost)?;
        }
        write!(f, " on {}: ", shown(self.key))?;
        self.verdict(f)?;
        let Answer { gauge, .. } = answer;
        let used = gauge.limit.saturating_sub(gauge.remaining);
        let mut reset = gauge.reset;
        match seen.counting {
            Counting::Left => write!(f, "; {} of {} left", gauge.remaining, gauge.limit)?,
            Counting::Used => write!(f, "; {used} of {} used", gauge.limit)?,
            Counting::Strikes { ban: None } => write!(f, "; {used} of {} strikes", gauge.limit)?,
            Counting::Strikes { ban: Some(left) } => {
                write!(f, "; banned for {}", Rough(left))?;
                reset = if left == reset { Span::ZERO } else { reset };
            }
            Counting::Leases { next: None, .. } => {
                write!(f, "; no lease is held; {} of {} left", gauge.remaining, gauge.limit)?;
            }
            Counting::Leases { leases, cost, next: Some(next) } => {
                write!(f, "; ")?;
                if leases != cost {
                    write!(f, "{leases} {} ", if leases == 1 { "lease holds" } else { "leases hold" })?;
                }
                let held = if leases == cost { " held" } else { "" };
                write!(f, "{cost} of {}{held}; the next ends in {}", gauge.limit, Rough(next))?;
                reset = if next == reset { Span::ZERO } else { reset };
            }
        }
        if let Some((tenant, Share { held, weight })) = &seen.tenant {
            write!(f, "; tenant {tenant} of weight {weight} holds {held}")?;
        }
        if let Some(adapting) = &seen.adapting {
            write!(f, "; {adapting}")?;
        }
        match &seen.renews {
            Some(local) => write!(f, "; renews on {local}")?,
            None if reset > Span::ZERO => write!(f, "; fully reset in {}", Rough(reset))?,
            None => {}
        }
        if seen.is_fresh {
            write!(f, "; nothing is stored of it")?;
        }
        if let Some([stored, called]) = seen.renamed {
            write!(f, "; the key holds {}, which the call continues as {}", Shown(stored), Shown(called))?;
        }
        match seen.holds {
            (0, _) => {}
            (1, cost) => write!(f, "; 1 hold of {cost}")?,
            (holds, cost) => write!(f, "; {holds} holds of {cost} in all")?,
        }
        match self.strike {
            Some(Verdict::Refuse { retry: Some(ban) }) => {
                write!(f, "; the refusal is a strike, and bans for {}", Rough(ban))?;
            }
            Some(_) => write!(f, "; the refusal is a strike")?,
            None => {}
        }
        if seen.counts_refused && !answer.verdict.admits() {
            write!(f, "; a refused request counts too")?;
        }
        if self.waiting > 0 {
            write!(f, "; on this node {} for it", Waiting(self.waiting))?;
        }
        if seen.ahead > Span::ZERO {
            let clock = if self.has_at { "AT" } else { "this server's clock" };
            write!(f, "; its last charge is {} ahead of {clock}", Rough(seen.ahead))?;
        }
        Ok(())
    }
}

impl Line<'_> {
    fn verdict(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [admits, refuses] = if self.is_shadow {
            ["a shadow: would admit", "a shadow: would refuse"]
        } else {
            ["admits", "refuses"]
        };
        let banned = matches!(self.seen.counting, Counting::Strikes { ban: Some(_) });
        match self.answer.verdict {
            Verdict::Admit { wait: Span::ZERO } => write!(f, "{admits}"),
            Verdict::Admit { wait } => write!(f, "{admits}; wait {}", Rough(wait)),
            Verdict::Refuse { .. } if !self.admitted_by.is_empty() && !self.is_shadow => {
                write!(f, "would refuse without {}", self.admitted_by)
            }
            Verdict::Refuse { retry: None } => write!(f, "{refuses} for good"),
            // What follows says when.
            Verdict::Refuse { .. } if banned => write!(f, "{refuses}"),
            Verdict::Refuse { retry: Some(retry) } if retry == self.answer.gauge.reset => {
                write!(f, "{refuses}")
            }
            Verdict::Refuse { retry: Some(retry) } => write!(f, "{refuses} for {}", Rough(retry)),
        }
    }
}

/// What a key stores of a limit, beside what its answer says.
pub struct Seen {
    counting: Counting,
    /// When the window of a calendar ends.
    renews: Option<Local>,
    /// How far the last charge is ahead of the call.
    ahead: Span,
    /// The number of holds that charged the limit, and what they charged.
    holds: (u64, u64),
    counts_refused: bool,
    /// The name of the tenant that is to hold the lease, and what it holds.
    tenant: Option<(String, Share)>,
    /// How the limit adapts.
    adapting: Option<Adapting>,
    /// Whether the key stores nothing of it.
    is_fresh: bool,
    /// The name of the stored limit and that of the call's, if they differ in their length.
    renamed: Option<[Name; 2]>,
}

/// How a limit adapts.
struct Adapting {
    limit: Adapted,
    /// The time since it was last lowered.
    lowered: Option<Span>,
}

impl fmt::Display for Adapting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Adapting { limit, lowered } = self;
        let Settings { rule, floor, ceiling, .. } = limit.settings;
        write!(f, "it adapts, from {floor} to {ceiling}")?;
        let whole = limit.exact / ONE;
        match rule {
            Rule::Failures => write!(f, "; {} of {whole} until it grows", limit.credit)?,
            Rule::Latency if limit.latency.windows > 0 => {
                let [long, short] =
                    [limit.latency.long, limit.latency.short].map(|mean| Rough(mean_of(mean)));
                write!(f, "; requests took {short}, on an idle backend {long}")?;
            }
            Rule::Latency => {}
        }
        if limit.latency.probe != Probe::No {
            write!(f, "; half of {whole} counts during a probe")?;
        }
        lowered.map_or(Ok(()), |ago| write!(f, "; lowered {} ago", Rough(ago)))
    }
}

/// For each limit of a key that holds have charged: their number, and what they charged to it.
pub type Charged = BTreeMap<Name, (u64, u64)>;

/// How a limit counts.
#[derive(Clone, Copy)]
enum Counting {
    /// What can still be taken.
    Left,
    /// What was taken in the window.
    Used,
    /// The strikes so far, or the rest of a ban.
    Strikes { ban: Option<Span> },
    /// The number of leases, what they cost, and when the next one ends.
    Leases { leases: u64, cost: u64, next: Option<Span> },
}

impl Seen {
    /// The limit at `place` of a key, as a call at `at` finds it.
    pub fn of(
        limits: &impl Limits,
        place: Place,
        limiter: &AnyLimiter<'_>,
        at: Time,
        charged: &Charged,
    ) -> Seen {
        let renews = match limiter {
            AnyLimiter::Calendar(calendar) => {
                Some(found(limits, place, calendar, at, |page, now, _| calendar.renewal(page, now)))
            }
            _ => None,
        };
        let counting = counting(limits, place, limiter, at);
        let adapting = match limiter {
            AnyLimiter::Concurrent(concurrent) => found(limits, place, concurrent, at, |leases, now, _| {
                let limit = concurrent.adapted(leases, now)?;
                let age = |lowered: u64| Span::from_micros(leases.micros(now).wrapping_sub(lowered));
                Some(Adapting { limit, lowered: limit.lowered.map(age) })
            }),
            _ => None,
        };
        with_limiter!(limiter, limiter => Seen {
            counting,
            renews,
            ahead: last(limits, place, limiter).map_or(Span::ZERO, |last| last.since(at)),
            holds: charged.get(&name(place, limiter)).copied().unwrap_or_default(),
            counts_refused: limiter.capabilities().counts_refused,
            tenant: limiter.tenant().map(|tenant| {
                let share = found(limits, place, limiter, at, |state, now, _| {
                    limiter.leases(state).map_or(Share::NOTHING, |leases| leases.share(tenant.name, now))
                });
                (shown(tenant.name).to_string(), Share { weight: tenant.weight.unwrap_or(share.weight), ..share })
            }),
            adapting,
            is_fresh: last(limits, place, limiter).is_none(),
            renamed: (place.stored != place.length)
                .then(|| [name(place, limiter), name(Place::of(place.length), limiter)]),
        })
    }

    /// A state that has a key to itself.
    pub fn alone(state: Option<&impl State>, at: Time) -> Seen {
        let ahead = state.map_or(Span::ZERO, |state| state.last().since(at));
        Seen {
            counting: Counting::Left,
            renews: None,
            ahead,
            holds: (0, 0),
            counts_refused: false,
            tenant: None,
            adapting: None,
            is_fresh: state.is_none(),
            renamed: None,
        }
    }
}

fn counting(limits: &impl Limits, place: Place, limiter: &AnyLimiter<'_>, at: Time) -> Counting {
    match limiter {
        AnyLimiter::Penalty(penalty) => {
            // A cost of 0 asks for a ban.
            let answer = Ask::new(place, at, 0, Manner::Strict).peek(limits, penalty);
            let Verdict::Refuse { retry: ban } = answer.verdict else {
                return Counting::Strikes { ban: None };
            };
            Counting::Strikes { ban }
        }
        AnyLimiter::Concurrent(concurrent) => {
            found(limits, place, concurrent, at, |leases, now, lag| Counting::Leases {
                leases: leases.count(now),
                cost: leases.cost(now),
                next: leases.ends(1, now).map(|next| next.plus(lag)),
            })
        }
        AnyLimiter::FixedWindow(_)
        | AnyLimiter::AlignedWindow(_)
        | AnyLimiter::Calendar(_)
        | AnyLimiter::SlidingWindow(_)
        | AnyLimiter::SlidingBuckets(_) => Counting::Used,
        // During a gap nothing is left, whatever was used.
        AnyLimiter::SlidingLog(log) if log.gap == Span::ZERO => Counting::Used,
        AnyLimiter::TokenBucket(_)
        | AnyLimiter::BatchBucket(_)
        | AnyLimiter::LeakyBucket(_)
        | AnyLimiter::Gcra(_)
        | AnyLimiter::SlidingLog(_)
        | AnyLimiter::Uniform(_)
        | AnyLimiter::Bursty(_)
        | AnyLimiter::Warming(_) => Counting::Left,
    }
}

/// Calls `look` with the state of a limit, its instant, and how far a call at `at` is behind that.
fn found<L: Limiter, T>(
    limits: &impl Limits,
    place: Place,
    limiter: &L,
    at: Time,
    look: impl FnOnce(&L::State, Time, Span) -> T,
) -> T {
    match limits.state(place.stored) {
        Some(state) => when_decided(limiter, state, at, look),
        None => look(&limiter.fresh(at), at, Span::ZERO),
    }
}

/// The last charge of a limit.
fn last<L: Limiter>(limits: &impl Limits, place: Place, _: &L) -> Option<Time> {
    limits.state::<L::State>(place.stored).map(State::last)
}

/// The name under which a limit is stored.
fn name<L: Limiter>(place: Place, _: &L) -> Name {
    Name::of::<L::State>(place.stored)
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn a_duration_has_its_two_largest_units_and_is_rounded_up() {
        let day = 86_400_000;
        for (millis, text) in [
            (0, "0 ms"),
            (250, "250 ms"),
            (999, "999 ms"),
            (4000, "4 s"),
            (4001, "4 s 1 ms"),
            (10_000, "10 s"),
            (10_001, "11 s"),
            (59_001, "1 m"),
            (597_001, "9 m 58 s"),
            (600_000, "10 m"),
            (3_599_500, "1 h"),
            (3_600_001, "1 h 1 m"),
            (day - 1, "1 d"),
            (12 * day + 3 * 3_600_000 + 1, "12 d 4 h"),
            (36_500 * day, "36500 d"),
        ] {
            assert_eq!(Rough(Span::from_millis(millis)).to_string(), text);
        }
        assert_eq!(Rough(Span::from_micros(1)).to_string(), "1 ms");
        assert_eq!(Rough(Span::FOREVER).to_string(), "213503982 d 9 h");
    }
}
