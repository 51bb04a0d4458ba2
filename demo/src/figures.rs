//! What outcomes amount to: over time, and in a few numbers.

use serde_json::{Value, json};

use crate::settings::{Keys, Settings};
use crate::slots::{Changes, Slots, at_once, most};
use crate::traffic::ABUSER;
use crate::trial::{Fate, Outcome};

/// How finely time is divided.
pub const SLOTS: usize = 120;

/// Counts by slots of time, of `slot` milliseconds each.
pub struct Series {
    pub slot: u64,
    /// Requests that asked.
    pub offered: Vec<u64>,
    /// Requests that got through, when they did.
    pub through: Vec<u64>,
    /// Those of them that are the abuser's.
    pub abuser: Vec<u64>,
    /// The most that got through with one key within the period that ends then.
    pub within: Vec<u64>,
    /// The most at work at a time.
    pub at_work: Vec<u64>,
    /// As far as the last two would go if everything got through at once: the same for every strategy, so that charts
    /// of one scale can be laid side by side.
    pub most_within: u64,
    pub most_at_work: u64,
}

/// The outcomes of some of the users.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Share {
    pub offered: u64,
    pub admitted: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Figures {
    pub all: Share,
    /// The callers that do not hammer, if one does.
    pub normal: Option<Share>,
    /// The most that got through with one key within any period, wherever it begins.
    pub peak: u64,
    /// The longest wait of an admitted request, in milliseconds.
    pub wait: u64,
    /// The longest retry of a refused request, in milliseconds; `None` is never.
    pub retry: Option<u64>,
    /// The most at work at a time.
    pub at_work: u64,
    /// Requests that were told to wait until after the end.
    pub late: u64,
}

impl Series {
    pub fn of(settings: &Settings, outcomes: &[Outcome]) -> Series {
        let slot = settings.duration() / SLOTS as u64;
        let slots = Slots { from: 0, length: slot * 1000, count: SLOTS };
        let asked = |outcome: &Outcome| Some(outcome.asked);
        let whole = |outcome: &Outcome| {
            Some((outcome.asked, outcome.asked + settings.service_at(outcome.asked) * 1000))
        };
        let hammers = |outcome: &&Outcome| settings.shape.has_abuser() && outcome.user == ABUSER;
        Series {
            slot,
            offered: slots.counts(outcomes.iter().filter_map(asked)),
            through: slots.counts(outcomes.iter().filter_map(from)),
            abuser: slots.counts(outcomes.iter().filter(hammers).filter_map(from)),
            within: slots.most(&within(settings, outcomes, from)),
            at_work: slots.most(&[at_once(outcomes.iter().filter_map(work))]),
            most_within: most(&within(settings, outcomes, asked)),
            most_at_work: most(&[at_once(outcomes.iter().filter_map(whole))]),
        }
    }

    pub fn to_json(&self) -> Value {
        json!({
            "slot": self.slot,
            "offered": self.offered,
            "through": self.through,
            "abuser": self.abuser,
            "within": self.within,
            "atWork": self.at_work,
        })
    }
}

/// When a request got through.
pub(crate) fn from(outcome: &Outcome) -> Option<u64> {
    work(outcome).map(|(from, _)| from)
}

/// While the backend works on it.
pub(crate) fn work(outcome: &Outcome) -> Option<(u64, u64)> {
    match outcome.fate {
        Fate::Admitted { from, until } => Some((from, until)),
        Fate::Refused { .. } => None,
    }
}

/// For each key, what the requests cost whose instants are within the period that ends then.
pub(crate) fn within(
    settings: &Settings,
    outcomes: &[Outcome],
    instant: fn(&Outcome) -> Option<u64>,
) -> Vec<Changes> {
    let period = settings.period * 1000;
    let of = |user: Option<u64>| {
        let own = outcomes.iter().filter(|outcome| user.is_none_or(|user| outcome.user == user));
        let costs = own.filter_map(|outcome| Some((instant(outcome)?, outcome.cost)));
        at_once(costs.flat_map(|(at, cost)| (0..cost).map(move |_| (at, at + period))))
    };
    match settings.keys {
        Keys::Each => (0..settings.shape.users()).map(|user| of(Some(user))).collect(),
        Keys::Shared => vec![of(None)],
    }
}

impl Figures {
    pub fn of(settings: &Settings, outcomes: &[Outcome]) -> Figures {
        let duration = settings.duration() * 1000;
        let (mut wait, mut retry) = (0, Some(0));
        for outcome in outcomes {
            match outcome.fate {
                Fate::Admitted { from, .. } => wait = wait.max((from - outcome.asked) / 1000),
                Fate::Refused { retry: after } => retry = retry.zip(after).map(|(a, b)| a.max(b)),
            }
        }
        let normal = |outcome: &Outcome| outcome.user != ABUSER;
        Figures {
            all: Share::of(outcomes, |_| true),
            normal: settings.shape.has_abuser().then(|| Share::of(outcomes, normal)),
            peak: most(&within(settings, outcomes, from)),
            wait,
            retry,
            at_work: most(&[at_once(outcomes.iter().filter_map(work))]),
            late: outcomes.iter().filter_map(from).filter(|from| *from >= duration).count() as u64,
        }
    }

    pub fn to_json(&self) -> Value {
        json!({
            "all": self.all.to_json(),
            "normal": self.normal.map(Share::to_json),
            "peak": self.peak,
            "wait": self.wait,
            "retry": self.retry,
            "atWork": self.at_work,
            "late": self.late,
        })
    }
}

impl Share {
    fn of(outcomes: &[Outcome], counts: impl Fn(&Outcome) -> bool) -> Share {
        let mut share = Share::default();
        for outcome in outcomes.iter().filter(|outcome| counts(outcome)) {
            share.offered += 1;
            share.admitted += u64::from(matches!(outcome.fate, Fate::Admitted { .. }));
        }
        share
    }

    fn to_json(self) -> Value {
        json!({ "offered": self.offered, "admitted": self.admitted })
    }
}
