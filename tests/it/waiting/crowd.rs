//! Many callers that wait for few leases.

use std::collections::VecDeque;
use std::thread::yield_now;
use std::time::Instant;

use redis::{Connection, Value};

use super::{PATIENT, count, figure, until_waiting, waiting};
use crate::support::client::Client;
use crate::support::dice::Dice;
use crate::support::kinds::settled;
use crate::support::{PATIENCE, Server, call, ints, refused, simple, text};

/// The leases of the first test, and the callers that wait for them.
const CAPACITY: usize = 10;
const CROWD: usize = 1000;

/// How a caller of the first test ends, by its number.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    IsGranted,
    Disconnects,
    IsKilled,
    IsUnblocked,
    IsUnblockedWithError,
    TimesOut,
}

fn fate(caller: usize) -> Fate {
    match caller % 20 {
        1 | 11 => Fate::Disconnects,
        3 | 13 => Fate::TimesOut,
        5 | 15 => Fate::IsKilled,
        7 => Fate::IsUnblocked,
        17 => Fate::IsUnblockedWithError,
        _ => Fate::IsGranted,
    }
}

#[test]
fn a_thousand_are_granted_ten_leases_in_the_order_of_arrival() {
    let server = Server::start(&[&PATIENT[..], &["--maxclients", "4000"]].concat());
    let mut crowd = Crowd::enter(&server);
    crowd.time_out();
    let mut dice = Dice::new(10);
    let mut leavers: Vec<usize> =
        crowd.line.iter().copied().filter(|caller| fate(*caller) != Fate::IsGranted).collect();
    assert_eq!(leavers.len(), 3 * CROWD / 10);
    dice.shuffle(&mut leavers);
    while let Some(first) = crowd.line.front().copied() {
        if fate(first) != Fate::IsGranted {
            leavers.retain(|leaver| *leaver != first);
            crowd.leave(first);
        } else if dice.one_in(4)
            && let Some(leaver) = leavers.pop()
        {
            crowd.leave(leaver);
        } else {
            // Up to the next who is to leave.
            let granted = crowd.line.iter().take_while(|caller| fate(**caller) == Fate::IsGranted).count();
            let most = 1 + dice.index(4);
            crowd.release(&mut dice, granted.min(most));
        }
        crowd.check();
    }
    crowd.end();
}

/// The callers of the first test, and what they hold.
struct Crowd {
    con: Connection,
    clients: Vec<Option<Client>>,
    ids: Vec<i64>,
    /// Those who wait, in the order of arrival.
    line: VecDeque<usize>,
    held: Vec<String>,
    granted: usize,
    timed_out: usize,
}

impl Crowd {
    /// Takes all leases, and has all callers wait, one after the other.
    fn enter(server: &Server) -> Crowd {
        let mut con = server.connection();
        let held: Vec<String> = (0..CAPACITY).map(|number| format!("first{number}")).collect();
        for id in &held {
            assert_eq!(ints(&mut con, &format!("RL.CONCURRENT lease {CAPACITY} 1d {id}"))[0], 0);
        }
        let mut clients: Vec<Client> = (0..CROWD).map(|_| Client::connect(server.port)).collect();
        let ids = clients.iter_mut().map(Client::id).collect();
        for (caller, client) in clients.iter_mut().enumerate() {
            let timeout = if fate(caller) == Fate::TimesOut { "1s" } else { "1d" };
            client.send(&format!("RL.CONCURRENT lease {CAPACITY} 1d caller{caller} BLOCK {timeout}"));
            // The time of the first ones may pass before the last ones arrive.
            let arrived = caller as u64 + 1;
            until("the caller", || waiting(&mut con) + count(&mut con, "waited_timeout") >= arrived);
        }
        let clients = clients.into_iter().map(Some).collect();
        Crowd { con, clients, ids, line: (0..CROWD).collect(), held, granted: 0, timed_out: 0 }
    }

    fn client(&mut self, caller: usize) -> &mut Client {
        self.clients[caller].as_mut().expect("a client that is there")
    }

    /// Waits until a tenth has timed out.
    fn time_out(&mut self) {
        let all: Vec<usize> =
            self.line.iter().copied().filter(|caller| fate(*caller) == Fate::TimesOut).collect();
        assert_eq!(all.len(), CROWD / 10);
        for caller in all {
            let reply = self.client(caller).reply();
            assert!(simple(&reply).starts_with("[1, 10, 0, "), "{reply:?}");
            self.line.retain(|other| *other != caller);
            self.timed_out += 1;
        }
        self.check();
    }

    /// One leaves the line before its turn.
    fn leave(&mut self, caller: usize) {
        let (fate, id) = (fate(caller), self.ids[caller]);
        match fate {
            Fate::Disconnects => self.clients[caller] = None,
            Fate::IsKilled => {
                assert_eq!(text(&mut self.con, &format!("CLIENT KILL ID {id}")), "1");
                assert_eq!(self.client(caller).outcome(), None);
                self.clients[caller] = None;
            }
            Fate::IsUnblocked => {
                assert_eq!(text(&mut self.con, &format!("CLIENT UNBLOCK {id}")), "1");
                assert!(refused(&self.client(caller).reply()));
                self.timed_out += 1;
            }
            _ => {
                assert_eq!(text(&mut self.con, &format!("CLIENT UNBLOCK {id} ERROR")), "1");
                let error = simple(&self.client(caller).reply());
                assert_eq!(error, "UNBLOCKED client unblocked via CLIENT UNBLOCK");
            }
        }
        self.line.retain(|other| *other != caller);
    }

    /// Releases leases in one step. As many callers get them, those who came first.
    fn release(&mut self, dice: &mut Dice, count: usize) {
        text(&mut self.con, "MULTI");
        for _ in 0..count {
            let id = self.held.swap_remove(dice.index(self.held.len()));
            text(&mut self.con, &format!("RL.RELEASE lease {id}"));
        }
        assert_eq!(text(&mut self.con, "EXEC"), format!("[{}]", vec!["1"; count].join(", ")));
        for _ in 0..count {
            let caller = self.line.pop_front().expect("one that waits");
            let reply = simple(&self.client(caller).reply());
            assert!(reply.starts_with("[0, 10, "), "{caller}: {reply}");
            self.held.push(format!("caller{caller}"));
            self.granted += 1;
        }
    }

    /// All leases are held, and no other caller was granted one.
    fn check(&mut self) {
        let waits = self.line.len() as u64;
        until("those who wait", || figure(&text(&mut self.con, "RL.INFO lease"), "waiting") == waits);
        let told = text(&mut self.con, "RL.INFO lease");
        assert_eq!(figure(&told, "stored_leases"), self.held.len() as u64, "{told}");
        assert_eq!(figure(&told, "stored_cost"), CAPACITY as u64, "{told}");
        assert_eq!(count(&mut self.con, "waited_granted"), self.granted as u64);
    }

    fn end(mut self) {
        assert_eq!(self.granted, 6 * CROWD / 10);
        assert_eq!(waiting(&mut self.con), 0);
        // Half of those who were unblocked got an error.
        assert_eq!(self.timed_out, CROWD / 10 + CROWD / 20);
        assert_eq!(count(&mut self.con, "waited_timeout"), self.timed_out as u64);
        for id in &self.held {
            assert_eq!(ints(&mut self.con, &format!("RL.RELEASE lease {id}")), [1], "{id}");
        }
        assert_eq!(text(&mut self.con, "EXISTS lease"), "0");
        // No caller got two replies.
        for client in self.clients.iter_mut().flatten() {
            assert_eq!(simple(&client.call("PING")), "PONG");
        }
    }
}

/// As `wait_for`, without a pause between two looks.
fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !reached() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} in vain for {what}");
        yield_now();
    }
}

/// The callers of the second test, and the keys for whose limits they wait.
const MULTITUDE: usize = 10_000;
const KEYS: usize = 100;
/// The limits of the second test. Each is used up by one call, for hours.
const LIMITS: [&str; 5] = [
    "RL.CONCURRENT KEY 1 1d #",
    "RL.GCRA KEY 0 1 10h",
    "RL.FIXEDWINDOW KEY 1 10h",
    "RL.SLIDINGLOG KEY 1 10h",
    "RL.MULTI 1 KEY LIMIT TOKENBUCKET 1 1 10h LIMIT CONCURRENT 1 1d #",
];
/// What may be kept of two thousand callers that have left, in bytes: less than 100 for each.
const KEPT: i64 = 200_000;

#[test]
fn ten_thousand_wait_and_leave_while_others_are_served() {
    let most = files(MULTITUDE);
    if most < MULTITUDE {
        println!("only {most} callers: see `ulimit -n`");
    }
    let server = Server::start(&[&PATIENT[..], &["--maxclients", "15000"]].concat());
    let con = &mut server.connection();
    wait_and_leave(&server, con, most);
    assert_eq!(count(con, "waited_granted"), KEYS as u64);
}

#[test]
fn callers_that_have_left_use_no_memory() {
    let server = Server::start(&PATIENT);
    let con = &mut server.connection();
    // The first ones leave what the server keeps for others.
    wait_and_leave(&server, con, files(1000));
    let before = settled(&server);
    for _ in 0..2 {
        wait_and_leave(&server, con, files(1000));
    }
    // The server has two clients of its own for each that waits, and frees them by and by: a thousand in two seconds.
    until("memory that comes back", || settled(&server) < before + KEPT);
}

/// Has callers wait for the limits of all keys, and has them leave.
fn wait_and_leave(server: &Server, con: &mut Connection, most: usize) {
    text(con, &format!("CONFIG SET ratelimit.max-waiters {most}"));
    for key in 0..KEYS {
        assert!(!refused(&try_once(con, &line_of(key, "first", ""))));
    }
    let mut clients: Vec<Client> = (0..most).map(|_| Client::connect(server.port)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&line_of(number % KEYS, &format!("id{number}"), "BLOCK 1d"));
    }
    until_waiting(con, most as u64);
    for key in 0..KEYS {
        let told = text(con, &format!("RL.INFO {}", name(key)));
        assert_eq!(figure(&told, "waiting"), (most / KEYS) as u64, "{told}");
        // Another caller of the limit is refused, and the one of another limit is not.
        assert!(refused(&try_once(con, &line_of(key, "other", ""))));
        assert_eq!(ints(con, &format!("RL.GCRA free:{key} 999 1 1h"))[0], 0);
    }
    // Beyond `ratelimit.max-waiters` a call is refused at once.
    assert!(refused(&Client::connect(server.port).call(&line_of(0, "beyond", "BLOCK 1d"))));
    assert_eq!(waiting(con), most as u64);

    // Each key becomes fresh, so the first of each line is granted.
    for key in 0..KEYS {
        text(con, &format!("DEL {}", name(key)));
    }
    for client in &mut clients[..KEYS] {
        assert!(!refused(&client.reply()));
    }
    until_waiting(con, (most - KEYS) as u64);
    // Half of them disconnect, and the others are killed.
    let rest = clients.split_off(most / 2);
    drop(clients);
    until_waiting(con, rest.len() as u64);
    text(con, "CLIENT KILL TYPE normal SKIPME yes");
    until_waiting(con, 0);
    text(con, "FLUSHALL");
}

fn name(key: usize) -> String {
    format!("key:{key}")
}

/// A call of a key's limit. `block` comes before the limits of a call of several.
fn line_of(key: usize, id: &str, block: &str) -> String {
    let line = LIMITS[key % LIMITS.len()].replace("KEY", &name(key)).replace('#', id);
    let line = match line.split_once(" LIMIT ") {
        Some((keys, limits)) => format!("{keys} {block} LIMIT {limits}"),
        None => format!("{line} {block}"),
    };
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn try_once(con: &mut Connection, line: &str) -> Value {
    call(con, &line.split(' ').collect::<Vec<_>>()).unwrap()
}

/// Raises the limit of open files, which the server inherits. Returns how many clients there can be, at most `clients`.
fn files(clients: usize) -> usize {
    let mut files = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointers are to a structure of this function.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut files);
        files.rlim_cur = files.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const files);
    }
    // Other tests of this process have files open, too.
    let most = usize::try_from(files.rlim_max).unwrap_or(usize::MAX).saturating_sub(1000);
    clients.min(most / KEYS * KEYS)
}
