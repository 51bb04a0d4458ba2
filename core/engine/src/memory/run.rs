//! How calls run on a node in memory, and how callers wait there.

use std::fmt::Write;
use std::mem::take;

use ratelimit_core::Time;
use ratelimit_core::line::Caller;
use ratelimit_language::{Error, docs};
use ratelimit_value::Value;

use super::call::Call;
use super::server::own;
use super::state::{Effect, Memory, Role, Waiter};
use super::table::{Entry, find};
use crate::command::{Apply, Command, Policy, told};
use crate::node::Node;
use crate::policies;
use crate::reply::Reply;
use crate::waiting::{Clients, Turn, Wait, WaitedKey, try_callers};

/// What came of a call.
pub enum Called {
    Replied(Reply),
    /// The caller waits. [`Memory::ring`] returns its reply.
    Waits(Caller),
}

impl Memory {
    /// Runs a command as a server does. Its errors are replies.
    pub fn call(&self, words: &[&[u8]]) -> Called {
        let Some((name, arguments)) = words.split_first() else {
            return Called::Replied(Reply::Error(unknown(&[])));
        };
        if let Some(reply) = own(self, name, arguments) {
            return Called::Replied(reply.unwrap_or_else(Reply::Error));
        }
        let Some(command) = find(name) else {
            return Called::Replied(Reply::Error(unknown(words)));
        };
        // The server checks the number of words before it runs a command.
        if let Err(error) = command.check_arity(words) {
            return Called::Replied(Reply::Error(error));
        }
        match self.run(command, words, None) {
            Reply::Wait(wait) => Called::Waits(self.enter(words, *wait)),
            reply => Called::Replied(reply),
        }
    }

    fn run(&self, command: &Entry, words: &[&[u8]], again: Option<(Caller, Turn)>) -> Reply {
        let call = Call::new(self, words, again);
        (command.run)(&call).unwrap_or_else(|error| {
            self.node.counts.errors.add_one();
            Reply::Error(told(&call, &command.documentation, error))
        })
    }

    /// Runs a command of a replay in a database. Nothing is sent to copies.
    pub(crate) fn run_command<C: Command>(&self, database: i32, words: &[&[u8]]) -> Result<Reply, Error> {
        self.database.set(database);
        let reply = C::run(&Call::new(self, words, None));
        self.effects.borrow_mut().clear();
        reply
    }

    /// Tries the callers that are due, once. Returns those whose wait has ended since the last time, with their replies.
    pub fn ring(&self) -> Vec<(Caller, Reply)> {
        try_callers(self);
        take(&mut self.ended.borrow_mut())
    }

    /// When the alarm is to ring next; `None` if no one waits.
    pub fn next_ring(&self) -> Option<Time> {
        let (tries, deadline) = self.node.waiting.next();
        tries.filter(|_| self.may_write()).into_iter().chain(deadline).min()
    }

    /// Applies an effect of another node, to keys that have expired as well.
    pub fn apply(&self, effect: &Effect) -> Result<(), Error> {
        self.is_obeying.set(true);
        let applied = self.obey(effect);
        self.is_obeying.set(false);
        applied
    }

    fn obey(&self, effect: &Effect) -> Result<(), Error> {
        match effect {
            Effect::Gone(key) => _ = self.delete(key),
            Effect::Server { database, words } => {
                let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                if let Some((name, arguments)) = words.split_first() {
                    self.in_database(*database, || own(self, name, arguments)).transpose()?;
                }
            }
            Effect::Policies(policies::Effect { word, argument }) => {
                let words = [docs::POLICY.name.as_bytes(), b"APPLY", word.as_bytes(), argument];
                Policy::run(&Call::of_primary(self, &words))?;
            }
            Effect::Apply(payloads) => {
                let mut words: Vec<&[u8]> = vec![docs::APPLY.name.as_bytes()];
                words.extend(payloads.iter().flat_map(|(key, payload)| [&*key.name, payload]));
                let database = payloads.first().map_or(0, |(key, _)| key.database);
                self.in_database(database, || Apply::run(&Call::of_primary(self, &words)))?;
            }
        }
        Ok(())
    }

    /// Runs `body` with this database selected.
    fn in_database<T>(&self, database: i32, body: impl FnOnce() -> T) -> T {
        let before = self.database.replace(database);
        let result = body();
        self.database.set(before);
        result
    }

    /// A caller begins to wait.
    fn enter(&self, words: &[&[u8]], wait: Wait) -> Caller {
        let now = self.steady.get();
        let caller = self.node.waiting.with(|state| state.lines.enter(now, now.plus(wait.left), wait.stands));
        let words = words.iter().map(|word| word.to_vec()).collect();
        self.waiters.borrow_mut().insert(caller, Waiter { words, database: self.database.get() });
        caller
    }

    /// The client of a caller hangs up.
    pub fn hang_up(&self, caller: Caller) {
        self.node.waiting.with(|state| state.lines.leave(caller));
        self.waiters.borrow_mut().remove(&caller);
    }
}

impl Clients for Memory {
    fn node(&self) -> &Node {
        &self.node
    }

    fn clock(&self) -> Time {
        self.clock.get()
    }

    fn now(&self) -> Time {
        self.steady.get()
    }

    fn may_write(&self) -> bool {
        self.role.get() == Role::Primary && !self.is_paused.get()
    }

    fn run(&self, caller: Caller, turn: Turn) -> Option<Reply> {
        let waiter = self.waiters.borrow().get(&caller).cloned();
        let Some(Waiter { words, database }) = waiter else {
            self.node.waiting.with(|state| state.lines.leave(caller));
            return None;
        };
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let command = find(words.first()?)?;
        Some(self.in_database(database, || Memory::run(self, command, &words, Some((caller, turn)))))
    }

    fn end(&self, caller: Caller, reply: Reply) {
        self.waiters.borrow_mut().remove(&caller);
        self.ended.borrow_mut().push((caller, reply));
    }

    fn value_of<T>(&self, key: &WaitedKey, look: impl FnOnce(Option<&mut Value>) -> T) -> T {
        let mut keys = self.keys.borrow_mut();
        look(keys.get_mut::<WaitedKey>(key).and_then(|stored| stored.value.as_mut()))
    }
}

/// A server's error for a command that it does not have, with the first words after it.
fn unknown(words: &[&[u8]]) -> Error {
    const MOST: usize = 128;
    let first =
        |word: &[u8], most: usize| String::from_utf8_lossy(word.get(..most).unwrap_or(word)).into_owned();
    let (name, words) = words.split_first().map_or((&[][..], &[][..]), |(name, words)| (*name, words));
    let mut shown = String::new();
    for word in words {
        let most = MOST.saturating_sub(shown.len());
        if most > 0 {
            _ = write!(shown, "'{}' ", first(word, most));
        }
    }
    let name = first(name, MOST);
    Error::invalid(format_args!("unknown command '{name}', with args beginning with: {shown}"))
}
