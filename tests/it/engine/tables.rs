//! Tables of policies that a primary in memory sends to its copies in pieces, while its policies change.

use ratelimit_engine::memory::{Effect, Memory, Role};
use ratelimit_engine::policies::{self, Sending, To};

use super::node::{call, text};
use crate::support::dice::Dice;

/// A policy of some hundred bytes or a few thousand.
fn set(memory: &Memory, dice: &mut Dice) {
    let (number, limits, count) = (dice.below(400), 1 + dice.below(60), 1 + dice.below(99));
    let limits = (1..=limits)
        .map(|minutes| format!(" LIMIT FIXEDWINDOW {count} {minutes}m"))
        .collect::<Vec<_>>()
        .concat();
    text(memory, &format!("RL.POLICY SET policy{number}{limits}"));
}

fn lines(memory: &Memory) -> Vec<String> {
    memory.node().policies().lines().collect()
}

#[test]
fn a_table_in_pieces_amid_changes_is_that_of_the_primary() {
    let mut dice = Dice::new(17);
    let mut pieces = 0;
    for round in 0..8 {
        let primary = Memory::new(0);
        let copies = [(); 2].map(|()| {
            let copy = Memory::new(0);
            // What it has of its own goes.
            (0..20).for_each(|_| set(&copy, &mut dice));
            copy.set_role(Role::Copy);
            copy
        });
        (0..200 + dice.below(200)).for_each(|_| set(&primary, &mut dice));
        primary.take_effects();
        let [whole, late] = &copies;
        let (mut last, mut goes_on, mut is_first) = (None, true, true);
        while goes_on {
            for _ in 0..dice.below(20) {
                match dice.below(3) {
                    0 => _ = text(&primary, &format!("RL.POLICY DEL policy{}", dice.below(400))),
                    _ => set(&primary, &mut dice),
                }
            }
            let mut effects = primary.take_effects();
            let (piece, name) = primary.node().policies().piece(last.as_deref());
            (goes_on, last) = (piece.goes_on(), name);
            effects.push(Effect::Policies(piece));
            pieces += 1;
            for effect in &effects {
                whole.apply(effect).expect("an effect");
                // This one has come too late for the table, if it has several pieces.
                if !is_first || !goes_on {
                    late.apply(effect).expect("an effect");
                }
            }
            is_first = false;
        }
        assert_eq!(lines(whole), lines(&primary), "round {round}");
        let again = primary.node().policies().pieces();
        for piece in again {
            late.apply(&Effect::Policies(piece)).expect("an effect");
        }
        for copy in &copies {
            assert_eq!(lines(copy), lines(&primary), "round {round}");
            assert_eq!(copy.node().policies().digest(), primary.node().policies().digest());
            // Every word of it can be parsed.
            let all = copy.node().policies().first(usize::MAX);
            for (name, _) in all {
                text(copy, &format!("RL.ASKPEEK key {name}"));
            }
            assert_eq!(lines(copy), lines(&primary), "round {round}");
        }
    }
    assert!(pieces > 20, "{pieces}");
}

#[test]
fn the_bytes_of_all_policies_are_counted_and_bounded() {
    let memory = Memory::new(0);
    let mut dice = Dice::new(19);
    (0..50).for_each(|_| set(&memory, &mut dice));
    for name in 0..400 {
        text(&memory, &format!("RL.POLICY DEL policy{name}"));
    }
    assert!(lines(&memory).is_empty());
    // Another node may send more than this one stores by itself.
    let line = |number: usize| {
        format!("policy{number} VERSION 1 LIMIT SMOOTH 4 1s WARMUP 4s COLDFACTOR 3.{}\n", "0".repeat(2000))
    };
    let most = (16 << 20) / line(10_000).len();
    let all = (10_000..10_000 + most).map(line).collect::<Vec<_>>().concat();
    memory
        .apply(&Effect::Policies(policies::Effect::of(b"ALL", all.as_bytes()).expect("an effect")))
        .expect("a table");
    let ask = |name: usize| format!("RL.POLICY SET {}", line(name).trim_end());
    let told = Err("ERR all policies may have 16777216 bytes in all".into());
    assert_eq!(call(&memory, &ask(99_999)), told);
    // One that goes makes room for one as long, and what another node sends is stored all the same.
    text(&memory, "RL.POLICY DEL policy10000");
    text(&memory, &ask(99_999));
    let another = policies::Effect::of(b"SET", line(99_998).as_bytes()).expect("an effect");
    memory.apply(&Effect::Policies(another)).expect("one more");
    assert_eq!(memory.node().policies().len(), most + 1);
    assert_eq!(call(&memory, &ask(99_997)), told);
    let long = format!("RL.POLICY SET long LIMIT SMOOTH 4 1s WARMUP 4s COLDFACTOR 3.{}", "0".repeat(40_000));
    let told = call(&Memory::new(0), &long);
    assert_eq!(told, Err("ERR policy 'long' is longer than 32768 bytes".into()));
}

#[test]
fn a_snapshot_amid_a_table_has_what_has_come_of_it() {
    let mut dice = Dice::new(23);
    let primary = Memory::new(0);
    (0..300).for_each(|_| set(&primary, &mut dice));
    let pieces = primary.node().policies().pieces();
    let [first, .., last] = &pieces[..] else { panic!("one piece") };
    for cut in 1..pieces.len() {
        let copy = Memory::new(0);
        copy.set_role(Role::Copy);
        for piece in &pieces[..cut] {
            copy.apply(&Effect::Policies(piece.clone())).expect("a piece");
        }
        // An RDB, and an AOF of effects.
        let (of_rdb, of_aof) = (Memory::new(0), Memory::new(0));
        let (table, next) =
            policies::decode(&policies::encode(copy.node()), &policies::Policies::NONE).expect("a table");
        *of_rdb.node().policies() = table;
        *of_rdb.node().next_policies() = next;
        let effects = copy.node().policies().pieces().into_iter().chain(policies::begun(copy.node()));
        for effect in effects {
            of_aof.apply(&Effect::Policies(effect)).expect("an effect");
        }
        for memory in [&copy, &of_rdb, &of_aof] {
            assert!(lines(memory).is_empty());
            for piece in &pieces[cut..] {
                memory.apply(&Effect::Policies(piece.clone())).expect("a piece");
            }
            assert_eq!(lines(memory), lines(&primary), "cut after {cut}");
        }
        // What begins or is whole ends what was begun.
        copy.apply(&Effect::Policies(first.clone())).expect("a piece");
        let whole = policies::Effect::of(b"ALL", b"one VERSION 1 LIMIT UNIFORM 1s\n").expect("an effect");
        copy.apply(&Effect::Policies(whole)).expect("a table");
        copy.apply(&Effect::Policies(last.clone())).expect("a piece of none");
        assert_eq!(lines(&copy), ["one VERSION 1 LIMIT UNIFORM 1s\n"]);
    }
}

/// A primary, its replicas and its AOF. Each change is sent as a server does it.
struct World {
    primary: Memory,
    sending: Sending,
    replicas: Vec<Memory>,
    /// A copy of what the AOF begins with, and the effects behind it.
    aof: (Memory, Vec<policies::Effect>),
}

impl World {
    fn send(&mut self, effects: Vec<policies::Effect>, to: To) {
        for effect in effects {
            if to != To::Aof {
                for replica in &self.replicas {
                    replica.apply(&Effect::Policies(effect.clone())).expect("an effect");
                }
            }
            if to != To::Replicas {
                self.aof.1.push(effect);
            }
        }
    }

    fn call(&mut self, line: &str) {
        text(&self.primary, line);
        for effect in self.primary.take_effects() {
            let Effect::Policies(effect) = effect else { panic!("{line} is about policies") };
            self.send(vec![effect], To::Both);
        }
    }

    /// `RL.POLICY LOAD` of a file that has `count` lines.
    fn load(&mut self, dice: &mut Dice, count: u64) {
        let file = Memory::new(0);
        (0..count).for_each(|_| set(&file, dice));
        *self.primary.node().policies() = file.node().policies().clone();
        if let Some(whole) = self.sending.replace(self.primary.node()) {
            self.send(vec![whole], To::Both);
        }
    }

    /// A server's cron event. Returns whether something was sent.
    fn cron(&mut self) -> bool {
        let next = self.sending.next(self.primary.node(), true);
        let is_sent = next.is_some();
        if let Some((effects, to)) = next {
            self.send(effects, to);
        }
        is_sent
    }

    /// A node that has loaded an RDB of another.
    fn snapshot(of: &Memory) -> Memory {
        let copy = Memory::new(0);
        copy.set_role(Role::Copy);
        let bytes = policies::encode(of.node());
        let (table, next) = policies::decode(&bytes, &policies::Policies::NONE).expect("a table");
        *copy.node().policies() = table;
        *copy.node().next_policies() = next;
        copy
    }
}

#[test]
fn copies_have_the_policies_of_their_primary_when_all_is_sent() {
    let mut dice = Dice::new(29);
    for round in 0..6 {
        let empty = || World::snapshot(&Memory::new(0));
        let mut world = World {
            primary: Memory::new(0),
            sending: Sending::NOTHING,
            replicas: vec![empty()],
            aof: (empty(), Vec::new()),
        };
        for _ in 0..150 {
            match dice.below(16) {
                0 => {
                    let count = if dice.one_in(2) { 5 } else { 150 };
                    world.load(&mut dice, count);
                }
                // A replica with a full copy, of the primary or of another replica, and one whose copy is old.
                1 => world.replicas.push(World::snapshot(&world.primary)),
                2 => world.replicas.push(World::snapshot(dice.pick(&world.replicas))),
                3 => {
                    world.replicas.push(empty());
                    world.sending.replica_came();
                }
                // The AOF is rewritten, with an RDB or with keys alone.
                4 => world.aof = (World::snapshot(&world.primary), Vec::new()),
                5 => {
                    world.aof = (empty(), Vec::new());
                    world.sending.aof_lacks_policies();
                }
                6 => world.call(&format!("RL.POLICY DEL policy{}", dice.below(400))),
                7..10 => {
                    let own = Memory::new(0);
                    set(&own, &mut dice);
                    let line = lines(&own).concat();
                    world.call(&format!("RL.POLICY SET {}", line.trim_end().replace(" VERSION 1", "")));
                }
                _ => _ = world.cron(),
            }
        }
        // One comes when the AOF has its table and replicas have a piece of their own.
        world.load(&mut dice, 150);
        assert!(world.cron() && world.cron() && world.sending.is_owed());
        world.replicas.push(empty());
        world.sending.replica_came();
        while world.cron() {}
        assert!(!world.sending.is_owed());
        let expected = lines(&world.primary);
        let (of_aof, effects) = world.aof;
        for effect in effects {
            of_aof.apply(&Effect::Policies(effect)).expect("an effect");
        }
        for copy in world.replicas.iter().chain([&of_aof]) {
            assert_eq!(lines(copy), expected, "round {round}");
        }
    }
}

#[test]
fn whatever_stands_in_an_rdb_is_an_error_or_a_table() {
    let mut dice = Dice::new(31);
    let memory = Memory::new(0);
    (0..6).for_each(|_| set(&memory, &mut dice));
    let (first, _) = memory.node().policies().piece(None);
    let begun = policies::Effect::of(b"FIRST", &first.argument).expect("an effect");
    memory.apply(&Effect::Policies(begun)).expect("a piece");
    let bytes = policies::encode(memory.node());
    let (mut tables, mut errors) = (0, 0);
    for _ in 0..8000 {
        let mut bytes = bytes.clone();
        for _ in 0..=dice.below(3) {
            let place = dice.index(bytes.len());
            match dice.below(4) {
                0 => bytes.truncate(place + 1),
                1 => _ = bytes.remove(place),
                2 => bytes.insert(place, *dice.pick(b"\0\n 9-V\xff")),
                _ => bytes[place] = *dice.pick(b"\0\n 90V\x01\xff"),
            }
            if bytes.is_empty() {
                bytes.push(1);
            }
        }
        let Ok((table, next)) = policies::decode(&bytes, &policies::Policies::NONE) else {
            errors += 1;
            continue;
        };
        tables += 1;
        let copy = Memory::new(0);
        *copy.node().policies() = table;
        *copy.node().next_policies() = next;
        // It can be written and read again, and each policy of it can be asked for, changed and deleted.
        assert!(policies::decode(&policies::encode(copy.node()), &policies::Policies::NONE).is_ok());
        let all = copy.node().policies().first(usize::MAX);
        for (name, _) in all {
            _ = call(&copy, &format!("RL.ASKPEEK key {name}"));
            text(&copy, &format!("RL.POLICY STATS {name}"));
            text(&copy, &format!("RL.POLICY DEL {name}"));
        }
        assert!(copy.node().policies().is_empty());
    }
    assert!(tables > 800 && errors > 800, "{tables} tables, {errors} errors");
}
