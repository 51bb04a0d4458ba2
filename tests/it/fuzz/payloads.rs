//! Random dumps and effects that the module did not write: each is an error that changes nothing, or a key that works.
//!
//! The server may take half a gigabyte of address space and no more, so that an allocation of a length that a
//! payload merely claims ends it.

use redis::{Connection, Value};

use crate::support::dice::Dice;
use crate::support::fuzz::caller::Caller;
use crate::support::fuzz::corpus::{Corpus, Dump};
use crate::support::fuzz::grammar::{commands, field, fields};
use crate::support::fuzz::probe::{Seen, Way, agree, ask};
use crate::support::fuzz::promises::decisions;
use crate::support::fuzz::request::Request;
use crate::support::fuzz::{confined, count, garble, rounds, typed};
use crate::support::{Server, call_bytes, info, simple, text};

/// Payloads of a round.
const PAYLOADS: usize = 1500;
/// What a key may take for each byte of what it was made of, and on top.
const BYTES_PER_BYTE: i64 = 32;
const BYTES_EACH: i64 = 1024;
/// The most that memory in use may ever have grown by.
const MOST_GROWTH: u64 = 64 << 20;

#[test]
fn a_dump_at_random_is_refused_or_makes_a_key_that_works() {
    let corpus = Corpus::collect();
    let (states, server) = (corpus.states(), confined(&[]));
    let mut restored = 0;
    rounds("dumps", &[1, 2, 3, 1_882_397_491_593_238], |seed| {
        let mut fuzzer = Fuzzer::new(&server, seed);
        let peak = fuzzer.peak();
        for number in 0..PAYLOADS {
            fuzzer.caller.dice = Dice::of(seed, number);
            let dump = spoilt(
                &corpus.dumps[fuzzer.caller.dice.index(corpus.dumps.len())],
                &states,
                &mut fuzzer.caller.dice,
            );
            let deadline: &[u8] = if fuzzer.caller.dice.one_in(2) { b"0" } else { b"4200000" };
            let seen = fuzzer.ask(&[b"RESTORE", b"key", deadline, &dump, b"REPLACE"], &[b"key"]);
            if seen.error().is_none() {
                restored += 1;
                fuzzer.exercise(&seen, b"key", dump.len());
            }
        }
        assert!(fuzzer.peak() < peak + MOST_GROWTH, "memory has grown from {peak} to {}", fuzzer.peak());
    });
    // The test is worth its time only if some are keys.
    assert!(restored > 300, "{restored} restored");
}

#[test]
fn an_effect_at_random_is_refused_or_applied_and_replicas_agree() {
    let corpus = Corpus::collect();
    let primary = confined(&[]);
    // What `DUMP` tells depends on the compression.
    let replica = primary.replica(&["--propagation-error-behavior", "panic", "--rdbcompression", "no"]);
    let mut applied = 0;
    rounds("effects", &[1, 2, 3], |seed| {
        let mut fuzzer = Fuzzer::new(&primary, seed);
        let peak = fuzzer.peak();
        for number in 0..PAYLOADS {
            fuzzer.caller.dice = Dice::of(seed, number);
            let payloads = effects(&corpus, &mut fuzzer.caller.dice);
            let keys: Vec<String> =
                (0..payloads.len()).map(|_| format!("key:{}", fuzzer.caller.dice.below(5))).collect();
            let mut words: Vec<&[u8]> = vec![b"RL.APPLY"];
            words.extend(keys.iter().zip(&payloads).flat_map(|(key, payload)| [key.as_bytes(), payload]));
            let names: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
            let seen = fuzzer.ask(&words, &names);
            if let Some(error) = seen.error() {
                let malformed = "ERR malformed payload, or one of a newer version";
                seen.insist(error == malformed, "it must be told why");
            } else {
                applied += 1;
                // A key is made of many effects, and each adds no more than it says.
                fuzzer.exercise(&seen, names[0], 1 << 20);
            }
        }
        agree(&primary, &replica);
        assert!(fuzzer.peak() < peak + MOST_GROWTH, "memory has grown from {peak} to {}", fuzzer.peak());
    });
    assert!(applied > 300, "{applied} applied");
}

fn spoilt(dump: &Dump, states: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut state = dump.state.clone();
    match dice.below(20) {
        0 => dump.of_version(dice.byte()),
        1 => {
            // A length that is not there, of one, two, five or nine bytes. The server itself allocates what the length of a
            // string claims, also for its own types, and Redis 8.6 counts that. So it claims at most 32 MB, or more than the
            // server may have.
            let length = match dice.below(4) {
                0 => vec![dice.byte() & 0x3f],
                1 => vec![0x40 | dice.byte() & 0x3f, dice.byte()],
                2 => [&[0x80, dice.byte() & 1], &dice.bytes(3)[..]].concat(),
                _ => [&[0x81], &dice.bytes(8)[..]].concat(),
            };
            dump.framed(&length, &state)
        }
        2 => {
            // The type is left as it is: what the server makes of other types is its own concern.
            let mut whole = dump.whole();
            whole.truncate(1 + dice.index(whole.len()));
            whole
        }
        _ => {
            garble(&mut state, states, dice);
            dump.with(&state)
        }
    }
}

/// A payload or a few, one of which at least is mostly not sound.
fn effects(corpus: &Corpus, dice: &mut Dice) -> Vec<Vec<u8>> {
    let count = 1 + dice.index(3);
    let mut chosen: Vec<Vec<u8>> =
        (0..count).map(|_| corpus.payloads[dice.index(corpus.payloads.len())].clone()).collect();
    let spoilt = &mut chosen[dice.index(count)];
    if dice.one_in(6) {
        // A whole state, as a rewrite of an AOF writes it.
        let state = &corpus.dumps[dice.index(corpus.dumps.len())].state;
        *spoilt = [&[1, state[0], 2], &state[1..]].concat();
    }
    match dice.below(12) {
        // Sound, but perhaps not for this key.
        0..=2 => {}
        3 => spoilt[0] = dice.byte(),
        4 => spoilt[1] = dice.byte() & 0x1f,
        _ => garble(spoilt, &corpus.payloads, dice),
    }
    chosen
}

struct Fuzzer {
    con: Connection,
    caller: Caller,
}

impl Fuzzer {
    fn new(server: &Server, seed: u64) -> Fuzzer {
        let mut con = server.connection();
        text(&mut con, "FLUSHALL");
        text(&mut con, "DEBUG SET-SKIP-CHECKSUM-VALIDATION 1");
        let caller = Caller::new(commands(), seed);
        Fuzzer { con, caller }
    }

    fn peak(&mut self) -> u64 {
        info(&mut self.con, "memory", "used_memory_peak").unwrap().parse().unwrap()
    }

    fn ask(&mut self, words: &[&[u8]], keys: &[&[u8]]) -> Seen {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
        let keys: Vec<Vec<u8>> = keys.iter().map(|key| key.to_vec()).collect();
        count();
        let seen = ask(&mut self.con, &words, &keys, Way::Plain);
        seen.check(false);
        seen
    }

    /// Whatever the key is now, it is bounded, it is dumped and restored as what it is, and all commands work on it.
    fn exercise(&mut self, seen: &Seen, key: &[u8], made_of: usize) {
        let Value::BulkString(dump) = &seen.after[0].dump else { return };
        let used = self.call(&[b"MEMORY", b"USAGE", key]);
        let bound = BYTES_EACH + BYTES_PER_BYTE * i64::try_from(made_of).unwrap();
        seen.insist(
            matches!(used, Value::Int(used) if used < bound),
            &format!("{used:?} bytes must be below {bound}"),
        );
        let again = self.ask(&[b"RESTORE", b"again", b"0", dump, b"REPLACE"], &[b"again"]);
        again.insist(again.error().is_none(), "what was dumped must be restored");
        again.insist(again.after[0].dump == seen.after[0].dump, "and be dumped as the same");
        self.call(&[b"COPY", key, b"copy", b"REPLACE"]);
        let copy = self.call(&[b"DUMP", b"copy"]);
        seen.insist(copy == seen.after[0].dump, "a copy must be the same");
        self.call(&[b"DEBUG", b"DIGEST-VALUE", key]);
        let told = self.call(&[b"RL.INFO", key]);
        let limiter = field(&fields(told), "limiter").map(|name| simple(&name)).unwrap();
        for _ in 0..3 {
            let mut request = self.request_for(&limiter);
            for at in &request.places {
                request.words[*at] = if *at == request.places[0] { key.to_vec() } else { b"other".to_vec() };
            }
            let words: Vec<&[u8]> = request.words.iter().map(Vec::as_slice).collect();
            let asked = self.ask(&words, &[key]);
            let command = self.caller.command(&request.name()).unwrap();
            asked.check(command.reads());
            if asked.error().is_none() {
                decisions(&asked, command);
            }
        }
    }

    /// A call that is most likely meant for a key of this limiter.
    fn request_for(&mut self, limiter: &str) -> Request {
        let own = format!("RL.{limiter}");
        let meant = |request: &Request| {
            request.name() == own || request.says(limiter) || request.name().contains("MULTI")
        };
        let mut requests = (0..30).map(|_| self.caller.request());
        requests.find(meant).unwrap_or_else(|| self.caller.request())
    }

    fn call(&mut self, words: &[&[u8]]) -> Value {
        call_bytes(&mut self.con, words).unwrap_or_else(|error| panic!("{}: {error}", typed(words)))
    }
}
