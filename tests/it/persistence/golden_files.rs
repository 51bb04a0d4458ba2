//! Files that a server has written once: an RDB and an append-only file, and what their keys must say, whatever
//! version of the module reads them.
//!
//! A change of the encoding needs a loader for the old one: golden files of old encodings are never rewritten. What
//! is written differently from now on gets a folder of its own: name it in `FOLDERS` with its keys, and have it made by
//! `RATELIMIT_GOLDEN=write cargo test --test it golden_files` on the oldest server there is, Redis 7.0, whose files
//! newer ones can read.

use std::fmt::Write;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use redis::{Connection, Value};

use crate::support::{
    AOF_AT_ONCE, SECOND, Server, call_bytes, dump, error_line, last_payload, module, rewrite_aof, text,
};

/// The folders, and the rows of [`KEYS`] that each has. What an older one has is still written so.
const FOLDERS: [(&str, Range<usize>); 5] =
    [("v1", 0..29), ("v2", 29..31), ("v3", 31..33), ("v4", 33..34), ("v5", 34..KEYS.len())];

/// Dumps are not to depend on which library compresses them.
const PLAIN: [&str; 2] = ["--rdbcompression", "no"];
/// A base of whole states, and behind it the effects of calls.
const AOF: [&str; 4] = ["--appendonly", "yes", "--aof-use-rdb-preamble", "no"];

/// The year 2100: no key has expired by then. `+n` in a call is the instant n milliseconds later.
const START: u64 = 4_102_444_800 * SECOND;

/// Keys of every kind: for each, two calls that are in the AOF's base, one after it, and a peek. Fractions are chosen so that
/// every server writes the same digits.
#[rustfmt::skip]
const KEYS: [(&str, [&str; 3], &str); 36] = [
    ("bucket", ["RL.TOKENBUCKET KEY 10 3 1s COST 4 AT +0", "RL.TOKENBUCKET KEY 10 3 1s AT +100", "RL.TOKENBUCKET KEY 10 3 1s COST 3 AT +250"], "RL.PEEK KEY TOKENBUCKET 10 3 1s COST 9 AT +500"),
    ("debt", ["RL.TOKENBUCKET KEY 10 7 1100ms COST 4 AT +0", "RL.TOKENBUCKET KEY 10 7 1100ms FORCE COST 50 AT +100", "RL.TOKENBUCKET KEY 10 7 1100ms FORCE AT +250"], "RL.PEEK KEY TOKENBUCKET 10 7 1100ms AT +500"),
    ("batch", ["RL.TOKENBUCKET KEY 10 3 1s BATCH COST 8 AT +0", "RL.TOKENBUCKET KEY 10 3 1s BATCH AT +1100", "RL.TOKENBUCKET KEY 10 3 1s BATCH COST 3 AT +1250"], "RL.PEEK KEY TOKENBUCKET 10 3 1s BATCH COST 9 AT +1500"),
    ("gcra", ["RL.GCRA KEY 9 3 1s COST 4 AT +0", "RL.GCRA KEY 9 3 1s AT +100", "RL.GCRA KEY 9 3 1s COST 3 AT +250"], "RL.PEEK KEY GCRA 9 3 1s COST 9 AT +500"),
    ("booked", ["RL.GCRA KEY 0 7 1s RESERVE AT +0", "RL.GCRA KEY 0 7 1s RESERVE AT +1", "RL.GCRA KEY 0 7 1s RESERVE AT +250"], "RL.PEEK KEY GCRA 0 7 1s AT +300"),
    ("cell", ["RL.THROTTLE KEY 9 3 1 4 AT +0", "RL.THROTTLE KEY 9 3 1 1 AT +100", "RL.THROTTLE KEY 9 3 1 2 AT +250"], "RL.PEEK KEY GCRA 9 3 1s COST 9 AT +500"),
    ("water", ["RL.LEAKYBUCKET KEY 10 3 1s COST 4 AT +0", "RL.LEAKYBUCKET KEY 10 3 1s AT +100", "RL.LEAKYBUCKET KEY 10 3 1s COST 3 AT +250"], "RL.PEEK KEY LEAKYBUCKET 10 3 1s COST 9 AT +500"),
    ("opened", ["RL.FIXEDWINDOW KEY 10 1s COST 4 AT +70", "RL.FIXEDWINDOW KEY 10 1s AT +100", "RL.FIXEDWINDOW KEY 10 1s COST 3 AT +250"], "RL.PEEK KEY FIXEDWINDOW 10 1s COST 9 AT +500"),
    ("aligned", ["RL.FIXEDWINDOW KEY 10 1s ALIGNED COST 4 AT +70", "RL.FIXEDWINDOW KEY 10 1s ALIGNED AT +100", "RL.FIXEDWINDOW KEY 10 1s ALIGNED COST 3 AT +250"], "RL.PEEK KEY FIXEDWINDOW 10 1s ALIGNED COST 9 AT +500"),
    ("page", ["RL.CALENDAR KEY 10 DAY TZ Europe/Lisbon COST 4 AT +70", "RL.CALENDAR KEY 10 DAY TZ Europe/Lisbon AT +100", "RL.CALENDAR KEY 10 DAY TZ Europe/Lisbon COST 3 AT +86400250"], "RL.PEEK KEY CALENDAR 10 DAY TZ Europe/Lisbon COST 9 AT +86400500"),
    ("weighted", ["RL.SLIDINGWINDOW KEY 10 1s COST 4 AT +70", "RL.SLIDINGWINDOW KEY 10 1s AT +900", "RL.SLIDINGWINDOW KEY 10 1s COST 3 AT +1250"], "RL.PEEK KEY SLIDINGWINDOW 10 1s COST 6 AT +1500"),
    ("precise", ["RL.SLIDINGWINDOW KEY 10 1s PRECISION 100ms COST 4 AT +70", "RL.SLIDINGWINDOW KEY 10 1s PRECISION 100ms AT +900", "RL.SLIDINGWINDOW KEY 10 1s PRECISION 100ms COST 3 AT +1150"], "RL.PEEK KEY SLIDINGWINDOW 10 1s PRECISION 100ms COST 7 AT +1200"),
    ("log", ["RL.SLIDINGLOG KEY 10 1s COST 4 AT +70", "RL.SLIDINGLOG KEY 10 1s AT +900", "RL.SLIDINGLOG KEY 10 1s COST 3 AT +1150"], "RL.PEEK KEY SLIDINGLOG 10 1s COST 7 AT +1200"),
    ("hammered", ["RL.SLIDINGLOG KEY 3 1s GAP 300ms COUNTREFUSED COST 2 AT +870", "RL.SLIDINGLOG KEY 3 1s GAP 300ms COUNTREFUSED AT +900", "RL.SLIDINGLOG KEY 3 1s GAP 300ms COUNTREFUSED AT +1150"], "RL.PEEK KEY SLIDINGLOG 3 1s GAP 300ms COUNTREFUSED AT +1200"),
    ("gate", ["RL.UNIFORM KEY 300ms AT +70", "RL.UNIFORM KEY 300ms RESERVE AT +100", "RL.UNIFORM KEY 300ms FORCE AT +250"], "RL.PEEK KEY UNIFORM 300ms AT +500"),
    ("burst", ["RL.SMOOTH KEY 4 1s COST 4 AT +0", "RL.SMOOTH KEY 4 1s AT +125", "RL.SMOOTH KEY 4 1s COST 2 AT +9250"], "RL.PEEK KEY SMOOTH 4 1s AT +9500"),
    ("warm", ["RL.SMOOTH KEY 4 1s WARMUP 4s COLDFACTOR 3.0 COST 4 AT +0", "RL.SMOOTH KEY 4 1s WARMUP 4s COLDFACTOR 3.0 AT +125", "RL.SMOOTH KEY 4 1s WARMUP 4s COLDFACTOR 3.0 COST 2 AT +9250"], "RL.PEEK KEY SMOOTH 4 1s WARMUP 4s COLDFACTOR 3.0 AT +9500"),
    ("banned", ["RL.PENALTY KEY 3 10s 5s GROW 2 MAX 1m FORGIVE 90s COST 2 AT +70", "RL.PENALTY KEY 3 10s 5s GROW 2 MAX 1m FORGIVE 90s AT +100", "RL.PENALTY KEY 3 10s 5s GROW 2 MAX 1m FORGIVE 90s AT +5250"], "RL.PEEK KEY PENALTY 3 10s 5s GROW 2 MAX 1m FORGIVE 90s COST 2 AT +5500"),
    ("lease", ["RL.CONCURRENT KEY 10 5s one COST 2 AT +70", "RL.CONCURRENT KEY 10 1s two RESERVED 3 CRITICAL AT +100", "RL.RENEW KEY 9s one AT +1500"], "RL.PEEK KEY CONCURRENT 10 1s other COST 9 AT +1600"),
    ("shed", ["RL.SHED KEY 0.9 DELAY 8s RAMP 16s AT +0", "RL.SHED KEY 0.9 DELAY 8s RAMP 16s AT +2000", "RL.SHED KEY 0.9 DELAY 8s RAMP 16s AT +9000"], "TYPE KEY"),
    ("several", ["RL.MULTI 1 KEY COST 2 AT +0 LIMIT TOKENBUCKET 10 3 1s LIMIT TOKENBUCKET 10 3 1m BATCH LIMIT GCRA 9 3 1s LIMIT LEAKYBUCKET 9 3 1s LIMIT FIXEDWINDOW 9 1s LIMIT FIXEDWINDOW 9 1s ALIGNED LIMIT UNIFORM 300ms", "RL.MULTI 1 KEY AT +350 LIMIT SLIDINGWINDOW 9 1s LIMIT SLIDINGWINDOW 99 1m PRECISION 1s LIMIT SLIDINGLOG 9 1s LIMIT SMOOTH 4 1s LIMIT SMOOTH 4 1s WARMUP 4s LIMIT CONCURRENT 9 1m one", "RL.MULTI 1 KEY AT +700 LIMIT GCRA 9 3 1s LIMIT SLIDINGLOG 9 1s LIMIT SLIDINGWINDOW 99 1m PRECISION 1s LIMIT CONCURRENT 9 1m two"], "RL.MULTIPEEK 1 KEY AT +800 LIMIT GCRA 9 3 1s LIMIT SLIDINGLOG 9 1s LIMIT SLIDINGWINDOW 99 1m PRECISION 1s LIMIT CONCURRENT 9 1m three LIMIT TOKENBUCKET 10 3 1m BATCH"),
    ("tried", ["RL.MULTI 1 KEY COST 4 AT +0 LIMIT GCRA 9 3 1m SHADOW", "RL.MULTI 1 KEY COST 8 AT +100 LIMIT GCRA 9 3 1m SHADOW", "RL.MULTI 1 KEY AT +200 LIMIT GCRA 9 3 1m SHADOW"], "RL.MULTIPEEK 1 KEY AT +300 LIMIT GCRA 9 3 1m SHADOW"),
    ("beside", ["RL.MULTI 1 KEY COST 4 AT +0 LIMIT FIXEDWINDOW 9 1m LIMIT FIXEDWINDOW 5 1m SHADOW LIMIT CONCURRENT 9 1m one SHADOW", "RL.MULTI 1 KEY COST 2 AT +100 LIMIT FIXEDWINDOW 9 1m LIMIT FIXEDWINDOW 5 1m SHADOW", "RL.MULTI 1 KEY AT +200 LIMIT FIXEDWINDOW 9 1m LIMIT FIXEDWINDOW 5 1m SHADOW LIMIT CONCURRENT 9 1m two SHADOW"], "RL.MULTIPEEK 1 KEY AT +300 LIMIT FIXEDWINDOW 9 1m LIMIT FIXEDWINDOW 5 1m SHADOW LIMIT CONCURRENT 9 1m three SHADOW"),
    ("struck", ["RL.MULTI 1 KEY AT +0 LIMIT CALENDAR 1 MONTH TZ Europe/Lisbon ANCHOR 31 LIMIT PENALTY 2 1m 5s LIMIT PENALTY 9 90s 5s SHADOW", "RL.MULTI 1 KEY AT +100 LIMIT CALENDAR 1 MONTH TZ Europe/Lisbon ANCHOR 31 LIMIT PENALTY 2 1m 5s LIMIT PENALTY 9 90s 5s SHADOW", "RL.MULTI 1 KEY AT +200 LIMIT CALENDAR 1 MONTH TZ Europe/Lisbon ANCHOR 31 LIMIT PENALTY 2 1m 5s LIMIT PENALTY 9 90s 5s SHADOW"], "RL.MULTIPEEK 1 KEY AT +300 LIMIT CALENDAR 1 MONTH TZ Europe/Lisbon ANCHOR 31 LIMIT PENALTY 2 1m 5s LIMIT PENALTY 9 90s 5s SHADOW"),
    ("held", ["RL.SLIDINGWINDOW KEY 10 1m PRECISION 1s COST 4 HOLD one 1h AT +70", "RL.SLIDINGWINDOW KEY 10 1m PRECISION 1s HOLD two 5s AT +900", "RL.SETTLE KEY one SLIDINGWINDOW 10 1m PRECISION 1s COST 3 AT +1150"], "RL.SETTLE KEY one SLIDINGWINDOW 10 1m PRECISION 1s COST 7 AT +1200"),
    ("estimated", ["RL.TOKENBUCKET KEY 100 3 1s COST 40 HOLD one 1h AT +0", "RL.TOKENBUCKET KEY 100 3 1s PARTIAL COST 90 HOLD two 2h AT +100", "RL.TOKENBUCKET KEY 100 3 1s FORCE COST 30 HOLD three 1m AT +250"], "RL.PEEK KEY TOKENBUCKET 100 3 1s AT +500"),
    ("reserved", ["RL.MULTI 1 KEY COST 2 HOLD one 1h AT +0 LIMIT TOKENBUCKET 10 3 1m LIMIT FIXEDWINDOW 9 1m LIMIT SLIDINGLOG 9 1m LIMIT UNIFORM 300ms", "RL.MULTI 1 KEY COST 3 HOLD two 2h AT +350 LIMIT GCRA 9 3 1m LIMIT SLIDINGLOG 9 1m LIMIT CALENDAR 10 DAY TZ Europe/Lisbon LIMIT FIXEDWINDOW 9 1m SHADOW", "RL.MULTISETTLE 1 KEY one COST 1 AT +700 LIMIT SLIDINGLOG 9 1m LIMIT TOKENBUCKET 10 3 1m"], "RL.MULTIPEEK 1 KEY AT +800 LIMIT TOKENBUCKET 10 3 1m LIMIT FIXEDWINDOW 9 1m LIMIT SLIDINGLOG 9 1m LIMIT GCRA 9 3 1m LIMIT CALENDAR 10 DAY TZ Europe/Lisbon"),
    ("sketched", ["RL.SKETCH KEY alice 9 3 1s WIDTH 8 DEPTH 2 COST 4 AT +0", "RL.SKETCH KEY alice 9 3 1s AT +100", "RL.SKETCH KEY alice 9 3 1s COST 3 AT +250"], "RL.PEEK KEY SKETCH alice 9 3 1s COST 9 AT +500"),
    ("joined", ["RL.GCRA KEY 9 3 1m COST 4 AT +0", "RL.GCRA KEY 9 3 1m AT +100", "RL.MULTI 1 KEY AT +200 LIMIT FIXEDWINDOW 9 1s"], "RL.MULTIPEEK 1 KEY AT +300 LIMIT GCRA 9 3 1m LIMIT FIXEDWINDOW 9 1s"),
    ("tenants", ["RL.CONCURRENT KEY 10 9s one COST 2 TENANT bob WEIGHT 3 AT +70", "RL.CONCURRENT KEY 10 5s two TENANT ann AT +100", "RL.CONCURRENT KEY 10 9s three AT +1500"], "RL.PEEK KEY CONCURRENT 10 1s other COST 9 AT +1600"),
    ("shared", ["RL.MULTI 1 KEY AT +0 LIMIT FIXEDWINDOW 9 1m LIMIT CONCURRENT 9 1m one TENANT bob WEIGHT 1000", "RL.MULTI 1 KEY AT +100 LIMIT FIXEDWINDOW 9 1m LIMIT CONCURRENT 9 1m two COST 3 TENANT ann", "RL.MULTI 1 KEY AT +200 LIMIT FIXEDWINDOW 9 1m LIMIT CONCURRENT 9 2m three TENANT bob"], "RL.MULTIPEEK 1 KEY AT +300 LIMIT FIXEDWINDOW 9 1m LIMIT CONCURRENT 9 1m other COST 5"),
    ("adapted", ["RL.CONCURRENT KEY 50 9s one COST 2 ADAPT START 30 AT +70", "RL.CONCURRENT KEY 50 5s two RESERVED 3 ADAPT FLOOR 5 BACKOFF 20 SLOW 1s TENANT ann AT +100", "RL.RELEASE KEY one OUTCOME DROP AT +1500"], "RL.PEEK KEY CONCURRENT 50 1s other ADAPT AT +1600"),
    ("sampled", ["RL.CONCURRENT KEY 50 9s one ADAPT GRADIENT AT +70", "RL.CONCURRENT KEY 50 9s two ADAPT GRADIENT AT +100", "RL.RELEASE KEY one AT +1500"], "RL.PEEK KEY CONCURRENT 50 1s other ADAPT GRADIENT AT +1600"),
    ("asked", ["RL.POLICY SET KEY VERSION 3 LIMIT GCRA 9 3 1m LIMIT CALENDAR 10 DAY TZ Europe/Lisbon COST 2 SHADOW", "RL.ASK KEY KEY COST 2 AT +0", "RL.ASK KEY KEY AT +100"], "RL.ASKPEEK KEY KEY FULL AT +200"),
    ("fenced", ["RL.CONCURRENT KEY 10 9s one COST 2 FENCE AT +70", "RL.CONCURRENT KEY 10 5s two FENCE TENANT ann AT +100", "RL.CONCURRENT KEY 10 9s three AT +1500"], "RL.PEEK KEY CONCURRENT 10 1s other COST 9 AT +1600"),
    ("morning", ["RL.CALENDAR KEY 10 DAY TZ Europe/Lisbon ANCHOR 4 COST 4 AT +70", "RL.CALENDAR KEY 10 DAY TZ Europe/Lisbon ANCHOR 4 AT +100", "RL.CALENDAR KEY 10 DAY TZ Europe/Lisbon ANCHOR 4 COST 3 AT +86400250"], "RL.PEEK KEY CALENDAR 10 DAY TZ Europe/Lisbon ANCHOR 4 COST 9 AT +86400500"),
];

/// The folders, with the last one's files made first if that is asked for.
fn folders() -> impl Iterator<Item = PathBuf> {
    static WRITTEN: Once = Once::new();
    WRITTEN.call_once(|| {
        if std::env::var("RATELIMIT_GOLDEN").is_ok_and(|word| word == "write") {
            let (folder, rows) = &FOLDERS[FOLDERS.len() - 1];
            write(&golden().join(folder), &KEYS[rows.clone()]);
        }
    });
    FOLDERS.iter().map(|(folder, _)| golden().join(folder))
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The row of a key: its name, its calls and the question.
type Row = (&'static str, [&'static str; 3], &'static str);

fn write(folder: &Path, rows: &[Row]) {
    assert!(!folder.exists(), "{} is never written again", folder.display());
    fs::create_dir_all(folder.join("appendonlydir")).unwrap();
    let server = Server::start(&[&PLAIN[..], &AOF].concat());
    make_all(&server, rows);
    let con = &mut server.connection();
    text(con, "SAVE");
    fs::write(folder.join("keys.txt"), told(con, rows)).unwrap();
    fs::copy(server.dir().join("dump.rdb"), folder.join("dump.rdb")).unwrap();
    copy_all(&server.dir().join("appendonlydir"), &folder.join("appendonlydir"));
    let sums = golden().join("SHA256SUMS");
    let old = fs::read_to_string(&sums).unwrap();
    fs::write(sums, old + &sums_of(FOLDERS[FOLDERS.len() - 1].0)).unwrap();
}

/// The sums of what a server has written. What the keys say of it may change with the replies.
fn sums_of(folder: &str) -> String {
    let aof = Path::new(folder).join("appendonlydir");
    let mut files = vec![Path::new(folder).join("dump.rdb")];
    for file in fs::read_dir(golden().join(&aof)).unwrap() {
        files.push(aof.join(file.unwrap().file_name()));
    }
    files.sort();
    let output = Command::new("sha256sum").args(files).current_dir(golden()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn make_all(server: &Server, rows: &[Row]) {
    let con = &mut server.connection();
    for (key, calls, _) in rows {
        for call in &calls[..2] {
            make(con, call, key);
        }
    }
    rewrite_aof(con);
    for (key, calls, _) in rows {
        make(con, calls[2], key);
        // And one whose every effect is behind the base.
        for call in calls {
            make(con, call, &format!("{key}:later"));
        }
    }
}

fn make(con: &mut Connection, line: &str, key: &str) {
    text(con, &filled(line, key));
}

fn filled(line: &str, key: &str) -> String {
    let words = line.split(' ').map(|word| match word.strip_prefix('+') {
        Some(millis) => (START + millis.parse::<u64>().unwrap() * 1000).to_string(),
        None if word == "KEY" => key.to_string(),
        None => word.to_string(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// All that the keys say, one line each: question, then answer.
fn told(con: &mut Connection, rows: &[Row]) -> String {
    let mut told = String::new();
    for (name, _, question) in rows {
        for key in [name.to_string(), format!("{name}:later")] {
            writeln!(told, "DUMP {key}: {}", dumped(con, &key)).unwrap();
            for line in ["PEXPIRETIME KEY", "RL.INFO KEY", question] {
                let line = filled(line, &key);
                writeln!(told, "{line}: {}", text(con, &line)).unwrap();
            }
        }
    }
    told
}

/// In hex, without the server's own version and checksum at the end.
fn dumped(con: &mut Connection, key: &str) -> String {
    let Value::BulkString(bytes) = dump(con, key) else { panic!("{key} is missing") };
    bytes[..bytes.len() - 10].iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

fn copy_all(from: &Path, to: &Path) {
    for file in fs::read_dir(from).unwrap().map(Result::unwrap) {
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

/// A server that starts in a copy of a folder.
fn server_in(folder: &Path, args: &[&str]) -> (Copy, Server) {
    let name = format!("golden-{}-{}", std::process::id(), args.len());
    let copy = Copy(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
    fs::create_dir_all(copy.0.join("appendonlydir")).unwrap();
    fs::copy(folder.join("dump.rdb"), copy.0.join("dump.rdb")).unwrap();
    copy_all(&folder.join("appendonlydir"), &copy.0.join("appendonlydir"));
    let dir = ["--dir", copy.0.to_str().unwrap()];
    let server = Server::start(&[&PLAIN[..], &dir, args].concat());
    (copy, server)
}

/// Removed when dropped.
struct Copy(PathBuf);

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Asks all questions but these.
fn expect_told(server: &Server, folder: &Path, but: &[&str]) {
    let expected = fs::read_to_string(folder.join("keys.txt")).unwrap();
    let con = &mut server.connection();
    let lines = expected.lines().map(|line| line.split_once(": ").unwrap());
    for (question, answer) in lines.filter(|(question, _)| !but.contains(question)) {
        let found = match question.strip_prefix("DUMP ") {
            Some(key) => dumped(con, key),
            None => text(con, question),
        };
        assert_eq!(found, answer, "{question}, from {}", folder.display());
    }
}

#[test]
fn no_file_that_was_written_once_has_changed() {
    assert!(folders().all(|folder| folder.exists()));
    let written_once = fs::read_to_string(golden().join("SHA256SUMS")).unwrap();
    let sums: String = FOLDERS.map(|(folder, _)| sums_of(folder)).concat();
    assert_eq!(sums, written_once, "golden files are never made anew: see CONTRIBUTING.md");
}

#[test]
fn an_rdb_of_any_encoding_is_read_as_it_was_written() {
    for folder in folders() {
        let (_copy, server) = server_in(&folder, &[]);
        expect_told(&server, &folder, &[]);
    }
}

#[test]
fn an_aof_of_any_encoding_is_read_as_it_was_written() {
    for folder in folders() {
        let (_copy, server) = server_in(&folder, &AOF);
        expect_told(&server, &folder, &[]);
    }
}

#[test]
fn the_same_calls_write_the_same_bytes_as_when_the_last_files_were_made() {
    let server = Server::start(&[&PLAIN[..], &AOF].concat());
    make_all(&server, &KEYS);
    for folder in folders() {
        // The hash key of a sketch is random, and fencing tokens are of the clock.
        let fenced = ["fenced", "fenced:later"].map(|key| [format!("DUMP {key}"), format!("RL.INFO {key}")]);
        let fenced = fenced.as_flattened().iter().map(String::as_str);
        let differ: Vec<&str> = ["DUMP sketched", "DUMP sketched:later"].into_iter().chain(fenced).collect();
        expect_told(&server, &folder, &differ);
    }
}

#[test]
fn what_a_newer_encoding_wrote_is_refused() {
    let server = Server::start(&[&PLAIN[..], &AOF_AT_ONCE].concat());
    let con = &mut server.connection();
    text(con, "RL.GCRA key 9 3 1h COST 2");
    let mut payload = last_payload(&server);
    payload[0] += 1;
    let error = call_bytes(con, &[b"RL.APPLY", b"other", &payload]).unwrap_err();
    assert_eq!(error_line(&error), "ERR malformed payload, or one of a newer version");

    text(con, "DEBUG SET-SKIP-CHECKSUM-VALIDATION 1");
    let Value::BulkString(mut bytes) = dump(con, "key") else { panic!("no dump") };
    // The type's name and version are the eight bytes from the third on.
    bytes[9] += 1;
    let error = call_bytes(con, &[b"RESTORE", b"other", b"0", &bytes]).unwrap_err();
    assert_eq!(error_line(&error), "ERR Bad data format");
    assert_eq!(text(con, "EXISTS other"), "0");
}

#[test]
fn policies_that_a_newer_module_wrote_end_the_load() {
    let mut server = Server::start(&[&PLAIN[..], &["--rdbchecksum", "no"]].concat());
    let con = &mut server.connection();
    text(con, "RL.POLICY SET named LIMIT GCRA 9 3 1m");
    text(con, "SAVE");
    server.kill();
    let file = server.dir().join("dump.rdb");
    let bytes = fs::read(&file).unwrap();
    let at = bytes.windows(7).position(|window| window == b"\x01named ").expect("the policies");
    for (wrong, place, byte) in [("the form", at, 2), ("a line", at + 6, b'-'), ("a word", at + 8, 0xff)] {
        fs::write(&file, [&bytes[..place], &[byte], &bytes[place + 1..]].concat()).unwrap();
        let dir = ["--dir", server.dir().to_str().unwrap()];
        let log = Server::try_start_with(Some(&module()), &[], &[&PLAIN[..], &dir].concat()).err();
        let told = "malformed policies of the ratelimit module, or those of a newer version";
        assert!(log.expect(wrong).contains(told), "{wrong}");
    }
    fs::write(&file, bytes).unwrap();
    server.start_again();
    assert_eq!(text(&mut server.connection(), "RL.POLICY LIST"), "[named, 1]");
}

/// A version can add a kind, or a flag to what a kind stores. An older module says so; it does not take the key for damaged.
#[test]
fn a_kind_and_a_flag_that_this_version_does_not_know_are_called_newer() {
    // After the type's name and version, an opcode and the length of the value in two bytes.
    const VALUE: usize = 13;
    let server = Server::start(&PLAIN);
    let con = &mut server.connection();
    text(con, "DEBUG SET-SKIP-CHECKSUM-VALIDATION 1");
    text(con, "RL.CONCURRENT key 9 1h a TENANT ann ADAPT GRADIENT AT 4102444800000000");
    let Value::BulkString(bytes) = dump(con, "key") else { panic!("no dump") };
    // Kind, length, last charge, number of leases with its flags, the tenant, and the flags of the adaptive limit.
    let flags_of_limit = VALUE + 25 + 1 + 2 + 3 + 1;
    assert_eq!((bytes[VALUE], bytes[VALUE + 24], bytes[flags_of_limit]), (6, 0xc0, 1));
    let changed = |place: usize, byte: u8| [&bytes[..place], &[byte], &bytes[place + 1..]].concat();
    let [newer, malformed] =
        ["key of a newer version of the ratelimit module", "malformed key of the ratelimit module"];
    for (what, bytes, told) in [
        ("a kind", changed(VALUE, 99), newer),
        ("a flag of the length", changed(VALUE + 8, 0x40), newer),
        ("a flag of the leases", changed(VALUE + 24, 0xd0), newer),
        ("a flag of the limit", changed(flags_of_limit, 0x11), newer),
        ("two leases where there is one", changed(VALUE + 17, 2), malformed),
    ] {
        let before = server.log().matches(told).count();
        let error = call_bytes(con, &[b"RESTORE", b"other", b"0", &bytes]).unwrap_err();
        assert_eq!(error_line(&error), "ERR Bad data format", "{what}");
        assert_eq!(server.log().matches(told).count(), before + 1, "{what}: {}", server.log());
    }
    // And what it knows is read.
    assert_eq!(call_bytes(con, &[b"RESTORE", b"other", b"0", &bytes]), Ok(Value::Okay));
}
