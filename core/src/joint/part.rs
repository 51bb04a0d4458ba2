//! A limit of a call.

use crate::any::AnyLimiter;
use crate::limiter::Limiter;
use crate::state::{Name, Tenant};

/// A limit of a call.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    pub limiter: AnyLimiter<'a>,
    pub name: Name,
    /// A cost of 0 only peeks. The cost of a penalty is that of a strike.
    pub cost: u64,
    /// The tenant of the caller, if the tenants of callers share the limit.
    pub tenant: Option<Tenant<'a>>,
    /// The index of the only key that the limit applies to; all keys if `None`.
    pub on: Option<usize>,
    /// Whether the caller waits in front of those that are not critical. Leases have that for themselves, too.
    pub critical: bool,
}

impl Part<'_> {
    /// The limit of a critical call, which may take leases that are reserved.
    #[must_use]
    pub fn made_critical(self) -> Self {
        let limiter = match self.limiter {
            AnyLimiter::Concurrent(leases) => AnyLimiter::Concurrent(leases.made_critical()),
            limiter => limiter,
        };
        Part { limiter, critical: true, ..self }
    }

    /// The id of the lease that the call asks for; `None` if the limit is a rate.
    pub fn lease_id(&self) -> Option<&[u8]> {
        with_limiter!(&self.limiter, limiter => limiter.lease_id())
    }

    /// Whether the limit is a shadow.
    pub fn is_shadow(&self) -> bool {
        self.name.length.is_shadow()
    }

    /// Whether the limit is a penalty, which other limits strike.
    pub fn is_penalty(&self) -> bool {
        with_limiter!(&self.limiter, limiter => limiter.capabilities().bans)
    }

    /// Whether the limit can refuse a call and strike penalties.
    pub fn is_strict(&self) -> bool {
        !self.is_penalty() && !self.is_shadow()
    }

    /// Whether there is often room before the retry.
    pub fn has_room_early(&self) -> bool {
        with_limiter!(&self.limiter, limiter => limiter.capabilities().early)
    }

    /// Whether a hold remembers what a call charges to the limit.
    pub fn can_be_held(&self) -> bool {
        let can = with_limiter!(&self.limiter, limiter => limiter.capabilities().hold);
        can && self.cost > 0 && !self.is_shadow()
    }

    /// Whether the limit applies to the key of this index.
    pub fn is_for(&self, key: usize) -> bool {
        self.on.is_none_or(|on| on == key)
    }
}
