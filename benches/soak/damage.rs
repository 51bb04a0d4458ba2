//! Calls, dumps and effects that were good once, each with something wrong in it.

use redis::{Connection, Value};

use ratelimit_testing::dice::Dice;
use ratelimit_testing::traffic::{Step, Traffic};
use ratelimit_testing::{Server, call_bytes, dump, error_line, last_payload, text};

/// What a word is replaced by.
const WORDS: [&[u8]; 14] = [
    b"",
    b"-1",
    b"0",
    b"1",
    b"9007199254740991",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"18446744073709551616",
    b"1e308",
    b"nan",
    b"\0\xff%s%n",
    b"COST",
    b"253402300799999999",
    &[b'x'; 300],
];
/// A database of its own: proper calls do not find the keys that remain here.
const DATABASE: &str = "SELECT 2";
const LEAVES: [&str; 6] = ["SELECT", "SWAPDB", "MOVE", "MIGRATE", "RESTORE", "DB"];

pub struct Vandal<'s> {
    server: &'s Server,
    con: Connection,
    traffic: Traffic,
    dice: Dice,
}

impl<'s> Vandal<'s> {
    pub fn new(seed: u64, server: &'s Server) -> Vandal<'s> {
        let mut con = server.connection();
        text(&mut con, DATABASE);
        text(&mut con, "DEBUG SET-SKIP-CHECKSUM-VALIDATION 1");
        // No other call makes room for one that waits, so waits are kept short.
        text(&mut con, "CONFIG SET ratelimit.max-block 20");
        Vandal { server, con, traffic: Traffic::new(seed), dice: Dice::new(seed) }
    }

    pub fn go_on(&mut self, calls: u32) {
        // The AOF may have just been written anew: there must be an effect in it.
        text(&mut self.con, "RL.SLIDINGLOG log:0 9 1s");
        for _ in 0..calls {
            match self.dice.below(12) {
                0 => self.dump(),
                1 => self.effect(),
                _ => self.words(),
            }
        }
    }

    fn words(&mut self) {
        let Step::Call(line) = self.traffic.step() else { return };
        let mut words: Vec<Vec<u8>> = line.split_whitespace().map(|word| word.as_bytes().to_vec()).collect();
        if LEAVES.iter().any(|leaves| line.split(' ').any(|word| word == *leaves)) {
            return;
        }
        // The command stays what it is.
        let at = 1 + self.dice.index(words.len() - 1);
        match self.dice.below(6) {
            0 => _ = words.remove(at),
            1 => words.insert(at, words[at].clone()),
            2 => words.truncate(at),
            3 | 4 => {
                words[at] = self.dice.pick(&WORDS).to_vec();
            }
            // As it was, so that there is something to damage.
            _ => {}
        }
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        self.send(&words);
    }

    fn dump(&mut self) {
        let key = text(&mut self.con, "RANDOMKEY");
        let Value::BulkString(mut bytes) = dump(&mut self.con, &key) else { return };
        // Behind them are the version of the format and a checksum.
        let end = bytes.len() - 10;
        self.spoil(&mut bytes, end);
        self.send(&[b"RESTORE", b"restored", b"0", &bytes, b"REPLACE"]);
        self.send(&[b"RL.INFO", b"restored"]);
    }

    fn effect(&mut self) {
        let mut payload = last_payload(self.server);
        let end = payload.len();
        self.spoil(&mut payload, end);
        let key = text(&mut self.con, "RANDOMKEY");
        self.send(&[b"RL.APPLY", key.as_bytes(), &payload]);
        self.send(&[b"RL.APPLY", b"applied", &payload, b"too", &payload]);
    }

    /// Changes a byte, or cuts off the rest; sometimes neither.
    fn spoil(&mut self, bytes: &mut Vec<u8>, end: usize) {
        let at = self.dice.index(end.max(1));
        match (self.dice.below(4), bytes.get_mut(at)) {
            (0, _) => bytes.truncate(at),
            (1 | 2, Some(byte)) => *byte ^= 1 << self.dice.below(8),
            _ => {}
        }
    }

    /// Checks that there is an answer, and that it reports no defect of the module.
    fn send(&mut self, words: &[&[u8]]) {
        if let Err(error) = call_bytes(&mut self.con, words) {
            let line = error_line(&error);
            assert!(!line.contains("internal error"), "{words:?}: {line}");
        }
    }
}
