//! The names of limits, and the lengths of time in them.

use alloc::vec::Vec;

use super::codec::{Reader, put};
use crate::kind::Kind;
use crate::time::Span;

/// The name that distinguishes a limit from the others of its key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Name {
    /// Limiter and mode.
    pub kind: Kind,
    pub length: Length,
}

/// The length of time in a limit's name: period, window or interval; zero for leases. And whether the limit is a shadow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Length(u64);

/// The bit of a shadow. No length of time has it.
const SHADOW: u64 = 1 << 63;

impl Length {
    /// No length of time: for leases, and for states that are no limits.
    pub const NONE: Length = Length(0);

    /// The length of a limit that is no shadow.
    #[inline(always)]
    pub fn of(span: Span) -> Length {
        Length(span.as_micros())
    }

    #[inline(always)]
    pub fn span(self) -> Span {
        Span::from_micros(self.0 & !SHADOW)
    }

    /// The same length, of a shadow.
    #[must_use]
    pub fn in_shadow(self) -> Length {
        Length(self.0 | SHADOW)
    }

    #[inline(always)]
    pub fn is_shadow(self) -> bool {
        self.0 >= SHADOW
    }

    /// As a word of an encoding.
    #[inline(always)]
    pub fn to_word(self) -> u64 {
        self.0
    }

    /// Reads the word; `None` if the length of time is over a hundred years, which is none of this version.
    pub fn decode(reader: &mut Reader<'_>) -> Option<Length> {
        let length = Length(reader.word()?);
        // No length of time has the bits above that of a century, so they are flags.
        if length.span() > Span::CENTURY { reader.newer() } else { Some(length) }
    }
}

impl Name {
    pub(super) fn encode(self, out: &mut Vec<u8>) {
        out.push(self.kind as u8);
        put(out, self.length.to_word());
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Option<Name> {
        let name = Name { kind: Kind::decode(reader)?, length: Length::decode(reader)? };
        let stored = name.kind.is_limit() || name.kind.is_beside_limits();
        (stored && name.is_canonical()).then_some(name)
    }

    /// The name that a limiter's own command finds among those of a key: this one, else the only one of its kind that is no
    /// shadow.
    pub(crate) fn find_among(self, names: impl Iterator<Item = Name> + Clone) -> Option<Name> {
        if names.clone().any(|name| name == self) {
            return Some(self);
        }
        let mut same = names.filter(|other| other.kind == self.kind && !other.length.is_shadow());
        same.next().filter(|_| same.next().is_none())
    }

    /// Returns whether a call can make this name: leases, and states that are no limits, have no length of time. Only
    /// a limit can be a shadow.
    pub fn is_canonical(self) -> bool {
        let timeless = self.kind == Kind::Leases || !self.kind.is_limit();
        (self.length.span() == Span::ZERO) == timeless && (self.kind.is_limit() || !self.length.is_shadow())
    }
}
