//! Tables of policies that a primary sends to its copies in pieces, while its policies change.

use ratelimit_dice::Dice;
use ratelimit_engine::memory::Effect::Policies;
use ratelimit_engine::memory::{Called, Element, Memory, Role};
use ratelimit_engine::policies::{self, Effect, Sending, To};

/// Calls a line of words. `Err` is its error.
fn call(memory: &Memory, line: &str) -> Result<(), String> {
    match memory.call(&line.split_whitespace().map(str::as_bytes).collect::<Vec<_>>()) {
        Called::Waits(_) => panic!("{line} waits"),
        Called::Replied(reply) => match Element::from(&reply) {
            Element::Error(error) => Err(error.to_string()),
            _ => Ok(()),
        },
    }
}

fn change(memory: &Memory, line: &str) {
    call(memory, line).unwrap_or_else(|error| panic!("{line}: {error}"));
}

fn apply(memory: &Memory, effect: &Effect) {
    memory.apply(&Policies(effect.clone())).expect("an effect");
}

/// A policy of some hundred bytes or a few thousand.
fn any_policy(dice: &mut Dice) -> String {
    let (number, limits, count) = (dice.below(400), 1 + dice.below(60), 1 + dice.below(99));
    let limits: Vec<String> =
        (1..=limits).map(|minutes| format!("LIMIT FIXEDWINDOW {count} {minutes}m")).collect();
    format!("RL.POLICY SET policy{number} {}", limits.join(" "))
}

fn with(count: u64, dice: &mut Dice) -> Memory {
    let memory = Memory::new(0);
    (0..count).for_each(|_| change(&memory, &any_policy(dice)));
    memory
}

/// A node that has loaded an RDB of another.
fn snapshot(of: &Memory) -> Memory {
    let copy = Memory::new(0);
    copy.set_role(Role::Copy);
    read(&copy, &policies::encode(of.node())).expect("a table");
    copy
}

/// Gives a node the policies of an RDB.
fn read(memory: &Memory, bytes: &[u8]) -> Option<()> {
    let (table, next) = policies::decode(bytes, &policies::Policies::NONE).ok()?;
    *memory.node().policies() = table;
    *memory.node().next_policies() = next;
    Some(())
}

fn lines(memory: &Memory) -> Vec<String> {
    memory.node().policies().lines().collect()
}

#[test]
fn the_bytes_of_all_policies_are_counted_and_bounded() {
    let memory = with(50, &mut Dice::new(19));
    for name in 0..400 {
        change(&memory, &format!("RL.POLICY DEL policy{name}"));
    }
    assert!(lines(&memory).is_empty());
    // Another node may send more than this one stores by itself.
    let line = |number: usize| {
        format!("policy{number} VERSION 1 LIMIT SMOOTH 4 1s WARMUP 4s COLDFACTOR 3.{}\n", "0".repeat(2000))
    };
    let most = (16 << 20) / line(10_000).len();
    let all: String = (10_000..10_000 + most).map(line).collect();
    apply(&memory, &Effect::of(b"ALL", all.as_bytes()).expect("an effect"));
    let ask = |name: usize| format!("RL.POLICY SET {}", line(name).trim_end());
    let told = Err("ERR all policies may have 16777216 bytes in all".into());
    assert_eq!(call(&memory, &ask(99_999)), told);
    // One that goes makes room for one as long, and what another node sends is stored all the same.
    change(&memory, "RL.POLICY DEL policy10000");
    change(&memory, &ask(99_999));
    apply(&memory, &Effect::of(b"SET", line(99_998).as_bytes()).expect("an effect"));
    assert_eq!(memory.node().policies().len(), most + 1);
    assert_eq!(call(&memory, &ask(99_997)), told);
}

#[test]
fn a_snapshot_amid_a_table_has_what_has_come_of_it() {
    let primary = with(300, &mut Dice::new(23));
    let pieces = primary.node().policies().pieces();
    let [first, .., last] = &pieces[..] else { panic!("one piece") };
    for cut in 1..pieces.len() {
        let copy = snapshot(&Memory::new(0));
        pieces[..cut].iter().for_each(|piece| apply(&copy, piece));
        // An RDB, and an AOF of effects.
        let (of_rdb, of_aof) = (snapshot(&copy), Memory::new(0));
        let effects = copy.node().policies().pieces().into_iter().chain(policies::begun(copy.node()));
        effects.for_each(|effect| apply(&of_aof, &effect));
        for memory in [&copy, &of_rdb, &of_aof] {
            assert!(lines(memory).is_empty());
            pieces[cut..].iter().for_each(|piece| apply(memory, piece));
            assert_eq!(lines(memory), lines(&primary), "cut after {cut}");
        }
        // What begins or is whole ends what was begun.
        apply(&copy, first);
        apply(&copy, &Effect::of(b"ALL", b"one VERSION 1 LIMIT UNIFORM 1s\n").expect("an effect"));
        apply(&copy, last);
        assert_eq!(lines(&copy), ["one VERSION 1 LIMIT UNIFORM 1s\n"]);
    }
}

/// A primary, its replicas and its AOF. Each change is sent as a server does it.
struct World {
    primary: Memory,
    sending: Sending,
    replicas: Vec<Memory>,
    /// A copy of what the AOF begins with, and the effects behind it.
    aof: (Memory, Vec<Effect>),
}

impl World {
    fn send(&mut self, effects: Vec<Effect>, to: To) {
        for effect in effects {
            if to != To::Aof {
                self.replicas.iter().for_each(|replica| apply(replica, &effect));
            }
            if to != To::Replicas {
                self.aof.1.push(effect);
            }
        }
    }

    fn call(&mut self, line: &str) {
        change(&self.primary, line);
        for effect in self.primary.take_effects() {
            let Policies(effect) = effect else { panic!("{line} is about policies") };
            self.send(vec![effect], To::Both);
        }
    }

    /// `RL.POLICY LOAD` of a file that has `count` lines.
    fn load(&mut self, dice: &mut Dice, count: u64) {
        *self.primary.node().policies() = with(count, dice).node().policies().clone();
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
}

#[test]
fn copies_have_the_policies_of_their_primary_when_all_is_sent() {
    let mut dice = Dice::new(29);
    for round in 0..6 {
        let empty = || snapshot(&Memory::new(0));
        // What a replica has of its own goes with its first table.
        let own = snapshot(&with(20, &mut dice));
        let mut world = World {
            primary: Memory::new(0),
            sending: Sending::NOTHING,
            replicas: vec![empty(), own],
            aof: (empty(), Vec::new()),
        };
        world.load(&mut dice, 5);
        for _ in 0..150 {
            match dice.below(16) {
                0 => {
                    let count = if dice.one_in(2) { 5 } else { 150 };
                    world.load(&mut dice, count);
                }
                // A replica with a full copy, of the primary or of another replica, and one whose copy is old.
                1 => world.replicas.push(snapshot(&world.primary)),
                2 => world.replicas.push(snapshot(dice.pick(&world.replicas))),
                3 => {
                    world.replicas.push(empty());
                    world.sending.replica_came();
                }
                // The AOF is rewritten, with an RDB or with keys alone.
                4 => world.aof = (snapshot(&world.primary), Vec::new()),
                5 => {
                    world.aof = (empty(), Vec::new());
                    world.sending.aof_lacks_policies();
                }
                6 => world.call(&format!("RL.POLICY DEL policy{}", dice.below(400))),
                7..10 => world.call(&any_policy(&mut dice)),
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
        for effect in &effects {
            apply(&of_aof, effect);
        }
        for copy in world.replicas.iter().chain([&of_aof]) {
            assert_eq!(lines(copy), expected, "round {round}");
            assert_eq!(copy.node().policies().digest(), world.primary.node().policies().digest());
        }
    }
}

#[test]
fn whatever_stands_in_an_rdb_is_an_error_or_a_table() {
    let mut dice = Dice::new(31);
    let memory = with(6, &mut dice);
    let (first, _) = memory.node().policies().piece(None);
    apply(&memory, &Effect::of(b"FIRST", &first.argument).expect("an effect"));
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
        let copy = Memory::new(0);
        if read(&copy, &bytes).is_none() {
            errors += 1;
            continue;
        }
        tables += 1;
        // It can be written and read again, and each policy of it can be asked for, changed and deleted.
        snapshot(&copy);
        let all = copy.node().policies().first(usize::MAX);
        for (name, _) in all {
            _ = call(&copy, &format!("RL.ASKPEEK key {name}"));
            change(&copy, &format!("RL.POLICY STATS {name}"));
            change(&copy, &format!("RL.POLICY DEL {name}"));
        }
        assert!(copy.node().policies().is_empty());
    }
    assert!(tables > 800 && errors > 800, "{tables} tables, {errors} errors");
}
