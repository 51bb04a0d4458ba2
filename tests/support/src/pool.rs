//! A limit on a real server that is full, and callers of tenants that wait for it, each on a connection of its own.

use redis::{Connection, Value};

use crate::client::Client;
use crate::{Server, ints, text, wait_for};

#[derive(Clone, Copy)]
pub enum Limit {
    Leases,
    /// A window that does not end meanwhile.
    Rate,
}

/// A caller that waits, or that was granted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    pub id: usize,
    pub tenant: String,
}

pub struct Pool {
    con: Connection,
    server: Server,
    limit: Limit,
    capacity: usize,
    waiting: Vec<(Caller, Client)>,
    /// In the order of their grants.
    pub held: Vec<Caller>,
    next: usize,
}

impl Pool {
    pub fn new(limit: Limit, capacity: usize) -> Pool {
        let settings = ["--ratelimit.max-block", "86400000", "--ratelimit.max-waiters-per-key", "4000"];
        let server = Server::start(&[&settings[..], &["--maxclients", "4000"]].concat());
        let con = server.connection();
        Pool { con, server, limit, capacity, waiting: Vec::new(), held: Vec::new(), next: 0 }
    }

    /// A limit that a tenant has filled, with these options.
    pub fn full(limit: Limit, capacity: usize, tenant: &str, options: &str) -> Pool {
        let mut pool = Pool::new(limit, capacity);
        for _ in 0..capacity {
            assert!(pool.ask(tenant, options), "one of {capacity}");
        }
        pool
    }

    /// Makes a call; `false` if the caller waits.
    pub fn ask(&mut self, tenant: &str, options: &str) -> bool {
        let caller = Caller { id: self.next, tenant: tenant.into() };
        self.next += 1;
        let (capacity, id) = (self.capacity, caller.id);
        let line = match self.limit {
            Limit::Leases => format!("RL.CONCURRENT pool {capacity} 1h {id} {options} BLOCK 1d"),
            Limit::Rate => format!("RL.FIXEDWINDOW pool {capacity} 1h {options} BLOCK 1d"),
        };
        let mut client = Client::connect(self.server.port);
        client.send(&line);
        let admitted = until_waiting(&mut self.con, &mut client, self.waiting.len() + 1, &line).is_some();
        if admitted {
            self.held.push(caller);
        } else {
            self.waiting.push((caller, client));
        }
        admitted
    }

    /// Callers that wait.
    pub fn wait(&mut self, tenant: &str, options: &str, callers: usize) {
        for _ in 0..callers {
            assert!(!self.ask(tenant, options), "{tenant} {options}: room for another one");
        }
    }

    /// Ends what was granted first, and returns the callers that are granted then.
    pub fn end_first(&mut self) -> Vec<Caller> {
        self.end(&self.held[0].clone())
    }

    /// Ends a lease, or gives back a charge, of cost 1. Returns the callers that are granted then.
    pub fn end(&mut self, ended: &Caller) -> Vec<Caller> {
        self.held.retain(|held| held != ended);
        match self.limit {
            Limit::Leases => ints(&mut self.con, &format!("RL.RELEASE pool {}", ended.id)),
            Limit::Rate => ints(&mut self.con, &format!("RL.REFUND pool FIXEDWINDOW {} 1h", self.capacity)),
        };
        until_tried(&self.server, &mut self.con);
        let mut granted = Vec::new();
        self.waiting.retain_mut(|(caller, client)| {
            let waits = client.poll().is_none();
            if !waits {
                granted.push(caller.clone());
            }
            waits
        });
        self.held.extend(granted.clone());
        granted
    }

    /// Ends leases, each that was granted first, and returns the number of grants to a tenant. A new caller takes the place
    /// of each that ends; `options` returns those of its tenant.
    pub fn turn_over<'o>(&mut self, ends: usize, tenant: &str, options: impl Fn(&str) -> &'o str) -> usize {
        let mut grants = 0;
        for _ in 0..ends {
            let first = self.held[0].tenant.clone();
            grants += self.end_first().iter().filter(|caller| caller.tenant == tenant).count();
            self.wait(&first, options(&first), 1);
        }
        grants
    }
}

/// Returns when the server has tried all callers that were due before. A caller that is admitted makes its line due once more.
pub fn until_tried(server: &Server, con: &mut Connection) {
    loop {
        let before = waits(con);
        pass_barrier(server, con);
        if waits(con) == before {
            return;
        }
    }
}

/// Lines are served in the order in which they became due, so those that were due before have been tried once.
fn pass_barrier(server: &Server, con: &mut Connection) {
    let mut last = Client::connect(server.port);
    ints(con, "RL.CONCURRENT barrier 1 1h first");
    last.send("RL.CONCURRENT barrier 1 1h last BLOCK 1d");
    wait_for("a caller at the barrier", || text(con, "RL.INFO barrier").ends_with("waiting, 1]"));
    text(con, "DEL barrier");
    last.reply();
    text(con, "DEL barrier");
}

/// Returns the reply to a call, or none when this number of callers wait, the last of which is the call's.
pub fn until_waiting(con: &mut Connection, client: &mut Client, callers: usize, call: &str) -> Option<Value> {
    let mut reply = None;
    wait_for(call, || {
        reply = client.poll();
        reply.is_some() || waits(con) >= callers
    });
    reply
}

/// The number of callers that wait.
pub fn waits(con: &mut Connection) -> usize {
    crate::info(con, "ratelimit", "ratelimit_waiting").expect("the field").parse().expect("a number")
}
