//! Holding what a call with several limits charges, and settling it.
//!
//! - If the id is held in one of the keys, the call charges nothing.
//! - A limit that cannot be held is charged all the same, and the charge stands.
//! - A settlement finds what a limit charged by the limit's name, or else by its kind if no other is of that kind.

use alloc::vec::Vec;

use super::pair::Pair;
use super::{Joint, JointError, each};
use crate::hold::{self, Hold};
use crate::limiter::Limiter;
use crate::limits::Limits;
use crate::state::Charge;

impl Joint<'_, '_> {
    /// Whether a key holds the id already.
    pub fn is_held(&self, limits: &impl Limits, request: &Hold<'_>) -> bool {
        hold::held(limits, request.id, self.at).is_some()
    }

    /// Whether a key has room for what the call would hold in it.
    pub fn has_room(&self, key: usize, limits: &impl Limits, request: &Hold<'_>) -> bool {
        let charges = self.pairs.iter().filter(|pair| pair.key == key && pair.part.can_be_held()).count();
        charges == 0 || hold::has_room(limits, request, self.at, charges)
    }

    /// Holds what an admitted call has charged.
    ///
    /// # Errors
    ///
    /// [`JointError::Defect`] if the change cannot be applied.
    pub fn hold<K: Limits>(&self, keys: &mut [K], request: &Hold<'_>) -> Result<(), JointError> {
        for (key, limits) in keys.iter_mut().enumerate() {
            let pairs = || self.pairs.iter().filter(|pair| pair.key == key && pair.part.can_be_held());
            let charges: Vec<Charge> = pairs().map(|pair| pair.charged(limits)).collect();
            if let Some(now) = pairs().map(|pair| pair.ask.now()).max() {
                hold::begin(limits, request, now, charges).map_err(|_| JointError::Defect)?;
            }
        }
        Ok(())
    }

    /// Settles what is held under this id for the limits of the call, each at its cost, and returns the number of keys in
    /// which one was held. The others are only looked at.
    ///
    /// # Errors
    ///
    /// [`JointError::TooLong`] and [`JointError::TooManyLimits`] are found before anything is changed.
    pub fn settle<K: Limits>(&mut self, keys: &mut [K], id: &[u8]) -> Result<u64, JointError> {
        for (key, limits) in keys.iter().enumerate() {
            self.find_held(key, limits, id);
        }
        for pair in &mut self.pairs {
            // Only the excess over the held cost is charged.
            pair.can_be_too_long = pair.held.is_some() && pair.ask.cost > 0;
        }
        self.check(keys)?;
        for (key, limits) in keys.iter().enumerate() {
            let held = self.pairs.iter().filter(|pair| pair.key == key && pair.held.is_some());
            if held.filter(|pair| pair.adds(limits)).count() > limits.room() {
                return Err(JointError::TooManyLimits);
            }
        }
        each(
            &mut self.pairs,
            keys,
            |pair| pair.held.is_some(),
            |pair, limits| {
                let Some(charge) = pair.held else { return Ok(()) };
                let actual = pair.part.cost;
                with_limiter!(&pair.part.limiter, limiter => {
                    let refunded = pair.ask.settle(limits, limiter, &charge, actual)?;
                    pair.give_back(refunded, pair.ask.gauge(limits, limiter));
                });
                Ok(())
            },
        )?;
        let mut count = 0;
        for (key, limits) in keys.iter_mut().enumerate() {
            let held = self.pairs.iter().filter(|pair| pair.key == key && pair.held.is_some());
            if let Some(now) = held.map(|pair| pair.ask.now()).max() {
                hold::end(limits, id, now).map_err(|_| JointError::Defect)?;
                count += 1;
            }
        }
        for pair in &mut self.pairs {
            keys.get(pair.key).into_iter().for_each(|limits| pair.settle(limits));
        }
        Ok(count)
    }

    /// Finds what each limit of a key has to settle: by its name, else the only one of its kind, but none twice.
    fn find_held(&mut self, key: usize, limits: &impl Limits, id: &[u8]) {
        let Some(charges) = hold::held(limits, id, self.at) else { return };
        let mut left = charges.to_vec();
        for by_name in [true, false] {
            let pairs = self.pairs.iter_mut().filter(|pair| pair.key == key && pair.held.is_none());
            for pair in pairs.filter(|pair| !pair.part.is_shadow()) {
                let actual = pair.part.cost;
                with_limiter!(&pair.part.limiter, limiter => {
                    let found = hold::find(limits, charges, limiter).filter(|_| limiter.capabilities().hold);
                    let found = found.filter(|charge| !by_name || charge.name == pair.part.name);
                    let Some(charge) = found.filter(|charge| left.contains(charge)) else { continue };
                    left.retain(|other| *other != charge);
                    pair.held = Some(charge);
                    pair.ask.prepare_to_settle(limits, limiter, &charge, actual);
                });
            }
        }
    }
}

impl Pair<'_, '_> {
    /// Whether the settlement adds the limit to its key.
    fn adds(&self, limits: &impl Limits) -> bool {
        with_limiter!(&self.part.limiter, limiter => self.ask.adds(limits, limiter))
    }

    /// What a hold remembers of the pair's charge.
    fn charged(&self, limits: &impl Limits) -> Charge {
        with_limiter!(&self.part.limiter, limiter => self.ask.charged(limits, limiter, self.part.cost))
    }
}
