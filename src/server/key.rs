//! An open key: its limits, and what changed in them.
//!
//! A key with one limit holds that limit's state and nothing else; a key with several holds a set. A change is written
//! first, as the bytes of an `RL.APPLY` payload, and then applied from those bytes. So the node that decides does
//! exactly what every replica will do.
//!
//! What a key looks like after a call depends on its limits alone: [`Key::commit`] turns a set of one into a limit that
//! stands alone, here and on replicas.

use std::cell::Cell;
use std::mem::{ManuallyDrop, take};

use ratelimit_core::state::SetChange;
use ratelimit_core::state::codec::Reader;
use ratelimit_core::state::{MAX_LIMITS, StoredLimit, fits};
use ratelimit_core::{
    Error as CoreError, Figure, Kind, LimitSet, LimitState, Limits, Name, Place, Span, State, Time,
    with_kept, with_state,
};
use ratelimit_language::Error;

use super::call::Call;
use super::handle::{Access, Handle};
use super::payload::{self, GONE};
use super::value::Value;

/// The deadline of a key leaves some slack after the limits are fully reset: as much time again, within these bounds.
/// It moves when less than a quarter of the slack is left, so that few charges move it and a key in constant use never
/// expires only to be made again; and when there is more slack than ever is left, because the reset came nearer.
const LEAST_SLACK: Span = Span::from_millis(1000);
const MOST_SLACK: Span = Span::from_millis(60_000);

/// The buffer for payloads, kept from call to call so that none is allocated.
static JOURNAL: Spare = Spare(Cell::new(Vec::new()));

struct Spare(Cell<Vec<u8>>);

// SAFETY: only commands touch it, and the server runs them one at a time, under its lock.
unsafe impl Sync for Spare {}

/// How a key is changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// It holds one limit, or none yet, and no other limit is charged.
    Lone,
    /// It holds several limits, or will.
    Set,
}

/// An open key of limits, or of nothing yet.
pub struct Key<'c, 'a> {
    handle: Handle<'c, 'a>,
    value: Option<ManuallyDrop<Value>>,
    form: Form,
    /// The payload so far; empty as long as nothing changed.
    journal: Vec<u8>,
}

impl<'c, 'a> Key<'c, 'a> {
    /// Opens the key that is an argument of the call.
    #[inline(always)]
    pub fn open(call: &'c Call<'a>, place: usize, access: Access) -> Result<Self, Error> {
        let handle = Handle::open(call, place, access)?;
        let value = handle.value()?;
        let form = if value.as_ref().is_some_and(|value| value.state::<LimitSet>().is_some()) {
            Form::Set
        } else {
            Form::Lone
        };
        Ok(Key { handle, value, form, journal: Vec::new() })
    }

    /// Where the limit is that a limiter's own command is about: the one of its name, else the only one of its limiter
    /// and mode, else, if the key is missing, a new one.
    #[inline(always)]
    pub fn find<S: LimitState>(&self, length: Span) -> Result<Place, Error> {
        let Some(value) = &self.value else {
            return Ok(Place::of(length));
        };
        if value.state::<S>().is_some() {
            return Ok(Place { stored: value.length(), length });
        }
        let set = value.state::<LimitSet>();
        set.and_then(|set| set.find(Name::of::<S>(length))).ok_or(Error::WrongType)
    }

    /// Prepares for a call that names limits by their whole names: those that it charges, and all that it names.
    pub fn expect(
        &mut self,
        now: Time,
        charged: impl Iterator<Item = Name> + Clone,
        named: impl Fn(Name) -> bool,
    ) -> Result<(), Error> {
        let only = self.value.as_ref().and_then(|value| value.only());
        let mut names = charged.clone();
        let alone = match (self.form, only, &self.value) {
            (Form::Lone, None, Some(_)) => return Err(Error::WrongType),
            (Form::Lone, None, None) => names.next().is_some() && names.next().is_none(),
            (Form::Lone, Some((only, _)), _) => names.all(|name| name == only),
            (Form::Set, ..) => false,
        };
        if alone {
            return Ok(());
        }
        self.form = Form::Set;
        let (stored, count) =
            (self.limits().map(|limit| (limit.name, limit.until())), charged.clone().count());
        let stored = stored.chain(only);
        let crowded = count > 0 && stored.clone().count() + count > MAX_LIMITS;
        if crowded && !fits(&stored, charged, named, now) { Err(Error::TooManyLimits) } else { Ok(()) }
    }

    /// Whether the key holds a set of limits.
    pub fn is_set(&self) -> bool {
        self.set().is_some()
    }

    /// Whether all limits of a set are fully reset at `now`.
    pub fn set_is_settled(&self, now: Time) -> bool {
        self.set().is_none_or(|set| set.until() <= now)
    }

    /// The state of a key that holds nothing but this; a missing key has none.
    pub fn whole<S: State>(&self) -> Result<Option<&S>, Error> {
        match &self.value {
            None => Ok(None),
            Some(value) => value.state::<S>().map(Some).ok_or(Error::WrongType),
        }
    }

    fn set(&self) -> Option<&LimitSet> {
        self.value.as_ref().and_then(|value| value.state::<LimitSet>())
    }

    fn limits(&self) -> impl Iterator<Item = &StoredLimit> + Clone {
        self.set().map_or(&[][..], LimitSet::limits).iter()
    }

    /// Applies the change that `write` writes, if it writes one, to the only state of the key. `blank` makes that
    /// of a missing key. Returns whether there was a change.
    #[inline(always)]
    pub fn change_whole<S: State>(
        &mut self,
        length: Span,
        blank: impl FnOnce() -> S,
        write: impl FnOnce(&S, &mut Vec<u8>),
    ) -> Result<bool, CoreError> {
        let start = self.journal.len();
        self.begin(S::KIND, length);
        let Key { handle, value, journal, .. } = self;
        let mark = journal.len();
        let mut created = None;
        let state = match value.as_mut().and_then(|value| value.state_mut::<S>()) {
            Some(state) => state,
            None => created.insert(blank()),
        };
        write(state, journal);
        let written = journal.len() > mark;
        let change = S::decode_change(&mut Reader::new(journal.get(mark..).unwrap_or(&[])));
        if change.map(|change| state.apply(change)).is_none() {
            journal.truncate(start);
            // A change that was written and cannot be read is a defect.
            return if written { Err(CoreError::Defect) } else { Ok(false) };
        }
        match (created, value) {
            (Some(state), value) => *value = Some(handle.set_value(Value::lone(length, state))),
            (None, Some(value)) => value.set_length(length),
            (None, None) => {}
        }
        Ok(true)
    }

    /// As [`Key::change_whole`], for a limit of a set.
    fn change_in_set<S: LimitState>(
        &mut self,
        place: &mut Place,
        blank: impl FnOnce() -> S,
        write: impl FnOnce(&S, &mut Vec<u8>),
    ) -> Result<bool, CoreError> {
        let start = self.journal.len();
        self.begin(Kind::LimitSet, Span::ZERO);
        let [from, to] = [place.stored, place.length].map(Name::of::<S>);
        if from != to {
            LimitSet::encode_change(&SetChange::Renamed { from, to }, &mut self.journal);
        }
        SetChange::begin(to, &mut self.journal);
        let body = self.journal.len();
        let mut journal = take(&mut self.journal);
        match self.state(from.length) {
            Some(state) => write(state, &mut journal),
            None => write(&blank(), &mut journal),
        }
        self.journal = journal;
        if self.journal.len() == body {
            self.journal.truncate(start);
            return Ok(false);
        }
        let change = S::decode_change(&mut Reader::new(self.journal.get(body..).unwrap_or(&[])));
        let changed = gather(&self.handle, &mut self.value).zip(change).map(|(set, change)| {
            if from != to {
                set.apply(SetChange::Renamed { from, to });
            }
            set.apply_to::<S>(to.length, change);
            place.stored = to.length;
        });
        if changed.is_none() {
            self.journal.truncate(start);
            return Err(CoreError::Defect);
        }
        Ok(true)
    }

    /// Begins the payload, unless it is begun, as one of changes to a state of this kind.
    #[inline(always)]
    fn begin(&mut self, kind: Kind, length: Span) {
        if self.journal.is_empty() {
            self.journal = JOURNAL.0.take();
            // Most effects take less, so that it does not grow again and again.
            self.journal.reserve(128);
            payload::begin(&mut self.journal, kind, length, self.value.as_deref());
        }
    }

    /// Ends the changes, if there are any: sets the deadline if it must move, and wakes clients that watch the key.
    /// [`Key::publish`] or [`publish`] sends the payload. The last charge was at `latest`, and the limits that it
    /// charged are fully reset `reset` later.
    #[inline(always)]
    pub fn commit(&mut self, clock: Time, latest: Time, reset: Span) {
        if self.journal.is_empty() {
            return;
        }
        let reset = if self.form == Form::Lone { reset } else { self.reset_of_set(latest) };
        self.move_deadline(clock.max(latest), reset);
        self.handle.signal();
    }

    /// The reset of all limits at `latest`. The only limit of a set stands alone from now on.
    fn reset_of_set(&mut self, latest: Time) -> Span {
        let reset = self.set().map(|set| set.until().since(latest)).unwrap_or_default();
        normalize(&self.handle, &mut self.value);
        reset
    }

    /// Deletes the key.
    pub fn delete(&mut self) {
        self.handle.unlink();
        self.value = None;
        self.journal.clear();
        self.journal.extend(GONE);
        self.handle.signal();
    }

    /// Sends the payload, if there is one, to replicas and the AOF.
    #[inline(always)]
    pub fn publish(&mut self) {
        if !self.journal.is_empty() {
            self.handle.replicate(&self.journal);
            self.journal.clear();
        }
    }

    /// Sets the deadline of a key that is fully reset `reset` after `now`, if it must move, and adds it to the payload.
    #[inline(always)]
    fn move_deadline(&mut self, now: Time, reset: Span) {
        let Some(value) = &mut self.value else { return };
        let settled = now.plus(reset);
        let slack = reset.clamp(LEAST_SLACK, MOST_SLACK);
        let known = Time::from_millis(value.deadline());
        // A deadline is a whole millisecond, rounded up.
        let latest = settled.plus(MOST_SLACK).plus(Span::from_millis(1));
        if known < settled.plus(slack.quarter()) || known > latest {
            let deadline = settled.plus(slack).as_millis_up();
            value.set_deadline(deadline);
            self.handle.set_deadline(deadline);
            payload::add_deadline(&mut self.journal, deadline);
        }
    }
}

impl Limits for Key<'_, '_> {
    #[inline(always)]
    fn state<S: LimitState>(&self, length: Span) -> Option<&S> {
        let value = self.value.as_ref()?;
        match value.state::<S>() {
            Some(state) => (value.length() == length).then_some(state),
            None => value.state::<LimitSet>().and_then(|set| set.get(length)),
        }
    }

    #[inline(always)]
    fn change<S: LimitState>(
        &mut self,
        place: &mut Place,
        blank: impl FnOnce() -> S,
        write: impl FnOnce(&S, &mut Vec<u8>),
    ) -> Result<bool, CoreError> {
        if self.form == Form::Set {
            return self.change_in_set(place, blank, write);
        }
        let changed = self.change_whole(place.length, blank, write)?;
        if changed {
            place.stored = place.length;
        }
        Ok(changed)
    }

    #[inline(always)]
    fn drop_faded(&mut self, now: Time, named: impl Fn(Name) -> bool) -> Result<(), CoreError> {
        if self.form == Form::Lone {
            return Ok(());
        }
        let only = self.value.as_ref().and_then(|value| value.only());
        let faded = self.limits().filter(|limit| limit.faded(&named, now)).map(|limit| limit.name);
        let faded: Vec<Name> = faded
            .chain(only.filter(|(name, until)| *until <= now && !named(*name)).map(|(name, _)| name))
            .collect();
        if faded.is_empty() {
            return Ok(());
        }
        self.begin(Kind::LimitSet, Span::ZERO);
        let set = gather(&self.handle, &mut self.value).ok_or(CoreError::Defect)?;
        for name in faded {
            let change = SetChange::Dropped { name };
            LimitSet::encode_change(&change, &mut self.journal);
            set.apply(change);
        }
        Ok(())
    }
}

impl Drop for Key<'_, '_> {
    fn drop(&mut self) {
        // Nothing is left here but after a defect: then what was changed before it is replicated all the same.
        self.publish();
        let journal = take(&mut self.journal);
        if journal.capacity() > 0 {
            JOURNAL.0.set(journal);
        }
    }
}

/// Makes the key hold a set: of the limit that stands alone there, or of none.
pub(super) fn gather<'v>(
    handle: &Handle<'_, '_>,
    value: &'v mut Option<ManuallyDrop<Value>>,
) -> Option<&'v mut LimitSet> {
    let is_set = value.as_ref().is_some_and(|value| value.state::<LimitSet>().is_some());
    if !is_set {
        let only = value.as_mut().and_then(|value| Some((value.only()?.0, value.take_state()?)));
        let set = only.map_or_else(LimitSet::blank, |(name, state)| LimitSet::of_one(name, state));
        *value = Some(handle.set_value(Value::set(set)));
    }
    value.as_mut().and_then(|value| value.state_mut::<LimitSet>())
}

/// Makes the only limit of a set stand alone.
pub(super) fn normalize(handle: &Handle<'_, '_>, value: &mut Option<ManuallyDrop<Value>>) {
    let set = value.as_mut().and_then(|value| value.state_mut::<LimitSet>());
    if let Some(StoredLimit { name, state }) = set.and_then(LimitSet::take_only) {
        *value = Some(handle.set_value(Value::of_any(name.length, state)));
    }
}

/// Sends the payloads of several keys to replicas and the AOF in one command, so that all arrive or none.
pub fn publish(call: &Call<'_>, keys: &mut [Key<'_, '_>]) {
    let changed = keys.iter().filter(|key| !key.journal.is_empty()).count();
    if changed > 1 {
        let changed = keys.iter().filter(|key| !key.journal.is_empty());
        payload::replicate(call, changed.map(|key| (key.handle.name(), key.journal.as_slice())));
        for key in keys {
            key.journal.clear();
        }
    } else {
        keys.iter_mut().for_each(Key::publish);
    }
}

type Figures = Vec<(&'static str, Figure)>;

/// What `RL.INFO` says of a limit, or of another value.
pub struct Described {
    pub name: Name,
    pub figures: Figures,
}

/// What `RL.INFO` says of a key.
pub struct Description {
    pub whole: Described,
    /// Of several limits each.
    pub limits: Vec<Described>,
    /// When the key expires, in ms since the epoch.
    pub expires: Option<u64>,
}

/// Describes a key of any kind; `None` if it does not exist.
pub fn describe(call: &Call<'_>, place: usize) -> Result<Option<Description>, Error> {
    let key = Key::open(call, place, Access::Read)?;
    let Some(value) = &key.value else { return Ok(None) };
    let limits = key.limits().map(|limit| Described {
        name: limit.name,
        figures: with_kept!(&limit.state, state => figures(state.as_ref())),
    });
    let name = Name { kind: value.kind(), length: value.length() };
    let figures = with_state!(name.kind, S => value.state::<S>().map(figures).unwrap_or_default());
    let limits = limits.collect();
    Ok(Some(Description { whole: Described { name, figures }, limits, expires: key.handle.deadline() }))
}

fn figures<S: State>(state: &S) -> Figures {
    let mut figures = Vec::new();
    state.describe(&mut |name, figure| figures.push((name, figure)));
    figures.push(("last_charge_us", Figure::At(state.last())));
    figures
}
