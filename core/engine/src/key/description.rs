//! What `RL.INFO` shows of a key.

use ratelimit_core::{Figure, LimitSet, Name, State, Time, with_kept, with_state};
use ratelimit_language::Error;

use super::Key;
use super::content::Content;
use crate::host::Host;
use crate::slot::{Access, Slot};

type Figures = Vec<(&'static str, Figure)>;

/// A value, or a limit of a set.
pub struct Description {
    pub name: Name,
    pub figures: Figures,
    /// When it is fully reset; `None` of a value that is no limit.
    pub until: Option<Time>,
}

/// A key: its value, and each limit if the value is a set.
pub struct KeyDescription {
    pub value: Description,
    pub limits: Vec<Description>,
    /// In ms since the epoch; `None` if the key does not expire.
    pub expiry: Option<u64>,
}

/// Describes a key of any kind at `now`; `None` if it is missing.
pub fn describe(call: &impl Host, place: usize, now: Time) -> Result<Option<KeyDescription>, Error> {
    let key = Key::open(call, place, Access::Read)?;
    let Some(value) = key.slot.value() else { return Ok(None) };
    let name = Name { kind: value.kind(), length: value.length() };
    let figures =
        with_state!(name.kind, S => value.state::<S>().map(|state| figures(state, now)).unwrap_or_default());
    let limits = key.slot.set().into_iter().flat_map(LimitSet::limits).map(|limit| Description {
        name: limit.name,
        figures: with_kept!(&limit.state, state => self::figures(state.as_ref(), now)),
        until: Some(limit.until()),
    });
    Ok(Some(KeyDescription {
        value: Description { name, figures, until: value.lone_limit().map(|(_, until)| until) },
        limits: limits.collect(),
        expiry: key.slot.expiry(),
    }))
}

fn figures<S: State>(state: &S, now: Time) -> Figures {
    let mut figures = Vec::new();
    let mut figure = |name, figure| figures.push((name, figure));
    state.describe(&mut figure);
    state.describe_at(now, &mut figure);
    figures.push(("last_charge_us", Figure::At(state.last())));
    figures
}
