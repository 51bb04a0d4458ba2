//! The change that a call makes to a table of leases, and the encoding of both.

use alloc::vec::Vec;
use core::cmp::Ordering;

use super::codec::{Reader, put, put_bytes};
use super::leases::Leases;
use super::{Figure, LimitState, State};
use crate::count::MAX_COUNT;
use crate::kind::Kind;
use crate::time::{Span, Time};

/// The longest id, in bytes.
pub const MAX_ID: usize = 256;

/// The change that a call makes to a table of leases. Applying it twice has the same effect as applying it once.
#[derive(Clone, Copy, Default, Debug)]
pub struct Change<'a> {
    pub last: Time,
    /// The clock was set back from the first instant to the second, and all deadlines move by the difference.
    pub moved: Option<(Time, Time)>,
    /// The leases up to the one with this deadline and id, in their order, are dropped.
    pub dropped: Option<(Time, &'a [u8])>,
    /// The lease of this id is removed.
    pub released: Option<&'a [u8]>,
    /// The lease of this id gets this deadline and this cost. A lease that is not in the table is added.
    pub held: Option<(&'a [u8], Time, u64)>,
}

impl LimitState for Leases {
    fn until(&self, _: Span) -> Time {
        self.end()
    }
}

impl State for Leases {
    const KIND: Kind = Kind::Leases;
    type Change<'a> = Change<'a>;

    fn last(&self) -> Time {
        self.last
    }

    fn blank() -> Leases {
        Leases::default()
    }

    fn apply(&mut self, change: Change<'_>) {
        if let Some((from, to)) = change.moved
            && self.last == from
        {
            self.shift(from.since(to));
        }
        if let Some(id) = change.released {
            self.remove(id);
        }
        if let Some((deadline, id)) = change.dropped {
            self.drop_up_to(deadline, id);
        }
        if let Some((id, deadline, cost)) = change.held {
            self.hold(id, deadline, cost);
        }
        self.last = change.last;
    }

    fn encode_change(change: &Change<'_>, out: &mut Vec<u8>) {
        out.push(
            u8::from(change.moved.is_some())
                | u8::from(change.released.is_some()) << 1
                | u8::from(change.dropped.is_some()) << 2
                | u8::from(change.held.is_some()) << 3,
        );
        put(out, change.last.as_micros());
        if let Some((from, to)) = change.moved {
            put(out, from.as_micros());
            put(out, to.as_micros());
        }
        if let Some(id) = change.released {
            put_bytes(out, id);
        }
        if let Some((deadline, id)) = change.dropped {
            put(out, deadline.as_micros());
            put_bytes(out, id);
        }
        if let Some((id, deadline, cost)) = change.held {
            encode_lease(out, id, deadline, cost);
        }
    }

    fn decode_change<'a>(reader: &mut Reader<'a>) -> Option<Change<'a>> {
        let parts = reader.byte().filter(|parts| *parts < 16)?;
        let mut change = Change { last: reader.instant()?, ..Change::default() };
        if parts & 1 != 0 {
            // A move must end at the change's own instant. Then the same change, applied again, does not move again.
            let moved = (reader.instant()?, reader.instant()?);
            change.moved = Some(Some(moved).filter(|(_, to)| *to == change.last)?);
        }
        if parts & 2 != 0 {
            change.released = Some(decode_id(reader)?);
        }
        if parts & 4 != 0 {
            change.dropped = Some((decode_deadline(reader)?, decode_id(reader)?));
        }
        if parts & 8 != 0 {
            change.held = Some(decode_lease(reader)?);
        }
        Some(change)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.last.as_micros());
        put(out, self.order.len as u64);
        for lease in self.order.iter() {
            encode_lease(out, &lease.id, lease.deadline, lease.cost);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Leases> {
        let mut leases = Leases::default();
        leases.last = reader.instant()?;
        for _ in 0..reader.word()? {
            let (id, deadline, cost) = decode_lease(reader)?;
            let in_order =
                leases.order.latest().is_none_or(|latest| latest.order(deadline, id) == Ordering::Less);
            if !in_order || leases.find(id).is_some() {
                return None;
            }
            leases.hold(id, deadline, cost);
        }
        Some(leases)
    }

    fn heap_bytes(&self) -> usize {
        self.allocated()
    }

    fn effort(&self) -> usize {
        1 + self.order.len
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("stored_leases", Figure::Count(self.order.len as u64));
        figure("stored_cost", Figure::Count(u64::try_from(self.order.cost).unwrap_or(u64::MAX)));
        figure("last_deadline_us", Figure::At(self.end()));
    }
}

fn encode_lease(out: &mut Vec<u8>, id: &[u8], deadline: Time, cost: u64) {
    put_bytes(out, id);
    put(out, deadline.as_micros());
    put(out, cost);
}

fn decode_lease<'a>(reader: &mut Reader<'a>) -> Option<(&'a [u8], Time, u64)> {
    let id = decode_id(reader)?;
    let deadline = decode_deadline(reader)?;
    Some((id, deadline, reader.word_up_to(MAX_COUNT).filter(|cost| *cost > 0)?))
}

fn decode_deadline(reader: &mut Reader<'_>) -> Option<Time> {
    reader.horizon()
}

fn decode_id<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    reader.bytes().filter(|id| (1..=MAX_ID).contains(&id.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    #[test]
    fn a_table_with_an_id_twice_or_out_of_order_is_malformed() {
        let mut bytes = Vec::new();
        put(&mut bytes, 1);
        put(&mut bytes, 2);
        encode_lease(&mut bytes, b"a", at(10), 1);
        let mut twice = bytes.clone();
        encode_lease(&mut twice, b"a", at(11), 1);
        assert!(Leases::decode(&mut Reader::new(&twice)).is_none());
        let mut unordered = bytes.clone();
        encode_lease(&mut unordered, b"b", at(9), 1);
        assert!(Leases::decode(&mut Reader::new(&unordered)).is_none());
        encode_lease(&mut bytes, b"b", at(11), 1);
        assert!(Leases::decode(&mut Reader::new(&bytes)).is_some());
    }
}
