//! The table of all kinds of state, and of their limiters.

use alloc::boxed::Box;

#[allow(clippy::wildcard_imports, reason = "the table below names all of them")]
use types::*;

/// Every limiter and every state by its name.
pub mod types {
    pub use crate::limiter::*;
    pub use crate::state::*;
}

/// A state that a set of limits can store, as an [`AnyState`].
pub trait Kept: Sized {
    /// The state, if `any` is of this type.
    fn of(any: &AnyState) -> Option<&Self>;
    /// The state, if `any` is of this type.
    fn of_mut(any: &mut AnyState) -> Option<&mut Self>;
    fn kept(self) -> AnyState;
}

/// Implements [`Kept`] for a state.
macro_rules! kept {
    ($State:ident) => {
        impl Kept for types::$State {
            fn of(any: &AnyState) -> Option<&Self> {
                if let AnyState::$State(state) = any { Some(state) } else { None }
            }

            fn of_mut(any: &mut AnyState) -> Option<&mut Self> {
                if let AnyState::$State(state) = any { Some(state) } else { None }
            }

            fn kept(self) -> AnyState {
                AnyState::$State(Box::new(self))
            }
        }
    };
}

/// A limiter with an id, if its type has the lifetime of one.
macro_rules! with_id {
    ($limiter:ident, $id:ident) => {
        $limiter
    };
    ($limiter:ident, $id:ident, $life:lifetime) => {
        $limiter.with_id($id)
    };
}

/// Defines from one table [`AnyLimiter`], [`Kind`], [`AnyState`], and macros that run the same code for each type.
macro_rules! kinds {
    (
        $dollar:tt
        limits { $($number:literal $State:ident of $Limiter:ident $(<$life:lifetime>)?: $title:expr;)* }
        beside_limits { $($beside_number:literal $Beside:ident: $beside_title:expr;)* }
        others { $($other_number:literal $Other:ident: $other_title:expr;)* }
    ) => {
        /// A limiter of any kind.
        #[derive(Clone, Copy, Debug)]
        pub enum AnyLimiter<'a> {
            $($Limiter($Limiter $(<$life>)?),)*
        }

        impl AnyLimiter<'_> {
            /// The same limiter with this id of a lease, if it takes leases.
            #[must_use]
            pub fn with_id(self, id: &[u8]) -> AnyLimiter<'_> {
                match self {
                    $(AnyLimiter::$Limiter(limiter) => AnyLimiter::$Limiter(with_id!(limiter, id $(, $life)?)),)*
                }
            }
        }

        /// The kind of state that a key holds.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Kind {
            $($State = $number,)*
            $($Beside = $beside_number,)*
            $($Other = $other_number,)*
        }

        impl Kind {
            pub const ALL: &'static [Kind] = &[$(Kind::$State,)* $(Kind::$Beside,)* $(Kind::$Other,)*];

            pub fn from_byte(byte: u8) -> Option<Kind> {
                match byte {
                    $($number => Some(Kind::$State),)*
                    $($beside_number => Some(Kind::$Beside),)*
                    $($other_number => Some(Kind::$Other),)*
                    _ => None,
                }
            }

            /// Whether it is the state of one limit. Such a limit can share a key with others.
            pub fn is_limit(self) -> bool {
                matches!(self, $(Kind::$State)|*)
            }

            /// Whether a set stores it beside its limits. It never has a key to itself.
            pub fn is_beside_limits(self) -> bool {
                matches!(self, $(Kind::$Beside)|*)
            }

            /// The limiter of the state, and the limiter's mode.
            pub fn title(self) -> (&'static str, &'static str) {
                match self {
                    $(Kind::$State => $title,)*
                    $(Kind::$Beside => $beside_title,)*
                    $(Kind::$Other => $other_title,)*
                }
            }
        }

        /// A state that a set of limits stores, of any kind.
        #[derive(Clone, Debug)]
        pub enum AnyState {
            $($State(Box<$crate::types::$State>),)*
            $($Beside(Box<$crate::types::$Beside>),)*
        }

        $(kept! { $State })*
        $(kept! { $Beside })*

        /// Runs `$body` with `$state` bound to the boxed state inside an [`AnyState`].
        #[macro_export]
        macro_rules! with_kept {
            ($dollar any:expr, $dollar state:ident => $dollar body:expr) => {
                match $dollar any {
                    $($crate::AnyState::$State($dollar state) => $dollar body,)*
                    $($crate::AnyState::$Beside($dollar state) => $dollar body,)*
                }
            };
        }

        /// Runs `$body` with `$limiter` bound to the limiter inside an [`AnyLimiter`].
        #[macro_export]
        macro_rules! with_limiter {
            ($dollar any:expr, $dollar limiter:ident => $dollar body:expr) => {
                match $dollar any {
                    $($crate::AnyLimiter::$Limiter($dollar limiter) => $dollar body,)*
                }
            };
        }

        /// Runs `$body` with `$Type` as an alias for the state of this [`Kind`].
        #[macro_export]
        macro_rules! with_state {
            ($dollar kind:expr, $dollar Type:ident => $dollar body:expr) => {
                match $dollar kind {
                    $($crate::Kind::$State => {
                        type $dollar Type = $crate::types::$State;
                        $dollar body
                    })*
                    $($crate::Kind::$Beside => {
                        type $dollar Type = $crate::types::$Beside;
                        $dollar body
                    })*
                    $($crate::Kind::$Other => {
                        type $dollar Type = $crate::types::$Other;
                        $dollar body
                    })*
                }
            };
        }

        /// Runs `$body` with `$Type` as an alias for the state of this [`Kind`]. If a set of limits does not store such a
        /// state, runs `$otherwise`.
        #[macro_export]
        macro_rules! with_limit_state {
            ($dollar kind:expr, $dollar Type:ident => $dollar body:expr, else $dollar otherwise:expr) => {
                match $dollar kind {
                    $($crate::Kind::$State => {
                        type $dollar Type = $crate::types::$State;
                        $dollar body
                    })*
                    $($crate::Kind::$Beside => {
                        type $dollar Type = $crate::types::$Beside;
                        $dollar body
                    })*
                    $($crate::Kind::$Other)|* => $dollar otherwise,
                }
            };
        }
    };
}

// The numbers are part of the encoding: never change or reuse one.
kinds! { $
    limits {
        1 Level of TokenBucket: ("TOKENBUCKET", "continuous");
        2 Batch of BatchBucket: ("TOKENBUCKET", "batch");
        3 Arrival of Gcra: ("GCRA", "plain");
        4 Counts of SlidingWindow: ("SLIDINGWINDOW", "weighted");
        5 Buckets of SlidingBuckets: ("SLIDINGWINDOW", "precision");
        6 Leases of Concurrent<'a>: ("CONCURRENT", "leases");
        7 Water of LeakyBucket: ("LEAKYBUCKET", "queue");
        8 Opened of FixedWindow: ("FIXEDWINDOW", "opened");
        9 Tally of AlignedWindow: ("FIXEDWINDOW", "aligned");
        10 Gate of Uniform: ("UNIFORM", "gate");
        12 BurstStore of Bursty: ("SMOOTH", "bursty");
        13 WarmStore of Warming: ("SMOOTH", "warming");
        14 Log of SlidingLog: ("SLIDINGLOG", "log");
        16 Page of Calendar: ("CALENDAR", "calendar");
        17 Strikes of Penalty: ("PENALTY", "strikes");
    }
    beside_limits {
        18 Holds: ("HOLDS", "holds");
    }
    others {
        11 Amount: ("SHED", "utilization");
        15 LimitSet: ("MULTI", "several");
        19 Cells: ("SKETCH", "cells");
    }
}
