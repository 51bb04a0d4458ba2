//! How a running command waits. `turns.rs` has what it asks of the lines.

use ratelimit_core::line::Stand;
use ratelimit_core::{Period, Span};

use super::wait::{OfDatabase, Wait, WaitedKey, Wanted};
use super::{State, Turn};
use crate::host::Host;
use crate::node::Node;

pub trait Waits: Host {
    /// Returns how long the call can wait: at most `block`, and at most as long as the setting allows. `None` if it cannot
    /// wait.
    fn time_to_wait(&self, block: Option<Period>) -> Option<Span> {
        let block = block?;
        match self.again() {
            None => self.can_wait().then(|| self.longest_wait(block)),
            Some((caller, Turn::IsTried)) => {
                self.node().waiting.with(|state| state.lines.time_left(caller, self.now()))
            }
            Some(_) => None,
        }
    }

    /// Returns how long a client's call with this `BLOCK` waits at most, here or on the primary.
    fn longest_wait(&self, block: Period) -> Span {
        block.span().min(self.node().settings.longest_block())
    }

    /// The wait for these limits, for at most `left`. `keys` are the places of all keys of the call. `None` if the settings
    /// allow no further waiting caller.
    fn wait<'w>(
        &self,
        left: Span,
        keys: Vec<usize>,
        wanted: impl Iterator<Item = Wanted<'w>>,
    ) -> Option<Box<Wait>> {
        let database = self.database();
        let stands = wanted.map(|wanted| {
            let name = self.word(wanted.key).ok()?.into();
            let key = WaitedKey { database, name };
            Some(Stand {
                key,
                name: wanted.name,
                claim: wanted.claim.into_owned(),
                retry: Some(wanted.retry),
            })
        });
        let stands: Vec<_> = stands.collect::<Option<_>>()?;
        let waited = || stands.iter().map(|stand| &*stand.key.name);
        let is_full = self.again().is_none() && self.full(waited()).is_some();
        (!is_full).then(|| Box::new(Wait { left, stands, keys }))
    }

    /// The setting that allows no further caller to wait for one of these keys.
    fn full<'k>(&self, mut keys: impl Iterator<Item = &'k [u8]>) -> Option<&'static str> {
        let Node { settings, waiting, .. } = self.node();
        let (database, most) = (self.database(), settings.most_waiters_of_key());
        waiting.with(|State { lines, .. }| {
            let is_full = |name: &[u8]| lines.at_key::<dyn OfDatabase>(&(database, name)) >= most;
            if lines.len() >= settings.most_waiters() {
                Some("max-waiters")
            } else {
                keys.any(is_full).then_some("max-waiters-per-key")
            }
        })
    }

    /// The number of callers that wait for limits of the key at this place.
    fn waiting(&self, key: usize) -> usize {
        let Ok(name) = self.word(key) else { return 0 };
        let key: (i32, &[u8]) = (self.database(), name);
        self.node().waiting.with(|state| state.lines.at_key::<dyn OfDatabase>(&key))
    }
}

impl<H: Host> Waits for H {}
