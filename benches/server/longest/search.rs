//! Times the calls of the table. The server's slow log has the duration of a call, without the network. The system can
//! interrupt the server. So the shortest of three repetitions counts, each on a fresh copy of the state, and of twelve if it
//! is over the limit.
//!
//! The server keeps the states in database 0, and the copy in database 1, under the key `work`.

use std::io::{Seek, SeekFrom};
use std::time::{Duration, Instant};
use std::{fs, path::PathBuf};

use redis::{Connection, Value};

use super::findings::Findings;
use super::table::{BACK, LATEST, State};
use crate::{Result, load::pipelines};
use ratelimit_testing::dice::Dice;
use ratelimit_testing::{Server, call, call_bytes, command_names, dump_bytes, ints, rewrites_aof, simple};
use ratelimit_testing::{text, wait_for};

pub struct Options {
    /// No call may take more microseconds, unless it is linear by nature.
    pub most: u64,
    /// The seed of the random search, and how many seconds it takes.
    pub seed: u64,
    pub seconds: u64,
}

/// The words of a call.
type Words = Vec<Vec<u8>>;

const SETTINGS: &str = "--slowlog-max-len 1000 --auto-aof-rewrite-percentage 0 --ratelimit.top 10000";
const REPETITIONS: usize = 3;
/// A call on a million entries can take long.
const PATIENCE: Duration = Duration::from_secs(600);

struct Search<'o> {
    options: &'o Options,
    findings: Findings,
    server: Server,
    con: Connection,
    /// The file that each write is appended to, and its length when `work` had been copied from this state.
    aof: (PathBuf, u64),
    copied: String,
}

/// Prints what was found, and returns the number of faults.
pub fn run(options: &Options, states: &[State], are_all: bool) -> usize {
    let server = Server::start(&SETTINGS.split(' ').collect::<Vec<_>>());
    let con = server.connection();
    con.set_read_timeout(Some(PATIENCE)).expect("a time");
    let (findings, aof, copied) = (Findings::default(), (PathBuf::new(), 0), String::new());
    let mut search = Search { options, findings, server, con, aof, copied };
    if let Err(error) = search.table(states).and_then(|()| search.random(states)) {
        search.findings.failures.push(format!("the search ended: {error}"));
    }
    if are_all {
        search.findings.check_coverage(&command_names(&mut search.con));
    }
    search.findings.print(options.most)
}

impl Search<'_> {
    fn table(&mut self, states: &[State]) -> Result<()> {
        // Keys that have expired are deleted only by the calls that find them.
        self.all("DEBUG SET-ACTIVE-EXPIRE 0; CONFIG SET ratelimit.top-window 1d");
        for state in states {
            eprintln!("fill {}", state.name());
            self.many(state, "fill ", state.option("base="))?;
            self.all(&format!("PERSIST work; RENAME work {0}; MOVE {0} 0", state.name()));
        }
        self.all("CONFIG SET appendfsync no appendonly yes");
        wait_for("the append-only file", || !rewrites_aof(&mut self.con));
        let mut files =
            fs::read_dir(self.server.dir().join("appendonlydir"))?.flatten().map(|file| file.path());
        self.aof.0 = files.find(|file| file.to_string_lossy().ends_with(".incr.aof")).ok_or("no file")?;
        for state in states {
            eprintln!("calls on {}", state.name());
            self.many(state, "run ", Some(state.name()))?;
            for (is_linear, templates) in state.hard() {
                if let Err(error) = self.hard(state, is_linear, &templates) {
                    let line = templates.join("; ");
                    self.findings.failures.push(format!("{line} on {}: {error}", state.name()));
                }
            }
        }
        Ok(())
    }

    fn all(&mut self, lines: &str) {
        for line in lines.split("; ") {
            text(&mut self.con, line);
        }
    }

    /// Makes `work` missing or a copy of a state, unless it is an unchanged one.
    fn copy(&mut self, state: Option<&str>) {
        self.all("CONFIG SET slowlog-log-slower-than -1 lazyfree-lazy-expire no lazyfree-lazy-server-del no");
        let written = |aof: &PathBuf| fs::metadata(aof).map_or(0, |file| file.len());
        if self.copied != state.unwrap_or_default() || self.aof.1 == 0 || written(&self.aof.0) != self.aof.1 {
            self.all("SELECT 1; FLUSHDB SYNC; SELECT 0");
            self.all(&state.map_or("PING".into(), |state| format!("COPY {state} work DB 1")));
            (self.copied, self.aof.1) = (state.unwrap_or_default().to_string(), written(&self.aof.0));
        }
        self.all("SELECT 1; SLOWLOG RESET");
    }

    /// Makes many calls on copies of a state. If some are slow, all are made again. Those count that are slow each time.
    fn many(&mut self, state: &State, verb: &str, base: Option<&str>) -> Result<()> {
        for (count, template) in state.counted(verb) {
            let mut slow = Vec::new();
            for repetition in 0..REPETITIONS {
                self.copy(base);
                self.all(&format!("CONFIG SET slowlog-log-slower-than {}", self.options.most / 2));
                made(&mut self.con, count, |i| state.call(&template, i))?;
                self.all("CONFIG SET slowlog-log-slower-than -1");
                let mut again = slow_calls(&mut self.con, 1000);
                again.retain_mut(|(micros, call)| {
                    let earlier = slow.iter().find(|(_, other)| other == call).map(|(micros, _)| *micros);
                    *micros = earlier.unwrap_or(*micros).min(*micros);
                    repetition == 0 || earlier.is_some()
                });
                slow = again;
                if slow.is_empty() {
                    break;
                }
            }
            let preceding = [format!("some of {count} calls")];
            for (micros, call) in slow {
                self.findings.record(state.name(), &call, micros, &preceding);
            }
            self.findings.made += count;
        }
        Ok(())
    }

    fn hard(&mut self, state: &State, is_linear: bool, templates: &[String]) -> Result<()> {
        let middle = (state.entries() / 2).saturating_sub(1);
        let calls: Vec<String> = templates.iter().map(|call| state.call(call, middle)).collect();
        self.copy(Some(state.name()));
        let words: Vec<Words> = calls.iter().map(|call| self.words(call)).collect();
        if !is_linear {
            self.sequence(state, &calls, &words, true)?;
            let effects = self.effects()?;
            let of =
                |effect: &Words| format!("{} of {}", String::from_utf8_lossy(&effect[0]), calls.join("; "));
            return self.sequence(state, &effects.iter().map(of).collect::<Vec<_>>(), &effects, true);
        }
        let entries = state.entries();
        if entries >= 1000 {
            let micros = self.times(state, &words, true, [0, u64::MAX])?[0];
            self.findings.linear.push((state.name(), calls[0].clone(), micros, micros * 1000 / entries));
        }
        if let (Some(most), true) = (state.option("bytes="), calls[0].starts_with("MEMORY")) {
            let bytes = u64::try_from(ints(&mut self.con, &calls[0])[0])? / entries;
            println!("{bytes} bytes for each entry of {}, at most {most}", state.name());
            return if bytes > most.parse()? { Err("too many bytes".into()) } else { Ok(()) };
        }
        Ok(())
    }

    /// The words of a call; `$dump` is the value.
    fn words(&mut self, call: &str) -> Words {
        let word = |word: &str| if word == "$dump" { dump_bytes(&mut self.con, "work") } else { word.into() };
        call.split(' ').map(word).collect()
    }

    /// What replicas have received since `work` was copied, as calls.
    fn effects(&self) -> Result<Vec<Words>> {
        let mut file = fs::File::open(&self.aof.0)?;
        file.seek(SeekFrom::Start(self.aof.1))?;
        let (mut parser, mut effects) = (redis::Parser::new(), Vec::new());
        while let Ok(Value::Array(words)) = parser.parse_value(&mut file) {
            let bytes = |word| if let Value::BulkString(bytes) = word { bytes } else { Vec::new() };
            effects.push(words.into_iter().map(bytes).collect());
        }
        effects.retain(|words: &Words| [&b"RL.APPLY"[..], b"COPY"].contains(&&*words[0]));
        Ok(effects)
    }

    /// Makes calls on copies of a state. Without `strict`, an error is a reply.
    fn sequence(&mut self, state: &State, calls: &[String], words: &[Words], strict: bool) -> Result<()> {
        let times = self.times(state, words, strict, [self.options.most / 10, self.options.most])?;
        for (place, micros) in times.into_iter().enumerate() {
            self.findings.record(state.name(), &calls[place], micros, &calls[..place]);
        }
        self.findings.made += calls.len() as u64;
        Ok(())
    }

    /// The shortest times of calls, in microseconds. They are not repeated if all are at most what is enough at once, and
    /// more often only if one is over what is enough later.
    fn times(&mut self, state: &State, calls: &[Words], strict: bool, enough: [u64; 2]) -> Result<Vec<u64>> {
        let mut shortest = vec![u64::MAX; calls.len()];
        for repetition in 1..=4 * REPETITIONS {
            self.copy(Some(state.name()));
            self.all("CONFIG SET slowlog-log-slower-than 0");
            for words in calls {
                let reply = call_bytes(&mut self.con, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
                if let Some(error) = reply.err().filter(|error| strict || error.code().is_none()) {
                    return Err(error.into());
                }
            }
            let times = slow_calls(&mut self.con, calls.len()).into_iter().rev();
            shortest =
                shortest.into_iter().zip(times).map(|(micros, (other, _))| micros.min(other)).collect();
            if shortest.len() < calls.len() {
                return Err("a call is not in the slow log".into());
            }
            let enough = enough[usize::from(repetition >= REPETITIONS)];
            if shortest.iter().all(|micros| *micros <= enough) {
                break;
            }
        }
        Ok(shortest)
    }

    /// Makes random sequences of the hard calls of each state, at random instants, until the time is up.
    fn random(&mut self, states: &[State]) -> Result<()> {
        let pool = |state: &State| {
            let calls =
                state.hard().into_iter().filter(|(is_linear, _)| !is_linear).flat_map(|(_, calls)| calls);
            calls.filter(|call| call.starts_with("RL.") && call.contains(" AT @")).collect::<Vec<_>>()
        };
        let pools: Vec<_> =
            states.iter().map(|state| (state, pool(state))).filter(|pool| !pool.1.is_empty()).collect();
        let (began, mut number) = (Instant::now(), 0);
        while began.elapsed() < Duration::from_secs(self.options.seconds) && !pools.is_empty() {
            let (state, pool) = &pools[number % pools.len()];
            let dice = &mut Dice::of(self.options.seed, number);
            let mut now = state.call("@now", 0).parse()?;
            let calls = (0..20 + dice.below(80)).map(|_| {
                now = stepped(now, dice);
                let template: &String = dice.pick(pool);
                let (before, after) = template.split_once(" AT @").unwrap_or_default();
                let after = after.split_once(' ').map_or("", |(_, after)| after);
                state.call(format!("{before} AT {now} {after}").trim_end(), dice.below(state.entries()))
            });
            let calls: Vec<String> = calls.collect();
            let words: Vec<Words> = calls.iter().map(|call| self.words(call)).collect();
            self.sequence(state, &calls, &words, false)?;
            number += 1;
        }
        println!("{number} random sequences in {} s, --seed={}", self.options.seconds, self.options.seed);
        Ok(())
    }
}

/// A later or earlier instant: by little in most steps, by more than a reset in some, and by years in a few.
fn stepped(now: u64, dice: &mut Dice) -> u64 {
    let most = *dice.pick(&[1000, 1_000_000, 10_000_000, 3_600_000_000, 14_400_000_000, LATEST / 80, LATEST]);
    let step = dice.below(most);
    (if dice.one_in(3) { now.saturating_sub(step) } else { now + step }).clamp(BACK, LATEST)
}

/// Makes calls in pipelines. An error reply is an error.
pub fn made(con: &mut Connection, count: u64, line: impl Fn(u64) -> String) -> Result<()> {
    let check = |reply: &Value| match reply {
        Value::ServerError(error) => Err(format!("{error:?}").into()),
        _ => Ok(()),
    };
    pipelines(con, 10_000, u32::try_from(count)?, |i| line(i.into()), check)
}

/// The last calls of the slow log, the newest first: their microseconds and words.
pub fn slow_calls(con: &mut Connection, count: usize) -> Vec<(u64, String)> {
    let entries = call(con, &["SLOWLOG", "GET", &count.to_string()]).expect("the slow log");
    let calls = entries.into_sequence().expect("entries").into_iter().map(|entry| {
        let entry = entry.into_sequence().expect("a call");
        let [_, _, Value::Int(micros), Value::Array(words), ..] = &*entry else { panic!("no call") };
        let words: Vec<String> = words.iter().map(simple).collect();
        (u64::try_from(*micros).unwrap(), words.join(" "))
    });
    calls.collect()
}
