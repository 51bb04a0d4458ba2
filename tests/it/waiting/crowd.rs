//! Many callers that wait for few leases.

use redis::{Connection, Value};

use super::{PATIENT, count, figure, until_waiting, waiting};
use crate::support::client::Client;
use crate::support::dice::Dice;
use crate::support::kinds::settled;
use crate::support::{Server, call, ints, refused, simple, text, wait_for};

/// The leases of the first test, and the callers that wait for them.
const CAPACITY: usize = 10;
const CROWD: usize = 1000;

#[test]
fn a_thousand_are_granted_ten_leases_in_the_order_of_arrival() {
    let server = Server::start(&[&PATIENT[..], &["--maxclients", "4000"]].concat());
    let con = &mut server.connection();
    let lease = |id: &str| format!("RL.CONCURRENT lease {CAPACITY} 1d {id} BLOCK 1d");
    let mut held: Vec<String> = (0..CAPACITY).map(|number| format!("first{number}")).collect();
    for id in &held {
        assert_eq!(ints(con, &lease(id))[0], 0);
    }
    let mut clients: Vec<Option<Client>> = (0..CROWD).map(|_| Some(Client::connect(server.port))).collect();
    let ids: Vec<i64> = clients.iter_mut().flatten().map(Client::id).collect();
    for (caller, client) in clients.iter_mut().flatten().enumerate() {
        client.send(&lease(&format!("caller{caller}")));
        while waiting(con) <= caller as u64 {
            assert!(client.poll().is_none());
        }
    }
    let mut dice = Dice::new(10);
    let (mut leavers, line): (Vec<usize>, Vec<usize>) =
        (0..CROWD).partition(|caller| [1, 3, 5].contains(&(caller % 10)));
    dice.shuffle(&mut leavers);
    for leaver in leavers {
        let (id, client) = (ids[leaver], clients[leaver].as_mut().unwrap());
        match leaver % 20 {
            1 | 11 => clients[leaver] = None,
            3 | 13 => {
                assert_eq!(text(con, &format!("CLIENT KILL ID {id}")), "1");
                assert_eq!(client.outcome(), None);
                clients[leaver] = None;
            }
            5 => {
                assert_eq!(text(con, &format!("CLIENT UNBLOCK {id}")), "1");
                assert!(refused(&client.reply()));
            }
            _ => {
                assert_eq!(text(con, &format!("CLIENT UNBLOCK {id} ERROR")), "1");
                assert!(simple(&client.reply()).starts_with("UNBLOCKED "));
            }
        }
    }
    until_waiting(con, line.len() as u64);
    let mut line = line.as_slice();
    while !line.is_empty() {
        // As many callers get the leases that are released in one step, those who came first.
        let (next, rest) = line.split_at(line.len().min(1 + dice.index(4)));
        line = rest;
        text(con, "MULTI");
        for _ in next {
            text(con, &format!("RL.RELEASE lease {}", held.swap_remove(dice.index(held.len()))));
        }
        text(con, "EXEC");
        for caller in next {
            let reply = simple(&clients[*caller].as_mut().unwrap().reply());
            assert!(reply.starts_with("[0, 10, "), "{caller}: {reply}");
            held.push(format!("caller{caller}"));
        }
        let told = text(con, "RL.INFO lease");
        let figures = ["stored_leases", "stored_cost", "waiting"].map(|name| figure(&told, name));
        assert_eq!(figures, [CAPACITY as u64, CAPACITY as u64, line.len() as u64]);
    }
    let counts = ["waited_granted", "waited_timeout"].map(|field| count(con, field));
    assert_eq!(counts, [7 * CROWD as u64 / 10, CROWD as u64 / 20]);
    for id in &held {
        assert_eq!(ints(con, &format!("RL.RELEASE lease {id}")), [1], "{id}");
    }
    assert_eq!(text(con, "EXISTS lease"), "0");
    // No caller got two replies.
    for client in clients.iter_mut().flatten() {
        assert_eq!(simple(&client.call("PING")), "PONG");
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
    wait_for("memory that comes back", || settled(&server) < before + KEPT);
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
