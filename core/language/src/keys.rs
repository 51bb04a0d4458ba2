//! Which arguments of a command are keys, and what it does with them.

/// The arguments that are keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    None,
    /// The first argument.
    First(KeyUse),
    /// The first argument is the number of keys; the keys follow it.
    Counted(KeyUse),
    /// The first argument, and those behind the word `KEYS`.
    FirstAndBehind(KeyUse),
    /// Those of a call whose words are the arguments.
    OfInner(KeyUse),
    /// The first argument and every second one after it. Each key is overwritten.
    Pairs,
}

impl Keys {
    /// The places of the first and the last key and the step between keys, as `COMMAND INFO` has them; zeros if the keys are
    /// not at fixed places. -1 is the last argument.
    pub fn places(self) -> [i32; 3] {
        match self {
            Keys::First(_) | Keys::FirstAndBehind(_) => [1, 1, 1],
            Keys::Pairs => [1, -1, 2],
            Keys::None | Keys::Counted(_) | Keys::OfInner(_) => [0; 3],
        }
    }
}

/// What a command does with a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    Read,
    /// Reads and changes it.
    Update,
    /// May delete it.
    Delete,
    /// Adds to it.
    Insert,
}
