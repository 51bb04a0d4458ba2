//! `RL.RELEASE key id [AT at]` and `RL.RENEW key ttl id [AT at]`: what is done with a lease once it is held.

use crate::limit::concurrent::{self, parse_id};
use crate::limit::{Error, Leases, Reading, State, read_clock};
use crate::server::{Access, Call, Command, Key, Keys, Reply, clock};
use crate::time::Time;

pub struct Release;

impl Command for Release {
    const NAME: &'static str = "RELEASE";
    const SYNTAX: &'static str = "key id [AT at]";
    const SUMMARY: &'static str = "Ends a lease";
    const COMPLEXITY: &'static str = "O(log(N)) where N is the number of leases";
    const FLAGS: &'static str = "write fast";
    const KEYS: Keys = Keys::Delete;

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let (id, at) = call.parse(2, |words| Ok((parse_id(words)?, words.at()?)))?;
        let Some(mut table) = Table::open(call, at)? else {
            return Ok(Reply::Integer(0));
        };
        let now = table.now;
        let released = table.key.change(Leases::blank(), |leases, out| {
            if let Some(change) = concurrent::release(leases, id, now) {
                Leases::encode_change(&change, out);
            }
        });
        let none_left = table.key.state().is_some_and(|leases| leases.end() <= now);
        if released && none_left {
            table.key.delete();
        } else {
            table.commit();
        }
        Ok(Reply::Integer(released.into()))
    }
}

pub struct Renew;

impl Command for Renew {
    const NAME: &'static str = "RENEW";
    const SYNTAX: &'static str = "key ttl id [AT at]";
    const SUMMARY: &'static str = "Extends a lease that is still held";
    const COMPLEXITY: &'static str = "O(log(N)) where N is the number of leases";
    const FLAGS: &'static str = "write fast";
    const KEYS: Keys = Keys::Update;

    fn run(call: &Call<'_>) -> Result<Reply, Error> {
        let (ttl, id, at) =
            call.parse(2, |words| Ok((words.duration("ttl")?, parse_id(words)?, words.at()?)))?;
        let Some(mut table) = Table::open(call, at)? else {
            return Ok(Reply::Integer(0));
        };
        let now = table.now;
        let renewed = table.key.change(Leases::blank(), |leases, out| {
            if let Some(change) = concurrent::renew(leases, id, ttl, now) {
                Leases::encode_change(&change, out);
            }
        });
        table.commit();
        Ok(Reply::Integer(renewed.into()))
    }
}

/// The leases of a key that exists, at an instant.
struct Table<'c, 'a> {
    key: Key<'c, 'a, Leases>,
    now: Time,
    /// The server's now, by which keys expire.
    clock: Time,
}

impl<'c, 'a> Table<'c, 'a> {
    fn open(call: &'c Call<'a>, at: Option<Time>) -> Result<Option<Self>, Error> {
        let clock = clock();
        let mut now = at.unwrap_or(clock);
        let mut key = Key::<Leases>::open(call, 1, Access::Change)?;
        let Some(leases) = key.state() else {
            return Ok(None);
        };
        match read_clock(leases.last(), now, || concurrent::reset(leases, leases.last())) {
            Reading::At(instant) => now = instant,
            Reading::SetBack => {
                key.change(Leases::blank(), |leases, out| {
                    Leases::encode_change(&concurrent::rebase(leases, now), out);
                });
                key.forget_deadline();
            }
        }
        Ok(Some(Table { key, now, clock }))
    }

    fn commit(self) {
        let reset =
            self.key.state().map_or_else(Default::default, |leases| concurrent::reset(leases, self.now));
        self.key.commit(self.clock.max(self.now), reset);
    }
}
