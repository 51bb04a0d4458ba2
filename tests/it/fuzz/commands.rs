//! Calls of every command at random, sound and spoilt, on keys of every type, in every way that a call can reach a
//! server: none does harm, and every reply keeps what it promises.
//!
//! What must hold of any call is in `support/fuzz/probe.rs`, and of a reply in `support/fuzz/promises.rs`. That a request is
//! admitted at its retry, and what remains is, is a law (`core/laws`). A failure shows the keys and the call as they can be typed into redis-cli.

use redis::Connection;

use crate::support::dice::Dice;
use crate::support::fuzz::caller::{Caller, OTHERS, make_others};
use crate::support::fuzz::grammar::{commands, elements};
use crate::support::fuzz::hostile::spoil;
use crate::support::fuzz::probe::{Seen, Way, agree, ask};
use crate::support::fuzz::promises::{Decision, check_cost, decisions};
use crate::support::fuzz::request::Request;
use crate::support::fuzz::{count, rounds};
use crate::support::{Server, call, call_bytes, info, simple, text};

/// Calls of a round.
const CALLS: usize = 2500;

#[test]
fn no_call_does_harm_and_every_reply_keeps_its_promises() {
    let primary = Server::start(&[]);
    let replica = primary.replica(&["--propagation-error-behavior", "panic"]);
    let born = info(&mut primary.connection(), "server", "run_id");
    rounds("calls", &[1, 2, 3, 4, 1_882_397_441_261_572], |seed| {
        let mut fuzzer = Fuzzer::new(&primary, seed);
        for number in 0..CALLS {
            fuzzer.caller.dice = Dice::of(seed, number);
            fuzzer.step(number);
        }
        agree(&primary, &replica);
        assert_eq!(info(&mut primary.connection(), "server", "run_id"), born, "the server died");
    });
    // A call that takes seconds stalls everybody else.
    let con = &mut primary.connection();
    let slow = elements(call(con, &["SLOWLOG", "GET", "10"]).unwrap());
    assert!(slow.is_empty(), "slow: {}", slow.iter().map(simple).collect::<Vec<_>>().join("\n"));
}

struct Fuzzer {
    /// One speaks RESP2, the other RESP3.
    cons: [Connection; 2],
    caller: Caller,
}

impl Fuzzer {
    fn new(server: &Server, seed: u64) -> Fuzzer {
        let mut cons = [server.connection(), server.connection()];
        call(&mut cons[1], &["HELLO", "3"]).unwrap();
        text(&mut cons[0], "FLUSHALL");
        text(&mut cons[0], "CONFIG SET slowlog-log-slower-than 5000000");
        // No other call makes room for one that waits, so waits are kept short.
        text(&mut cons[0], "CONFIG SET ratelimit.max-block 3");
        text(&mut cons[0], "CONFIG SET ratelimit.hunger 0");
        make_others(&mut cons[0]);
        let caller = Caller::new(commands(), seed);
        Fuzzer { cons, caller }
    }

    fn step(&mut self, number: usize) {
        if number.is_multiple_of(40) {
            self.disturb();
        }
        let mut request = self.caller.request();
        let sound = self.caller.dice.below(5) > 1;
        if !sound {
            spoil(&mut request.words, &mut self.caller.dice);
        }
        let way = match self.caller.dice.below(30) {
            0 | 1 => Way::Transaction,
            2 => Way::Script,
            3 => Way::ProtectedScript,
            4 => Way::OutOfMemory,
            _ => Way::Plain,
        };
        if let (seen, Some(decision)) = self.decide(&request, sound, way)
            && sound
        {
            self.check(&request, &seen, decision);
        }
    }

    /// Makes the call and checks what holds of any; and what was decided, for all where there are several.
    fn decide(&mut self, request: &Request, sound: bool, way: Way) -> (Seen, Option<Decision>) {
        let mut keys: Vec<Vec<u8>> =
            request.places.iter().filter_map(|at| request.words.get(*at)).cloned().collect();
        if !sound {
            // Any of the first arguments may be a key now.
            keys.extend(request.words.iter().skip(1).take(5).cloned());
        }
        keys.retain(|key| key.len() < 1000);
        keys.sort();
        keys.dedup();
        let dice = &mut self.caller.dice;
        let con = &mut self.cons[dice.index(2)];
        count();
        let seen = ask(con, &request.words, &keys, way);
        let command = self.caller.command(&request.name()).unwrap();
        seen.check(command.reads());
        let decided = if seen.error().is_none() { decisions(&seen, command) } else { Vec::new() };
        let first = decided.first().copied();
        (seen, first)
    }

    fn check(&mut self, request: &Request, seen: &Seen, decision: Decision) {
        let command = self.caller.command(&request.name()).unwrap();
        let limiter = command.limiter();
        let at = request.number("AT");
        // An instant before the last charge may move a key whose clock was set back.
        let steady = at.is_some_and(|at| seen.before.iter().all(|look| look.last_charge() <= Some(at)));
        let counts = request.says("COUNTREFUSED");
        if decision.limited == 1 && steady && !counts {
            seen.insist(seen.changed_nothing(), "a refusal must change nothing");
        }
        if let Some(limiter) = limiter {
            check_cost(request, seen, decision, limiter);
        }
    }

    /// What others do to keys meanwhile.
    fn disturb(&mut self) {
        let request = self.caller.request();
        let Some(key) = request.places.first().map(|at| request.words[*at].as_slice()) else { return };
        let dice = &mut self.caller.dice;
        let con = &mut self.cons[0];
        let other = OTHERS[dice.index(OTHERS.len())].as_bytes();
        let words: &[&[u8]] = match dice.below(12) {
            0..=3 => &[b"DEL", key],
            4 | 5 => &[b"PERSIST", key],
            6 | 7 => &[b"PEXPIRE", key, b"30"],
            8 => &[b"COPY", key, other, b"REPLACE"],
            9 => &[b"RENAME", key, other],
            10 => &[b"SET", key, b"text"],
            _ => return make_others_again(con),
        };
        // The key may be missing, or both the same.
        let _ = call_bytes(con, words);
    }
}

fn make_others_again(con: &mut Connection) {
    for key in OTHERS {
        call(con, &["DEL", key]).unwrap();
    }
    make_others(con);
}
