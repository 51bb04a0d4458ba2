//! Sound dumps and payloads, of whatever calls make; and dumps taken apart, so that what is ours can be spoilt alone.

use std::fs;

use redis::{Connection, Value};

use crate::support::fuzz::caller::Caller;
use crate::support::fuzz::grammar::{commands, elements};
use crate::support::{Server, call, call_bytes, ints};

/// So many calls make every kind of key, many of them full.
const CALLS: usize = 3000;

pub struct Corpus {
    pub dumps: Vec<Dump>,
    /// Of `RL.APPLY`.
    pub payloads: Vec<Vec<u8>>,
}

impl Corpus {
    pub fn collect() -> Corpus {
        let args = ["--appendonly", "yes", "--appendfsync", "no", "--rdbcompression", "no"];
        let server = Server::start(&args);
        let con = &mut server.connection();
        make_keys(con, 7, CALLS);
        for i in 0..100_u64 {
            // Longer than what dice make.
            let at = 4_102_444_800_000_000 + i;
            for line in [
                format!("RL.CONCURRENT crowd 500 1h lease:{i} AT {at}"),
                format!("RL.SLIDINGLOG crowded 500 1h COST {} AT {at}", 1 + i % 4),
            ] {
                ints(con, &line);
            }
        }
        let dumps = dumps(con);
        let log = fs::read(server.dir().join("appendonlydir/appendonly.aof.1.incr.aof")).unwrap();
        let mut payloads: Vec<Vec<u8>> = Vec::new();
        for words in calls(&log).into_iter().filter(|words| words[0] == b"RL.APPLY") {
            payloads.extend(words.into_iter().skip(2).step_by(2));
        }
        assert!(
            dumps.len() > 30 && payloads.len() > 500,
            "{} dumps, {} payloads",
            dumps.len(),
            payloads.len()
        );
        Corpus { dumps, payloads }
    }

    pub fn states(&self) -> Vec<Vec<u8>> {
        self.dumps.iter().map(|dump| dump.state.clone()).collect()
    }
}

/// Makes keys of every kind.
pub fn make_keys(con: &mut Connection, seed: u64, count: usize) {
    let mut caller = Caller::new(commands(), seed);
    // Nothing expires meanwhile.
    caller.now = 4_102_444_800_000_000;
    for _ in 0..count {
        let request = caller.request();
        // By the server's clock they would be others each time.
        if request.says("AT") {
            let words: Vec<&[u8]> = request.words.iter().map(Vec::as_slice).collect();
            // Many are refused or errors, which does not matter here.
            let _ = call_bytes(con, &words);
        }
    }
}

/// The dumps of all keys of the module.
pub fn dumps(con: &mut Connection) -> Vec<Dump> {
    let mut dumps = Vec::new();
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for key in elements(call(con, &["KEYS", "*"]).unwrap()) {
        let Value::BulkString(key) = key else { panic!("{key:?} is no key") };
        keys.push(key);
    }
    // The server tells them in another order each time.
    keys.sort();
    for key in keys {
        let Value::BulkString(bytes) = call_bytes(con, &[b"DUMP", &key]).unwrap() else { continue };
        dumps.extend(Dump::apart(&bytes));
    }
    dumps
}

/// The calls in an append-only file.
fn calls(mut log: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut calls = Vec::new();
    while let [b'*', ..] = log {
        let words = (0..number(&mut log)).map(|_| {
            let length = number(&mut log);
            let word = log[..length].to_vec();
            log = &log[length + 2..];
            word
        });
        calls.push(words.collect());
    }
    assert!(log.is_empty(), "{} bytes left", log.len());
    calls
}

/// The number in a line such as `$12`, which is passed.
fn number(log: &mut &[u8]) -> usize {
    let end = log.iter().position(|byte| *byte == b'\r').unwrap();
    let number = std::str::from_utf8(&log[1..end]).unwrap().parse().unwrap();
    *log = &log[end + 2..];
    number
}

/// What `DUMP` replies for a key of the module, as the server wraps it: the type, the module's name and encoding, the
/// state as a string, an end mark, the version of the format, a checksum.
#[derive(Clone)]
pub struct Dump {
    pub state: Vec<u8>,
    head: [u8; HEAD],
    tail: [u8; TAIL],
}

const HEAD: usize = 10;
const TAIL: usize = 10;
const MODULE: u8 = 7;
const STRING: u8 = 5;
const END: u8 = 0;

impl Dump {
    /// `None` if it is of another type.
    fn apart(bytes: &[u8]) -> Option<Dump> {
        let (head, rest) = bytes.split_first_chunk()?;
        let (body, tail) = rest.split_last_chunk()?;
        let state = match body {
            _ if head[0] != MODULE => return None,
            [STRING, 0x80, state @ .., END] => &state[4..],
            [STRING, 0x40..0x80, _, state @ .., END] | [STRING, 0..0x40, state @ .., END] => state,
            _ => panic!("an unknown form: {}", bytes.escape_ascii()),
        };
        let dump = Dump { state: state.to_vec(), head: *head, tail: *tail };
        assert_eq!(dump.with(state), bytes, "taken apart and put together");
        Some(dump)
    }

    pub fn whole(&self) -> Vec<u8> {
        self.with(&self.state)
    }

    /// The dump of another state.
    pub fn with(&self, state: &[u8]) -> Vec<u8> {
        let length = u32::try_from(state.len()).unwrap();
        self.framed(&length_of(length), state)
    }

    /// With the length that is said, whether it is right or not.
    pub fn framed(&self, length: &[u8], state: &[u8]) -> Vec<u8> {
        [&self.head[..], &[STRING], length, state, &[END], &self.tail].concat()
    }

    /// As it stands in an RDB.
    pub fn in_file(&self, state: &[u8]) -> Vec<u8> {
        let whole = self.with(state);
        whole[1..whole.len() - TAIL].to_vec()
    }

    /// Of another version of the encoding, which is in the last ten bits of the name.
    pub fn of_version(&self, version: u8) -> Vec<u8> {
        let mut whole = self.whole();
        whole[HEAD - 1] = version;
        whole
    }
}

fn length_of(length: u32) -> Vec<u8> {
    let [.., high, low] = length.to_be_bytes();
    match length {
        0..64 => vec![low],
        64..16_384 => vec![0x40 | high, low],
        _ => [&[0x80], &length.to_be_bytes()[..]].concat(),
    }
}
