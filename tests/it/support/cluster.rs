//! A cluster of three primaries with a replica each, formed by hand; a client that follows its redirections, and many
//! of them at once.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::{Connection, RedisError, Value};

use crate::support::load::{Course, Load};
use crate::support::{ATTEMPTS, PATIENCE, Server, call, info, module, refused, text, wait_for};

const PRIMARIES: usize = 3;
const SLOTS: usize = 16_384;

pub struct Cluster {
    pub primaries: Vec<Server>,
    /// The i-th is the replica of the i-th primary.
    pub replicas: Vec<Server>,
}

impl Cluster {
    /// Starts the six servers and waits until each of them serves all slots and each replica has its first copy.
    pub fn start() -> Cluster {
        let (mut nodes, buses): (Vec<Server>, Vec<u16>) = (0..2 * PRIMARIES).map(|_| start_node()).unzip();
        let mut cons: Vec<Connection> = nodes.iter().map(Server::connection).collect();
        for (place, con) in cons.iter_mut().enumerate() {
            text(con, &format!("CLUSTER SET-CONFIG-EPOCH {}", place + 1));
            if place < PRIMARIES {
                let (first, last) = slots(place);
                text(con, &format!("CLUSTER ADDSLOTSRANGE {first} {last}"));
            }
        }
        // Everybody is introduced to everybody, which spares the wait for gossip.
        for (place, con) in cons.iter_mut().enumerate() {
            for (node, bus) in nodes.iter().zip(&buses).skip(place + 1) {
                text(con, &format!("CLUSTER MEET 127.0.0.1 {} {bus}", node.port));
            }
        }
        wait_for("all to know each other", || cons.iter_mut().all(knows_all));
        for place in 0..PRIMARIES {
            let id = text(&mut cons[place], "CLUSTER MYID");
            text(&mut cons[place + PRIMARIES], &format!("CLUSTER REPLICATE {id}"));
        }
        wait_for("the replicas", || cons[PRIMARIES..].iter_mut().all(has_its_copy));
        wait_for("the cluster", || cons.iter_mut().all(serves));
        let replicas = nodes.split_off(PRIMARIES);
        Cluster { primaries: nodes, replicas }
    }

    /// The place of the primary that has the key's slot from the start.
    pub fn place(&self, key: &str) -> usize {
        let slot = self.slot(key);
        (0..PRIMARIES).find(|place| (slots(*place).0..=slots(*place).1).contains(&slot)).unwrap()
    }

    pub fn slot(&self, key: &str) -> usize {
        text(&mut self.replicas[0].connection(), &format!("CLUSTER KEYSLOT {key}")).parse().unwrap()
    }

    pub fn nodes(&self) -> impl Iterator<Item = &Server> {
        self.primaries.iter().chain(&self.replicas)
    }

    /// A client that has yet to learn where the slots are.
    pub fn client(&self) -> Client {
        let cons: BTreeMap<u16, Connection> =
            self.nodes().map(|node| (node.port, node.connection())).collect();
        let home = self.replicas[0].port;
        Client { cons, home, last: home, asked: 0, lost: 0 }
    }
}

/// First and last slot of the primary in that place.
fn slots(place: usize) -> (usize, usize) {
    (place * SLOTS / PRIMARIES, (place + 1) * SLOTS / PRIMARIES - 1)
}

/// A node and the port of its bus: the usual one, 10,000 above, may be taken or above all ports.
fn start_node() -> (Server, u16) {
    let mut attempt = 1;
    loop {
        let bus = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let cluster = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
        let port = bus.to_string();
        let args = [&cluster[..], &["--cluster-port", &port]].concat();
        match Server::try_start_with(Some(&module()), &[], &args) {
            Ok(node) => return (node, bus),
            Err(log) => assert!(attempt < ATTEMPTS, "the node did not start:\n{log}"),
        }
        attempt += 1;
    }
}

fn knows_all(con: &mut Connection) -> bool {
    let nodes = text(con, "CLUSTER NODES");
    nodes.lines().count() == 2 * PRIMARIES
        && nodes.lines().all(|node| node.contains(" connected") && !node.contains("handshake"))
}

fn has_its_copy(con: &mut Connection) -> bool {
    info(con, "replication", "master_link_status").as_deref() == Some("up")
}

/// Whether this node finds all slots served, and knows who of the others is a replica.
pub fn serves(con: &mut Connection) -> bool {
    let nodes = text(con, "CLUSTER NODES");
    let replicas = nodes.lines().filter(|node| node.contains("slave")).count();
    let failed = nodes.lines().filter(|node| node.contains("fail")).count();
    text(con, "CLUSTER INFO").contains("cluster_state:ok") && replicas + failed == PRIMARIES
}

/// Knows no slots: it asks the node that served it last, and follows redirections.
pub struct Client {
    /// By port. What breaks is removed.
    cons: BTreeMap<u16, Connection>,
    home: u16,
    /// Who answered the last call: not `home` after an ASK.
    last: u16,
    asked: usize,
    lost: usize,
}

impl Client {
    /// `None` if the connection broke: it is unknown whether the call was carried out. The next one goes elsewhere.
    pub fn call(&mut self, line: &str) -> Option<Value> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let deadline = Instant::now() + PATIENCE;
        let (mut port, mut asking) = (self.home, false);
        while Instant::now() < deadline {
            let Some(con) = self.cons.get_mut(&port) else {
                // The node that named it does not know yet that it is gone.
                port = self.somebody_else();
                continue;
            };
            let sent = if asking { call(con, &["ASKING"]) } else { Ok(Value::Okay) };
            let error = match sent.and_then(|_| call(con, &words)) {
                Ok(reply) => {
                    self.last = port;
                    return Some(reply);
                }
                Err(error) => error,
            };
            asking = error.code() == Some("ASK");
            match error.code() {
                Some("ASK") => {
                    self.asked += 1;
                    port = named(&error);
                }
                Some("MOVED") => {
                    port = named(&error);
                    self.home = port;
                }
                // The keys of the call are in two places, or no node has the slot. Both end soon.
                Some("TRYAGAIN" | "CLUSTERDOWN") => port = self.somebody_else(),
                Some(_) => panic!("{line}: {error}"),
                None => {
                    self.lose(port);
                    return None;
                }
            }
        }
        panic!("{line}: sent about for {PATIENCE:?}")
    }

    /// Waits until a replica has what the last call did, and all before it; false if the connection broke meanwhile.
    pub fn acknowledge(&mut self) -> bool {
        let con = self.cons.get_mut(&self.last).expect("it answered a moment ago");
        match call(con, &["WAIT", "1", "0"]) {
            Ok(replicas) => assert_ne!(replicas, Value::Int(0)),
            Err(error) if error.code().is_none() => {
                self.lose(self.last);
                return false;
            }
            Err(error) => panic!("WAIT: {error}"),
        }
        true
    }

    fn lose(&mut self, port: u16) {
        self.cons.remove(&port);
        self.lost += 1;
        self.home = self.somebody_else();
    }

    /// The next one after `home` that a connection is left to, after a pause, so that things may change.
    fn somebody_else(&mut self) -> u16 {
        sleep(Duration::from_millis(5));
        let next = self.cons.range(self.home + 1..).chain(&self.cons).next();
        self.home = *next.expect("a living node").0;
        self.home
    }
}

/// The port in `MOVED 1234 127.0.0.1:7000`.
fn named(redirection: &RedisError) -> u16 {
    redirection.detail().and_then(|told| told.rsplit(':').next()).unwrap().parse().unwrap()
}

#[derive(Default)]
pub struct Tally {
    /// The numbers of the calls that were admitted, and acknowledged by a replica as long as each node had one.
    pub admitted: Vec<usize>,
    /// How many calls were cut off, so that their outcome is unknown.
    pub unknown: usize,
    /// How often the caller was sent on for one call only.
    pub asked: usize,
    /// How many of its connections broke.
    pub lost: usize,
}

/// Clients that call a line each until the test has enough, and then until they are refused.
///
/// `#` in a line is the number of the call; what comes with the line is the test's own.
pub fn load<T>(cluster: &Cluster, lines: &[(&'static str, T)]) -> Load<Tally> {
    for primary in &cluster.primaries {
        text(&mut primary.connection(), "RL.POLICY SET called LIMIT FIXEDWINDOW 1000 1h");
    }
    Load::start(lines.iter().map(|&(line, _)| {
        let client = cluster.client();
        move |course: &Course| call_on(client, line, course)
    }))
}

fn call_on(mut client: Client, line: &str, course: &Course) -> Tally {
    let mut tally = Tally::default();
    for number in 0.. {
        let may_end = course.is_enough();
        match client.call(&line.replace('#', &number.to_string())) {
            Some(reply) if refused(&reply) && may_end => break,
            Some(reply) if refused(&reply) => {}
            // Who has lost a primary speaks to one that has no replica any more.
            Some(_) if client.lost > 0 || client.acknowledge() => tally.admitted.push(number),
            _ => tally.unknown += 1,
        }
        course.goes_on();
    }
    Tally { asked: client.asked, lost: client.lost, ..tally }
}
