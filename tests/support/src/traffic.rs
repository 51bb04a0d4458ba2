//! Calls of every command in every manner, at random from a seed, so that a history can be had again.
//!
//! Instants lie in the year 2100, so no key expires by itself, whatever the year of the test; they step forward, now
//! and then a little back, and rarely hours back, so that what is stored is moved. Only `live:` keys go by the
//! server's clock, with limits that take hours.

use std::fmt::Write;

use crate::SECOND;
use crate::dice::Dice;
use crate::families::{FAMILIES, Family, GIVE_BACK, HELD, LIVE};

const START: u64 = 4_102_444_800 * SECOND;

/// What the calls of policies ask for.
pub const POLICIES: [&str; 4] = [
    "one LIMIT GCRA 6 7 1s",
    "windows LIMIT SLIDINGWINDOW 8 1s LIMIT TOKENBUCKET 9 3 2s LIMIT FIXEDWINDOW 5 1m SHADOW",
    "pair LIMIT GCRA 5 9 1s LIMIT SLIDINGLOG 9 2s ON 2 COST 2",
    "leases LIMIT CONCURRENT 4 900ms LIMIT PENALTY 3 2s 500ms",
];

pub enum Step {
    Call(String),
    Transaction(Vec<String>),
    Script(Vec<String>),
    Function(Vec<String>),
    /// Made by one client, and then in a transaction by another that watches the key.
    Watched {
        key: String,
        call: String,
    },
    /// The call meets a key that has expired.
    Expired {
        key: String,
        call: String,
    },
}

pub struct Traffic {
    dice: Dice,
    now: u64,
}

impl Traffic {
    pub fn new(seed: u64) -> Traffic {
        Traffic { dice: Dice::new(seed), now: START }
    }

    pub fn step(&mut self) -> Step {
        match self.dice.below(60) {
            0 => Step::Transaction(self.calls()),
            1 => Step::Script(self.calls()),
            2 => Step::Function(self.calls()),
            3 => {
                let (key, call) = self.limited();
                Step::Watched { key, call }
            }
            4 if self.dice.below(2) == 0 => {
                let (key, call) = self.limited();
                Step::Expired { key, call }
            }
            5 | 6 => Step::Call(self.moved()),
            _ => Step::Call(self.call()),
        }
    }

    fn calls(&mut self) -> Vec<String> {
        (0..2 + self.dice.below(5)).map(|_| self.call()).collect()
    }

    /// A call that may stand anywhere.
    fn call(&mut self) -> String {
        let (key, at) = (self.dice.below(2), self.instant());
        let call = match self.dice.below(42) {
            0..=4 => self.several(),
            5 | 6 => self.given_back(),
            7 if self.dice.below(3) == 0 => {
                let other = self.dice.pick(&["lease", "together"]);
                format!("RL.MULTIRELEASE 2 lease:{key} {other}:{} # AT {at}", 1 - key)
            }
            7 | 8 => {
                let key = format!("{}:{key}", self.dice.pick(&["lease", "together"]));
                let call =
                    self.dice.pick(&["RL.RELEASE KEY #", "RL.RENEW KEY 900ms #", "RL.RENEW KEY 2500ms #"]);
                format!("{} AT {at}", call.replace("KEY", &key))
            }
            9 => {
                let options = self.dice.pick(&["", "DELAY 100ms RAMP 900ms", "GOOD 0.3 BAD 0.4 TIER 2 OF 3"]);
                format!("RL.SHED shed:{key} 0.{:03} {options} AT {at}", self.dice.below(1000))
            }
            10 => {
                let command = self.dice.pick(&["RL.THROTTLE", "CL.THROTTLE"]);
                format!("{command} gcra:{key} 6 7 1 {} AT {at}", self.cost())
            }
            11 | 12 => self.queued(key),
            13 | 14 => self.dice.pick(&LIVE).to_string(),
            15 | 16 => self.handled(),
            17..=19 => self.held(),
            20 | 21 => self.settled(),
            22..=24 => self.asked(),
            25 | 26 => {
                let name = self.dice.pick(&["sketch", "sketch", "sketch", "any"]);
                let parameters = self.dice.pick(&["3 4 1s", "6 7 1100ms", "9 30 700ms"]);
                let cost = self.cost();
                format!("RL.SKETCH {name}:{key} # {parameters} WIDTH 8 DEPTH 2 COST {cost} AT {at}")
            }
            _ => self.limited().1,
        };
        call.replace('#', &format!("id{}", self.dice.below(12)))
    }

    /// A limiter's own call, and its key.
    fn limited(&mut self) -> (String, String) {
        let family = self.dice.pick(&FAMILIES);
        let key = self.key_of(family);
        let (parameters, manner) = (self.dice.pick(family.parameters), self.dice.pick(family.manners));
        let (cost, at) = (self.cost(), self.instant());
        let call = format!("RL.{} {key} {parameters} {manner} COST {cost} AT {at}", family.limiter);
        (key, call.replace('#', &format!("id{}", self.dice.below(12))))
    }

    /// A limiter's own call that is held.
    fn held(&mut self) -> String {
        let family = self.dice.pick(&FAMILIES[..HELD]);
        let (key, parameters) = (self.key_of(family), self.dice.pick(family.parameters));
        let (cost, at, hold) = (self.cost().max(1), self.instant(), self.hold());
        let manner = self.dice.pick(&["", "", "PARTIAL", "FORCE"]);
        format!("RL.{} {key} {parameters} {manner} COST {cost} {hold} AT {at}", family.limiter)
    }

    /// Often of an id that is not held there, or no more.
    fn settled(&mut self) -> String {
        let family = self.dice.pick(&FAMILIES[..HELD]);
        let (key, parameters) = (self.key_of(family), self.dice.pick(family.parameters));
        let (id, cost, at) = (self.held_id(), self.dice.below(6), self.instant());
        format!("RL.SETTLE {key} {id} {} {parameters} COST {cost} AT {at}", family.limiter)
    }

    fn hold(&mut self) -> String {
        let ttl = self.dice.pick(&["60ms", "700ms", "1m", "1h"]);
        format!("HOLD {} {ttl}", self.held_id())
    }

    fn held_id(&mut self) -> String {
        format!("held{}", self.dice.below(2))
    }

    /// A call of a policy.
    fn asked(&mut self) -> String {
        let [key, other] = ["asked", "together"].map(|name| format!("{name}:{}", self.dice.below(2)));
        let (cost, at) = (self.cost(), self.instant());
        let call = match self.dice.below(8) {
            0 => format!("RL.ASK {key} one COST {cost}"),
            1 => format!("RL.ASK {other} windows FORCE COST {cost}"),
            2 => format!("RL.ASK {other} windows {} COST {}", self.hold(), cost.max(1)),
            3 => format!("RL.ASKSETTLE {other} windows {} COST {cost}", self.held_id()),
            4 => format!("RL.ASKREFUND {other} windows COST {cost}"),
            5 => format!("RL.ASKPEEK {key} one FULL COST {cost}"),
            6 => format!("RL.ASK {other} leases ID # COST {cost}"),
            _ => return format!("RL.ASK {key} pair FULL COST {cost} AT {at} KEYS {other}"),
        };
        format!("{call} AT {at}")
    }

    fn given_back(&mut self) -> String {
        let family = self.dice.pick(&FAMILIES[..GIVE_BACK]);
        let (key, parameters) = (self.key_of(family), self.dice.pick(family.parameters));
        let (cost, at) = (self.cost(), self.instant());
        format!("RL.REFUND {key} {} {parameters} COST {cost} AT {at}", family.limiter)
    }

    /// Mostly one of its own, sometimes one where it may find another limiter's, or several limits.
    fn key_of(&mut self, family: &Family) -> String {
        match self.dice.below(12) {
            0 => format!("any:{}", self.dice.below(4)),
            1 => format!("together:{}", self.dice.below(2)),
            _ => format!("{}:{}", family.key, self.dice.below(2)),
        }
    }

    /// Several limits on several keys, some of which a single limiter's command has made.
    fn several(&mut self) -> String {
        let settles = self.dice.below(5) == 0;
        let command = self.dice.pick(&["RL.MULTI", "RL.MULTI", "RL.MULTI", "RL.MULTIREFUND", "RL.MULTIPEEK"]);
        let command = if settles { &"RL.MULTISETTLE" } else { command };
        let force = if *command == "RL.MULTI" && self.dice.below(6) == 0 { "FORCE" } else { "" };
        let debt = *command == "RL.MULTIREFUND" || !force.is_empty();
        let keys = 1 + self.dice.below(3);
        let mut line = format!("{command} {keys}");
        for number in 0..keys {
            let name = if self.dice.below(5) == 0 { self.dice.pick(&FAMILIES).key } else { "together" };
            write!(line, " {name}:{number}").unwrap();
        }
        if settles {
            write!(line, " {}", self.held_id()).unwrap();
        }
        let cost = self.cost();
        write!(line, " {force} COST {cost} AT {}", self.instant()).unwrap();
        let options = line.len();
        let mut can_be_held = false;
        let families = if settles { &FAMILIES[..HELD] } else { &FAMILIES[..] };
        let first = self.dice.index(families.len());
        // Every third from there, so that none comes twice.
        let chosen = (0..=self.dice.index(4)).map(|i| &families[(first + 3 * i) % families.len()]);
        let allowed = |family: &&Family| family.debt || !debt && family.key != "hammered";
        let mut limits: Vec<&Family> = chosen.filter(allowed).collect();
        if limits.is_empty() {
            limits.push(&FAMILIES[0]);
        }
        for family in limits {
            let parameters = match family.parameters {
                // Two limits of one limiter; a key has one table of leases.
                [one, other, ..] if family.limiter != "CONCURRENT" && self.dice.below(4) == 0 => {
                    format!("{one} LIMIT {} {other}", family.limiter)
                }
                parameters => self.dice.pick(parameters).to_string(),
            };
            let own = self.dice.pick(&["", "", "ON 1", "COST 2", "COST 0", "SHADOW", "COST 9 SHADOW"]);
            // Of two limits of one limiter, the first has no option.
            let holds = FAMILIES[..HELD].iter().any(|held| held.key == family.key);
            can_be_held |= holds && (["", "ON 1", "COST 2"].contains(own) || parameters.contains("LIMIT"));
            write!(line, " LIMIT {} {parameters} {own}", family.limiter).unwrap();
        }
        if *command == "RL.MULTI" && can_be_held && cost > 0 && self.dice.below(2) == 0 {
            let hold = self.hold();
            line.insert_str(options, &format!(" {hold}"));
        }
        line
    }

    fn queued(&mut self, key: u64) -> String {
        let calls = ["RL.XADD stream:K 4 * f v", "RL.LPUSH list:K 5 a b", "RL.RPUSH list:K 5 c"];
        let taken = ["XTRIM stream:K MAXLEN 2", "LPOP list:K 2", "RL.LPUSH any:K 3 x"];
        let call = if self.dice.below(3) == 0 { self.dice.pick(&taken) } else { self.dice.pick(&calls) };
        call.replace('K', &key.to_string())
    }

    /// What the server does with any key.
    fn handled(&mut self) -> String {
        let calls = ["DEL A", "UNLINK A", "PERSIST A", "PEXPIRE A 7200000", "PEXPIREAT A 4103000000000"];
        let more = ["PEXPIREAT A 1000", "EXPIRE A 36000 NX", "COPY A B", "COPY A B REPLACE", "RENAME A B"];
        let template = if self.dice.below(2) == 0 { self.dice.pick(&calls) } else { self.dice.pick(&more) };
        self.on_any_keys(template)
    }

    /// What only a plain call can do. `@key` stands for the dump of a key, `@port` for another server's port.
    fn moved(&mut self) -> String {
        let calls = [
            "SELECT 0",
            "SELECT 0",
            "SELECT 1",
            "SWAPDB 0 1",
            "MOVE A 1",
            "MOVE A 0",
            "COPY A B DB 1 REPLACE",
        ];
        let dumped =
            ["RESTORE B 0 @A REPLACE", "RESTORE B 4103000000000 @A REPLACE ABSTTL", "MIGRATE @port A"];
        let template = if self.dice.below(2) == 0 { self.dice.pick(&calls) } else { self.dice.pick(&dumped) };
        self.on_any_keys(template)
    }

    /// Puts keys in: never `live:` ones, which must not get a state of another time that ends at once.
    fn on_any_keys(&mut self, template: &str) -> String {
        let (one, other) = (self.any_key(), self.any_key());
        let words = template.split(' ').map(|word| match word {
            "A" => one.clone(),
            "@A" => format!("@{one}"),
            "B" => other.clone(),
            word => word.to_string(),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    fn any_key(&mut self) -> String {
        let key = match self.dice.below(4) {
            0 => "together",
            1 => "any",
            _ => self.dice.pick(&FAMILIES).key,
        };
        format!("{key}:{}", self.dice.below(3))
    }

    fn cost(&mut self) -> u64 {
        match self.dice.below(20) {
            0 => 0,
            1 => 40,
            _ => 1 + self.dice.below(3),
        }
    }

    fn instant(&mut self) -> u64 {
        self.now += match self.dice.below(2000) {
            0 => self.dice.below(200 * SECOND),
            1..=5 => self.dice.below(5 * SECOND),
            6..=500 => 0,
            501..=800 => 1,
            _ => self.dice.below(4000),
        };
        match self.dice.below(100) {
            0 => self.now - (1 + self.dice.below(36_000)) * SECOND,
            1..=6 => self.now - self.dice.below(300_000),
            // Where windows and buckets begin.
            7..=9 => self.now - self.now % 100_000,
            _ => self.now,
        }
    }
}
