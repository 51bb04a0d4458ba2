//! A connection whose replies are read later, so that one thread can have thousands of calls under way.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Instant;

use redis::{Value, parse_redis_value};

use crate::PATIENCE;

pub struct Client {
    stream: TcpStream,
    /// The bytes of replies that have come and are not read yet.
    unread: Vec<u8>,
    closed: bool,
}

impl Client {
    pub fn connect(port: u16) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        stream.set_nonblocking(true).expect("a connection that does not block");
        stream.set_nodelay(true).expect("a connection that sends at once");
        Client { stream, unread: Vec::new(), closed: false }
    }

    /// Sends a line of words, and does not wait for the reply.
    pub fn send(&mut self, line: &str) {
        self.write(&line_request(line));
    }

    /// Sends lines at once, so that the server reads them together.
    pub fn send_all(&mut self, lines: &[&str]) {
        self.write(&lines.iter().map(|line| line_request(line)).collect::<String>());
    }

    /// Sends words, of which some may be empty.
    pub fn send_words(&mut self, words: &[&str]) {
        self.write(&request(words));
    }

    fn write(&mut self, requests: &str) {
        // A server that has closed the connection is noticed by who reads.
        _ = self.stream.write_all(requests.as_bytes());
    }

    /// The next reply, if it has come.
    pub fn poll(&mut self) -> Option<Value> {
        let mut bytes = [0; 4096];
        while !self.closed {
            match self.stream.read(&mut bytes) {
                Ok(0) => self.closed = true,
                Ok(length) => self.unread.extend(&bytes[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.closed = true,
            }
        }
        let length = reply_length(&self.unread)?;
        let reply: Vec<u8> = self.unread.drain(..length).collect();
        Some(parse_redis_value(&reply).expect("a reply"))
    }

    /// The next reply; `None` if the server has closed the connection before it.
    pub fn outcome(&mut self) -> Option<Value> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(reply) = self.poll() {
                return Some(reply);
            }
            if self.closed {
                return None;
            }
            assert!(Instant::now() < deadline, "no reply after {PATIENCE:?}");
            self.wait();
        }
    }

    /// Waits until something has come, a second at most.
    fn wait(&self) {
        let mut file = libc::pollfd { fd: self.stream.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, of an open file.
        unsafe { libc::poll(&raw mut file, 1, 1000) };
    }

    pub fn reply(&mut self) -> Value {
        self.outcome().expect("a reply before the connection is closed")
    }

    /// Sends a line of words, and waits for the reply.
    pub fn call(&mut self, line: &str) -> Value {
        self.send(line);
        self.reply()
    }

    /// Whether the server has closed the connection, and all replies before that are read. As of the last look.
    pub fn is_closed(&self) -> bool {
        self.closed && self.unread.is_empty()
    }

    /// The server's number of the client.
    pub fn id(&mut self) -> i64 {
        match self.call("CLIENT ID") {
            Value::Int(id) => id,
            other => panic!("CLIENT ID: {other:?}"),
        }
    }
}

/// A line of words as the protocol has it.
pub fn line_request(line: &str) -> String {
    request(&line.split_whitespace().collect::<Vec<_>>())
}

fn request(words: &[&str]) -> String {
    let words_in_order = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), words_in_order.collect::<String>())
}

/// The length of the first reply in these bytes, if all of it is there.
pub fn reply_length(bytes: &[u8]) -> Option<usize> {
    let line = 2 + bytes.windows(2).position(|two| two == b"\r\n")?;
    let number = || std::str::from_utf8(&bytes[1..line - 2]).unwrap().parse::<i64>().unwrap();
    let length = match bytes[0] {
        b'$' => line + usize::try_from(number()).map_or(0, |length| length + 2),
        b'*' => {
            (0..number()).try_fold(line, |length, _| Some(length + reply_length(bytes.get(length..)?)?))?
        }
        b'+' | b'-' | b':' => line,
        other => panic!("a reply does not begin with {:?}", char::from(other)),
    };
    (bytes.len() >= length).then_some(length)
}
