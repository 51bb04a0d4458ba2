//! Commands about leases that are held.

use ratelimit_core::lease::{Action, act};
use ratelimit_core::state::{Leases, hash_of_id};
use ratelimit_core::{Length, Name, Time};
use ratelimit_language::vocabulary::TTL;
use ratelimit_language::{ReleaseCall, lease_id, release};

use super::multi::several;
use super::{Answered, Memory, first, forget_if_reset};
use crate::reply::Reply;

impl Memory {
    /// `RL.RELEASE key id [OUTCOME outcome] [AT at]`.
    pub(super) fn release(&mut self, words: &[&[u8]]) -> Answered {
        let (key, mut arguments) = first(words)?;
        let ReleaseCall { id, ending, at } = release(&mut arguments)?;
        self.act(&[key], Action::Release(ending), id, at)
    }

    /// `RL.MULTIRELEASE numkeys key ... id [OUTCOME outcome] [AT at]`.
    pub(super) fn multi_release(&mut self, words: &[&[u8]]) -> Answered {
        let (keys, mut arguments) = several(words)?;
        let ReleaseCall { id, ending, at } = release(&mut arguments)?;
        self.act(keys, Action::Release(ending), id, at)
    }

    /// `RL.RENEW key ttl id [AT at]`.
    pub(super) fn renew(&mut self, words: &[&[u8]]) -> Answered {
        let (key, mut arguments) = first(words)?;
        let (ttl, id) = (arguments.read(TTL)?, lease_id(&mut arguments)?);
        let at = arguments.at()?;
        self.act(&[key], Action::Renew(ttl), id, at)
    }

    /// Releases or renews the lease on each key.
    fn act(&mut self, keys: &[&[u8]], action: Action, id: &[u8], at: Option<Time>) -> Answered {
        let at = self.at(at)?;
        let mut held = 0;
        for key in keys {
            // A key of another kind holds no lease.
            let mut limits = self.take(key, None).unwrap_or_default();
            let acted = act(&mut limits, action, id, at);
            if let Ok(acted) = &acted {
                if acted.counted || matches!(action, Action::Release(_)) {
                    self.lines.serve(*key, Name::of::<Leases>(Length::NONE), hash_of_id(id), at);
                }
                forget_if_reset(&mut limits, acted.held.then_some(at), acted.reset);
                held += i64::from(acted.held);
            }
            self.put(key, limits);
            acted?;
        }
        Ok(Reply::Integer(held).into())
    }
}
