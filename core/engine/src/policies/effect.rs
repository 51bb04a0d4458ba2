//! How policies reach copies, the AOF and the RDB.
//!
//! ```text
//! RL.POLICY APPLY SET line        stores a policy, whatever its version
//! RL.POLICY APPLY DEL name        deletes one
//! RL.POLICY APPLY ALL lines       replaces the whole table
//! RL.POLICY APPLY FIRST lines     begins such a table; NEXT has more of it, and LAST the rest
//! ```
//!
//! A line is that of the file: `name VERSION version words`. The RDB has all lines, behind a byte for their form.
//!
//! A large table is sent in pieces, in the order of the names, and other changes may come between them. So a change also changes
//! what a copy has of the new table, and a piece has what the primary has by then. A copy that has missed the first piece ignores
//! the others: it gets a table of its own.

use std::ops::Bound::{Excluded, Unbounded};

use ratelimit_language::Error;

use super::counted::of_line;
use super::{CountedPolicy, Policies};
use crate::node::Node;

/// The form of a table in an RDB. A node reads its own and older ones.
const FORM: u8 = 1;

/// The most bytes of a piece of a table.
const PIECE: usize = 64 << 10;

/// A change of the policies, as the words behind `RL.POLICY APPLY`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effect {
    pub word: &'static str,
    pub argument: Vec<u8>,
}

impl Effect {
    const WORDS: [&str; 6] = ["SET", "DEL", "ALL", "FIRST", "NEXT", "LAST"];

    fn new(word: &'static str, argument: impl Into<Vec<u8>>) -> Effect {
        Effect { word, argument: argument.into() }
    }

    /// The policy of this name was deleted.
    pub fn deletion(name: &[u8]) -> Effect {
        Effect::new("DEL", name)
    }

    /// The effect of these words; `None` if this node does not know it.
    pub fn of(word: &[u8], argument: &[u8]) -> Option<Effect> {
        let word = Effect::WORDS.into_iter().find(|known| known.as_bytes().eq_ignore_ascii_case(word))?;
        Some(Effect::new(word, argument))
    }

    /// Whether more of the table follows.
    pub fn goes_on(&self) -> bool {
        matches!(self.word, "FIRST" | "NEXT")
    }

    /// Applies the effect to a node.
    ///
    /// # Errors
    ///
    /// [`Error::Payload`] if it is malformed, or an error if the policies would be too many or too long.
    pub fn apply(&self, node: &Node) -> Result<(), Error> {
        let (mut policies, mut next) = (node.policies(), node.next_policies());
        match self.word {
            "SET" => {
                policies.put_lines(&self.argument, None)?;
                next.as_mut().map_or(Ok(()), |next| next.put_lines(&self.argument, Some(&policies)))
            }
            "DEL" => {
                policies.delete(&self.argument);
                next.as_mut().map(|next| next.delete(&self.argument));
                Ok(())
            }
            word => {
                let table = if matches!(word, "ALL" | "FIRST") { Some(Policies::NONE) } else { next.take() };
                let Some(mut table) = table else { return Ok(()) };
                table.put_lines(&self.argument, Some(&policies))?;
                if self.goes_on() {
                    *next = Some(table);
                } else {
                    *policies = table;
                }
                Ok(())
            }
        }
    }
}

impl Policies {
    /// The effect of the last change of a policy; `None` if there is no such policy.
    pub fn effect(&self, name: &str) -> Option<Effect> {
        Some(Effect::new("SET", self.by_name.get(name)?.line(name)))
    }

    /// The effect by which a copy gets the policies behind the name `after`, as far as they fit into a piece of the table, and the
    /// last name of the piece.
    pub fn piece(&self, after: Option<&str>) -> (Effect, Option<Box<str>>) {
        let mut lines = String::new();
        let mut last = None;
        let begin = after.map_or(Unbounded, Excluded);
        let mut rest = self.by_name.range::<str, _>((begin, Unbounded));
        for (name, stored) in rest.by_ref() {
            let line = stored.line(name);
            if lines.len() + line.len() > PIECE {
                let word = if after.is_none() { "FIRST" } else { "NEXT" };
                return (Effect::new(word, lines), last);
            }
            lines.push_str(&line);
            last = Some(name.clone());
        }
        (Effect::new(if after.is_none() { "ALL" } else { "LAST" }, lines), last)
    }

    /// The effects by which a copy gets the whole table.
    pub fn pieces(&self) -> Vec<Effect> {
        let mut last = None;
        let mut pieces = Vec::new();
        loop {
            let (piece, name) = self.piece(last.as_deref());
            last = name;
            let goes_on = piece.goes_on();
            pieces.push(piece);
            if !goes_on {
                return pieces;
            }
        }
    }

    /// Stores the policies of lines as another node has written them, whatever their versions, and whether this node could parse
    /// them or not. Counts go on from the `old` table.
    fn put_lines(&mut self, lines: &[u8], old: Option<&Policies>) -> Result<(), Error> {
        let lines = str::from_utf8(lines).map_err(|_| Error::Payload)?;
        lines.lines().try_for_each(|line| {
            let (name, version, policy) = of_line(line).ok_or(Error::Payload)?;
            let stored = old.unwrap_or(self).get(name.as_bytes());
            self.insert(name, CountedPolicy::new(version, policy, stored.as_deref()))
        })
    }

    /// The bytes of the table in an RDB.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![FORM];
        self.lines().for_each(|line| bytes.extend(line.bytes()));
        bytes
    }

    /// Reads the table of an RDB. The counts of policies that are among the `old` ones continue.
    ///
    /// # Errors
    ///
    /// [`Error::Payload`] if the bytes are malformed, or of a newer form.
    pub fn decode(bytes: &[u8], old: &Policies) -> Result<Policies, Error> {
        let mut policies = Policies::NONE;
        match bytes.split_first() {
            Some((&FORM, lines)) => policies.put_lines(lines, Some(old)).map(|()| policies),
            _ => Err(Error::Payload),
        }
    }
}
