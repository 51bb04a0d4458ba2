//! Leases as a stored state: the bytes, and how a change is written, read and applied.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::adaptive::{MEMORY, decode_limit, encode_limit};
use super::notes::{MAX_TOKEN, Notes, decode_tenant, encode_tenant, part};
use super::tenants::Tenants;
use super::{FREED, Fences, Leases};
use crate::adapt::{Adapted, Settings, mean_of};
use crate::kind::Kind;
use crate::state::codec::{Reader, put, put_bytes, put_short};
use crate::state::table::{Lease, decode_id};
use crate::state::timeline::Timeline;
use crate::state::{Figure, LimitState, State};
use crate::time::{Span, Time};

/// The change that a call makes to a table of leases. Applying it twice has the same effect as applying it once.
///
/// If `last` is before the table's last charge, the table moves: all leases expire as long after `last` as they would
/// have expired after the last charge.
#[derive(Clone, Default, Debug)]
pub struct Change<'a> {
    pub last: Time,
    /// The lease of this id is removed.
    pub released: Option<&'a [u8]>,
    /// The lease of this id gets this deadline. If it was not held, it also gets this cost and the tenant.
    pub held: Option<(&'a [u8], Time, u64)>,
    /// What most changes do not have. Behind a pointer, so that they do not pay for it.
    pub notes: Option<Box<Notes<'a>>>,
}

// The parts of an encoded change. Its notes have more.
const RELEASED: u8 = 1;
const HELD: u8 = 2;

/// The bit of the number of leases of a table with tenants. Their names and weights follow, in the order of the names, and
/// each lease ends with the number of its tenant: from 1, or 0 without one.
const SHARED: u64 = 1 << 63;

/// The bit of that number of a table whose limit adapts. The limit follows, and each lease ends with its age: from 1, or
/// 0 if it was taken without `ADAPT`.
const ADAPTS: u64 = 1 << 62;

/// The bit of that number of a table with fencing tokens. The last one that was given follows, and each lease ends with its own,
/// or 0 without one.
const FENCED: u64 = 1 << 61;

/// The bits of that number that a newer version can use. No table has as many leases.
const UNKNOWN: u64 = !(SHARED | ADAPTS | FENCED | u32::MAX as u64);

impl LimitState for Leases {
    fn until(&self, _: Span) -> Time {
        let leases = self.timeline.until(self.table.latest());
        match self.memory() {
            Span::ZERO => leases,
            memory => self.timeline.last.plus(memory).max(leases),
        }
    }

    #[inline(always)]
    fn memory(&self) -> Span {
        if self.adaptive().is_some() { MEMORY } else { Span::ZERO }
    }
}

impl Leases {
    /// As [`apply`](State::apply), also for what is noted.
    #[cold]
    #[inline(never)]
    fn apply_with_notes(&mut self, Change { last, released, held, notes }: Change<'_>) {
        self.forget(last);
        self.timeline.set(last);
        if let Some(id) = released {
            self.remove(id);
        }
        let notes = notes.as_deref().copied().unwrap_or_default();
        if let Some(limit) = notes.limit {
            self.set_limit(limit);
        }
        if let Some((id, deadline, cost)) = held {
            self.hold((id, deadline, stored(cost)), notes);
        }
        self.free_ended(FREED);
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
        if self.noted.is_some() || change.notes.is_some() {
            return self.apply_with_notes(change);
        }
        self.timeline.set(change.last);
        let now = self.timeline.tick;
        if let Some(slot) = change.released.and_then(|id| self.table.find(id)) {
            self.table.remove(slot);
        }
        if let Some((id, deadline, cost)) = change.held {
            self.table.hold(id, self.timeline.tick_at(deadline), stored(cost), now);
        }
        self.table.remove_expired(now, FREED);
    }

    // A change is large: passing it through memory takes more instructions than what is done with it.
    #[inline(always)]
    fn encode_change(change: &Change<'_>, out: &mut Vec<u8>) {
        let notes = change.notes.as_deref();
        out.push(
            part(change.released.is_some(), RELEASED)
                | part(change.held.is_some(), HELD)
                | notes.map_or(0, Notes::parts),
        );
        put(out, change.last.as_micros());
        if let Some(id) = change.released {
            put_bytes(out, id);
        }
        if let Some((id, deadline, cost)) = change.held {
            encode_lease(out, id, deadline, stored(cost));
        }
        if let Some(notes) = notes {
            notes.encode(out);
        }
    }

    // As above.
    #[inline(always)]
    fn decode_change<'a>(reader: &mut Reader<'a>) -> Option<Change<'a>> {
        let parts = reader.byte()?;
        let last = reader.instant()?;
        let released = if parts & RELEASED == 0 { None } else { Some(decode_id(reader)?) };
        let held = if parts & HELD == 0 { None } else { Some(decode_lease(reader, last)?) };
        let notes = if parts <= RELEASED | HELD {
            None
        } else {
            Some(Notes::decode(parts & !(RELEASED | HELD), held.is_some(), reader)?)
        };
        Some(Change { last, released, held, notes })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let Timeline { last, tick } = self.timeline;
        let tenants = self.tenants().filter(|_| self.has_tenants());
        put(out, last.as_micros());
        let adaptive = self.adaptive();
        let flag = |set: bool, bit: u64| if set { bit } else { 0 };
        let fences = self.fences();
        let flags = flag(tenants.is_some(), SHARED)
            | flag(adaptive.is_some(), ADAPTS)
            | flag(fences.is_some(), FENCED);
        put(out, self.table.held(tick).0 | flags);
        // The numbers of the tenants that hold something: others have leases that expired, which are not freed yet.
        let mut numbers = BTreeMap::new();
        let mut of_tenants = None;
        if let Some(tenants) = tenants {
            let names = tenants.owned().names();
            let holders = names.filter(|(name, _)| self.named_share(name, tick).is_some());
            let holders: Vec<(&[u8], u32)> = holders.map(|(name, weight)| (&**name, weight)).collect();
            put_short(out, holders.len() as u64);
            for ((name, weight), number) in holders.into_iter().zip(1..) {
                encode_tenant(out, name, weight);
                numbers.insert(name, number);
            }
            of_tenants = Some(tenants.owned().in_order().peekable());
        }
        if let Some(adaptive) = adaptive {
            encode_limit(&adaptive.limit.at(|instant| tick.micros.wrapping_sub(instant)), out);
        }
        if let Some(fences) = fences {
            put_short(out, fences.last);
        }
        for lease in self.table.in_order() {
            // Those of tenants are in the same order.
            let tenant = of_tenants.as_mut().map(|leases| {
                let is_next = |(slot, _): &(u32, &[u8])| {
                    self.table.get(*slot).is_some_and(|other| core::ptr::eq(other, lease))
                };
                leases.next_if(is_next).map_or(&[][..], |(_, name)| name)
            });
            if lease.deadline() <= tick {
                continue;
            }
            encode_lease(out, &lease.id, last.plus(lease.deadline().since(tick)), lease.cost);
            if let Some(name) = tenant {
                put_short(out, numbers.get(name).copied().unwrap_or(0));
            }
            if let Some(adaptive) = adaptive {
                let taken = self.table.find(&lease.id).and_then(|slot| adaptive.taken.get(slot));
                put_short(out, taken.map_or(0, |taken| tick.micros.wrapping_sub(taken).saturating_add(1)));
            }
            if fences.is_some() {
                put_short(out, self.token(&lease.id).unwrap_or(0));
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Leases> {
        let mut leases = Leases::default();
        let last = reader.instant()?;
        leases.timeline.set(last);
        let count = reader.word()?;
        if count & UNKNOWN != 0 {
            return reader.newer();
        }
        let names = if count & SHARED == 0 { Vec::new() } else { decode_tenants(reader)? };
        if count & ADAPTS != 0 {
            leases.set_limit(decode_limit(reader)?);
        }
        let mut fences = if count & FENCED == 0 { None } else { Some(decode_fences(reader)?) };
        let mut before = (last, &[][..]);
        // The slots of leases with a tenant, each with its number.
        let mut of_tenants: Vec<(u32, u64)> = Vec::new();
        for _ in 0..count & u64::from(u32::MAX) {
            let (id, deadline, cost) = decode_lease(reader, last)?;
            if (deadline, id) <= before {
                return None;
            }
            before = (deadline, id);
            let lease = Lease::new(id, leases.timeline.tick_at(deadline), stored(cost), ());
            let slot = leases.table.push(lease);
            if !names.is_empty() {
                let number = reader.short_up_to(names.len() as u64)?.checked_sub(1);
                of_tenants.extend(number.map(|number| (slot, number)));
            }
            if let Some(adaptive) = leases.noted.as_mut().and_then(|noted| noted.adaptive.as_mut()) {
                let now = leases.timeline.tick.micros;
                let taken = reader.short()?.checked_sub(1).map(|age| now.wrapping_sub(age));
                // No lease has the instant that stands for none.
                if taken == Some(u64::MAX) {
                    return None;
                }
                adaptive.taken.set(slot, taken);
            }
            if let Some(fences) = &mut fences {
                let token = reader.short_up_to(fences.last)?;
                fences.tokens.set(slot, (token > 0).then_some(token));
            }
        }
        leases.table.grow_trees();
        if !names.is_empty() {
            let tenants = Tenants::read(&names, &of_tenants, &leases.table)?;
            leases.noted.get_or_insert_default().tenants = Some(Box::new(tenants));
        }
        if fences.is_some() {
            leases.noted.get_or_insert_default().fences = fences;
        }
        leases.table.ids_differ().then_some(leases)
    }

    fn heap_bytes(&self) -> usize {
        self.table.allocated() + self.noted.as_ref().map_or(0, |noted| noted.allocated())
    }

    fn effort(&self) -> usize {
        1 + self.table.len()
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        let (count, cost) = self.table.held(self.timeline.tick);
        figure("stored_leases", Figure::Count(count));
        figure("stored_cost", Figure::Count(cost));
        figure("last_deadline_us", Figure::At(self.timeline.until(self.table.latest())));
        if let Some(fences) = self.fences() {
            figure("last_fence", Figure::Count(fences.last));
        }
        if let Some(adaptive) = self.adaptive() {
            let Adapted { settings: Settings { floor, ceiling, .. }, credit, lowered, latency, .. } =
                adaptive.limit;
            figure("limit", Figure::Count(adaptive.limit.limit()));
            figure("floor", Figure::Count(floor.into()));
            figure("ceiling", Figure::Count(ceiling.into()));
            figure("credit", Figure::Count(credit));
            figure("long_us", Figure::Count(mean_of(latency.long).as_micros()));
            figure("short_us", Figure::Count(mean_of(latency.short).as_micros()));
            let age = |lowered: u64| Span::from_micros(self.timeline.tick.micros.wrapping_sub(lowered));
            let lowered = lowered.map_or(Time::EPOCH, |lowered| self.timeline.last.minus(age(lowered)));
            figure("last_decrease_us", Figure::At(lowered));
        }
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

/// Reads the last fencing token of a table.
fn decode_fences(reader: &mut Reader<'_>) -> Option<Box<Fences>> {
    let last = reader.short_up_to(MAX_TOKEN).filter(|last| *last > 0)?;
    Some(Box::new(Fences { last, ..Fences::default() }))
}

/// Reads the tenants of a table, at least one.
fn decode_tenants<'a>(reader: &mut Reader<'a>) -> Option<Vec<(&'a [u8], u32)>> {
    let mut tenants: Vec<(&[u8], u32)> = Vec::new();
    for _ in 0..reader.short().filter(|count| *count > 0)? {
        let tenant = decode_tenant(reader)?;
        if tenants.last().is_some_and(|(before, _)| *before >= tenant.0) {
            return None;
        }
        tenants.push(tenant);
    }
    Some(tenants)
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
        // A table of a hundred leases has trees, which compare ids in another way.
        for (last, is_read) in [(99, true), (0, false)] {
            let mut many = Vec::new();
            put(&mut many, 9);
            put(&mut many, 100);
            (0..99).chain([last]).zip(10..).for_each(|(id, end)| encode_lease(&mut many, &[id], at(end), 1));
            assert_eq!(Leases::decode(&mut Reader::new(&many)).is_some(), is_read, "{last}");
        }
    }

    #[test]
    fn tokens_are_at_most_the_last_one_of_their_table_and_that_is_one() {
        let reads = |last: u64, token: u64| {
            let mut bytes = Vec::new();
            put(&mut bytes, 9);
            put(&mut bytes, 1 | FENCED);
            put_short(&mut bytes, last);
            encode_lease(&mut bytes, b"a", at(10), 1);
            put_short(&mut bytes, token);
            Leases::decode(&mut Reader::new(&bytes)).map(|leases| (leases.last_token(), leases.token(b"a")))
        };
        assert_eq!(reads(MAX_TOKEN, MAX_TOKEN), Some((MAX_TOKEN, Some(MAX_TOKEN))));
        assert_eq!(reads(7, 0), Some((7, None)));
        for (last, token) in [(0, 0), (7, 8), (MAX_TOKEN + 1, 7)] {
            assert_eq!(reads(last, token), None, "{last}, {token}");
        }
    }
}
