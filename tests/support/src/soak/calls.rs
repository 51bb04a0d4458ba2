//! The calls of a long run: all commands of all kinds, some of them wrong on purpose, on keys that expire within
//! seconds and are made anew.

use crate::client::line_request;
use crate::dice::Dice;

/// What a call is answered with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    Reply,
    Error,
}

/// `K` is a number of a key, `#` one of an id.
const FINE: [&str; 60] = [
    "RL.TOKENBUCKET bucket:K 20 40 1s",
    "RL.TOKENBUCKET bucket:K 20 40 1s PARTIAL COST 9",
    "RL.TOKENBUCKET batch:K 20 20 1s BATCH",
    "RL.LEAKYBUCKET water:K 20 40 1s",
    "RL.GCRA gcra:K 9 40 1s",
    "RL.GCRA gcra:K 9 40 1s FORCE COST 3",
    "RL.GCRA booked:K 9 40 1s RESERVE MAXWAIT 300ms",
    "RL.FIXEDWINDOW window:K 20 1s",
    "RL.FIXEDWINDOW aligned:K 20 1s ALIGNED",
    "RL.SLIDINGWINDOW sliding:K 20 1s",
    "RL.SLIDINGWINDOW precise:K 20 1s PRECISION 50ms",
    "RL.SLIDINGLOG log:K 20 1s",
    "RL.SLIDINGLOG log:K 20 1s GAP 5ms",
    "RL.SLIDINGLOG hammered:K 2 1s COUNTREFUSED",
    // One key, and a busy one.
    "RL.SLIDINGLOG log:of-all 100000 5s",
    "RL.CONCURRENT lease:of-all 100000 3s request:#",
    "RL.RELEASE lease:of-all request:#",
    "RL.UNIFORM gate:K 300ms",
    "RL.SMOOTH smooth:K 40 1s MAXWAIT 500ms",
    "RL.SMOOTH warm:K 40 1s WARMUP 800ms MAXWAIT 500ms",
    "RL.CONCURRENT lease:K 3 1s #",
    "RL.CONCURRENT lease:K 3 1s # RESERVED 1 CRITICAL",
    "RL.RENEW lease:K 1500ms #",
    "RL.RELEASE lease:K #",
    // Keys of all, so that callers wait for each other: the last of them in vain.
    "RL.CONCURRENT few:of-all 5 100ms # BLOCK 50ms",
    "RL.CONCURRENT few:of-all 5 100ms # BLOCK 50ms TENANT K WEIGHT 3",
    "RL.CONCURRENT few:of-all 5 100ms # TENANT K",
    "RL.UNIFORM turn:of-all 10ms BLOCK 50ms",
    "RL.MULTI 2 both:of-all few:of-all BLOCK 50ms LIMIT CONCURRENT 5 100ms # LIMIT UNIFORM 5ms ON 1",
    "RL.RELEASE few:of-all #",
    "RL.SKETCH sketch:of-all item:K 9 40 1s",
    "RL.SKETCH sketch:K # 2 9 300ms WIDTH 64 DEPTH 2",
    "RL.PEEK sketch:of-all SKETCH item:K 9 40 1s",
    "RL.TOP COUNT 20",
    "CONFIG SET ratelimit.top 30",
    "RL.SHED shed:K 0.85 DELAY 100ms RAMP 900ms",
    "RL.MULTI 1 joined:K LIMIT SLIDINGWINDOW 20 500ms LIMIT SLIDINGLOG 30 1s LIMIT GCRA 9 40 900ms",
    "RL.MULTI 2 joined:K pool:K LIMIT SLIDINGWINDOW 20 500ms ON 1 LIMIT CONCURRENT 9 900ms # ON 2",
    "RL.MULTI 1 joined:K LIMIT UNIFORM 5ms",
    "RL.MULTIPEEK 1 joined:K LIMIT SLIDINGWINDOW 20 500ms",
    "RL.MULTIREFUND 1 joined:K LIMIT SLIDINGWINDOW 20 500ms",
    "RL.ASK asked:K soak",
    "RL.ASK asked:K soak COST 2 ID # FULL KEYS pool:K",
    "RL.ASKPEEK asked:K soak ID #",
    "RL.POLICY STATS soak",
    POLICY,
    "RL.PEEK gcra:K GCRA 9 40 1s",
    "RL.REFUND log:K SLIDINGLOG 20 1s",
    "RL.REFUND bucket:K TOKENBUCKET 20 40 1s COST 3",
    "RL.INFO joined:K",
    "RL.XADD stream:of-all 500 * field value",
    "XTRIM stream:of-all MAXLEN 250",
    "RL.LPUSH list:of-all 500 a b c",
    "RL.RPUSH list:of-all 500 a",
    "LPOP list:of-all 9",
    "CL.THROTTLE cell:K 9 40 1",
    "RL.THROTTLE cell:K 9 40 1 2",
    "DEL gcra:K precise:K",
    "UNLINK joined:K",
    "PEXPIRE log:K 3",
];

/// What `RL.ASK` asks for. It must be stored first.
pub const POLICY: &str = "RL.POLICY SET soak LIMIT SLIDINGWINDOW 20 500ms LIMIT GCRA 9 40 900ms ON 1";

const WRONG: [&str; 7] = [
    "RL.GCRA gcra:K 9 40 0",
    "RL.GCRA gcra:K 9 40",
    "RL.TOKENBUCKET string 20 40 1s",
    "RL.PEEK gcra:K NOSUCH 1",
    "RL.MULTI 1 joined:K LIMIT SHED 0.5",
    "RL.ASK asked:K nosuch",
    "RL.APPLY gcra:K nonsense",
];

/// Keys of each name. Each is met every few seconds, so most expire in between.
const KEYS: u64 = 5000;
const IDS: u64 = 3000;

/// Calls at random, as a client sends them.
pub struct Calls {
    dice: Dice,
}

impl Calls {
    pub fn new(seed: u64) -> Calls {
        Calls { dice: Dice::new(seed) }
    }

    /// Writes a call, and returns the answer to expect.
    pub fn write(&mut self, out: &mut Vec<u8>) -> Answer {
        let (line, answer) = match self.dice.below(50) {
            0 => (self.dice.pick(&WRONG), Answer::Error),
            _ => (self.dice.pick(&FINE), Answer::Reply),
        };
        let (key, id) = (self.dice.below(KEYS).to_string(), self.dice.below(IDS).to_string());
        let line = line.replace(":K", &format!(":{key}")).replace('#', &id);
        out.extend(line_request(&line).into_bytes());
        answer
    }

    pub fn below(&mut self, most: u64) -> u64 {
        self.dice.below(most)
    }
}
