//! The sessions of `tests/sessions/` on a server. `core/laws` runs them on a node in memory, where each has a fresh one.

use std::path::Path;

use ratelimit_laws::session::{Node, run, run_all};
use redis::{Connection, Value};

use crate::support::client::Client;
use crate::support::pool::{until_tried, until_waiting, waits};
use crate::support::{Server, call, call_bytes, dump, error_line, info, shortest, simple, text, wait_for};

struct OnServer<'s> {
    server: &'s Server,
    con: Connection,
    callers: Vec<(String, Client)>,
    settings: Vec<(String, String)>,
}

impl OnServer<'_> {
    fn new(server: &Server) -> OnServer<'_> {
        OnServer { server, con: server.connection(), callers: Vec::new(), settings: Vec::new() }
    }

    /// Leaves a server as it was before the session.
    fn tidy(mut self) {
        self.callers.clear();
        wait_for("no caller", || waits(&mut self.con) == 0);
        text(&mut self.con, "FLUSHALL");
        if let Ok(Value::Array(names)) = call(&mut self.con, &["RL.POLICY", "LIST"]) {
            for name in names {
                text(&mut self.con, &format!("RL.POLICY DEL {}", simple(&name)));
            }
        }
        for (name, value) in self.settings.into_iter().rev() {
            text(&mut self.con, &format!("CONFIG SET {name} {value}"));
        }
    }
}

impl Node for OnServer<'_> {
    fn call(&mut self, words: &[&[u8]]) -> String {
        call_bytes(&mut self.con, words)
            .map_or_else(|error| error_line(&error), |reply| simple(&shortest(reply)))
    }

    fn enter(&mut self, caller: &str, words: &[&[u8]]) -> Result<(), String> {
        let words: Vec<&str> = words.iter().map(|word| str::from_utf8(word).expect("text")).collect();
        let mut client = Client::connect(self.server.port);
        let before = waits(&mut self.con);
        client.send_words(&words);
        if let Some(reply) = until_waiting(&mut self.con, &mut client, before + 1, caller) {
            return Err(simple(&reply));
        }
        self.callers.push((caller.into(), client));
        Ok(())
    }

    fn hang_up(&mut self, caller: &str) {
        let before = waits(&mut self.con);
        self.callers.retain(|(name, _)| name != caller);
        wait_for("a caller that has left", || waits(&mut self.con) < before);
    }

    fn ended(&mut self) -> Vec<(String, String)> {
        if self.callers.is_empty() {
            return Vec::new();
        }
        until_tried(self.server, &mut self.con);
        let mut ended = Vec::new();
        self.callers.retain_mut(|(name, client)| match client.poll() {
            Some(reply) => {
                ended.push((name.clone(), simple(&shortest(reply))));
                false
            }
            None => true,
        });
        ended
    }

    fn pass(&mut self, _: u64) {
        panic!("on a server whose clock goes on");
    }

    fn set(&mut self, name: &str, value: u64) {
        let name = format!("ratelimit.{name}");
        let before = text(&mut self.con, &format!("CONFIG GET {name}"));
        let (_, before) = before.trim_matches(['[', ']']).split_once(", ").expect("a setting");
        self.settings.push((name.clone(), before.into()));
        text(&mut self.con, &format!("CONFIG SET {name} {value}"));
    }

    fn stored(&mut self, key: &str) -> Option<Vec<u8>> {
        match dump(&mut self.con, key) {
            Value::BulkString(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn expiry(&mut self, _: &str) -> Option<u64> {
        panic!("on a server whose clock goes on")
    }

    fn count(&mut self, name: &str) -> u64 {
        info(&mut self.con, "ratelimit", &format!("ratelimit_{name}")).expect(name).parse().unwrap()
    }

    fn state(&mut self) -> Vec<u8> {
        let changes = info(&mut self.con, "persistence", "rdb_changes_since_last_save");
        format!("{changes:?} {}", text(&mut self.con, "DEBUG DIGEST")).into()
    }
}

/// No session is a script, so Valkey 9.1 does without Lua, which is a module there.
fn unload_lua(con: &mut Connection) {
    if text(con, "MODULE LIST").contains("[name, lua,") {
        text(con, "MODULE UNLOAD lua");
        let error = error_line(&call(con, &["EVAL", "return 1", "0"]).unwrap_err());
        assert_eq!(error, "ERR Could not find scripting engine 'lua'");
    }
}

#[test]
fn each_session_replies_what_stands_there() {
    let server = Server::start(&["--enable-module-command", "yes"]);
    unload_lua(&mut server.connection());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions");
    let differs = run_all(&folder, |session| {
        if !session.fits_a_server() {
            return Vec::new();
        }
        let mut node = OnServer::new(&server);
        let differs = run(session, &mut node);
        node.tidy();
        differs
    });
    assert!(differs.is_empty(), "{}", differs.join("\n"));
}
