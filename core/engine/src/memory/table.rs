//! The commands of a node in memory, by their names.

use std::sync::LazyLock;

use ratelimit_language::Error;
use ratelimit_language::help::Documentation;

use super::call::Call;
use crate::command::Command;
use crate::reply::Reply;

pub(super) struct Entry {
    pub(super) documentation: Documentation,
    /// The least number of words: see [`Documentation::arity`], which parses the syntax.
    least: usize,
    pub(super) run: fn(&Call<'_>) -> Result<Reply, Error>,
}

impl Entry {
    fn of<C: Command>() -> Entry {
        let least = C::DOCUMENTATION.arity().unsigned_abs() as usize;
        Entry { documentation: C::DOCUMENTATION, least, run: run::<C> }
    }
}

impl Entry {
    /// Checks the number of words of a call, as a server does before it runs a command.
    pub(super) fn check_arity(&self, words: &[&[u8]]) -> Result<(), Error> {
        if words.len() >= self.least {
            return Ok(());
        }
        Err(Error::Arity.of_command(self.documentation.prefix, self.documentation.name))
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
