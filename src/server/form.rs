//! How the limits of a key are held: one alone, or several together; and what takes a key from one to the other.

use std::ffi::c_void;
use std::mem::replace;

use super::handle::Handle;
use super::value::{Slot, head, state, state_mut};
use crate::limit::{AnyState, Error, Kept, Kind, Name, Several, State, with_kept, with_state};
use crate::time::{Span, Time};

/// The limits that a call names for a key.
#[derive(Default)]
pub struct Named {
    /// Those that are charged come first.
    names: Vec<Name>,
    pub(super) charged: usize,
}

impl Named {
    /// Each with whether it is charged.
    pub fn of(names: impl Iterator<Item = (Name, bool)> + Clone) -> Named {
        let mut all = Vec::with_capacity(4);
        all.extend(names.clone().filter_map(|(name, charged)| charged.then_some(name)));
        let count = all.len();
        all.extend(names.filter_map(|(name, charged)| (!charged).then_some(name)));
        Named { names: all, charged: count }
    }

    pub(super) fn charged(&self) -> &[Name] {
        self.names.get(..self.charged).unwrap_or(&[])
    }
}

#[derive(Clone, Copy)]
pub(super) enum Form {
    /// The limit of this name stands alone, or will.
    Alone(Name),
    /// The limit of this name stands alone, until one of the others changes.
    Joining(Name),
    /// They are held together; the one of unknown length is that of this name.
    Together(Option<Name>),
}

/// How the limits are held, and whether the key is one for them at all.
pub(super) fn form(value: *mut c_void, named: &Named) -> Result<Form, Error> {
    let (asked, charged) = (named.names.as_slice(), named.charged());
    if value.is_null() {
        return Ok(if let [name] = charged { Form::Alone(*name) } else { Form::Together(None) });
    }
    // SAFETY: a value that is not null is a slot of ours, of the kind that its head tells.
    let kind = unsafe { head(value) }.kind();
    let own = match kind {
        // No limit that could be asked for along with others.
        Kind::Amount => return Err(Error::WrongType),
        Kind::Several => {
            // SAFETY: as above.
            let several = unsafe { state::<Several>(value) };
            let unknown =
                several.limits().iter().map(|limit| limit.name).find(|name| name.span == Span::ZERO);
            let known = unknown.map(|name| name.resolve(asked, |name| several.has(name)));
            return Ok(Form::Together(known.filter(|name| name.span > Span::ZERO)));
        }
        // SAFETY: as above.
        _ => with_state!(kind, S => (Name::of::<S>(Span::ZERO), unsafe { state::<S>(value) }.span())),
    };
    let name = match own {
        (name, Some(span)) => Name { span, ..name },
        (name, None) => name.resolve(asked, |_| false),
    };
    Ok(if charged == [name] { Form::Alone(name) } else { Form::Joining(name) })
}

/// Makes what stands alone the first of several; what it was is freed.
pub(super) fn adopt(handle: &Handle<'_, '_>, value: *mut c_void, name: Name, until: Time) -> *mut c_void {
    // SAFETY: a slot of ours, of the kind that its head tells, to which no reference is alive.
    let state: AnyState =
        unsafe { with_state!(head(value).kind(), S => replace(state_mut::<S>(value), S::blank()).kept()) };
    handle.set_value(Slot::boxed(Several::adopting(name, until, state)))
}

/// Makes the only limit of several stand alone, if the last change said so.
pub(super) fn part(handle: &Handle<'_, '_>, value: *mut c_void) -> *mut c_void {
    // SAFETY: a slot of that kind, to which no reference is alive.
    match unsafe { state_mut::<Several>(value) }.leave() {
        Some(alone) => handle.set_value(with_kept!(alone, state => Slot::boxed(*state))),
        None => value,
    }
}
