//! The commands of a node in memory, by their names.

use std::sync::LazyLock;

use ratelimit_language::Error;
use ratelimit_language::help::{Documentation, Subcommand};

use super::call::Call;
use crate::command::Command;
use crate::reply::Reply;

pub(super) struct Entry {
    pub(super) documentation: Documentation,
    /// As [`Documentation::arity`], which parses the syntax.
    pub(super) arity: i32,
    pub(super) run: fn(&Call<'_>) -> Result<Reply, Error>,
}

impl Entry {
    fn of<C: Command>() -> Entry {
        Entry { documentation: C::DOCUMENTATION, arity: C::DOCUMENTATION.arity(), run: run::<C> }
    }
}

impl Entry {
    /// Checks the number of words of a call, as a server does before it runs a command or a subcommand.
    pub(super) fn check_arity(&self, words: &[&[u8]]) -> Result<(), Error> {
        let Documentation { prefix, name, .. } = self.documentation;
        let named = |sub: &Subcommand| {
            words.get(1).is_some_and(|word| word.eq_ignore_ascii_case(sub.name.as_bytes()))
        };
        let sub = self.documentation.subcommands().find(named);
        let arity = sub.as_ref().map_or(self.arity, Subcommand::arity);
        let count = i32::try_from(words.len()).unwrap_or(i32::MAX);
        if if arity < 0 { count >= -arity } else { count == arity } {
            return Ok(());
        }
        Err(match sub {
            Some(sub) => Error::Arity.of_command(prefix, &format!("{name}|{}", sub.name)),
            None => Error::Arity.of_command(prefix, name),
        })
    }
}

fn run<C: Command>(call: &Call<'_>) -> Result<Reply, Error> {
    C::run(call)
}

static TABLE: LazyLock<Vec<Entry>> = LazyLock::new(|| crate::commands!(Entry).into());

/// The command of this name, in upper or lower case.
pub(super) fn find(name: &[u8]) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| entry.documentation.is_named(name))
}
