//! Copies of a primary's data that are cut short or damaged. A replica that loads them without a file survives, and keeps
//! its old data with `repl-diskless-load swapdb`.
//!
//! The copies hold only keys of the module, and only these are damaged: how the server reads its own types is not tested
//! here. The server may decide to exit on a copy; then its log has no report of a crash.

use std::fs;
use std::ops::Range;

use redis::Connection;

use crate::support::dice::Dice;
use crate::support::fuzz::corpus::{Dump, dumps, make_keys};
use crate::support::fuzz::fake_primary::{FakePrimary, Framing, Outcome};
use crate::support::fuzz::grammar::elements;
use crate::support::fuzz::{confined, count, garble, rounds, typed};
use crate::support::{Server, call, simple, text};

/// So many calls make keys of all kinds, and few enough to cut a copy of them at every byte.
const CALLS: usize = 250;
/// Copies of a round.
const COPIES: usize = 100;
/// Of a history that the replica knows already: it goes on answering while it loads.
const KNOWN: &str = "0123456789012345678901234567890123456789";

#[test]
fn a_replica_outlives_any_copy_and_keeps_what_it_had_until_it_has_another() {
    let copy = Copy::make();
    let mut replica = Replica::start("swapdb");
    rounds("copies for swapdb", &[1, 2], |seed| {
        let before = replica.begin(&copy);
        for number in 0..COPIES {
            count();
            let mut dice = Dice::of(seed, number);
            let (bytes, arrive) = copy.spoilt(&mut dice, number);
            let other = format!("{:040x}", dice.any());
            let id = if dice.one_in(2) { KNOWN } else { &other };
            let framing = if dice.one_in(2) { Framing::Length } else { Framing::Mark };
            match replica.takes(&bytes, arrive, framing, id) {
                Outcome::Dropped => assert_eq!(replica.digest(), before, "{number}: old data must be kept"),
                Outcome::Taken => {
                    replica.exercise();
                    assert_eq!(replica.begin(&copy), before, "the sound copy, after another");
                }
                Outcome::Ended => {
                    assert_eq!(replica.begin(&copy), before, "the sound copy, on another server");
                }
            }
        }
    });
}

#[test]
fn an_empty_replica_outlives_any_copy() {
    let copy = Copy::make();
    let mut replica = Replica::start("on-empty-db");
    rounds("copies for on-empty-db", &[1], |seed| {
        for number in 0..COPIES {
            count();
            let mut dice = Dice::of(seed, number);
            let (bytes, arrive) = copy.spoilt(&mut dice, number);
            let framing = if dice.one_in(2) { Framing::Length } else { Framing::Mark };
            if replica.takes(&bytes, arrive, framing, KNOWN) == Outcome::Taken {
                replica.exercise();
            }
            // One that holds keys would go by way of a file.
            text(&mut replica.con, "FLUSHALL");
        }
    });
}

/// A sound copy.
struct Copy {
    bytes: Vec<u8>,
    /// Where the module's keys are in it.
    places: Vec<(Range<usize>, Dump)>,
}

impl Copy {
    fn make() -> Copy {
        let server = Server::start(&["--rdbcompression", "no"]);
        let con = &mut server.connection();
        make_keys(con, 3, CALLS);
        let dumps = dumps(con);
        for key in ["stream:0", "stream:1", "list:0", "list:1"] {
            call(con, &["DEL", key]).unwrap();
        }
        text(con, "SAVE");
        let mut bytes = fs::read(server.dir().join("dump.rdb")).unwrap();
        // Zero says that there is no checksum.
        let end = bytes.len() - 8;
        bytes[end..].fill(0);
        let place = |dump: Dump| {
            let body = dump.in_file(&dump.state);
            let start = bytes.windows(body.len()).position(|window| window == body)?;
            Some((start..start + body.len(), dump))
        };
        let places: Vec<_> = dumps.into_iter().filter_map(place).collect();
        assert!(places.len() > 14, "{} keys in {} bytes", places.len(), bytes.len());
        Copy { bytes, places }
    }

    /// A copy of which something is wrong, and how many of its bytes arrive.
    fn spoilt(&self, dice: &mut Dice, number: usize) -> (Vec<u8>, usize) {
        let mut bytes = self.bytes.clone();
        if number.is_multiple_of(2) {
            let arrive = dice.index(bytes.len());
            return (bytes, arrive);
        }
        for _ in 0..=dice.below(2) {
            let (place, dump) = &self.places[dice.index(self.places.len())];
            if dice.one_in(3) {
                // Also in what the server puts around it.
                bytes[place.start + dice.index(place.len())] ^= 1 << dice.below(8);
            } else {
                let mut state = dump.state.clone();
                garble(&mut state, &[], dice);
                bytes.splice(place.clone(), dump.in_file(&state));
                break;
            }
        }
        let length = bytes.len();
        (bytes, length)
    }
}

struct Replica {
    primary: FakePrimary,
    load: &'static str,
    server: Server,
    con: Connection,
}

impl Replica {
    fn start(load: &'static str) -> Replica {
        let (primary, server) = (FakePrimary::new(), loading(load));
        let mut con = server.connection();
        text(&mut con, &format!("REPLICAOF 127.0.0.1 {}", primary.port));
        Replica { primary, load, server, con }
    }

    /// Loads the sound copy, and returns what the replica then holds.
    fn begin(&mut self, copy: &Copy) -> String {
        let taken = self.takes(&copy.bytes, copy.bytes.len(), Framing::Mark, KNOWN);
        assert_eq!(taken, Outcome::Taken, "log:\n{}", self.server.log());
        self.digest()
    }

    fn takes(&mut self, bytes: &[u8], arrive: usize, framing: Framing, id: &str) -> Outcome {
        let outcome = self.primary.send(bytes, arrive, framing, id);
        if call(&mut self.con, &["PING"]).is_err() || outcome == Outcome::Ended {
            let log = self.server.log();
            let shown = typed(&[bytes]);
            assert!(!log.contains("BUG REPORT"), "crashed on {arrive} bytes of {shown}; log:\n{log}");
            assert!(
                log.contains("Exiting") || log.contains("erminating"),
                "lost on {arrive} bytes of {shown}"
            );
            // The server has decided so; another goes on.
            self.server = loading(self.load);
            self.con = self.server.connection();
            text(&mut self.con, &format!("REPLICAOF 127.0.0.1 {}", self.primary.port));
            return Outcome::Ended;
        }
        outcome
    }

    fn digest(&mut self) -> String {
        text(&mut self.con, "DEBUG DIGEST")
    }

    /// All keys of a copy that was taken can be looked at.
    fn exercise(&mut self) {
        for key in elements(call(&mut self.con, &["KEYS", "*"]).unwrap()) {
            let key = simple(&key);
            for words in [&["DUMP", &key][..], &["MEMORY", "USAGE", &key], &["RL.INFO", &key]] {
                let reply = call(&mut self.con, words);
                assert!(
                    reply.is_ok() || reply.as_ref().is_err_and(|error| error.code() == Some("WRONGTYPE")),
                    "{words:?}: {reply:?}"
                );
            }
        }
        assert_eq!(text(&mut self.con, "PING"), "PONG");
    }
}

/// A server that loads a copy as `load` says (`repl-diskless-load`).
fn loading(load: &str) -> Server {
    confined(&["--repl-diskless-load", load, "--replica-read-only", "no"])
}
