//! Calls that make sense, of all commands: a new one is called without being named here. The name of an argument, or else
//! its type, decides which values make sense.

use ratelimit_language::syntax::{Kind, Part};
use redis::Connection;

use crate::support::dice::Dice;
use crate::support::fuzz::grammar::Command;
use crate::support::fuzz::request::Request;
use crate::support::{SECOND, call};

/// Options that are no limiter's own.
const SHARED: [&str; 8] = ["COST", "AT", "PARTIAL", "FORCE", "RESERVE", "ON", "HOLD", "BLOCK"];
/// Those of them that a probe and a refund take.
const PROBED: [&str; 2] = ["COST", "AT"];
/// What makes of a limiter another one, which wants other keys.
const MODES: [&str; 4] = ["BATCH", "ALIGNED", "PRECISION", "WARMUP"];

/// Makes calls, at instants that step forward and now and then back.
pub struct Caller {
    commands: Vec<Command>,
    pub dice: Dice,
    pub now: u64,
}

impl Caller {
    pub fn new(commands: Vec<Command>, seed: u64) -> Caller {
        let mut dice = Dice::new(seed);
        // In the future nothing expires meanwhile, in the past all does; and at either end of time.
        let starts = [
            4_102_444_800 * SECOND,
            1_700_002_800 * SECOND,
            1_000_000_000 * SECOND + 500,
            253_402_300_000 * SECOND,
        ];
        let start = if dice.one_in(3) { dice.index(starts.len()) } else { 0 };
        Caller { commands, dice, now: starts[start] }
    }

    pub fn command(&self, name: &str) -> Option<&Command> {
        self.commands.iter().find(|command| command.name == name)
    }

    pub fn request(&mut self) -> Request {
        // Taken out, so that what it is made of can be looked at while dice are thrown.
        let commands = std::mem::take(&mut self.commands);
        let limiters: Vec<&Command> = commands.iter().filter(|command| command.limiter().is_some()).collect();
        let several: Vec<&Command> = commands.iter().filter(|command| command.names_limits()).collect();
        let all: Vec<&Command> = commands.iter().collect();
        let from = [&limiters, &limiters, &limiters, &several, &all][self.dice.index(5)];
        let command = from[self.dice.index(from.len())];
        let mut request = Request { words: vec![command.name.clone().into_bytes()], places: Vec::new() };
        self.put_all(&mut request, &command.arguments, &limiters, &|_| true);
        self.put_keys(&mut request);
        self.commands = commands;
        request
    }

    /// All that must be there, and some of the others; those that may be left out and stand side by side in any order.
    fn put_all(
        &mut self,
        request: &mut Request,
        arguments: &[Part],
        limiters: &[&Command],
        takes: &dyn Fn(&Part) -> bool,
    ) {
        let mut limiter = None;
        let takes: Vec<&Part> = arguments.iter().filter(|argument| takes(argument)).collect();
        for run in takes.chunk_by(|one, next| one.is_optional && next.is_optional) {
            let mut run = run.to_vec();
            self.dice.shuffle(&mut run);
            for argument in run {
                let chance = match argument.token {
                    _ if !argument.is_optional => 10,
                    // They exclude each other.
                    Some("AT") if request.says("BLOCK") => 1,
                    Some("BLOCK") if request.says("AT") => 1,
                    Some("AT") => 9,
                    Some("BLOCK") => 4,
                    Some("COST") => 5,
                    _ => 2,
                };
                if self.dice.below(10) < chance {
                    self.put(request, argument, limiters, &mut limiter);
                }
            }
        }
    }

    fn put<'c>(
        &mut self,
        request: &mut Request,
        argument: &Part,
        limiters: &[&'c Command],
        limiter: &mut Option<&'c Command>,
    ) {
        let times = match argument.name().as_str() {
            "key" if argument.is_repeated && argument.parts.is_empty() => self.keys(request),
            "parameter" => 1,
            _ if argument.is_repeated => 1 + self.dice.index(3),
            _ => 1,
        };
        for _ in 0..times {
            if argument.parts.is_empty()
                && let Some(token) = argument.token
            {
                request.push(token);
            }
            match argument.kind {
                Kind::Token => {}
                Kind::Key => {
                    request.places.push(request.words.len());
                    request.push("");
                }
                Kind::OneOf => {
                    let part = &argument.parts[self.dice.index(argument.parts.len())];
                    self.put(request, part, limiters, limiter);
                }
                Kind::All => self.put_block(request, argument, limiters),
                _ if argument.name() == "limiter" => {
                    let chosen = limiters[self.dice.index(limiters.len())];
                    request.push(chosen.limiter().unwrap());
                    *limiter = Some(chosen);
                    // Behind a token it is one of many, whose options are the block's own. A settlement has its own, too.
                    let several = argument.token.is_some() || request.name() == "RL.SETTLE";
                    let takes = move |argument: &Part| takes_as_parameter(argument, several);
                    self.put_all(request, &chosen.arguments, limiters, &takes);
                }
                // They stand there already.
                _ if argument.name() == "parameter" => {}
                kind => {
                    let value = self.value(request, &argument.name(), kind);
                    request.words.push(value);
                }
            }
        }
    }

    fn put_block(&mut self, request: &mut Request, block: &Part, limiters: &[&Command]) {
        let mut limiter = None;
        for part in &block.parts {
            if !part.is_optional || self.dice.one_in(3) {
                self.put(request, part, limiters, &mut limiter);
            }
        }
    }

    /// How many keys were said to come.
    fn keys(&mut self, request: &Request) -> usize {
        let said = request.words.last().and_then(|word| std::str::from_utf8(word).ok()?.parse().ok());
        said.unwrap_or_else(|| 1 + self.dice.index(3))
    }

    /// Keys on which the call finds what it is for; seldom others, of any type.
    fn put_keys(&mut self, request: &mut Request) {
        for (place, at) in request.places.clone().into_iter().enumerate() {
            let home = if self.dice.one_in(20) {
                (*self.dice.pick(&OTHERS)).to_string()
            } else {
                self.home(request)
            };
            // Of several all are different.
            let number = self.dice.below(2) + 2 * place as u64;
            request.words[at] = if OTHERS.contains(&home.as_str()) {
                home.into_bytes()
            } else {
                format!("{home}:{number}").into_bytes()
            };
        }
    }

    fn home(&mut self, request: &Request) -> String {
        let name = request.name();
        let word = |place: usize| {
            String::from_utf8_lossy(request.words.get(place).map_or(b"", Vec::as_slice)).into_owned()
        };
        let limiter = match name.as_str() {
            "RL.PEEK" | "RL.REFUND" => word(2),
            "RL.SETTLE" => word(3),
            "RL.THROTTLE" | "CL.THROTTLE" => "GCRA".to_string(),
            "RL.RELEASE" | "RL.RENEW" | "RL.MULTIRELEASE" => "CONCURRENT".to_string(),
            "RL.INFO" => (*self.dice.pick(&["GCRA", "SLIDINGLOG", "TOGETHER", "CONCURRENT"])).to_string(),
            // Not on one that stands alone, most of the time.
            name if name.contains("MULTI") => {
                let limit = request.words.iter().position(|word| word == b"LIMIT");
                if self.dice.one_in(3) {
                    limit.map_or("TOGETHER".to_string(), |at| word(at + 1))
                } else {
                    "TOGETHER".to_string()
                }
            }
            name if name.starts_with("RL.ASK") => "ASK".to_string(),
            "RL.XADD" => "stream".to_string(),
            "RL.LPUSH" | "RL.RPUSH" => "list".to_string(),
            name => name.trim_start_matches("RL.").to_string(),
        };
        let modes = MODES.iter().filter(|mode| !name.contains("MULTI") && request.says(mode));
        modes.fold(limiter, |home, mode| home + "+" + mode)
    }
}

/// Keys that are there from the start, of all types; one that is missing, and one with a name of any bytes.
pub const OTHERS: [&str; 9] =
    ["a string", "a list", "a stream", "a hash", "a set", "a zset", "missing", "expiring", "\0\r\n\u{ff}%s"];

pub fn make_others(con: &mut Connection) {
    for words in [
        &["SET", "a string", "text"][..],
        &["RPUSH", "a list", "a", "b"],
        &["XADD", "a stream", "1-1", "field", "value"],
        &["HSET", "a hash", "field", "value"],
        &["SADD", "a set", "a"],
        &["ZADD", "a zset", "1", "a"],
        &["SET", "expiring", "text", "PX", "300"],
    ] {
        call(con, words).unwrap();
    }
}

fn takes_as_parameter(argument: &Part, several: bool) -> bool {
    let shared = |argument: &Part| {
        let token = argument.token.or(argument.parts.first().and_then(|part| part.token));
        token.filter(|token| SHARED.contains(token))
    };
    match shared(argument) {
        _ if argument.kind == Kind::Key => false,
        None => true,
        Some(token) => !several && PROBED.contains(&token),
    }
}
