//! Leases as a stored state: the bytes, and how a change is written, read and applied.

use alloc::vec::Vec;

use super::Leases;
use crate::kind::Kind;
use crate::state::codec::{Reader, put, put_bytes};
use crate::state::table::{Lease, decode_id};
use crate::state::timeline::Timeline;
use crate::state::{Figure, LimitState, State};
use crate::time::{Span, Time};

/// The change that a call makes to a table of leases. Applying it twice has the same effect as applying it once.
///
/// If `last` is before the table's last charge, the table moves: all leases expire as long after `last` as they would
/// have expired after the last charge.
#[derive(Clone, Copy, Default, Debug)]
pub struct Change<'a> {
    pub last: Time,
    /// The lease of this id is removed.
    pub released: Option<&'a [u8]>,
    /// The lease of this id gets this deadline. If it was not held, it also gets this cost.
    pub held: Option<(&'a [u8], Time, u64)>,
}

// The parts of an encoded change.
const RELEASED: u8 = 1;
const HELD: u8 = 2;

impl LimitState for Leases {
    fn until(&self, _: Span) -> Time {
        self.timeline.until(self.table.latest())
    }
}

impl State for Leases {
    const KIND: Kind = Kind::Leases;
    type Change<'a> = Change<'a>;

    fn last(&self) -> Time {
        self.timeline.last
    }

    fn blank() -> Leases {
        Leases::default()
    }

    fn apply(&mut self, change: Change<'_>) {
        self.timeline.set(change.last);
        if let Some(id) = change.released {
            self.remove(id);
        }
        if let Some((id, deadline, cost)) = change.held {
            self.hold(id, deadline, stored(cost));
        }
        self.tidy();
    }

    fn encode_change(change: &Change<'_>, out: &mut Vec<u8>) {
        let part = |present: bool, bit: u8| if present { bit } else { 0 };
        out.push(part(change.released.is_some(), RELEASED) | part(change.held.is_some(), HELD));
        put(out, change.last.as_micros());
        if let Some(id) = change.released {
            put_bytes(out, id);
        }
        if let Some((id, deadline, cost)) = change.held {
            encode_lease(out, id, deadline, stored(cost));
        }
    }

    fn decode_change<'a>(reader: &mut Reader<'a>) -> Option<Change<'a>> {
        let parts = reader.byte().filter(|parts| *parts < 4)?;
        let last = reader.instant()?;
        let released = if parts & RELEASED == 0 { None } else { Some(decode_id(reader)?) };
        let held = if parts & HELD == 0 { None } else { Some(decode_lease(reader, last)?) };
        Some(Change { last, released, held })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let Timeline { last, tick } = self.timeline;
        put(out, last.as_micros());
        put(out, self.table.held(tick).0);
        for lease in self.table.in_order().into_iter().filter(|lease| lease.deadline() > tick) {
            encode_lease(out, &lease.id, last.plus(lease.deadline().since(tick)), lease.cost);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Leases> {
        let mut leases = Leases::default();
        let last = reader.instant()?;
        leases.timeline.set(last);
        let mut before = (last, &[][..]);
        for _ in 0..reader.word()? {
            let (id, deadline, cost) = decode_lease(reader, last)?;
            if (deadline, id) <= before {
                return None;
            }
            before = (deadline, id);
            leases.table.push(Lease::new(id, leases.timeline.tick_at(deadline), stored(cost), ()));
        }
        leases.table.grow_trees();
        leases.table.ids_differ().then_some(leases)
    }

    fn heap_bytes(&self) -> usize {
        self.table.allocated()
    }

    fn effort(&self) -> usize {
        1 + self.table.len()
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        let (count, cost) = self.table.held(self.timeline.tick);
        figure("stored_leases", Figure::Count(count));
        figure("stored_cost", Figure::Count(cost));
        figure("last_deadline_us", Figure::At(self.until(Span::ZERO)));
    }
}

/// The cost that a lease stores. A capacity is far below 2^32, and so is the cost of each lease that it admits.
fn stored(cost: u64) -> u32 {
    u32::try_from(cost).unwrap_or(u32::MAX)
}

fn encode_lease(out: &mut Vec<u8>, id: &[u8], deadline: Time, cost: u32) {
    put_bytes(out, id);
    put(out, deadline.as_micros());
    put(out, cost.into());
}

/// Reads a lease that is held at the instant `last`.
fn decode_lease<'a>(reader: &mut Reader<'a>, last: Time) -> Option<(&'a [u8], Time, u64)> {
    let id = decode_id(reader)?;
    let deadline = reader.horizon().filter(|deadline| *deadline > last)?;
    Some((id, deadline, reader.word_up_to(u32::MAX.into()).filter(|cost| *cost > 0)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    #[test]
    fn a_table_with_an_id_twice_or_out_of_order_or_with_an_expired_lease_is_malformed() {
        let mut bytes = Vec::new();
        put(&mut bytes, 9);
        put(&mut bytes, 2);
        encode_lease(&mut bytes, b"a", at(10), 1);
        let mut twice = bytes.clone();
        encode_lease(&mut twice, b"a", at(11), 1);
        assert!(Leases::decode(&mut Reader::new(&twice)).is_none());
        let mut unordered = bytes.clone();
        encode_lease(&mut unordered, b"B", at(10), 1);
        assert!(Leases::decode(&mut Reader::new(&unordered)).is_none());
        let mut expired = bytes.clone();
        expired[0] = 10;
        encode_lease(&mut expired, b"b", at(11), 1);
        assert!(Leases::decode(&mut Reader::new(&expired)).is_none());
        encode_lease(&mut bytes, b"b", at(11), 1);
        assert!(Leases::decode(&mut Reader::new(&bytes)).is_some());
    }
}
