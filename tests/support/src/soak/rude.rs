//! Clients without manners: some send half a request and leave, some leave while they wait for their turn, others ask and ask
//! and never read an answer.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use super::calls::Calls;
use crate::client::line_request;

const BETWEEN_HALVES: Duration = Duration::from_millis(20);
const BETWEEN_READERS: Duration = Duration::from_secs(4);
/// How long a client may go on that does not read.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the server keeps for a client that does not read.
pub const LIMIT: &str = "normal 2097152 1048576 2";

#[derive(Default)]
pub struct Rude {
    ends: AtomicBool,
    pub halves: AtomicU64,
    /// Those who left while they waited.
    pub impatient: AtomicU64,
    pub cut_off: AtomicU64,
    pub tolerated: AtomicU64,
}

impl Rude {
    pub fn start(port: u16) -> (Arc<Rude>, Vec<JoinHandle<()>>) {
        let rude = Arc::new(Rude::default());
        let [one, two, three] = [0; 3].map(|_| Arc::clone(&rude));
        let threads = vec![
            spawn(move || one.halves(port)),
            spawn(move || two.impatient(port)),
            spawn(move || three.never_reads(port)),
        ];
        (rude, threads)
    }

    pub fn end(&self) {
        self.ends.store(true, Ordering::Relaxed);
    }

    fn goes_on(&self) -> bool {
        !self.ends.load(Ordering::Relaxed)
    }

    fn halves(&self, port: u16) {
        let mut calls = Calls::new(u64::from(port));
        while self.goes_on() {
            let mut request = Vec::new();
            _ = calls.write(&mut request);
            let half = 1 + calls.below(request.len() as u64 - 1);
            let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
            stream.write_all(&request[..usize::try_from(half).unwrap()]).expect("half a request");
            self.halves.fetch_add(1, Ordering::Relaxed);
            drop(stream);
            sleep(BETWEEN_HALVES);
        }
    }

    fn impatient(&self, port: u16) {
        while self.goes_on() {
            let number = self.impatient.fetch_add(1, Ordering::Relaxed);
            // Only the first one is admitted.
            let request = line_request(&format!("RL.CONCURRENT impatient 1 1d {number} BLOCK 0"));
            let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
            stream.write_all(request.as_bytes()).expect("a request");
            sleep(BETWEEN_HALVES);
        }
    }

    fn never_reads(&self, port: u16) {
        let calls = |number| ["RL.HELP".into(), format!("RL.GCRA unread:{number} 9 40 1s")];
        let requests: String = (0..100).flat_map(calls).map(|line| line_request(&line)).collect();
        while self.goes_on() {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
            stream
                .set_write_timeout(Some(Duration::from_millis(100)))
                .expect("a connection with a time limit");
            let begun = Instant::now();
            // A write that times out may have been done in part. A client that never reads ignores this.
            let cut_off = loop {
                match stream.write(requests.as_bytes()) {
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                    Err(_) => break true,
                    Ok(_) => sleep(Duration::from_millis(10)),
                }
                if begun.elapsed() > PATIENCE {
                    break false;
                }
            };
            let outcome = if cut_off { &self.cut_off } else { &self.tolerated };
            outcome.fetch_add(1, Ordering::Relaxed);
            let next = Instant::now() + BETWEEN_READERS;
            while self.goes_on() && Instant::now() < next {
                sleep(Duration::from_millis(50));
            }
        }
    }
}
