//! Clients that make every call that changes a limit, in many modes, on old keys and on new ones.
//!
//! Most calls go by the server's clock. A copy that runs such a call, instead of its effect, then holds other bytes.
//! No key expires within a test.

use std::thread::sleep;
use std::time::Duration;

use redis::{Connection, RedisResult, Value};

use crate::support::dice::Dice;
use crate::support::histories::SCRIPT;
use crate::support::load::{Course, Load};
use crate::support::{Server, call, info, refused, wait_for};

/// `K` is the number of a key, `#` the id of a lease or a hold, and `@` an instant in the year 2100.
const LINES: [&str; 72] = [
    "RL.TOKENBUCKET bucket:K 9 1 1h",
    "RL.TOKENBUCKET bucket:K 9 1 1h PARTIAL COST 3",
    "RL.TOKENBUCKET bucket:K 9 1 1h RESERVE MAXWAIT 2h",
    "RL.TOKENBUCKET batch:K 9 2 1h BATCH COST 2",
    "RL.TOKENBUCKET batch:K 9 2 1h BATCH FORCE",
    "RL.LEAKYBUCKET water:K 9 1 1h COST 2",
    "RL.GCRA gcra:K 8 1 1h",
    "RL.GCRA gcra:K 8 1 1h FORCE COST 2",
    "RL.THROTTLE gcra:K 8 1 3600 2",
    "RL.GCRA later:K 8 1 1h COST 2 AT @",
    "RL.FIXEDWINDOW window:K 9 1h",
    "RL.FIXEDWINDOW window:K 9 1h PARTIAL COST 4",
    "RL.FIXEDWINDOW later:window:K 9 1h ALIGNED COST 2 AT @",
    "RL.CALENDAR later:page:K 9 MONTH TZ Europe/Lisbon ANCHOR 31 COST 2 AT @",
    "RL.SLIDINGWINDOW sliding:K 9 1h COST 2",
    "RL.SLIDINGWINDOW precise:K 9 1h PRECISION 1m",
    "RL.SLIDINGWINDOW precise:K 9 1h PRECISION 1m COST 4",
    "RL.SLIDINGWINDOW later:precise:K 9 1h PRECISION 15m AT @",
    "RL.SLIDINGLOG log:K 9 1h",
    "RL.SLIDINGLOG log:K 9 1h FORCE COST 2",
    "RL.SLIDINGLOG hammered:K 5 1h GAP 3ms COUNTREFUSED",
    "RL.SLIDINGLOG hammered:K 5 1h GAP 3ms COUNTREFUSED",
    "RL.UNIFORM gate:K 1h",
    "RL.UNIFORM gate:K 1h RESERVE MAXWAIT 2h",
    "RL.SMOOTH burst:K 9 1h MAXWAIT 2h",
    "RL.SMOOTH warm:K 9 1h WARMUP 30m MAXWAIT 2h",
    "RL.SHED shed:K 0.9 DELAY 1h",
    "RL.PENALTY struck:K 3 1h 1h",
    "RL.PENALTY grown:K 2 1h 1h GROW 2 MAX 2h FORGIVE 2h",
    "RL.CONCURRENT lease:K 6 1h #",
    "RL.CONCURRENT lease:K 6 1h # RESERVED 2 CRITICAL",
    "RL.CONCURRENT lease:K 6 1h # TENANT ann WEIGHT 3",
    "RL.MULTI 1 together:K LIMIT GCRA 8 1 1h LIMIT CONCURRENT 9 1h # TENANT bob",
    "RL.RENEW lease:K 2h #",
    "RL.RELEASE lease:K #",
    "RL.MULTI 1 together:K LIMIT GCRA 8 1 1h LIMIT SLIDINGLOG 9 1h LIMIT CONCURRENT 9 1h #",
    "RL.MULTI 1 together:K LIMIT FIXEDWINDOW 99 2h LIMIT SLIDINGWINDOW 9 1h PRECISION 1m",
    "RL.MULTI 2 one:K two:K COST 2 LIMIT GCRA 8 1 1h LIMIT TOKENBUCKET 9 1 1h ON 1",
    "RL.MULTI 3 gcra:K lease:K log:K LIMIT GCRA 8 1 1h ON 1 LIMIT CONCURRENT 6 1h # ON 2 \
     LIMIT SLIDINGLOG 9 1h ON 3",
    "RL.MULTI 1 together:K LIMIT GCRA 8 1 1h LIMIT SLIDINGLOG 4 1h SHADOW LIMIT CONCURRENT 3 1h # SHADOW",
    "RL.MULTI 1 punished:K LIMIT GCRA 8 1 1h LIMIT PENALTY 3 1h 1h",
    "RL.MULTI 1 tried:K LIMIT TOKENBUCKET 9 1 1h SHADOW",
    "RL.MULTIREFUND 2 one:K two:K COST 2 LIMIT GCRA 8 1 1h LIMIT TOKENBUCKET 9 1 1h ON 1",
    "RL.MULTIRELEASE 2 lease:K together:K #",
    "RL.REFUND bucket:K TOKENBUCKET 9 1 1h COST 2",
    "RL.REFUND batch:K TOKENBUCKET 9 2 1h BATCH COST 2",
    "RL.REFUND gcra:K GCRA 8 1 1h COST 3",
    "RL.REFUND window:K FIXEDWINDOW 9 1h COST 3",
    "RL.REFUND later:page:K CALENDAR 9 MONTH TZ Europe/Lisbon ANCHOR 31 COST 3 AT @",
    "RL.REFUND struck:K PENALTY 3 1h 1h",
    "RL.REFUND sliding:K SLIDINGWINDOW 9 1h",
    "RL.REFUND precise:K SLIDINGWINDOW 9 1h PRECISION 1m COST 2",
    "RL.REFUND log:K SLIDINGLOG 9 1h COST 2",
    "RL.TOKENBUCKET bucket:K 9 1 1h COST 3 HOLD # 1h",
    "RL.GCRA gcra:K 8 1 1h COST 2 PARTIAL HOLD # 1s",
    "RL.FIXEDWINDOW window:K 9 1h FORCE COST 2 HOLD # 1h",
    "RL.SLIDINGWINDOW precise:K 9 1h PRECISION 1m COST 2 HOLD # 1h",
    "RL.SLIDINGLOG log:K 9 1h COST 2 HOLD # 1h",
    "RL.MULTI 2 one:K two:K COST 2 HOLD # 1h LIMIT GCRA 8 1 1h LIMIT TOKENBUCKET 9 1 1h ON 1",
    "RL.SETTLE bucket:K # TOKENBUCKET 9 1 1h COST 1",
    "RL.SETTLE gcra:K # GCRA 8 1 1h COST 3",
    "RL.SETTLE window:K # FIXEDWINDOW 9 1h COST 1",
    "RL.SETTLE precise:K # SLIDINGWINDOW 9 1h PRECISION 1m COST 1",
    "RL.SETTLE log:K # SLIDINGLOG 9 1h COST 1",
    "RL.MULTISETTLE 2 one:K two:K # COST 1 LIMIT GCRA 8 1 1h LIMIT TOKENBUCKET 9 1 1h ON 1",
    "RL.LPUSH list:K 5 element",
    // Room comes when another client releases or refunds.
    "RL.CONCURRENT lease:K 6 1h # BLOCK 20ms",
    "RL.CONCURRENT lease:K 6 1h # BLOCK 20ms TENANT ann",
    "RL.CONCURRENT lease:K 6 1h # RESERVED 2 CRITICAL BLOCK 5ms",
    "RL.MULTI 2 lease:K together:K BLOCK 20ms LIMIT CONCURRENT 6 1h #",
    // And here when time has come.
    "RL.MULTI 1 turn:K BLOCK 50ms LIMIT UNIFORM 20ms LIMIT FIXEDWINDOW 1000000 10h",
    "RL.MULTI 2 turn:K log:K BLOCK 50ms LIMIT UNIFORM 20ms ON 1 LIMIT SLIDINGLOG 1000000 1h",
];

/// In microseconds.
const YEAR_2100: u64 = 4_102_444_800_000_000;
/// Fast enough to leave no moment without calls, and slow enough for tests that compare all keys.
const PAUSE: Duration = Duration::from_millis(2);
const CALLERS: u64 = 3;

/// The replies of a caller.
#[derive(Default)]
pub struct Tally {
    pub admitted: usize,
    pub refused: usize,
}

/// Clients that call until the test has enough, or their server is killed. The keys of each `name` are its own, apart from
/// two of each kind.
pub fn callers(server: &Server, name: &'static str) -> Load<Tally> {
    Load::start((0..CALLERS).map(|caller| {
        let con = server.connection();
        let seed = u64::from(name.as_bytes()[0]) * CALLERS + caller;
        let client = Client { con, dice: Dice::new(seed), name: format!("{name}{caller}"), number: 1 };
        move |course: &Course| client.call_on(course)
    }))
}

/// Calls on a server that sends no effects.
pub fn unsent_calls(server: &Server, name: &'static str) -> Load<Tally> {
    let calls = callers(server, name);
    wait_until_unsent(server);
    calls.goes_on(300);
    calls
}

/// Ends the traffic, and checks that both outcomes came often enough.
pub fn finish(callers: Load<Tally>) {
    let tallies = callers.finish();
    let (admitted, refused) = tallies
        .iter()
        .fold((0, 0), |(admitted, refused), tally| (admitted + tally.admitted, refused + tally.refused));
    assert!(admitted > 100 && refused > 10, "{admitted} admitted, {refused} refused");
}

/// Whether the module sends effects.
pub fn propagates(con: &mut Connection) -> bool {
    info(con, "ratelimit", "ratelimit_propagates").expect("the field") == "1"
}

/// Waits until the module sends no effects.
pub fn wait_until_unsent(server: &Server) {
    let con = &mut server.connection();
    wait_for("no effects to be sent", || !propagates(con));
}

/// Waits until the module has had the time to check whether anything can receive effects.
pub fn wait_for_a_check(server: &Server) {
    let con = &mut server.connection();
    let mut uptime = || info(con, "server", "uptime_in_seconds").unwrap().parse::<u64>().unwrap();
    let start = uptime();
    wait_for("more than a second of the server's clock", || uptime() >= start + 2);
}

struct Client {
    con: Connection,
    dice: Dice,
    name: String,
    /// Of the newest key.
    number: u64,
}

impl Client {
    fn call_on(mut self, course: &Course) -> Tally {
        let mut tally = Tally::default();
        while !course.is_enough() {
            match self.step(&mut tally) {
                Ok(()) => course.goes_on(),
                Err(error) if error.code().is_none() => break,
                Err(error) => panic!("{}: {error}", self.name),
            }
            sleep(PAUSE);
        }
        tally
    }

    /// A call, or several in a transaction or a script.
    fn step(&mut self, tally: &mut Tally) -> RedisResult<()> {
        match self.dice.below(20) {
            0 => {
                call(&mut self.con, &["MULTI"])?;
                for _ in 0..3 {
                    self.call()?;
                }
                let Value::Array(replies) = call(&mut self.con, &["EXEC"])? else {
                    panic!("a transaction that nobody disturbs")
                };
                for reply in &replies {
                    tally.count(reply);
                }
            }
            1 => {
                let lines: Vec<String> = (0..3).map(|_| self.line()).collect();
                let mut words = vec!["EVAL", SCRIPT, "0"];
                words.extend(lines.iter().map(String::as_str));
                call(&mut self.con, &words)?;
            }
            _ => tally.count(&self.call()?),
        }
        Ok(())
    }

    fn call(&mut self) -> RedisResult<Value> {
        let line = self.line();
        call(&mut self.con, &line.split_whitespace().collect::<Vec<_>>())
    }

    fn line(&mut self) -> String {
        let (line, key) = (*self.dice.pick(&LINES), self.key());
        let (id, at) = (format!("id{}", self.dice.below(12)), YEAR_2100 + self.number * 1000);
        line.replace(":K", &format!(":{key}")).replace('#', &id).replace('@', &at.to_string())
    }

    /// A new key, an earlier one of this client, or one of all clients.
    fn key(&mut self) -> String {
        match self.dice.below(8) {
            0 => {
                self.number += 1;
                format!("{}-{}", self.name, self.number)
            }
            1 => format!("{}-{}", self.name, self.dice.below(self.number)),
            _ => self.dice.below(2).to_string(),
        }
    }
}

impl Tally {
    /// Replies of other forms are of calls that are never refused.
    fn count(&mut self, reply: &Value) {
        match reply {
            Value::ServerError(error) => panic!("{error:?}"),
            Value::Array(_) if refused(reply) => self.refused += 1,
            Value::Array(_) => self.admitted += 1,
            _ => {}
        }
    }
}
