//! Payloads of `RL.APPLY`: those that the server writes to its append-only file, and crafted ones.

use std::collections::HashMap;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use redis::Connection;

use crate::Result;
use ratelimit_testing::{Server, rewrites_aof, text, wait_for};

/// The bytes of a crafted payload.
const CRAFTED: usize = 100_000;
/// The bytes before the body of a payload, and the place of its form. See `core/engine/src/key/payload.rs`.
const HEADER: usize = 11;
const FORM: usize = 2;
/// The kind of leases, and that of logs. See `core/src/kind.rs`.
const LEASES: u8 = 6;
const LOG: u8 = 14;
/// The last instant at which a call can be decided, after all deadlines.
const LATE: u64 = 253_402_300_799_999_999;

/// The append-only file of a server.
pub struct Aof {
    /// The file that grows with each write.
    tail: PathBuf,
    /// The payload of each key's whole value.
    whole: HashMap<String, Vec<u8>>,
}

impl Aof {
    /// Has the server write the file from now on.
    pub fn begin(server: &Server, con: &mut Connection) -> Result<Aof> {
        text(con, "CONFIG SET aof-use-rdb-preamble no appendfsync no");
        text(con, "CONFIG SET appendonly yes");
        wait_for("the append-only file", || !rewrites_aof(con));
        let (mut base, mut tail) = (None, None);
        for entry in fs::read_dir(server.dir().join("appendonlydir"))? {
            let path = entry?.path();
            let name = path.to_string_lossy().into_owned();
            if name.ends_with(".base.aof") {
                base = Some(path);
            } else if name.ends_with(".incr.aof") {
                tail = Some(path);
            }
        }
        let base = fs::read(base.ok_or("no base of the append-only file")?)?;
        let pairs = applied(&base).into_iter().map(|(key, payload)| (text_of(key), payload.to_vec()));
        Ok(Aof { tail: tail.ok_or("no append-only file")?, whole: pairs.collect() })
    }

    pub fn length(&self) -> u64 {
        fs::metadata(&self.tail).map_or(0, |file| file.len())
    }

    pub fn whole(&self, key: &str) -> Option<&[u8]> {
        self.whole.get(key).map(Vec::as_slice)
    }

    /// The arguments of every `RL.APPLY` since the file had this length.
    pub fn applied(&self, since: u64) -> Result<Vec<Vec<u8>>> {
        let mut file = fs::File::open(&self.tail)?;
        file.seek(SeekFrom::Start(since))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(applied(&bytes).into_iter().flat_map(|(key, payload)| [key.to_vec(), payload.to_vec()]).collect())
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The keys and payloads of every `RL.APPLY` of a file.
fn applied(mut file: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut pairs = Vec::new();
    while !file.is_empty() {
        let words = number(&mut file);
        let words: Vec<&[u8]> = (0..words).map(|_| bulk(&mut file)).collect();
        if let [b"RL.APPLY", arguments @ ..] = words.as_slice() {
            pairs.extend(arguments.chunks_exact(2).map(|pair| (pair[0], pair[1])));
        }
    }
    pairs
}

/// Reads `*3` or `$8`, and the end of the line.
fn number(file: &mut &[u8]) -> usize {
    let end = file.windows(2).position(|two| two == b"\r\n").unwrap();
    let number = text_of(&file[1..end]).parse().unwrap();
    *file = &file[end + 2..];
    number
}

fn bulk<'f>(file: &mut &'f [u8]) -> &'f [u8] {
    let length = number(file);
    let (bytes, rest) = file.split_at(length);
    *file = &rest[2..];
    bytes
}

/// A payload by its name. `whole` is the payload of the state's whole value.
///
/// This function knows the format of payloads. If the format changes, the server refuses what it makes, and the calls
/// that use it are reported as errors.
pub fn crafted(name: &str, whole: &[u8]) -> Result<Vec<u8>> {
    let (header, body) = whole.split_at(HEADER);
    let kind = header[1];
    let mut payload = header.to_vec();
    payload[FORM] = 0;
    let last = u64::from_le_bytes(body[..8].try_into()?);
    let words = |words: &[u64]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    match (name, kind) {
        ("whole" | "small", _) => return Ok(whole.to_vec()),
        ("gone", _) => return Ok(vec![header[0], 0, 0]),
        // The clock is set back by a microsecond, again and again.
        ("moves", LEASES) => {
            for to in (0..last).rev().take(CRAFTED / 9) {
                payload.push(0);
                payload.extend(words(&[to]));
            }
        }
        ("moves", LOG) => {
            for to in (0..last).rev().take(CRAFTED / 25) {
                payload.push(0);
                payload.extend(words(&[to, 0, 0]));
            }
        }
        // All entries are dropped.
        ("drop", LEASES) => {
            payload.push(0);
            payload.extend(words(&[LATE]));
        }
        ("drop", LOG) => {
            payload.push(1);
            payload.extend(words(&[last, 0, 0, 0]));
        }
        _ => return Err(format!("no payload is called {name} for kind {kind}").into()),
    }
    Ok(payload)
}
