//! Any limiter, and any state that a set of limits stores, made from the table of `kind.rs`.
//!
//! The macros `with_limiter!` and `with_kept!` run code for the value inside. `with_state!` and `with_limit_state!` run it for
//! the type of a kind.

use alloc::boxed::Box;
use core::any::Any;

use crate::kind::Kind;
use crate::state::{LimitState, State, Tenant};

/// A limiter for a caller, if its type has the lifetime of an id.
macro_rules! for_caller {
    ($limiter:ident, $id:ident, $tenant:ident) => {
        $limiter
    };
    ($limiter:ident, $id:ident, $tenant:ident, $life:lifetime) => {
        $limiter.for_caller($id, $tenant)
    };
}

/// Defines [`AnyLimiter`], [`AnyState`], and macros that run the same code for each type.
macro_rules! define_any {
    (
        $dollar:tt
        limits { $($number:literal $State:ident of $Limiter:ident $(<$life:lifetime>)?: $title:expr;)* }
        beside_limits { $($beside_number:literal $Beside:ident: $beside_title:expr;)* }
        others { $($other_number:literal $Other:ident: $other_title:expr;)* }
    ) => {
        /// A limiter of any kind. Its tag is a byte of its own, so that a command knows at compile time which limiter it has
        /// parsed, and holds the code of that one only.
        #[derive(Clone, Copy, Debug)]
        #[repr(u8)]
        pub enum AnyLimiter<'a> {
            $($Limiter($crate::types::$Limiter $(<$life>)?),)*
        }

        impl AnyLimiter<'_> {
            /// The same limiter with this id and this tenant of a lease, if it takes leases.
            #[must_use]
            pub fn for_caller<'a>(self, id: &'a [u8], tenant: Option<Tenant<'a>>) -> AnyLimiter<'a> {
                match self {
                    $(
                        AnyLimiter::$Limiter(limiter) => {
                            AnyLimiter::$Limiter(for_caller!(limiter, id, tenant $(, $life)?))
                        }
                    )*
                }
            }
        }

        /// A state that a set of limits stores, of any kind.
        #[derive(Clone, Debug)]
        pub enum AnyState {
            $($State(Box<$crate::types::$State>),)*
            $($Beside(Box<$crate::types::$Beside>),)*
        }

        impl AnyState {
            /// The blank state of this kind; `None` if a set of limits does not store such a state.
            pub fn blank(kind: Kind) -> Option<AnyState> {
                match kind {
                    $(Kind::$State => Some(AnyState::$State(Box::new(State::blank()))),)*
                    $(Kind::$Beside => Some(AnyState::$Beside(Box::new(State::blank()))),)*
                    $(Kind::$Other)|* => None,
                }
            }
        }

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

kinds!(define_any $);

impl AnyState {
    /// `None` never happens: a set of limits stores every state of a limit.
    pub fn of<S: LimitState>(state: S) -> Option<AnyState> {
        let mut any = AnyState::blank(S::KIND)?;
        *any.get_mut()? = state;
        Some(any)
    }

    /// The state, if it is of this type.
    #[inline(always)]
    pub fn get<S: LimitState>(&self) -> Option<&S> {
        with_kept!(self, state => <dyn Any>::downcast_ref(state.as_ref()))
    }

    /// The state, if it is of this type.
    #[inline(always)]
    pub fn get_mut<S: LimitState>(&mut self) -> Option<&mut S> {
        with_kept!(self, state => <dyn Any>::downcast_mut(state.as_mut()))
    }
}
