//! The demo's memory answers every call as a server does: so what the page shows is what the module does.

use std::collections::HashMap;
use std::fs;

use ratelimit_demo::memory::{Failure, Memory};
use ratelimit_demo::reply::{self, Reply};
use ratelimit_demo::settings::{RANGES, Settings};
use ratelimit_demo::strategies::{STRATEGIES, Strategy, find};
use ratelimit_demo::traffic::{Arrival, Shape};
use ratelimit_demo::trial;
use redis::{Connection, ConnectionLike};
use serde_json::json;

use super::{as_read, told};
use crate::support::dice::Dice;
use crate::support::{Server, call, error_line, simple, text};

/// Keeps what was asked, and what memory said.
struct Recorder {
    memory: Memory,
    calls: Vec<(String, Result<Reply, String>)>,
}

impl reply::Server for Recorder {
    fn call(&mut self, line: &str) -> Result<Reply, String> {
        let reply = self.memory.call(line);
        self.calls.push((line.into(), reply.clone()));
        reply
    }
}

/// How often memory and the server both said each of these.
#[derive(Default)]
struct Said {
    admitted: usize,
    refused: usize,
    thrown: usize,
    released: usize,
    errors: usize,
}

impl Recorder {
    fn new() -> Recorder {
        Recorder { memory: Memory::new(), calls: Vec::new() }
    }

    /// Each call once more, on a server.
    fn compare(&self, con: &mut Connection) -> Said {
        text(con, "FLUSHALL");
        let mut said = Said::default();
        for calls in self.calls.chunks(500) {
            let mut all = redis::Pipeline::new();
            for (line, _) in calls {
                let mut words = line.split(' ');
                all.cmd(words.next().unwrap()).arg(words.collect::<Vec<_>>());
            }
            let replies = con.req_packed_commands(&all.get_packed_pipeline(), 0, calls.len()).unwrap();
            for ((line, memory), reply) in calls.iter().zip(&replies) {
                let server = told::read(reply).ok_or_else(|| simple(reply));
                let (memory, server) = (&untimed(line, memory.clone()), untimed(line, server));
                assert!(said.same(memory, &server), "{line}: memory says {memory:?}, the server {server:?}");
            }
        }
        said
    }
}

/// How long room is kept for a hungry tenant is a matter of the server's own clock.
fn untimed(line: &str, reply: Result<Reply, String>) -> Result<Reply, String> {
    match reply {
        Ok(Reply::Five([1, limit, remaining, _, reset])) if line.contains(" TENANT ") => {
            Ok(Reply::Five([1, limit, remaining, 0, reset]))
        }
        reply => reply,
    }
}

/// All but the one with tenants: a server remembers hungry tenants by its own clock.
fn apart() -> impl Iterator<Item = &'static Strategy> {
    STRATEGIES.iter().filter(|strategy| strategy.id != TENANT)
}

const TENANT: &str = "concurrent-tenant";

/// A trial in memory, and then on the server.
fn agree(con: &mut Connection, settings: &Settings, strategy: &Strategy, arrivals: &[Arrival]) -> Said {
    let mut recorder = Recorder::new();
    // What is wrong with the settings, the server must say as well.
    let _ = trial::run(settings, strategy, arrivals, &mut recorder);
    recorder.compare(con)
}

impl Said {
    fn same(&mut self, memory: &Result<Reply, String>, server: &Result<Reply, String>) -> bool {
        match (memory, server) {
            (Ok(Reply::Chance(memory, chance)), Ok(Reply::Chance(server, same))) => {
                let thrown = *chance > 0.0 && *chance < 1.0;
                self.thrown += usize::from(thrown);
                (chance - same).abs() < 1e-12 && (thrown || memory == server)
            }
            (Ok(memory), Ok(server)) => {
                let count = match memory {
                    Reply::Integer(_) => &mut self.released,
                    reply if reply.limited() => &mut self.refused,
                    _ => &mut self.admitted,
                };
                *count += 1;
                memory == server
            }
            (Err(memory), Err(server)) => {
                self.errors += 1;
                memory == server
            }
            _ => false,
        }
    }
}

#[test]
fn memory_answers_every_call_as_a_server_does() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for shape in Shape::ALL {
        // Ten minutes of fewer requests, and so much less of everything else.
        let less = Settings { rate: 4, limit: 27, burst: 13, workers: 2, ..shape.into() };
        let settings = if shape == Shape::Rising { less } else { shape.into() };
        let arrivals = settings.arrivals();
        for strategy in apart() {
            let said = agree(con, &settings, strategy, &arrivals);
            let about = format!("{} {}", shape.id(), strategy.id);
            assert_eq!(said.errors, 0, "{about}");
            let shed = strategy.id == "shed";
            // A limit that finds itself grows until it refuses hardly any call, but where the backend becomes slow.
            let finds_itself = strategy.id == "concurrent-adapt" && shape != Shape::Slow;
            let refused = finds_itself || said.refused > 50;
            assert!(shed || said.admitted > 50 && refused, "{about}: nobody asked");
            assert!(!strategy.holds() || said.released > 50, "{about}: nobody released");
            let overloaded = shed && settings.shape.is_about_the_backend();
            assert!(!overloaded || said.thrown > 50, "{about}: nothing was shed");
        }
    }
}

/// While no hunger ends, no clock but that of the calls counts.
#[test]
fn memory_keeps_room_for_tenants_as_a_server_does() {
    let server = Server::start(&["--ratelimit.hunger", "3600000"]);
    let settings = Settings::from(Shape::Tenants);
    let mut recorder = Recorder { memory: Memory::with_hunger(3_600_000), calls: Vec::new() };
    trial::run(&settings, find(TENANT).unwrap(), &settings.arrivals(), &mut recorder).unwrap();
    let said = recorder.compare(&mut server.connection());
    assert!(said.admitted > 500 && said.refused > 500 && said.released > 400, "no tenant was crowded out");
}

#[test]
fn memory_answers_as_a_server_does_where_one_thing_ends_and_the_next_begins() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let settings = Settings::from(Shape::Steady);
    // Three at once, at each moment at which a token, a turn, a gap or a window is due.
    let due = |number: u64| Arrival { at: number / 3 * 50_000, user: 0, cost: 1 };
    // Of seven one comes from a caller whose clock is two seconds late, of a hundred one is an hour early.
    let odd = |number: u64| match due(number) {
        Arrival { at, .. } if number % 100 == 99 => Arrival { at: at + 3_600_000_000, user: 0, cost: 1 },
        Arrival { at, .. } if number % 7 == 6 => {
            Arrival { at: at.saturating_sub(2_000_000), user: 0, cost: 1 }
        }
        due => due,
    };
    for strategy in apart() {
        agree(con, &settings, strategy, &(0..1200).map(due).collect::<Vec<_>>());
        agree(con, &settings, strategy, &(0..1200).map(odd).collect::<Vec<_>>());
    }
    let mut leases = Recorder::new();
    for (line, at) in [
        ("RL.CONCURRENT door 1 1s ann", 0),
        ("RL.CONCURRENT door 1 1s bob", 999_999),
        // Ended by itself.
        ("RL.RELEASE door ann", 1_000_000),
        ("RL.CONCURRENT door 1 1s bob", 1_000_000),
        ("RL.RELEASE door bob", 1_999_999),
        ("RL.RELEASE door bob", 1_999_999),
    ] {
        reply::Server::call(&mut leases, &format!("{line} AT {}", trial::START + at)).unwrap();
    }
    let said = leases.compare(con);
    assert_eq!((said.admitted, said.refused, said.released), (2, 1, 3));
}

#[test]
fn memory_answers_as_a_server_does_when_the_clock_was_set_back() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let mut calls = Recorder::new();
    let hour = 3_600_000_000;
    for (line, at) in [
        // Refused, and moved all the same: the wait counts from then on.
        ("RL.MULTI 1 both AT {} LIMIT TOKENBUCKET 1 1 10s LIMIT CONCURRENT 1 1m ann", hour),
        ("RL.MULTI 1 both AT {} LIMIT TOKENBUCKET 1 1 10s LIMIT CONCURRENT 1 1m bob", 0),
        ("RL.MULTI 1 both AT {} LIMIT TOKENBUCKET 1 1 10s LIMIT CONCURRENT 1 1m bob", 5_000_000),
        ("RL.MULTI 1 both AT {} LIMIT TOKENBUCKET 1 1 10s LIMIT CONCURRENT 1 1m bob", 9_000_000),
        ("RL.RELEASE both ann AT {}", 9_000_000),
        ("RL.CONCURRENT door 1 1m ann AT {}", hour),
        ("RL.RELEASE door bob AT {}", 0),
        ("RL.CONCURRENT door 1 1m bob AT {}", 30_000_000),
        ("RL.RELEASE door ann AT {}", 31_000_000),
        ("RL.CONCURRENT door 1 1m bob AT {}", 31_000_000),
        // A look moves nothing.
        ("RL.UNIFORM gate 1s AT {}", hour),
        ("RL.UNIFORM gate 1s COST 0 AT {}", 0),
        ("RL.UNIFORM gate 1s AT {}", hour),
    ] {
        let line = line.replace("{}", &(trial::START + at).to_string());
        reply::Server::call(&mut calls, &line).unwrap();
    }
    let said = calls.compare(con);
    assert_eq!((said.admitted, said.refused, said.released), (5, 5, 3));
}

#[test]
fn memory_finds_the_limit_of_a_key_as_a_server_does() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let mut calls = Recorder::new();
    for (second, line) in [
        "RL.GCRA user 2 3 10s AT {}",
        // The only limit of its kind takes another length, and keeps its state.
        "RL.GCRA user 2 3 20s AT {}",
        "RL.GCRA user 2 3 20s COST 2 AT {}",
        "RL.UNIFORM user 1s AT {}",
        "RL.MULTI 1 user AT {} LIMIT GCRA 2 3 20s COST 0 LIMIT GCRA 5 6 1m LIMIT TOKENBUCKET 2 1 30s",
        "RL.MULTI 1 user AT {} COST 2 FORCE LIMIT GCRA 5 6 1m LIMIT TOKENBUCKET 2 1 30s",
        // There are two limits of GCRA: each is found by its length, and another length is a third one.
        "RL.GCRA user 5 6 1m COST 3 AT {}",
        "RL.GCRA user 2 3 20s AT {}",
        "RL.GCRA user 2 3 40s AT {}",
        "RL.TOKENBUCKET user 2 1 50s AT {}",
    ]
    .iter()
    .enumerate()
    {
        let at = trial::START + second as u64 * 1_000_000;
        // Errors are compared too.
        let _ = reply::Server::call(&mut calls, &line.replace("{}", &at.to_string()));
    }
    let said = calls.compare(con);
    assert_eq!((said.admitted, said.refused, said.errors), (8, 2, 0));
}

/// Calls of every command that memory answers, with holes for what is drawn. A call without `AT` is one to both sides at
/// `{at}`.
const CALLS: [&str; 44] = [
    "CL.THROTTLE {key} 9 10 1 {cost} AT {at}",
    "EXISTS {key} {other}",
    "RL.CONCURRENT {key} 3 2s {id} ADAPT FLOOR 1 SLOW 500ms AT {at}",
    "RL.CONCURRENT {key} 3 2s {id} AT {at}",
    "RL.FIXEDWINDOW {key} 10 2s ALIGNED COST {cost} AT {at}",
    "RL.FIXEDWINDOW {key} 10 2s COST {cost} HOLD {id} 3s AT {at}",
    "RL.GCRA {key} 9 10 1s COST {cost} AT {at}",
    "RL.GCRA {key} 9 10 1s COST {cost} HOLD {id} 3s AT {at}",
    "RL.GCRA {key} 9 10 1s COST {cost} PARTIAL AT {at}",
    "RL.LEAKYBUCKET {key} 5 2 1s COST {cost} AT {at}",
    "RL.MULTI 1 {key} COST {cost} AT {at} LIMIT GCRA 9 10 1s LIMIT GCRA 9 10 2s",
    "RL.MULTI 2 {key} {other} COST {cost} AT {at} LIMIT GCRA 9 10 1s LIMIT PENALTY 2 3s 2s ON 1",
    "RL.MULTI 2 {key} {other} COST {cost} FORCE AT {at} LIMIT GCRA 9 10 1s SHADOW LIMIT FIXEDWINDOW 10 2s",
    "RL.MULTI 2 {key} {other} COST {cost} HOLD {id} 3s AT {at} LIMIT GCRA 9 10 1s LIMIT FIXEDWINDOW 10 2s ON 2",
    "RL.MULTI 2 {key} {other} AT {at} LIMIT CONCURRENT 3 2s {id} LIMIT GCRA 9 10 1s ON 1 COST {cost}",
    "RL.MULTIPEEK 2 {key} {other} COST {cost} AT {at} LIMIT GCRA 9 10 1s LIMIT FIXEDWINDOW 10 2s ON 2",
    "RL.MULTIREFUND 2 {key} {other} COST {cost} AT {at} LIMIT GCRA 9 10 1s LIMIT FIXEDWINDOW 10 2s ON 2",
    "RL.MULTIRELEASE 2 {key} {other} {id} AT {at}",
    "RL.MULTISETTLE 2 {key} {other} {id} COST {cost} AT {at} LIMIT GCRA 9 10 1s LIMIT FIXEDWINDOW 10 2s ON 2",
    "RL.PEEK {key} CONCURRENT 3 2s {id} AT {at}",
    "RL.PEEK {key} FIXEDWINDOW 10 2s COST {cost} AT {at}",
    "RL.PEEK {key} GCRA 9 10 1s COST {cost} AT {at}",
    "RL.PEEK {key} SKETCH {id} 9 10 1s COST {cost} AT {at}",
    "RL.PENALTY {key} 2 3s 2s COST {cost} AT {at}",
    "RL.REFUND {key} CONCURRENT 3 2s {id} AT {at}",
    "RL.REFUND {key} FIXEDWINDOW 10 2s COST {cost} AT {at}",
    "RL.REFUND {key} GCRA 9 10 1s COST {cost} AT {at}",
    "RL.REFUND {key} SLIDINGLOG 10 2s COST {cost} AT {at}",
    "RL.RELEASE {key} {id} AT {at}",
    "RL.RELEASE {key} {id} OUTCOME DROP AT {at}",
    "RL.RENEW {key} 3s {id} AT {at}",
    "RL.SETTLE {key} {id} CONCURRENT 3 2s {id} COST {cost} AT {at}",
    "RL.SETTLE {key} {id} FIXEDWINDOW 10 2s COST {cost} AT {at}",
    "RL.SETTLE {key} {id} GCRA 9 10 1s AT {at}",
    "RL.SETTLE {key} {id} GCRA 9 10 1s COST {cost} AT {at}",
    "RL.SETTLE {key} {id} SLIDINGLOG 10 2s COST {cost} AT {at}",
    "RL.SHED {key} 0.5 AT {at}",
    "RL.SKETCH {key} {id} 9 10 1s COST {cost} AT {at}",
    "RL.SKETCH {key} {id} 9 10 1s DEPTH 5 AT {at}",
    "RL.SLIDINGLOG {key} 10 2s COST {cost} HOLD {id} 3s AT {at}",
    "RL.SLIDINGWINDOW {key} 10 2s PRECISION 1s COST {cost} AT {at}",
    "RL.THROTTLE {key} 9 10 1 {cost} AT {at}",
    "RL.TOKENBUCKET {key} 10 5 1s COST {cost} FORCE AT {at}",
    "RL.UNIFORM {key} 1s RESERVE MAXWAIT 2s AT {at}",
];

/// Draws calls of a few keys, ids and instants.
fn any_call(dice: &mut Dice, at: &mut u64) -> String {
    *at += dice.below(500_000);
    let late = if dice.one_in(10) { dice.below(3_000_000) } else { 0 };
    let when = trial::START + *at - late.min(*at);
    dice.pick(&CALLS)
        .replace("{key}", dice.pick::<&str>(&["ann", "bob", "team"]))
        .replace("{other}", dice.pick::<&str>(&["bob", "team", "pool"]))
        .replace("{id}", dice.pick::<&str>(&["r1", "r2", "r3"]))
        .replace("{cost}", &dice.below(8).to_string())
        .replace("{at}", &when.to_string())
}

#[test]
fn memory_answers_every_command_as_a_server_does() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let mut dice = Dice::new(11);
    let mut answered = HashMap::<String, usize>::new();
    for round in 0..200 {
        text(con, "FLUSHALL");
        let mut memory = Memory::new();
        let mut at = 0;
        let lines: Vec<String> = (0..60).map(|_| any_call(&mut dice, &mut at)).collect();
        for (number, line) in lines.iter().enumerate() {
            let before = || lines[..number].join("\n");
            let words: Vec<&str> = line.split(' ').collect();
            let said = memory
                .reply(line)
                .map(|full| as_read(&full.to_json()))
                .map_err(|failure| failure.to_string());
            let replied = call(con, &words).map_err(|error| error_line(&error));
            assert_eq!(said, replied, "round {round}: {line}, after\n{}", before());
            *answered.entry(words[0].to_owned()).or_default() += usize::from(replied.is_ok());
        }
    }
    for call in CALLS {
        let name = call.split(' ').next().unwrap();
        assert!(answered.get(name).is_some_and(|count| *count > 20), "{name}: {answered:?}");
    }
}

#[test]
fn memory_refuses_too_few_arguments_as_a_server_does() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for call_of in CALLS {
        let words: Vec<&str> = call_of.split(' ').collect();
        for count in 1..words.len() {
            let words: Vec<&str> =
                words[..count].iter().map(|word| if word.starts_with('{') { "1" } else { word }).collect();
            let said = Memory::new().reply_at(trial::START, &words.join(" "));
            let said = said.map(drop).map_err(|failure| failure.to_string());
            text(con, "FLUSHALL");
            let replied = call(con, &words).map(drop).map_err(|error| error_line(&error));
            assert_eq!(said, replied, "{words:?}");
        }
    }
}

#[test]
fn keys_expire_when_they_are_fully_reset() {
    for (line, seconds) in [
        ("RL.GCRA user:1 15 30 1m", 2),
        ("RL.PENALTY user:1 1 10s 10s", 10),
        ("RL.CONCURRENT user:1 5 1m r1", 60),
        ("RL.GCRA user:1 15 30 1m HOLD r1 1m", 60),
        ("RL.SKETCH user:1 ann 15 30 1m", 2),
        ("RL.SHED user:1 1 DELAY 5s RAMP 20s", 25),
    ] {
        let mut memory = Memory::new();
        memory.reply_at(trial::START, line).unwrap();
        let mut exists = |at| memory.reply_at(at, "EXISTS user:1 user:2").unwrap().reply;
        let end = trial::START + seconds * 1_000_000;
        assert_eq!((exists(end - 1), exists(end)), (Reply::Integer(1), Reply::Integer(0)), "{line}");
    }
}

#[test]
fn what_needs_a_server_says_so() {
    let failure = |line: &str| Memory::new().reply_at(trial::START, line).unwrap_err();
    for (line, what) in [
        ("RL.ASK user:1 api", "RL.ASK"),
        ("CONFIG SET ratelimit.top 10", "CONFIG"),
        ("RL.GCRA user:1 15 30 1m BLOCK 1s", "BLOCK"),
        ("RL.MULTI 1 user:1 BLOCK 1s LIMIT GCRA 15 30 1m", "BLOCK"),
        ("RL.MULTI 1 user:1 LIMIT CONCURRENT 5 1m r1 TENANT ann", "RL.MULTI with TENANT"),
        ("rl.calendar user:1 100 DAY", "CALENDAR"),
        ("RL.MULTI 1 user:1 LIMIT CALENDAR 100 DAY", "CALENDAR"),
    ] {
        assert_eq!(failure(line), Failure::NeedsServer(what.into()), "{line}");
    }
    let pages = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/commands")).unwrap();
    for name in pages.map(|page| page.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()) {
        assert!(name == "README" || !failure(&name).to_string().contains("unknown"), "{name}");
    }
    for (line, error) in [
        ("RL.GRCA user:1 15", "ERR unknown command 'RL.GRCA', with args beginning with: 'user:1' '15'"),
        ("gett", "ERR unknown command 'gett', with args beginning with: "),
        ("", "ERR unknown command '', with args beginning with: "),
    ] {
        assert_eq!(failure(line).to_string(), error);
    }
    let error = failure("RL.GCRA user:1 15 30 1m BLOCK 1s COST 0");
    assert_eq!(error.to_string(), "ERR syntax error: BLOCK needs a COST above 0");
}

#[test]
fn memory_answers_as_a_server_does_whatever_is_set() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let mut dice = Dice::new(7);
    let (mut refused, mut errors) = (0, 0);
    let all: Vec<&Strategy> = apart().collect();
    for _ in 0..60 {
        let settings = any_settings(&mut dice);
        for strategy in [dice.pick(&all), dice.pick(&all)] {
            let said = agree(con, &settings, strategy, &settings.arrivals());
            refused += said.refused;
            errors += said.errors;
        }
    }
    assert!(refused > 1000 && errors > 0, "{refused} refused, {errors} errors");
}

fn any_settings(dice: &mut Dice) -> Settings {
    let shapes = [Shape::Steady, Shape::Bursts, Shape::Edge, Shape::Abuser, Shape::Slow];
    let mut given = json!({ "shape": dice.pick(&shapes).id(), "shared": dice.one_in(3) });
    for range in &RANGES {
        // Tight limits bind more often.
        let most = if dice.one_in(2) { range.least + (range.most - range.least) / 10 } else { range.most };
        given[range.name] = json!(range.least + dice.below(most - range.least + 1));
    }
    given["rate"] = json!(1 + dice.below(20));
    Settings::from_json(&given).unwrap()
}
