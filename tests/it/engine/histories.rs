//! Random histories of all commands, on memory and on a server whose wall clock stands still.

use std::sync::atomic::Ordering::Relaxed;

use ratelimit_core::{Kind, Time};
use ratelimit_engine::memory::{Called, Memory};
use redis::Connection;

use super::{Replied, as_read, on_memory, on_server, restored};
use crate::support::dice::Dice;
use crate::support::wall_clock::WallClock;
use crate::support::{T0, dump_bytes, refused, shortest, skipped, text};

const CALLS: &str = include_str!("calls.txt");
const KEYS: [&str; 4] = ["ann", "bob", "team", "pool"];

/// Fills the holes of a call with one of a few keys, ids and instants.
fn filled(call: &str, dice: &mut Dice, now: u64) -> String {
    // Without `AT`, it is a call at the clock's instant.
    let call = if dice.one_in(4) { call.replace(" AT {at}", "") } else { call.into() };
    call.replace("{key}", dice.pick::<&str>(&KEYS[..3]))
        .replace("{other}", dice.pick::<&str>(&KEYS[1..]))
        .replace("{id}", dice.pick::<&str>(&["r1", "r2", "r3", "r4"]))
        .replace("{tenant}", dice.pick::<&str>(&["acme", "zeta"]))
        .replace("{policy}", dice.pick::<&str>(&["p", "q"]))
        .replace("{limiter}", dice.pick::<&str>(&["GCRA", "RL.XADD", "SHED"]))
        .replace("{cost}", &dice.below(8).to_string())
        .replace("{at}", &(now - 1_000_000 + dice.below(3_000_000)).to_string())
}

/// The kinds of calls; `!` marks an error.
fn kinds() -> Vec<&'static str> {
    CALLS.lines().skip(1).collect()
}

/// What memory replies to a call that does not wait.
fn replied(memory: &Memory, line: &str) -> Replied {
    let Called::Replied(reply) = on_memory(memory, line) else { panic!("{line} waits") };
    as_read(&reply)
}

/// The first words of a call.
fn cut(line: &str, dice: &mut Dice) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    words[..=dice.index(words.len())].join(" ")
}

/// Tenants stay hungry for this long, so for all of a history.
const HUNGER: i64 = 86_400_000;
const TOP: i64 = 100;

struct Both {
    memory: Memory,
    server: WallClock,
    con: Connection,
}

impl Both {
    fn start() -> Both {
        let (hunger, top) = (HUNGER.to_string(), TOP.to_string());
        let settings = ["--ratelimit.hunger", &hunger, "--ratelimit.top", &top, "--rdbcompression", "no"];
        let server = WallClock::start(0, &settings);
        let mut con = server.server.connection();
        // Expired keys are left to the calls that meet them. Redis 8.6 removes a key in its last instant by itself.
        text(&mut con, "DEBUG SET-ACTIVE-EXPIRE 0");
        Both { memory: Memory::new(0), server, con }
    }

    /// Both sides have no keys, no policies and no counts.
    fn begin(&mut self) {
        for line in ["FLUSHALL", "RL.POLICY DEL p", "RL.POLICY DEL q", "RL.TOP RESET"] {
            text(&mut self.con, line);
        }
        self.memory = Memory::new(0);
        let settings = &self.memory.node().settings;
        settings.hunger.millis.store(HUNGER.cast_unsigned(), Relaxed);
        settings.top.value.store(TOP, Relaxed);
    }

    fn set_clock(&self, seconds: u64) {
        self.server.stop(seconds);
        self.memory.set_clock(Time::from_millis(1000 * seconds));
    }

    /// What memory and the server reply.
    fn call(&mut self, line: &str) -> [Replied; 2] {
        [replied(&self.memory, line), on_server(&mut self.con, line)]
            .map(|replied| replied.map(|reply| restored(shortest(reply), HUNGER)))
    }

    /// Compares the bytes and expiries of all keys, and returns how many there are.
    fn compare_keys(&mut self) -> usize {
        let keys = self.memory.dump();
        for (key, bytes, expiry) in &keys {
            let name = str::from_utf8(&key.name).unwrap();
            let dump = dump_bytes(&mut self.con, name);
            // Behind the value are the end of the module's data, a version and a sum; before it the type, the module and a length.
            let body = &dump[..dump.len() - 11];
            // The server draws the key of a sketch's hash.
            let is_sketch = bytes[0] == Kind::Cells as u8;
            assert!(is_sketch || body.ends_with(bytes) && body.len() < bytes.len() + 20, "{name}");
            assert_eq!(text(&mut self.con, &format!("PEXPIRETIME {name}")), expiry.unwrap().to_string());
        }
        assert_eq!(text(&mut self.con, &format!("EXISTS {}", KEYS.join(" "))), keys.len().to_string());
        keys.len()
    }
}

#[test]
fn memory_answers_every_command_as_a_server_does() {
    let mut both = Both::start();
    if !both.server.stands_still() {
        return skipped(&mut both.con, "clock that stands still between two looks");
    }
    let mut dice = Dice::new(11);
    let kinds = kinds();
    let mut counts = vec![[0, 0]; kinds.len()];
    let (mut refusals, mut keys) = (0, 0);
    for round in 0..300 {
        let mut now = 1_700_002_800 + 100 * round;
        both.begin();
        let mut before = Vec::new();
        for number in 0..60 {
            if number % 15 == 0 {
                now += dice.below(20);
                both.set_clock(now);
            }
            let kind = dice.index(kinds.len());
            let line = filled(kinds[kind].trim_start_matches("! "), &mut dice, 1_000_000 * now);
            let line = if dice.one_in(12) { cut(&line, &mut dice) } else { line };
            let [memory, server] = both.call(&line);
            assert_eq!(memory, server, "round {round}, at {now}: {line}, after\n{}", before.join("\n"));
            counts[kind][usize::from(server.is_err())] += 1;
            refusals += usize::from(server.is_ok_and(|reply| refused(&reply)));
            before.push(line);
        }
        keys += both.compare_keys();
    }
    for (kind, [replied, errors]) in kinds.iter().zip(counts) {
        let most = if kind.starts_with('!') { errors } else { replied };
        assert!(most > 20, "{kind}: {replied} replies, {errors} errors");
    }
    assert!(refusals > 300 && keys > 300, "{refusals} refused, {keys} keys compared");
}

/// A request that is planned does what one without a plan does.
#[test]
fn a_request_does_the_same_with_and_without_a_plan() {
    let [plain, planned] = [0; 2].map(Memory::new);
    for memory in [&plain, &planned] {
        memory.set_clock(Time::from_micros(T0));
        replied(memory, "RL.UNIFORM elsewhere 30s").expect("a gate");
    }
    // While somebody waits for any key, all requests are planned.
    assert!(matches!(on_memory(&planned, "RL.UNIFORM elsewhere 30s BLOCK 1m"), Called::Waits(_)));
    let (mut dice, kinds) = (Dice::new(13), kinds());
    for number in 0..30_000 {
        let kind = dice.pick(&kinds).trim_start_matches("! ");
        let line = filled(kind, &mut dice, T0 + 20_000 * number);
        assert_eq!(replied(&plain, &line), replied(&planned, &line), "call {number}: {line}");
        assert!(number % 100 > 0 || plain.dump() == planned.dump(), "call {number}: {line}");
    }
    assert_eq!([&plain, &planned].map(|memory| memory.node().waiting.is_anybody()), [false, true]);
}
