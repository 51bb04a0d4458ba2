//! Callers that wait, on memory and on a server: both grant to the same callers, and reply the same to them.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use ratelimit_core::line::Caller;
use ratelimit_core::{Span, Time};
use ratelimit_engine::memory::{Called, Ended, Memory};
use redis::{Connection, Value};

use super::{Replied, as_read, on_memory, on_server, restored};
use crate::support::client::Client;
use crate::support::dice::Dice;
use crate::support::pool::{until_tried, waits};
use crate::support::{Server, error_line, refused, wait_for};

/// Calls that may wait, with holes for an id and the options of a tenant. No limit is fully reset meanwhile.
const CALLS: [&str; 8] = [
    "RL.CONCURRENT pool 3 1h {id}{tenant}",
    "RL.CONCURRENT pool 3 1h {id} BLOCK 1d{tenant}",
    "RL.CONCURRENT pool 3 1h {id} COST 2 BLOCK 1d{tenant}",
    "RL.CONCURRENT pool 3 1h {id} BLOCK 1ms{tenant}",
    "RL.FIXEDWINDOW rate 3 1h COST 2 HOLD {id} 1h BLOCK 1d{tenant}",
    "RL.FIXEDWINDOW rate 3 1h BLOCK 1d{tenant}",
    "RL.MULTI 2 pool rate BLOCK 1d LIMIT CONCURRENT 3 1h {id}{tenant} ON 1 LIMIT FIXEDWINDOW 3 1h ON 2",
    "RL.ASK pool fair ID {id} BLOCK 1d{tenant} KEYS rate",
];
/// Calls that may give room to those that wait. `{held}` is the id of a call before.
const ROOM: [&str; 8] = [
    "RL.RELEASE pool {held}",
    "RL.RELEASE pool {held}",
    "RL.RELEASE pool {held} OUTCOME DROP",
    "RL.REFUND rate FIXEDWINDOW 3 1h",
    "RL.SETTLE rate {held} FIXEDWINDOW 3 1h COST 0",
    "RL.RENEW pool 1h {held}",
    "DEL rate",
    "DEL pool",
];

const HOUR: i64 = 3_600_000;

/// Lines do some things within two milliseconds. A call on the server that waits for longer.
const MOMENT: Span = Span::from_millis(3);
const PASSES: &str = "RL.CONCURRENT moments 1 1d late BLOCK 3ms";

struct Both {
    memory: Memory,
    server: Server,
    con: Connection,
    /// Who waits on both sides, by the line of the call.
    waiting: BTreeMap<Caller, (String, Client)>,
    moments: Client,
}

impl Both {
    fn start(is_fair: bool) -> Both {
        let settings = ["--ratelimit.max-block", "86400000", "--ratelimit.hunger", "3600000"];
        let server = Server::start(&settings);
        let memory = Memory::new(1);
        memory.set_clock(Time::from_millis(1_700_002_800_000));
        memory.node().settings.max_block.millis.store(86_400_000, Relaxed);
        memory.node().settings.hunger.millis.store(3_600_000, Relaxed);
        let con = server.connection();
        let mut moments = Client::connect(server.port);
        moments.call("RL.CONCURRENT moments 1 1d first");
        let mut both = Both { memory, server, con, waiting: BTreeMap::new(), moments };
        let fair = if is_fair { " FAIR" } else { "" };
        both.change(&format!("RL.POLICY SET fair LIMIT CONCURRENT 3 1h{fair} LIMIT FIXEDWINDOW 3 1h ON 2"));
        both
    }

    /// A call that does not wait.
    fn change(&mut self, line: &str) {
        let Called::Replied(memory) = on_memory(&self.memory, line) else { panic!("{line} waits") };
        assert_eq!(read(as_read(&memory)), read(on_server(&mut self.con, line)), "{line}");
    }

    /// A call that may wait. Returns whether it does.
    fn ask(&mut self, line: &str) -> bool {
        let mut client = Client::connect(self.server.port);
        client.send(line);
        match on_memory(&self.memory, line) {
            Called::Replied(memory) => {
                assert_eq!(read(as_read(&memory)), of_client(&mut client), "{line}");
                false
            }
            Called::Waits(caller) => {
                self.waiting.insert(caller, (line.into(), client));
                let all = self.waiting.len();
                wait_for(line, || is_short(line) || waits(&mut self.con) == all);
                true
            }
        }
    }

    /// Lets a moment pass, compares who is granted, and returns how many are.
    fn compare(&mut self, about: &str) -> usize {
        let ended = self.memory.advance(MOMENT);
        let granted = ended.len();
        for Ended { caller, reply, .. } in ended {
            let (line, mut client) = self.waiting.remove(&caller).unwrap();
            assert_eq!(read(as_read(&reply)), of_client(&mut client), "{line}, after {about}");
        }
        assert!(refused(&self.moments.call(PASSES)));
        until_tried(&self.server, &mut self.con);
        for (line, client) in self.waiting.values_mut() {
            assert_eq!(client.poll(), None, "{line}, after {about}");
        }
        granted
    }

    /// A client disconnects.
    fn hang_up(&mut self, dice: &mut Dice) {
        let callers: Vec<Caller> = self.waiting.keys().copied().collect();
        if callers.is_empty() {
            return;
        }
        let caller = *dice.pick(&callers);
        self.waiting.remove(&caller);
        self.memory.hang_up(caller);
        // Others may be granted then.
        let most = self.waiting.len();
        wait_for("a caller that leaves", || waits(&mut self.con) <= most);
    }
}

/// Whether a call waits for a moment only.
fn is_short(line: &str) -> bool {
    line.contains("BLOCK 1ms")
}

/// The server's clock passes, and no limit is fully reset before an hour has passed.
fn read(reply: Replied) -> Replied {
    reply.map(|reply| restored(reply, HOUR))
}

fn of_client(client: &mut Client) -> Replied {
    match client.reply() {
        Value::ServerError(error) => Err(error_line(&error.into())),
        reply => read(Ok(reply)),
    }
}

/// Random histories, in lines that are fair if callers have tenants.
fn agree(seed: u64, tenants: &[&str]) {
    let mut dice = Dice::new(seed);
    let (mut waited, mut granted, mut timed_out) = (0, 0, 0);
    for _ in 0..6 {
        let mut both = Both::start(!tenants.is_empty());
        for id in 0..60 {
            let held = dice.below(id + 1);
            let calls = if dice.one_in(2) { &CALLS } else { &ROOM };
            let tenant = if tenants.is_empty() { "" } else { dice.pick::<&str>(tenants) };
            let line = dice.pick::<&str>(calls).replace("{id}", &format!("r{id}"));
            let line = line.replace("{held}", &format!("r{held}")).replace("{tenant}", tenant);
            if line.contains("BLOCK") {
                waited += usize::from(both.ask(&line));
            } else {
                both.change(&line);
            }
            let ended = both.compare(&line);
            *if is_short(&line) { &mut timed_out } else { &mut granted } += ended;
            if dice.one_in(20) {
                both.hang_up(&mut dice);
                both.compare("a caller left");
            }
        }
    }
    assert!(
        waited > 60 && granted > 20 && timed_out > 5,
        "{waited} waited, {granted} granted, {timed_out} left"
    );
}

#[test]
fn both_grant_in_the_order_in_which_callers_came() {
    agree(3, &[]);
}

#[test]
fn both_grant_to_tenants_in_turn() {
    agree(4, &[" TENANT a", " TENANT b", " TENANT c WEIGHT 3", ""]);
}
