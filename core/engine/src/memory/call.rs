//! A call on a node in memory.

use std::ops::{Bound, RangeBounds};

use ratelimit_core::Time;
use ratelimit_core::line::Caller;
use ratelimit_language::{Arguments, Error};

use super::slot::OpenKey;
use super::state::{Effect, Memory, Role};
use crate::count::Outcome;
use crate::host::Host;
use crate::node::Node;
use crate::policies;
use crate::record::Wanted;
use crate::reply::Reply;
use crate::slot::{Access, OfSlot};
use crate::waiting::{Turn, WaitedKey};

pub(super) struct Call<'m> {
    pub(super) memory: &'m Memory,
    words: &'m [&'m [u8]],
    /// Who waits and why the call runs again, if it does.
    again: Option<(Caller, Turn)>,
    is_obeyed: bool,
}

impl<'m> Call<'m> {
    pub(super) fn new(memory: &'m Memory, words: &'m [&'m [u8]], again: Option<(Caller, Turn)>) -> Call<'m> {
        Call { memory, words, again, is_obeyed: false }
    }

    /// A call of the node's primary.
    pub(super) fn of_primary(memory: &'m Memory, words: &'m [&'m [u8]]) -> Call<'m> {
        Call { is_obeyed: true, ..Call::new(memory, words, None) }
    }
}

impl<'m> Host for Call<'m> {
    type Slot<'c>
        = OpenKey<'m>
    where
        Self: 'c;

    /// A page in a browser loads this code. Elsewhere it has the fast paths of the server, which are tried here too.
    const IS_SMALL: bool = cfg!(target_arch = "wasm32");

    fn node(&self) -> &Node {
        &self.memory.node
    }

    fn len(&self) -> usize {
        self.words.len()
    }

    fn word(&self, place: usize) -> Result<&[u8], Error> {
        self.words.get(place).copied().ok_or(Error::Arity)
    }

    fn parse<'c, T>(
        &'c self,
        places: impl RangeBounds<usize>,
        parse: impl FnOnce(&mut Arguments<'_, 'c>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let places: (Bound<usize>, Bound<usize>) =
            (places.start_bound().cloned(), places.end_bound().cloned());
        let words: &[&'c [u8]] = self.words.get(places).unwrap_or(&[]);
        parse(&mut Arguments::new(words, self.memory.node.settings.bounds()))
    }

    fn inner(&self) -> Self {
        Call::new(self.memory, self.words.get(1..).unwrap_or(&[]), None)
    }

    fn open(&self, place: usize, _: Access) -> Result<OpenKey<'m>, Error> {
        if self.memory.open.get() > 0 {
            return Err(Error::Internal);
        }
        Ok(OpenKey::open(self.memory, self.word(place)?))
    }

    fn open_all<'c, K: OfSlot<Self::Slot<'c>>>(
        &'c self,
        places: impl ExactSizeIterator<Item = usize> + Clone,
    ) -> Result<Vec<K>, Error> {
        if self.memory.open.get() > 0 {
            return Err(Error::Internal);
        }
        let open = |place| Ok(K::of(OpenKey::open(self.memory, self.word(place)?)));
        places.map(open).collect()
    }

    fn clock(&self) -> Time {
        self.memory.clock.get()
    }

    fn now(&self) -> Time {
        self.memory.steady.get()
    }

    /// A step of splitmix64.
    fn random(&self) -> u64 {
        let state = self.memory.dice.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.memory.dice.set(state);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn database(&self) -> i32 {
        self.memory.database.get()
    }

    fn again(&self) -> Option<(Caller, Turn)> {
        self.again
    }

    fn can_wait(&self) -> bool {
        self.memory.role.get() == Role::Primary && !self.memory.is_in_unit.get()
    }

    /// The node is asked when its alarm is to ring.
    fn set_alarm(&self) {}

    fn send_event(&self, _: usize, _: Outcome) {
        debug_assert_eq!(self.memory.open.get(), 0, "an event while a key is open");
    }

    fn is_out_of_memory(&self) -> bool {
        false
    }

    fn send_on(&self) {
        let pairs = self.words.get(1..).unwrap_or(&[]).chunks_exact(2);
        let payloads = pairs.filter_map(|pair| match pair {
            [key, payload] => {
                Some((WaitedKey { database: self.database(), name: (*key).into() }, payload.to_vec()))
            }
            _ => None,
        });
        self.memory.effects.borrow_mut().push(Effect::Apply(payloads.collect()));
    }

    fn is_obeyed(&self) -> bool {
        self.is_obeyed
    }

    fn send_policy(&self, effect: &policies::Effect) {
        self.memory.effects.borrow_mut().push(Effect::Policies(effect.clone()));
    }

    fn send_all_policies(&self) {
        self.node().policies().pieces().iter().for_each(|piece| self.send_policy(piece));
    }

    fn load_policies(&self) -> Result<usize, Error> {
        Err(Error::Invalid("the setting ratelimit.policy-file is empty".into()))
    }

    fn save_policies(&self) -> Result<usize, Error> {
        self.load_policies()
    }

    fn replay(&self, replay: Wanted) -> Result<Reply, Error> {
        replay.replay(|| false).map_or(Err(Error::Internal), |fields| fields.map(Reply::Map))
    }
}
