//! What a running command notes in the lines, and asks of them: whose turn it is.

use ratelimit_core::line::{Claim, Comer, Cost};
use ratelimit_core::state::{Leases, hash_of_id};
use ratelimit_core::{Length, Name, Span, Time};

use super::State;
use super::wait::{OfDatabase, WaitedKey};
use crate::host::Host;

/// A tenant that waits for the limits of a key, or is hungry for one of them.
pub struct WaitingTenant {
    pub name: Vec<u8>,
    pub weight: u32,
    /// The number of its callers that wait.
    pub callers: usize,
}

pub trait Turns: Host {
    /// Whether others wait for a limit of the key at this place, or are hungry for it.
    fn has_line(&self, key: usize, name: Name) -> bool {
        self.at_line(key, |state, key| state.lines.has_line::<dyn OfDatabase>(key, name)).unwrap_or(false)
    }

    /// Lets the line read what a table of leases holds at an instant.
    fn follow(&self, key: usize, name: Name, leases: Option<(&Leases, Time)>) {
        if let Some((leases, at)) = leases {
            self.change_line(key, |state, key| {
                state.lines.follow::<dyn OfDatabase>(key, name, Some(leases), at, self.now());
            });
        }
    }

    /// If others come before the call, returns the time until the first of them is tried, or until the hunger ends for which room
    /// is kept. `can_wait` is whether the call has a `BLOCK`.
    fn ahead(&self, key: usize, name: Name, claim: &Claim<&[u8]>, can_wait: bool) -> Option<Span> {
        let comer = match self.again() {
            Some((caller, _)) => Comer::Waits(caller),
            None if can_wait => Comer::Arrives,
            None => Comer::Passes,
        };
        let ahead = self
            .at_line(key, |state, key| {
                state.lines.ahead::<dyn OfDatabase>(key, name, claim, comer, self.now())
            })
            .flatten();
        // A caller that leaves without being tried is refused, even by a limit that has room by now.
        ahead.or(self.only_looks().then_some(Span::ZERO))
    }

    /// The number of callers and tenants in the line of a limit that come before a call that would wait.
    fn before(&self, key: usize, name: Name, claim: &Claim<&[u8]>) -> usize {
        self.at_line(key, |state, key| state.lines.before::<dyn OfDatabase>(key, name, claim)).unwrap_or(0)
    }

    /// The number of callers that wait for a limit of the key at this place.
    fn waiting_for(&self, key: usize, name: Name) -> usize {
        self.at_line(key, |state, key| state.lines.callers_of::<dyn OfDatabase>(key, name)).unwrap_or(0)
    }

    /// The number of callers of a tenant that wait for limits of the key at this place.
    fn waiting_of(&self, key: usize, tenant: &[u8]) -> usize {
        self.at_line(key, |state, key| state.lines.callers_of_tenant::<dyn OfDatabase>(key, tenant))
            .unwrap_or(0)
    }

    /// The number of tenants that wait for limits of the key at this place or are hungry for one, and how many of them hold
    /// something.
    fn count_tenants(&self, key: usize) -> (usize, usize) {
        self.at_line(key, |state, key| state.lines.count_tenants::<dyn OfDatabase>(key)).unwrap_or_default()
    }

    /// Tenants that wait for limits of the key at this place, or are hungry for one: of each limit at most this many, in the order of
    /// their names.
    fn tenants(&self, key: usize, most: usize) -> Vec<WaitingTenant> {
        let tenants = |state: &State, key: &dyn OfDatabase| {
            let tenants = state.lines.tenants::<dyn OfDatabase>(key, most);
            tenants
                .map(|(_, name, weight, callers)| WaitingTenant { name: name.to_vec(), weight, callers })
                .collect()
        };
        self.at_line(key, tenants).unwrap_or_default()
    }

    /// The call is admitted.
    fn grant(&self, key: usize, name: Name, claim: &Claim<&[u8]>, cost: Cost) {
        self.change_line(key, |state, key| {
            state.lines.grant::<dyn OfDatabase>(key, name, claim, cost, self.now());
        });
    }

    /// A lease of this id was renewed, or released whether it was held or not: who was refused under it is not hungry any more.
    #[cold]
    fn serve(&self, key: usize, id: &[u8]) {
        let (name, id) = (Name::of::<Leases>(Length::NONE), hash_of_id(id));
        self.change_line(key, |state, key| state.lines.serve::<dyn OfDatabase>(key, name, id, self.now()));
    }

    /// A table of leases alone refused the call, which does not wait: its tenant is hungry. Not without tenants, and not if the cost
    /// never fits.
    #[cold]
    fn starve(&self, key: usize, name: Name, claim: &Claim<&[u8]>, is_shared: bool) {
        let (hunger, most) = (self.node().settings.hunger(), self.node().settings.most_hungry());
        if hunger == Span::ZERO || claim.pool.is_none_or(|pool| claim.cost > pool.most) {
            return;
        }
        let Ok(word) = self.word(key) else { return };
        self.change_line(key, |state, key| {
            if is_shared || !claim.tenant.is_empty() || state.lines.is_fair::<dyn OfDatabase>(key, name) {
                let key = WaitedKey { database: key.parts().0, name: word.into() };
                state.lines.starve(&key, name, &claim.into_owned(), self.now(), hunger, most);
            }
        });
    }

    /// Another limit refused the call, so its tenant is not hungry for this one.
    fn sate(&self, key: usize, name: Name, tenant: &[u8]) {
        self.change_line(key, |state, key| state.lines.sate::<dyn OfDatabase>(key, name, tenant));
    }

    /// A call of the tenant used more or less than it was granted.
    fn correct(&self, key: usize, name: Name, tenant: &[u8], granted: u64, used: u64) {
        self.change_line(key, |state, key| {
            state.lines.correct::<dyn OfDatabase>(key, name, tenant, granted, used);
        });
    }

    /// Reads the lines of the key at this place.
    fn at_line<T>(&self, key: usize, read: impl FnOnce(&State, &dyn OfDatabase) -> T) -> Option<T> {
        let key: (i32, &[u8]) = (self.database(), self.word(key).ok()?);
        Some(self.node().waiting.with(|state| read(state, &key)))
    }

    /// Changes a line of the key at this place, which may become due.
    fn change_line(&self, key: usize, change: impl FnOnce(&mut State, &dyn OfDatabase)) {
        let Ok(word) = self.word(key) else { return };
        let key: (i32, &[u8]) = (self.database(), word);
        self.node().waiting.with(|state| change(state, &key));
        self.set_alarm();
    }
}

impl<H: Host> Turns for H {}
