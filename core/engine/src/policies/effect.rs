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

use ratelimit_language::{Error, Policy};

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
    /// [`Error::Payload`] if it is malformed.
    pub fn apply(&self, node: &Node) -> Result<(), Error> {
        let (mut policies, mut next) = (node.policies(), node.next_policies());
        match self.word {
            "SET" => {
                let [line] = &read_lines(&self.argument)?[..] else { return Err(Error::Payload) };
                policies.put(line, None);
                if let Some(next) = next.as_mut() {
                    next.put(line, Some(&policies));
                }
                Ok(())
            }
            "DEL" => {
                policies.delete(&self.argument);
                next.as_mut().map(|next| next.delete(&self.argument));
                Ok(())
            }
            word => {
                let begun = next.take();
                let table = if matches!(word, "ALL" | "FIRST") { Some(Policies::NONE) } else { begun };
                let Some(mut table) = table else { return Ok(()) };
                table.put_all(&self.argument, &policies)?;
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
        for (name, stored) in self.by_name.range::<str, _>((begin, Unbounded)) {
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
    /// them or not. Counts go on from the `old` table. If a line is malformed, nothing is stored.
    fn put_all(&mut self, lines: &[u8], old: &Policies) -> Result<(), Error> {
        for line in read_lines(lines)? {
            self.put(&line, Some(old));
        }
        Ok(())
    }

    fn put(&mut self, (name, version, words): &Line<'_>, old: Option<&Policies>) {
        let stored = old.unwrap_or(self).get(name.as_bytes());
        let same = stored.as_ref().filter(|old| old.version == *version && old.policy.words() == *words);
        let policy = same
            .cloned()
            .unwrap_or_else(|| CountedPolicy::new(*version, Policy::of_words(words), stored.as_deref()));
        self.insert(name, policy);
    }
}

/// A line that a node has written: name, version and words.
type Line<'a> = (&'a str, u64, &'a str);

fn read_lines(lines: &[u8]) -> Result<Vec<Line<'_>>, Error> {
    let lines = str::from_utf8(lines).map_err(|_| Error::Payload)?;
    lines.lines().map(|line| of_line(line).ok_or(Error::Payload)).collect()
}

/// The bytes of the policies in an RDB: all lines and, if another node is sending a table, a zero and the lines that it has sent.
pub fn encode(node: &Node) -> Vec<u8> {
    let mut bytes = vec![FORM];
    node.policies().lines().for_each(|line| bytes.extend(line.bytes()));
    if let Some(next) = &*node.next_policies() {
        bytes.push(0);
        next.lines().for_each(|line| bytes.extend(line.bytes()));
    }
    bytes
}

/// The policies of an RDB, and the table that another node was sending when it was saved.
pub type Decoded = (Policies, Option<Policies>);

/// Reads the policies of an RDB. The counts of those that are among the `old` ones continue.
///
/// # Errors
///
/// [`Error::Payload`] if the bytes are malformed, or of a newer form.
pub fn decode(bytes: &[u8], old: &Policies) -> Result<Decoded, Error> {
    let Some((&FORM, bytes)) = bytes.split_first() else { return Err(Error::Payload) };
    let mut tables = bytes.splitn(2, |byte| *byte == 0).map(|lines| {
        let mut table = Policies::NONE;
        table.put_all(lines, old).map(|()| table)
    });
    Ok((tables.next().unwrap_or(Ok(Policies::NONE))?, tables.next().transpose()?))
}

/// The effect by which the AOF gets what another node has sent of a table; `None` if none is being sent.
pub fn begun(node: &Node) -> Option<Effect> {
    Some(Effect::new("FIRST", node.next_policies().as_ref()?.lines().collect::<String>()))
}
