//! The kinds of state that keys store: a table of their numbers, types and titles.

use crate::state::codec::Reader;

/// Hands the table to the macro `$define`, after the other tokens.
macro_rules! kinds {
    ($define:ident $($other:tt)*) => {
        $define! { $($other)*
            // The numbers are part of the encoding: never change or reuse one.
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
    };
}

/// Defines [`Kind`] from the table.
macro_rules! define_kind {
    (
        limits { $($number:literal $State:ident of $Limiter:ident $(<$life:lifetime>)?: $title:expr;)* }
        beside_limits { $($beside_number:literal $Beside:ident: $beside_title:expr;)* }
        others { $($other_number:literal $Other:ident: $other_title:expr;)* }
    ) => {
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

            /// Reads the byte of a kind. An unknown one is of a newer version.
            pub fn decode(reader: &mut Reader<'_>) -> Option<Kind> {
                let byte = reader.byte()?;
                Kind::from_byte(byte).or_else(|| reader.newer())
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
    };
}

kinds!(define_kind);
