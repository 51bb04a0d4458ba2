//! What the alarm frees and reads when leases expire changes nothing that copies have.

use std::collections::VecDeque;

use super::PATIENT;
use crate::support::client::Client;
use crate::support::contents::{contents, expect_same};
use crate::support::dice::Dice;
use crate::support::{Server, info, ints, multi, sync, text, wait_for};

const KEYS: [&str; 4] = ["0", "1", "2", "many"];
const HISTORIES: usize = 4;
const STEPS: usize = 60;
/// More than the alarm frees at once.
const MANY: u64 = 450;

#[test]
fn copies_agree_at_each_step_while_leases_of_tenants_expire() {
    let args: Vec<&str> = ["--appendonly", "yes"].into_iter().chain(PATIENT).collect();
    let mut server = Server::start(&args);
    for key in KEYS {
        // A lease that stays, so no key expires.
        ints(&mut server.connection(), &format!("RL.CONCURRENT {key} 9 36500d stays"));
    }
    for history in 0..HISTORIES {
        let replica = server.replica(&["--propagation-error-behavior", "panic"]);
        let mut dice = Dice::of(27, history);
        let mut callers = VecDeque::new();
        for step in 0..STEPS {
            let line = act(&server, &mut dice, &mut callers, step);
            while_nothing_is_written(&server, || {
                sync(&server, &replica);
                let what = format!("the replica in history {history}, after {step}: {line}");
                expect_same(&contents(&replica), &contents(&server), &what);
            });
        }
        let con = &mut server.connection();
        // What waits would be admitted when the server starts again.
        drop(callers);
        wait_for("the callers have gone", || info(con, "ratelimit", "ratelimit_waiting").unwrap() == "0");
        text(con, "CLIENT PAUSE 1000000 WRITE");
        let expected = contents(&server);
        drop(replica);
        server.restart();
        assert_eq!(expected.len(), KEYS.len());
        expect_same(&contents(&server), &expected, &format!("the AOF of history {history}"));
    }
}

/// Makes a random call, and returns it.
fn act(server: &Server, dice: &mut Dice, callers: &mut VecDeque<Client>, step: usize) -> String {
    let con = &mut server.connection();
    let mut below = |most| dice.below(most);
    let (key, id, ttl) = (below(3), below(9), 5 + below(40));
    let tenant = ["", " TENANT ann", " TENANT bob WEIGHT 3"][usize::try_from(below(3)).unwrap()];
    let lease = format!("7 {ttl}ms id{id} COST {}{tenant}", 1 + below(3));
    let kind = if step % 12 == 11 { 10 } else { below(10) };
    let line = match kind {
        0 => format!("RL.RELEASE {key} id{id}"),
        1 => format!("RL.RENEW {key} {ttl}ms id{id}"),
        2 => format!("RL.MULTI 1 {key} LIMIT CONCURRENT {lease} LIMIT UNIFORM 1ms"),
        3..=5 => format!("RL.CONCURRENT {key} {lease} BLOCK 1d"),
        10 => {
            let all = MANY + 1;
            // All of them expire within milliseconds. The next caller waits for that, so the key has a line.
            for lease in 0..MANY {
                let tenant = lease % 40;
                ints(con, &format!("RL.CONCURRENT many {all} {ttl}ms {step}:{lease} TENANT t{tenant}"));
            }
            format!("RL.CONCURRENT many {all} {ttl}ms {step}:all TENANT t{step} COST {MANY} BLOCK 1d")
        }
        _ => format!("RL.CONCURRENT {key} {lease}"),
    };
    if line.ends_with("BLOCK 1d") {
        let mut caller = Client::connect(server.port);
        caller.send(&line);
        callers.push_back(caller);
        if callers.len() > 8 {
            callers.pop_front();
        }
    } else if line.starts_with("RL.MULTI") {
        multi(con, &line);
    } else {
        ints(con, &line);
    }
    line
}

fn while_nothing_is_written(server: &Server, look: impl FnOnce()) {
    let con = &mut server.connection();
    text(con, "CLIENT PAUSE 1000000 WRITE");
    look();
    text(con, "CLIENT UNPAUSE");
}
