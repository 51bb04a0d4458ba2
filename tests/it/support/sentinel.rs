//! A primary with two replicas, and three sentinels that watch them and elect another primary when it is gone.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::{Connection, RedisResult};

use crate::support::{PATIENCE, Server, call, connect, fresh_dir, simple, text, wait_for};

/// How many sentinels there are, and how many must miss the primary.
const SENTINELS: usize = 3;
const QUORUM: usize = 2;
/// The pace of what sentinels do every few seconds, in milliseconds; and they are not to sit out half a minute
/// because a busy machine held them up for two seconds. One that has not heard of a failover after four periods of
/// publishing turns the new primary back, so these are not shorter.
const PACE: &str =
    "SENTINEL DEBUG info-period 500 publish-period 2000 ask-period 200 tilt-trigger 60000 tilt-period 100";
/// How long sentinels wait for a node before it counts as down, in milliseconds. A busy machine holds a node or a sentinel
/// up for seconds, and a primary that is replaced for that ends the test. So the wait is short only after a kill.
const PATIENT: &str = "600000";
const SOON: &str = "1000";
/// A failover that did not succeed has been given up by then.
const GIVEN_UP: Duration = Duration::from_secs(15);
const PRIMARY: &str = "SENTINEL GET-MASTER-ADDR-BY-NAME ours";

pub struct Watched {
    /// The first is the primary from the start.
    pub nodes: Vec<Server>,
    sentinels: Vec<Server>,
}

impl Watched {
    /// Starts the six and waits until the sentinels know all of them.
    pub fn start() -> Watched {
        let primary = start_node(&[]);
        let port = primary.port.to_string();
        let replica = || start_node(&["--replicaof", "127.0.0.1", &port]);
        let nodes = vec![primary, replica(), replica()];
        let sentinels: Vec<Server> = (0..SENTINELS).map(|_| start_sentinel(nodes[0].port)).collect();
        let watched = Watched { nodes, sentinels };
        for con in &mut watched.asked() {
            wait_for("the others", || text(con, "SENTINEL SENTINELS ours").matches("[name, ").count() == 2);
            wait_for("the quorum", || call(con, &["SENTINEL", "CKQUORUM", "ours"]).is_ok());
        }
        watched.settle();
        watched
    }

    pub fn client(&self) -> Client {
        let sentinels = self.sentinels.iter().map(|sentinel| sentinel.port).collect();
        let mut client = Client { sentinels, con: None };
        client.con();
        client
    }

    /// Kills the first primary, and waits until the sentinels have replaced it.
    pub fn kill_primary(&mut self) {
        self.nodes[0].kill();
        self.down_after(SOON);
        self.successor();
        self.down_after(PATIENT);
    }

    fn down_after(&self, milliseconds: &str) {
        for con in &mut self.asked() {
            text(con, &format!("SENTINEL SET ours down-after-milliseconds {milliseconds}"));
        }
    }

    /// Has a living primary replaced, which it learns a moment later than its successor.
    pub fn replace(&self) {
        let con = &mut self.sentinels[0].connection();
        let mut asked: Option<Instant> = None;
        wait_for("a failover", || {
            if asked.is_none_or(|asked| asked.elapsed() > GIVEN_UP) {
                // It is given up when the sentinel has not heard from the replicas lately.
                let _ = call(con, &["SENTINEL", "FAILOVER", "ours"]);
                asked = Some(Instant::now());
            }
            named(con) != self.nodes[0].port
        });
    }

    /// Waits until all sentinels name one and the same other primary than the first.
    pub fn successor(&self) -> &Server {
        let first = self.nodes[0].port;
        let mut cons = self.asked();
        wait_for("a successor that all agree on", || {
            let named: Vec<u16> = cons.iter_mut().map(named).collect();
            named.iter().all(|port| *port != first && *port == named[0])
        });
        let port = named(&mut cons[0]);
        self.nodes.iter().find(|node| node.port == port).expect("one of ours")
    }

    /// Waits until all sentinels have seen two replicas follow the primary that they name, and have their copy.
    /// Before, any of them may send a node its orders once more, which cut off the node's clients.
    pub fn settle(&self) {
        for con in &mut self.asked() {
            wait_for("two replicas", || {
                let follows = format!("master-port, {},", named(con));
                let replicas = text(con, "SENTINEL REPLICAS ours");
                let both = |what: &str| replicas.matches(what).count() == 2;
                both("role-reported, slave,") && both("master-link-status, ok,") && both(&follows)
            });
        }
    }

    fn asked(&self) -> Vec<Connection> {
        self.sentinels.iter().map(Server::connection).collect()
    }
}

/// With an append-only file, so that one that comes back has a state of its own to give up.
fn start_node(args: &[&str]) -> Server {
    Server::start(&[&["--appendonly", "yes", "--appendfsync", "no"], args].concat())
}

fn start_sentinel(primary: u16) -> Server {
    let dir = fresh_dir();
    let settings = [
        format!("sentinel monitor ours 127.0.0.1 {primary} {QUORUM}"),
        format!("sentinel down-after-milliseconds ours {PATIENT}"),
        "sentinel failover-timeout ours 6000".to_string(),
        "sentinel parallel-syncs ours 2".to_string(),
        "bind 127.0.0.1".to_string(),
        format!("dir {}", dir.display()),
    ];
    let file = dir.join("sentinel.conf");
    fs::write(&file, settings.join("\n")).unwrap();
    let command = ["redis-server".into(), file.into(), "--sentinel".into()].to_vec();
    let sentinel =
        Server::try_launch(command, dir).unwrap_or_else(|log| panic!("the sentinel did not start:\n{log}"));
    text(&mut sentinel.connection(), PACE);
    sentinel
}

/// Knows the sentinels only: it asks them for the primary, and again whenever its connection breaks.
pub struct Client {
    sentinels: Vec<u16>,
    con: Option<Connection>,
}

impl Client {
    /// After a connection error it is unknown whether the call was carried out.
    pub fn call(&mut self, line: &str) -> RedisResult<redis::Value> {
        let words: Vec<&str> = line.split_whitespace().collect();
        loop {
            match call(self.con(), &words) {
                // It was demoted, and has carried out nothing.
                Err(error) if error.code() == Some("READONLY") => self.con = None,
                Err(error) => {
                    self.con = None;
                    return Err(error);
                }
                reply => return reply,
            }
        }
    }

    fn con(&mut self) -> &mut Connection {
        let sentinels = &self.sentinels;
        self.con.get_or_insert_with(|| find_primary(sentinels))
    }
}

/// Goes where the sentinels point, until the one there says itself that it is a primary.
fn find_primary(sentinels: &[u16]) -> Connection {
    let deadline = Instant::now() + PATIENCE;
    for sentinel in sentinels.iter().cycle() {
        assert!(Instant::now() < deadline, "no primary for {PATIENCE:?}");
        if let Ok(mut con) = connect(named(&mut connect(*sentinel).unwrap()))
            && call(&mut con, &["ROLE"]).is_ok_and(|role| simple(&role).starts_with("[master"))
        {
            return con;
        }
        sleep(Duration::from_millis(20));
    }
    unreachable!("there are sentinels")
}

fn named(sentinel: &mut Connection) -> u16 {
    let address = text(sentinel, PRIMARY);
    address.trim_matches(['[', ']']).rsplit(", ").next().unwrap().parse().unwrap()
}
