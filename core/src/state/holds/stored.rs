//! Holds as a stored state: the bytes, and how a change is written, read and applied.

use alloc::vec::Vec;

use super::{Begun, Change, Charge, Holds, MAX_CHARGES, Move, Moved};
use crate::count::MAX_COUNT;
use crate::kind::Kind;
use crate::state::codec::{Reader, put, put_bytes, put_words};
use crate::state::name::Name;
use crate::state::table::{Lease, decode_id, size_class};
use crate::state::timeline::Timeline;
use crate::state::{Figure, LimitState, State};
use crate::time::{Span, Time};

// The parts of an encoded change.
const ENDED: u8 = 1;
const BEGUN: u8 = 2;
const MOVED: u8 = 4;

impl LimitState for Holds {
    fn until(&self, _: Span) -> Time {
        self.timeline.until(self.table.latest())
    }
}

impl State for Holds {
    const KIND: Kind = Kind::Holds;
    type Change<'a> = Change<'a>;

    fn last(&self) -> Time {
        self.timeline.last
    }

    fn blank() -> Holds {
        Holds::default()
    }

    fn apply(&mut self, change: Change<'_>) {
        self.timeline.set(change.last);
        if let Some(id) = change.ended {
            self.end(id);
        }
        if let Some(begun) = change.begun {
            self.begin(begun);
        }
        if let Some(moved) = change.moved {
            self.set_moved(moved);
        }
        self.tidy();
    }

    fn encode_change(change: &Change<'_>, out: &mut Vec<u8>) {
        let part = |present: bool, bit: u8| if present { bit } else { 0 };
        out.push(
            part(change.ended.is_some(), ENDED)
                | part(change.begun.is_some(), BEGUN)
                | part(change.moved.is_some(), MOVED),
        );
        put(out, change.last.as_micros());
        if let Some(id) = change.ended {
            put_bytes(out, id);
        }
        if let Some(Begun { id, ends, charges }) = &change.begun {
            encode_hold(out, id, *ends, charges);
        }
        if let Some(Moved { name, number, by }) = change.moved {
            name.encode(out);
            put(out, number);
            by.encode(out);
        }
    }

    fn decode_change<'a>(reader: &mut Reader<'a>) -> Option<Change<'a>> {
        let parts = reader.byte().filter(|parts| *parts < 8)?;
        let mut change = Change::passed(reader.instant()?);
        if parts & ENDED != 0 {
            change.ended = Some(decode_id(reader)?);
        }
        if parts & BEGUN != 0 {
            change.begun = Some(decode_hold(reader, change.last)?);
        }
        if parts & MOVED != 0 {
            let (name, number) = (decode_limit(reader)?, reader.word()?);
            change.moved = Some(Moved { name, number, by: Move::decode(reader)? });
        }
        Some(change)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let Timeline { last, tick } = self.timeline;
        put_words(out, [last.as_micros(), self.moves, self.table.held(tick).0]);
        for hold in self.table.in_order().into_iter().filter(|hold| hold.deadline() > tick) {
            encode_hold(out, &hold.id, last.plus(hold.deadline().since(tick)), &hold.kept);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Holds> {
        let mut holds = Holds::default();
        let last = reader.instant()?;
        holds.timeline.set(last);
        holds.moves = reader.word()?;
        let mut before = (last, &[][..]);
        for _ in 0..reader.word()? {
            let Begun { id, ends, charges } = decode_hold(reader, last)?;
            if (ends, id) <= before {
                return None;
            }
            before = (ends, id);
            holds.table.push(Lease::new(id, holds.timeline.tick_at(ends), 0, charges.into()));
        }
        holds.table.grow_trees();
        holds.table.ids_differ().then_some(holds)
    }

    fn heap_bytes(&self) -> usize {
        let charges = self.table.iter().map(|hold| size_class(size_of_val(&*hold.kept)));
        self.table.allocated() + charges.sum::<usize>()
    }

    fn effort(&self) -> usize {
        1 + 2 * self.table.len()
    }

    fn describe(&self, figure: &mut dyn FnMut(&'static str, Figure)) {
        figure("holds", Figure::Count(self.count(self.last())));
    }
}

fn encode_hold(out: &mut Vec<u8>, id: &[u8], ends: Time, charges: &[Charge]) {
    put_bytes(out, id);
    put(out, ends.as_micros());
    out.push(u8::try_from(charges.len()).unwrap_or(u8::MAX));
    for Charge { name, cost, at } in charges {
        name.encode(out);
        put(out, *cost);
        put(out, at.as_micros());
    }
}

/// Reads a hold that has not ended at the instant `last`.
fn decode_hold<'a>(reader: &mut Reader<'a>, last: Time) -> Option<Begun<'a>> {
    let id = decode_id(reader)?;
    let ends = reader.horizon().filter(|ends| *ends > last)?;
    let count = reader.byte().map(usize::from).filter(|count| (1..=MAX_CHARGES).contains(count))?;
    let mut charges: Vec<Charge> = Vec::with_capacity(count);
    for _ in 0..count {
        let name = decode_limit(reader)?;
        let (cost, at) = (reader.word_up_to(MAX_COUNT)?, reader.instant()?);
        if cost == 0 || charges.last().is_some_and(|before| before.name >= name) {
            return None;
        }
        charges.push(Charge { name, cost, at });
    }
    Some(Begun { id, ends, charges })
}

/// Reads the name of a limit that is no shadow.
fn decode_limit(reader: &mut Reader<'_>) -> Option<Name> {
    Name::decode(reader).filter(|name| name.kind.is_limit() && !name.length.is_shadow())
}

impl Move {
    fn encode(self, out: &mut Vec<u8>) {
        match self {
            Move::Step { from, to } => {
                out.push(STEP);
                put_words(out, [from, to].map(Time::as_micros));
            }
            Move::Gather { since, until, to, keeps_others } => {
                out.push(if keeps_others { GATHER_SOME } else { GATHER });
                put_words(out, [since, until, to].map(Time::as_micros));
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Move> {
        let kind = reader.byte().filter(|kind| *kind <= GATHER_SOME)?;
        let (first, second) = (reader.instant()?, reader.instant()?);
        Some(if kind == STEP {
            Move::Step { from: first, to: second }
        } else {
            let to = reader.instant()?;
            Move::Gather { since: first, until: second, to, keeps_others: kind == GATHER_SOME }
        })
    }
}

// The kinds of an encoded move.
const STEP: u8 = 0;
const GATHER: u8 = 1;
const GATHER_SOME: u8 = 2;

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::limiter::Arrival;
    use crate::state::Length;

    fn at(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    fn charge(length: u64) -> Charge {
        Charge { name: name(length), cost: 3, at: at(7) }
    }

    fn name(length: u64) -> Name {
        Name::of::<Arrival>(Length::of(Span::from_micros(length)))
    }

    fn apply(holds: &mut Holds, change: &Change<'_>) {
        let mut bytes = Vec::new();
        Holds::encode_change(change, &mut bytes);
        for _ in 0..2 {
            let mut reader = Reader::new(&bytes);
            holds.apply(Holds::decode_change(&mut reader).unwrap());
            assert!(reader.is_empty());
        }
    }

    fn pass(holds: &mut Holds, at: u64) {
        let change = holds.passed(Time::from_micros(at)).unwrap();
        apply(holds, &change);
    }

    fn begin(holds: &mut Holds, last: u64, id: &[u8], ends: u64, charges: Vec<Charge>) {
        let begun = Some(Begun { id, ends: at(ends), charges });
        apply(holds, &Change { begun, ..Change::passed(at(last)) });
    }

    fn encoded(holds: &Holds) -> Vec<u8> {
        let mut bytes = Vec::new();
        holds.encode(&mut bytes);
        let copy = Holds::decode(&mut Reader::new(&bytes)).unwrap();
        let mut again = Vec::new();
        copy.encode(&mut again);
        assert_eq!(again, bytes);
        bytes
    }

    #[test]
    fn a_hold_ends_after_its_time_or_when_it_is_settled() {
        let mut holds = Holds::default();
        begin(&mut holds, 10, b"a", 20, vec![charge(1)]);
        begin(&mut holds, 12, b"b", 30, vec![charge(1), charge(2)]);
        assert_eq!(holds.get(b"a", at(19)), Some(&[charge(1)][..]));
        assert_eq!(holds.get(b"a", at(20)), None);
        assert_eq!((holds.count(at(19)), holds.count(at(20)), holds.count(at(30))), (2, 1, 0));
        assert_eq!(holds.charged(at(19)), Some([(name(1), (2, 6)), (name(2), (1, 3))].into()));
        assert_eq!(holds.charged(at(20)), Some([(name(1), (1, 3)), (name(2), (1, 3))].into()));
        assert!(holds.passed(at(19)).is_none());
        pass(&mut holds, 20);
        assert!(holds.passed(at(29)).is_none());
        apply(&mut holds, &Change { ended: Some(b"b"), ..Change::passed(at(21)) });
        assert_eq!(encoded(&holds), encoded(&Holds { timeline: holds.timeline, ..Holds::default() }));
        assert_eq!(holds.until(Span::ZERO), Time::EPOCH);
    }

    #[test]
    fn the_bytes_do_not_depend_on_the_order_in_which_holds_began() {
        let set = |ids: [u8; 3]| {
            let mut holds = Holds::default();
            for id in ids {
                begin(&mut holds, 10, &[id], 20 + u64::from(id % 2), vec![charge(1)]);
            }
            encoded(&holds)
        };
        assert_eq!(set([1, 2, 3]), set([3, 1, 2]));
    }

    #[test]
    fn a_clock_that_was_set_back_moves_the_ends() {
        let mut holds = Holds::default();
        begin(&mut holds, 1000, b"a", 1020, vec![charge(1)]);
        assert!(holds.passed(at(980)).is_none());
        pass(&mut holds, 979);
        assert!(holds.get(b"a", at(998)).is_some() && holds.get(b"a", at(999)).is_none());
    }

    #[test]
    fn a_moved_limit_moves_what_was_charged_to_it_alone() {
        let mut holds = Holds::default();
        begin(&mut holds, 10, b"a", 20, vec![charge(1), charge(2)]);
        begin(&mut holds, 10, b"b", 20, vec![charge(2)]);
        assert!(holds.moved(name(1), Move::all_since(at(8), at(9), at(9))).is_some());
        assert!(holds.moved(name(2), Move::Step { from: at(10), to: at(10) }).is_none());
        let moved = holds.moved(name(1), Move::Step { from: at(10), to: at(12) }).unwrap();
        apply(&mut holds, &moved);
        assert_eq!(holds.get(b"a", at(10)), Some(&[Charge { at: at(9), ..charge(1) }, charge(2)][..]));
        holds.rename(name(1), name(2));
        assert_eq!(holds.get(b"a", at(10)), Some(&[Charge { at: at(9), ..charge(2) }][..]));
        // What was charged to another limit of the new name has nothing left to be given back to.
        assert_eq!(holds.get(b"b", at(10)), Some(&[Charge { at: Time::EPOCH, ..charge(2) }][..]));
    }

    #[test]
    fn a_move_gathers_what_counts_or_makes_a_step() {
        let of = |by: Move| [5, 6, 7, 8].map(|micros| by.of(at(micros)).as_micros());
        assert_eq!(of(Move::Step { from: at(8), to: at(3) }), [0, 1, 2, 3]);
        assert_eq!(of(Move::all_since(at(6), at(8), at(9))), [0, 8, 8, 8]);
        assert_eq!(of(Move::all_since(at(6), at(8), at(2))), [0, 2, 2, 2]);
        assert_eq!(of(Move::NOWHERE), [0; 4]);
        let some = Move::Gather { since: at(6), until: at(7), to: at(9), keeps_others: true };
        assert_eq!(of(some), [5, 9, 9, 8]);
        assert_eq!(some.of(Time::EPOCH), Time::EPOCH);
    }

    #[test]
    fn a_hold_without_charges_or_with_one_twice_or_that_has_ended_is_malformed() {
        let decodes = |ends, charges: &[Charge]| {
            let mut bytes = Vec::new();
            put_words(&mut bytes, [9, 0, 1]);
            encode_hold(&mut bytes, b"a", at(ends), charges);
            Holds::decode(&mut Reader::new(&bytes)).is_some()
        };
        assert!(decodes(10, &[charge(1)]) && decodes(10, &[charge(1), charge(2)]));
        assert!(!decodes(9, &[charge(1)]) && !decodes(10, &[]));
        assert!(!decodes(10, &[charge(1), charge(1)]) && !decodes(10, &[charge(2), charge(1)]));
        assert!(!decodes(10, &[Charge { cost: 0, ..charge(1) }]));
        let holds = Name { kind: Kind::Holds, length: Length::NONE };
        assert!(!decodes(10, &[Charge { name: holds, ..charge(1) }]));
        let shadow = Name { length: name(1).length.in_shadow(), ..name(1) };
        assert!(!decodes(10, &[Charge { name: shadow, ..charge(1) }]));
        let many: Vec<Charge> = (1..=17).map(charge).collect();
        assert!(decodes(10, &many[..16]) && !decodes(10, &many));
    }

    #[test]
    fn ended_holds_are_freed_a_few_at_a_time() {
        let mut holds = Holds::default();
        for id in 0..10_000u32 {
            begin(&mut holds, 10, &id.to_be_bytes(), 20, vec![charge(1)]);
        }
        pass(&mut holds, 20);
        assert!(holds.table.len() > 9_900);
        assert_eq!(holds.count(at(20)), 0);
    }
}
