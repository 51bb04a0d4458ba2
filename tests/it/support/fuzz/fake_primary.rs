//! A primary that speaks just enough of the replication protocol to send a replica whatever it likes.
//!
//! The replica comes, says who it is (`PING`, `REPLCONF`) and asks for all (`PSYNC`). The reply is that a full copy
//! follows, and then bytes. If it takes them it answers the `GETACK` behind them, else it hangs up and comes again.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);
const MARK: [u8; 40] = [b'~'; 40];
const ASKS: &[u8] = b"*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n";

/// How the end of a copy is marked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Framing {
    Length,
    Mark,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Outcome {
    Taken,
    Dropped,
    /// No replica came, or it neither took the copy nor hung up: it has ended, or hangs.
    Ended,
}

pub struct FakePrimary {
    listener: TcpListener,
    pub port: u16,
}

impl FakePrimary {
    pub fn new() -> FakePrimary {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        FakePrimary { listener, port }
    }

    /// Sends the next replica that comes a copy of the history of this id, of which only so many bytes arrive.
    pub fn send(&self, copy: &[u8], arrive: usize, framing: Framing, id: &str) -> Outcome {
        let Some(mut replica) = self.accept() else { return Outcome::Ended };
        serve(&mut replica, copy, arrive, framing, id).unwrap_or_else(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Outcome::Ended,
            _ => Outcome::Dropped,
        })
    }

    fn accept(&self) -> Option<TcpStream> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            match self.listener.accept() {
                Ok((replica, _)) => {
                    replica.set_nonblocking(false).unwrap();
                    replica.set_nodelay(true).unwrap();
                    replica.set_read_timeout(Some(PATIENCE)).unwrap();
                    replica.set_write_timeout(Some(PATIENCE)).unwrap();
                    return Some(replica);
                }
                Err(_) => sleep(Duration::from_millis(1)),
            }
        }
        None
    }
}

/// `Err` if the replica has hung up, or is silent.
fn serve(
    replica: &mut TcpStream,
    copy: &[u8],
    arrive: usize,
    framing: Framing,
    id: &str,
) -> std::io::Result<Outcome> {
    let mut heard = Vec::new();
    loop {
        // Several commands may come at once, and each wants its answer.
        for command in commands(&mut heard) {
            match command.as_str() {
                "PING" => replica.write_all(b"+PONG\r\n")?,
                "PSYNC" => {
                    replica.write_all(format!("+FULLRESYNC {id} 1\r\n").as_bytes())?;
                    return send_copy(replica, copy, arrive, framing);
                }
                _ => replica.write_all(b"+OK\r\n")?,
            }
        }
        if !hear(replica, &mut heard)? {
            return Ok(Outcome::Dropped);
        }
    }
}

/// The names of the commands that have come whole.
fn commands(heard: &mut Vec<u8>) -> Vec<String> {
    let mut names = Vec::new();
    let mut done = 0;
    let lines: Vec<(usize, String)> = heard
        .split_inclusive(|byte| *byte == b'\n')
        .scan(0, |end, line| {
            *end += line.len();
            Some((*end, String::from_utf8_lossy(line).trim_end().to_string()))
        })
        .collect();
    let mut rest = lines.as_slice();
    while let Some((_, first)) = rest.first() {
        let Some(words) = first.strip_prefix('*').and_then(|words| words.parse::<usize>().ok()) else {
            break;
        };
        // Each word is behind a line with its length.
        let Some((end, _)) = rest.get(2 * words).filter(|(end, _)| heard[..*end].ends_with(b"\n")) else {
            break;
        };
        names.push(rest[2].1.to_uppercase());
        done = *end;
        rest = &rest[2 * words + 1..];
    }
    heard.drain(..done);
    names
}

/// Whether more has come; else the replica has hung up. `Err` also if it is silent.
fn hear(replica: &mut TcpStream, heard: &mut Vec<u8>) -> std::io::Result<bool> {
    let mut buffer = [0; 4096];
    let length = replica.read(&mut buffer)?;
    heard.extend_from_slice(&buffer[..length]);
    Ok(length > 0)
}

fn send_copy(
    replica: &mut TcpStream,
    copy: &[u8],
    arrive: usize,
    framing: Framing,
) -> std::io::Result<Outcome> {
    let whole = arrive >= copy.len();
    let mut bytes = match framing {
        Framing::Length => format!("${}\r\n", copy.len()).into_bytes(),
        Framing::Mark => [b"$EOF:", &MARK[..], b"\r\n"].concat(),
    };
    bytes.extend_from_slice(&copy[..arrive.min(copy.len())]);
    if whole && framing == Framing::Mark {
        bytes.extend_from_slice(&MARK);
    }
    if whole {
        bytes.extend_from_slice(ASKS);
    }
    replica.write_all(&bytes)?;
    // Else one that was cut, or tells lengths that are not there, would be waited for.
    replica.shutdown(Shutdown::Write)?;
    let mut heard = Vec::new();
    while hear(replica, &mut heard)? {
        if heard.windows(3).any(|three| three == b"ACK") {
            return Ok(Outcome::Taken);
        }
    }
    Ok(Outcome::Dropped)
}
