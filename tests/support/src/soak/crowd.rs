//! Many connections on few threads, each asking, waiting for the answers and pausing, in turn.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::mem::take;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use super::calls::{Answer, Calls};
use super::tally::Tally;
use crate::client::reply_length;

const THREADS: usize = 20;
/// The most calls that are sent before their answers are read.
const PIPELINE: u64 = 4;
/// The longest pause before asking again, in microseconds.
const PAUSE: u64 = 100_000;
/// How long an answer may take at the end.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Crowd {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    port: u16,
    ends: AtomicBool,
    tally: Mutex<Tally>,
    /// The port of each connection, by which the server knows it.
    ports: Vec<AtomicU16>,
}

impl Crowd {
    pub fn start(port: u16, connections: usize) -> Crowd {
        let ports = (0..connections).map(|_| AtomicU16::new(0)).collect();
        let (ends, tally) = (AtomicBool::new(false), Mutex::new(Tally::default()));
        let shared = Arc::new(Shared { port, ends, tally, ports });
        let begin = |thread: usize| {
            let shared = Arc::clone(&shared);
            let lines =
                (thread..connections).step_by(THREADS).map(|number| Line::open(&shared, number)).collect();
            spawn(move || ask(&shared, lines))
        };
        let threads = (0..THREADS).map(begin).collect();
        Crowd { shared, threads }
    }

    /// What was seen since this was last asked.
    pub fn tally(&self) -> Tally {
        take(&mut *self.shared.tally.lock().unwrap())
    }

    /// The port of one of the connections.
    pub fn port(&self, number: usize) -> u16 {
        self.shared.ports[number % self.shared.ports.len()].load(Ordering::Relaxed)
    }

    /// Waits for the answers that are still to come, and closes all connections.
    pub fn end(self) -> Tally {
        self.shared.ends.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        take(&mut *self.shared.tally.lock().unwrap())
    }
}

/// One connection.
struct Line {
    number: usize,
    stream: TcpStream,
    calls: Calls,
    unsent: Vec<u8>,
    unread: Vec<u8>,
    /// What is still to come.
    answers: VecDeque<Answer>,
    asked: Instant,
    asks_again: Instant,
}

impl Line {
    fn open(shared: &Shared, number: usize) -> Line {
        let stream = TcpStream::connect(("127.0.0.1", shared.port)).expect("a connection");
        stream.set_nonblocking(true).expect("a connection that does not block");
        stream.set_nodelay(true).expect("a connection that sends at once");
        let port = stream.local_addr().expect("an address").port();
        shared.ports[number].store(port, Ordering::Relaxed);
        let mut calls = Calls::new(u64::from(port) << 32 | number as u64);
        let now = Instant::now();
        let asks_again = now + Duration::from_micros(calls.below(PAUSE));
        let (unsent, unread, answers) = (Vec::new(), Vec::new(), VecDeque::new());
        Line { number, stream, calls, unsent, unread, answers, asked: now, asks_again }
    }

    fn ask(&mut self, now: Instant) {
        for _ in 0..=self.calls.below(PIPELINE) {
            self.answers.push_back(self.calls.write(&mut self.unsent));
        }
        self.asked = now;
        self.asks_again = now + Duration::from_micros(self.calls.below(PAUSE));
    }

    /// Sends and reads what can be; an error is the end of the connection.
    fn go_on(&mut self, tally: &mut Tally) -> std::io::Result<()> {
        if !self.unsent.is_empty() {
            let sent = none_if_blocked(self.stream.write(&self.unsent))?.unwrap_or(0);
            self.unsent.drain(..sent);
        }
        let mut bytes = [0; 16_384];
        while let Some(length) = none_if_blocked(self.stream.read(&mut bytes))? {
            if length == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.unread.extend(&bytes[..length]);
            if length < bytes.len() {
                break;
            }
        }
        let mut from = 0;
        while from < self.unread.len()
            && let Some(length) = reply_length(&self.unread[from..])
        {
            let reply = &self.unread[from..from + length];
            from += length;
            let expected = self.answers.pop_front();
            let found = if reply[0] == b'-' { Answer::Error } else { Answer::Reply };
            tally.answered(self.asked.elapsed());
            tally.intended += u64::from(found == Answer::Error && expected == Some(found));
            if expected != Some(found) {
                tally.wrong(format!("{:?} where it should be {expected:?}", String::from_utf8_lossy(reply)));
            }
        }
        self.unread.drain(..from);
        Ok(())
    }
}

fn none_if_blocked(done: std::io::Result<usize>) -> std::io::Result<Option<usize>> {
    match done {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        done => done.map(Some),
    }
}

/// The life of a thread: asks on each connection when its pause is over, and reads what has come.
fn ask(shared: &Shared, mut lines: Vec<Line>) {
    let mut deadline = None;
    loop {
        let now = Instant::now();
        let ends = shared.ends.load(Ordering::Relaxed);
        if !ends {
            for line in lines.iter_mut().filter(|line| line.answers.is_empty() && line.asks_again <= now) {
                line.ask(now);
            }
        }
        let ready = wait(&lines);
        let mut tally = Tally::default();
        for (line, ready) in lines.iter_mut().zip(ready) {
            if (ready || !line.unsent.is_empty()) && line.go_on(&mut tally).is_err() {
                tally.closed += 1;
                *line = Line::open(shared, line.number);
            }
        }
        shared.tally.lock().unwrap().add(tally);
        // Not before all were looked at once more: one that was killed a moment before the end is to be counted.
        if ends {
            let deadline = *deadline.get_or_insert(now + PATIENCE);
            let unanswered: usize = lines.iter().map(|line| line.answers.len()).sum();
            if unanswered == 0 {
                return;
            }
            if now > deadline {
                return shared.tally.lock().unwrap().wrong(format!("{unanswered} calls without an answer"));
            }
        }
    }
}

/// Which connections have something to read; waits a few milliseconds for it.
fn wait(lines: &[Line]) -> Vec<bool> {
    let fd = |line: &Line| libc::pollfd { fd: line.stream.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut fds: Vec<libc::pollfd> = lines.iter().map(fd).collect();
    let timeout = if lines.iter().any(|line| !line.unsent.is_empty()) { 0 } else { 2 };
    // SAFETY: as many entries as are said, each of an open file.
    unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) };
    fds.iter().map(|fd| fd.revents != 0).collect()
}
