//! Histories in which a law was broken once, on a server. `core/laws/tests/laws/world.rs` runs them in memory.

use ratelimit_laws::world::{BROKEN_ONCE, Event};

use super::on_server;
use crate::support::client::Client;
use crate::support::pool::{until_tried, until_waiting, waits};
use crate::support::wall_clock::WallClock;
use crate::support::{SECOND, T0, simple, text, wait_for};

#[test]
fn each_caller_is_served_when_all_else_has_gone() {
    for (name, history) in BROKEN_ONCE {
        let clock = WallClock::start(0, &["--ratelimit.max-block", "86400000"]);
        let con = &mut clock.server.connection();
        let mut now = T0;
        clock.stop(now / SECOND);
        let mut callers = Vec::new();
        for line in history.lines() {
            match Event::of(line).expect("an event") {
                Event::Call(call) if call.contains(" BLOCK ") => {
                    let mut client = Client::connect(clock.server.port);
                    let before = waits(con);
                    client.send(&call);
                    if until_waiting(con, &mut client, before + 1, line).is_none() {
                        callers.push(client);
                    }
                }
                Event::Call(call) => _ = on_server(con, &call),
                Event::Pass(micros) => {
                    until_tried(&clock.server, con);
                    now += micros;
                    clock.stop(now / SECOND);
                }
                other => panic!("{other}: not an event of one node"),
            }
        }
        while waits(con) > 0 {
            let before = waits(con);
            text(con, "FLUSHALL");
            now += 61 * SECOND;
            clock.stop(now / SECOND);
            wait_for("a caller that is served", || waits(con) < before);
        }
        for client in &mut callers {
            assert!(simple(&client.reply()).starts_with("[0, "), "{name}");
        }
    }
}
