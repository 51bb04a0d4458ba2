//! The commands of a node in memory, by their names.

use std::sync::LazyLock;

use ratelimit_language::Error;
use ratelimit_language::help::Documentation;

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

fn run<C: Command>(call: &Call<'_>) -> Result<Reply, Error> {
    C::run(call)
}

static TABLE: LazyLock<Vec<Entry>> = LazyLock::new(|| crate::commands!(Entry).into());

/// The command of this name, in upper or lower case.
pub(super) fn find(name: &[u8]) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| entry.documentation.is_named(name))
}
