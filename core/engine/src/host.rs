//! A call and what surrounds it, as the engine needs them.

use std::ops::{Range, RangeBounds};

use ratelimit_core::line::Caller;
use ratelimit_core::{Hold, Span, Time};
use ratelimit_language::vocabulary::NUMKEYS;
use ratelimit_language::{Arguments, Error};

use crate::count::{Counter, Outcome};
use crate::node::Node;
use crate::policies;
use crate::record::Wanted;
use crate::reply::Reply;
use crate::slot::{Access, OfSlot, Slot};
use crate::waiting::Turn;

/// A call, and what surrounds it.
#[allow(clippy::len_without_is_empty, reason = "a call has its name at least")]
pub trait Host {
    type Slot<'c>: Slot
    where
        Self: 'c;

    /// Whether the code is to be small rather than fast. Then commands have no fast paths, and those of all limiters share one
    /// function.
    const IS_SMALL: bool = false;

    fn node(&self) -> &Node;

    /// The number of arguments, counting the command's name.
    fn len(&self) -> usize;

    /// The bytes of the argument at `place`. The command's name is at place 0.
    fn word(&self, place: usize) -> Result<&[u8], Error>;

    /// Opens the key that is the argument at `place`. A value that is none of limits is an error. So is a second key while one is
    /// open.
    fn open(&self, place: usize, access: Access) -> Result<Self::Slot<'_>, Error>;

    /// Opens several keys for writing at once. Their names differ.
    fn open_all<'c, K: OfSlot<Self::Slot<'c>>>(
        &'c self,
        places: impl ExactSizeIterator<Item = usize> + Clone,
    ) -> Result<Vec<K>, Error>;

    /// Parses the arguments at `places`.
    fn parse<'c, T>(
        &'c self,
        places: impl RangeBounds<usize>,
        parse: impl FnOnce(&mut Arguments<'_, 'c>) -> Result<T, Error>,
    ) -> Result<T, Error>;

    /// The call whose words are the arguments of this one.
    #[must_use]
    fn inner(&self) -> Self
    where
        Self: Sized;

    /// The current instant, which is the same for all calls of a transaction or a script where the server has such a clock.
    fn clock(&self) -> Time;

    /// The instant on a clock that is never set back.
    fn now(&self) -> Time;

    /// A random number that no client can predict.
    fn random(&self) -> u64;

    /// The number of the selected database.
    fn database(&self) -> i32;

    /// Who waits and why its call runs again, if it does.
    fn again(&self) -> Option<(Caller, Turn)>;

    /// Whether the caller of a new call can wait. It cannot in a transaction or a script, nor on a replica.
    fn can_wait(&self) -> bool;

    /// The lines have changed, so callers may have to be tried earlier.
    fn set_alarm(&self);

    /// Sends the keyspace event of a decision on the key that is the argument at `place`. No key is open.
    fn send_event(&self, place: usize, outcome: Outcome);

    /// Whether the memory is full, and a command that uses more may be refused without losing an effect.
    fn is_out_of_memory(&self) -> bool;

    /// Sends the call to the node's copies as it came. It is for commands that read no clock.
    fn send_on(&self);

    /// Whether the call comes from the primary or the AOF, so that this node does as it says.
    fn is_obeyed(&self) -> bool;

    /// Sends a change of the policies to the node's copies.
    fn send_policy(&self, effect: &policies::Effect);

    /// Sends all policies to the node's copies, now or soon.
    fn send_all_policies(&self);

    /// Replaces all policies by those of the file, and returns their number. If a line is wrong, nothing changes.
    fn load_policies(&self) -> Result<usize, Error>;

    /// Writes all policies into the file, and returns their number.
    fn save_policies(&self) -> Result<usize, Error>;

    /// Runs a replay, or begins it and replies later. It is an error if the caller cannot wait for that.
    fn replay(&self, replay: Wanted) -> Result<Reply, Error>;

    /// The arguments from the place `from` on.
    fn arguments(&self, from: usize) -> impl Iterator<Item = &[u8]> {
        (from..self.len()).filter_map(|place| self.word(place).ok())
    }

    /// The places of the keys, if the first argument is their number. None if that is wrong.
    fn counted_keys(&self) -> Range<usize> {
        let most = u64::try_from(self.len()).unwrap_or(0).saturating_sub(2);
        let count = self.parse(1..2, |words| words.read_bounded(NUMKEYS, most)).unwrap_or(0);
        2..2 + count
    }

    /// Whether the command only looks, because nothing may be written.
    fn only_looks(&self) -> bool {
        self.again().is_some_and(|(_, turn)| turn == Turn::Looks)
    }

    /// Whether any caller waits for a limit.
    #[inline(always)]
    fn somebody_waits(&self) -> bool {
        self.node().waiting.is_anybody()
    }

    /// A hold of this id, which the settings bound.
    fn hold<'h>(&self, (id, ttl): (&'h [u8], Span)) -> Hold<'h> {
        Hold { id, ttl, most: self.node().settings.most_holds() }
    }

    /// Counts a decision on the key that is the argument at `place`, and sends its keyspace event.
    #[inline(always)]
    fn record(&self, place: usize, counter: Counter, outcome: Outcome) {
        self.node().counts.add(counter, outcome);
        if outcome == Outcome::Refused {
            self.count_refusal(place);
        }
        self.notify(place, outcome);
    }

    /// Counts a refusal for the key that is the argument at `place`, if the settings ask for it.
    #[inline(always)]
    fn count_refusal(&self, place: usize) {
        if self.node().settings.counts_refusals() {
            self.count_in_top(place);
        }
    }

    #[cold]
    #[inline(never)]
    fn count_in_top(&self, place: usize) {
        if let Ok(key) = self.word(place) {
            let node = self.node();
            node.top().count(self.clock(), (self.database(), key), node.settings.top(), || self.random());
        }
    }

    /// Sends the keyspace event of a decision, if the settings ask for events. No key is open: a module that receives the event may
    /// change it.
    #[inline(always)]
    fn notify(&self, place: usize, outcome: Outcome) {
        if self.node().settings.sends_events() {
            self.send_event(place, outcome);
        }
    }
}
