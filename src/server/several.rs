//! A key under which there may be several limits: opening it, changing their states, and telling what changed.
//!
//! One limit stands alone, as its own command leaves it; several are held together. The first change of another limit
//! joins the one that stood alone with others, the last that leaves it by itself parts them again. Both are part of
//! the effect, so that replicas do the same.

use std::ffi::c_void;
use std::mem::take;

use super::call::Call;
use super::form::{Form, Named, adopt, form, part};
use super::handle::{Access, Handle};
use super::payload::{self, HEADER, NOTHING};
use super::store::{Key, journal, keep_journal, move_deadline, write_change};
use super::value::{Slot, head, state, state_mut};
use crate::limit::codec::Reader;
use crate::limit::{
    Error, Kept, Kind, MOST_LIMITS, Name, Reading, Several, SeveralChange, State, Stored, read_clock,
    with_state,
};
use crate::time::{Span, Time};

/// A key of any limits.
pub struct Limits<'c, 'a> {
    handle: Handle<'c, 'a>,
    /// The value; null if the key does not exist.
    value: *mut c_void,
    form: Form,
    /// The payload so far; empty as long as nothing changed.
    journal: Vec<u8>,
    /// What stood alone has joined others in this call.
    joined: bool,
    named: Named,
    when: When,
}

/// When a call is decided.
#[derive(Clone, Copy)]
pub struct When {
    /// The server's clock.
    pub clock: Time,
    /// The instant to decide at.
    pub now: Time,
}

impl<'c, 'a> Limits<'c, 'a> {
    /// Opens the key that is an argument of the call, on which these limits are asked for.
    pub fn open(
        call: &'c Call<'a>,
        place: usize,
        access: Access,
        when: When,
        named: Named,
    ) -> Result<Self, Error> {
        let handle = Handle::open(call, place, access)?;
        let value = handle.value()?;
        let form = form(value, &named)?;
        let limits = Limits { handle, value, form, journal: Vec::new(), joined: false, named, when };
        if limits.crowded() { Err(Error::TooManyLimits) } else { Ok(limits) }
    }

    /// What stands alone is the only one that will change.
    pub fn keep_form(&mut self) {
        if let Form::Joining(name) = self.form {
            self.form = Form::Alone(name);
        }
    }

    pub fn state<S: State + Kept>(&self, span: Span) -> Option<&S> {
        let name = Name::of::<S>(span);
        match self.form {
            _ if self.value.is_null() => None,
            // SAFETY: a slot of ours, which holds a state of the name's kind; only what borrows `self` alone changes it.
            Form::Alone(own) | Form::Joining(own) => (own == name).then(|| unsafe { state(self.value) }),
            Form::Together(unknown) => {
                let several = self.several()?;
                several.get(span).or_else(|| several.get(Span::ZERO).filter(|_| unknown == Some(name)))
            }
        }
    }

    /// What `ask` says of a limit's state, or of a fresh one if there is none; as [`Key::with_state`].
    pub fn with_state<S: State + Kept, T>(
        &self,
        span: Span,
        fresh: impl FnOnce() -> S,
        ask: impl FnOnce(&S) -> T,
    ) -> T {
        match self.state(span) {
            Some(state) => ask(state),
            None => ask(&fresh()),
        }
    }

    fn several(&self) -> Option<&Several> {
        let together = matches!(self.form, Form::Together(_)) && !self.value.is_null();
        // SAFETY: a slot of ours, of that kind; only what borrows `self` alone changes it.
        together.then(|| unsafe { state(self.value) })
    }

    /// The lengths of time of all limits of this kind that the key holds together.
    pub fn spans<S: State>(&self) -> Vec<Span> {
        let limits = self.several().map_or(&[][..], Several::limits);
        let same = limits.iter().map(|limit| limit.name).filter(|name| name.kind == S::KIND);
        same.map(|name| name.span).collect()
    }

    /// Whether the key would hold too many limits once all are charged.
    fn crowded(&self) -> bool {
        let charged = self.named.charged();
        let others = match self.form {
            Form::Alone(_) => 0,
            Form::Joining(name) => usize::from(!charged.contains(&name)),
            Form::Together(unknown) => {
                let limits = self.several().map_or(&[][..], Several::limits);
                let known = |limit: &Stored| match unknown {
                    Some(name) if limit.name.span == Span::ZERO => name,
                    _ => limit.name,
                };
                let stay = limits.iter().filter(|limit| limit.until > self.when.now);
                stay.filter(|limit| !charged.contains(&known(limit))).count()
            }
        };
        !charged.is_empty() && others + charged.len() > MOST_LIMITS
    }

    /// Whether a limit is as good as new, and not about to be charged.
    fn fades(&self, limit: &Stored) -> bool {
        limit.until <= self.when.now && !self.named.charged().contains(&limit.name)
    }

    /// Reads the clock for a limit's state, as for a key of one limit.
    pub fn read_clock<S: State + Kept>(
        &mut self,
        span: Span,
        now: Time,
        reset: impl Fn(&S) -> Span,
        rebase: impl FnOnce(&S, &mut Vec<u8>),
    ) -> Result<Time, Error> {
        let Some(state) = self.state::<S>(span) else {
            return Ok(now);
        };
        match read_clock(state.last(), now, || reset(state)) {
            Reading::At(instant) => Ok(instant),
            Reading::SetBack => {
                self.change(span, S::blank(), rebase, |state| state.last().plus(reset(state)))?;
                Ok(now)
            }
        }
    }

    /// Applies the change to a limit's state that `write` puts down, if it does. `blank` is what a missing one is
    /// taken for, and `until` tells when the state after it is as good as new. Tells whether there was a change.
    pub fn change<S: State + Kept>(
        &mut self,
        span: Span,
        blank: S,
        write: impl FnOnce(&S, &mut Vec<u8>),
        until: impl FnOnce(&S) -> Time,
    ) -> Result<bool, Error> {
        if let Form::Alone(_) = self.form {
            return write_change(&self.handle, &mut self.value, &mut self.journal, blank, write);
        }
        if !matches!(self.form, Form::Together(None)) || self.value.is_null() {
            // What is written depends on the state alone, which joining leaves as it is.
            self.join();
        }
        let mut changes = take(&mut self.journal);
        if changes.is_empty() {
            changes = journal(Kind::Several);
        }
        let mark = changes.len();
        SeveralChange::begin(Name::of::<S>(span), &mut changes);
        let body = changes.len();
        write(self.state(span).unwrap_or(&blank), &mut changes);
        let written = changes.len() > body;
        let change = S::decode_change(&mut Reader::new(changes.get(body..).unwrap_or(&[])));
        // SAFETY: the limits are held together now, and `self` is borrowed alone.
        let several = unsafe { state_mut::<Several>(self.value) };
        let until = change.map(|change| several.apply_to(span, change, until));
        match until {
            Some(until) => SeveralChange::finish(until, changes.get_mut(mark..).unwrap_or(&mut [])),
            None => changes.truncate(if mark == HEADER { 0 } else { mark }),
        }
        self.journal = changes;
        // A change that was put down and cannot be read is a defect of ours.
        if written == until.is_some() { Ok(written) } else { Err(Error::Internal) }
    }

    /// Drops the limits that have faded, if others are charged.
    pub fn drop_faded(&mut self) -> Result<(), Error> {
        let limits = self.several().map_or(&[][..], Several::limits);
        if self.named.charged == 0 || !limits.iter().any(|limit| self.fades(limit)) {
            return Ok(());
        }
        self.join();
        let limits = self.several().map_or(&[][..], Several::limits);
        let faded: Vec<Name> =
            limits.iter().filter(|limit| self.fades(limit)).map(|limit| limit.name).collect();
        faded.into_iter().try_for_each(|name| self.record(SeveralChange::Gone { name }))
    }

    /// Lets a single limit that is left stand alone again: one that was charged, or that had joined others in vain.
    fn part(&mut self) -> Result<(), Error> {
        if (self.named.charged == 1 || self.joined)
            && self.several().is_some_and(|several| several.limits().len() == 1)
        {
            self.record(SeveralChange::Alone)?;
        }
        Ok(())
    }

    /// Begins the payload, and holds together what stood alone.
    fn join(&mut self) {
        if !self.journal.is_empty() {
            return;
        }
        self.journal = journal(Kind::Several);
        match self.form {
            Form::Joining(name) => {
                // Where only its limiter could say, which nobody knows here, its expiry is not before that.
                let expiry = || {
                    let ends = self.handle.deadline().map_or(Time::LATEST, Time::from_millis);
                    self.when.now.plus(ends.since(self.when.clock))
                };
                // SAFETY: a slot of ours, of the kind that its head tells; nobody changes it meanwhile.
                let settles =
                    unsafe { with_state!(head(self.value).kind(), S => state::<S>(self.value).settles()) };
                let until = SeveralChange::writable(settles.unwrap_or_else(expiry));
                SeveralChange::Adopt { name, until }.put(&mut self.journal);
                self.value = adopt(&self.handle, self.value, name, until);
                (self.form, self.joined) = (Form::Together(None), true);
            }
            Form::Together(unknown) => {
                if self.value.is_null() {
                    self.value = self.handle.set_value(Slot::boxed(Several::blank()));
                }
                self.form = Form::Together(None);
                if let Some(name) = unknown {
                    // A change that was just made is well made.
                    _ = self.record(SeveralChange::Know { name });
                }
            }
            Form::Alone(_) => {}
        }
    }

    /// Puts a change down and applies it from there.
    fn record(&mut self, change: SeveralChange<'_>) -> Result<(), Error> {
        let mark = self.journal.len();
        change.put(&mut self.journal);
        self.replay(mark)
    }

    /// Applies the change that begins there.
    fn replay(&mut self, mark: usize) -> Result<(), Error> {
        let change = Several::decode_change(&mut Reader::new(self.journal.get(mark..).unwrap_or(&[])));
        let Some(change) = change else {
            // Nobody else could read it either.
            self.journal.truncate(mark);
            return Err(Error::Internal);
        };
        // SAFETY: the limits are held together once there is a payload, and `self` is borrowed alone.
        let several = unsafe { state_mut::<Several>(self.value) };
        several.apply(change);
        Ok(())
    }

    /// When a limit is as good as new that takes so long from `now`: what already is, is so at whatever instant.
    pub fn settled_at(now: Time, reset: Span) -> Time {
        if reset == Span::ZERO { Time::default() } else { now.plus(reset) }
    }

    /// Whether all limits that are held together are as good as new.
    pub fn settled(&self) -> bool {
        self.several().is_none_or(|several| several.until() <= self.when.now)
    }

    /// Ends the changes, if there are any: sets the deadline if it must move, and tells whoever watches the key. What
    /// replicas and the AOF must be told is for [`Call::publish`]. The last charge was at `latest`; a limit that
    /// stands alone is as good as new `reset` after that.
    pub fn commit(&mut self, latest: Time, reset: Span) {
        if self.journal.is_empty() {
            return;
        }
        // A change that was just made is well made.
        _ = self.part();
        let together = self.several().map(|several| several.until().since(latest));
        if together.is_some() {
            self.value = part(&self.handle, self.value);
        }
        let now = latest.max(self.when.clock);
        move_deadline(&self.handle, self.value, &mut self.journal, now, together.unwrap_or(reset));
        self.handle.signal();
    }

    /// Deletes the key, and tells whoever watches it.
    pub fn delete(&mut self) {
        self.handle.unlink();
        self.handle.signal();
        self.journal.clear();
        self.journal.extend(NOTHING);
    }
}

impl Drop for Limits<'_, '_> {
    fn drop(&mut self) {
        keep_journal(take(&mut self.journal));
    }
}

/// A key for one limiter's own commands, as it is.
pub enum Held<'c, 'a, S: State> {
    Alone(Key<'c, 'a, S>),
    Together(Limits<'c, 'a>),
}

impl<'c, 'a, S: State> Held<'c, 'a, S> {
    /// Opens the key that is an argument of the call, whether it holds one limit or several.
    pub fn open(call: &'c Call<'a>, place: usize, when: When) -> Result<Self, Error> {
        let handle = Handle::open(call, place, Access::Change)?;
        let value = handle.value()?;
        // SAFETY: a value that is not null is a slot of ours.
        if value.is_null() || unsafe { head(value) }.kind() != Kind::Several {
            return Key::holding(handle, value).map(Held::Alone);
        }
        let (form, named) = (Form::Together(None), Named::default());
        Ok(Held::Together(Limits { handle, value, form, journal: Vec::new(), joined: false, named, when }))
    }
}

impl Call<'_> {
    /// Sends what changed to replicas and the AOF, in one command, so that all or none arrives.
    pub fn publish(&self, keys: &[Limits<'_, '_>]) {
        let mut changed = keys.iter().filter(|key| !key.journal.is_empty());
        match (changed.next(), changed.next()) {
            (None, _) => {}
            (Some(only), None) => only.handle.replicate(&only.journal),
            _ => {
                let changed = keys.iter().filter(|key| !key.journal.is_empty());
                payload::replicate(self, changed.map(|key| (key.handle.name(), key.journal.as_slice())));
            }
        }
    }
}
