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
