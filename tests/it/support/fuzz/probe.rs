//! A call between two looks at its keys, and what must hold of any call, whatever its words.

use redis::{Connection, ConnectionLike, Value};

use crate::support::fuzz::grammar::{elements, field, fields};
use crate::support::fuzz::typed;
use crate::support::{Server, call, simple, sync};

/// How a call reaches the server.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Way {
    Plain,
    /// Inside `MULTI` and `EXEC`.
    Transaction,
    /// By `redis.call` in a script.
    Script,
    /// By `redis.pcall`.
    ProtectedScript,
    /// While the server has no memory to spare.
    OutOfMemory,
}

/// What a key is.
#[derive(Clone, PartialEq, Debug)]
pub struct Look {
    pub dump: Value,
    /// In ms since the epoch; -1 is never, -2 that there is no key.
    pub expires: i64,
    info: Value,
}

impl Look {
    /// The instant of its last charge, if it is a key of the module.
    pub fn last_charge(&self) -> Option<u64> {
        match field(&fields_or_none(&self.info), "last_charge_us") {
            Some(Value::Int(micros)) => u64::try_from(micros).ok(),
            _ => None,
        }
    }

    /// In a line.
    fn told(&self) -> String {
        let figures = fields_or_none(&self.info);
        let figures: Vec<_> =
            figures.iter().map(|(name, value)| format!("{name} {}", simple(value))).collect();
        format!("{} expiring at {}", figures.join(", "), self.expires)
    }
}

fn fields_or_none(value: &Value) -> Vec<(String, Value)> {
    if matches!(value, Value::Array(_) | Value::Map(_)) { fields(value.clone()) } else { Vec::new() }
}

/// A call that was made, and all that was seen.
pub struct Seen {
    pub words: Vec<Vec<u8>>,
    pub way: Way,
    pub keys: Vec<Vec<u8>>,
    pub before: Vec<Look>,
    pub after: Vec<Look>,
    /// Of the key space, before and after.
    sizes: [i64; 2],
    pub reply: Value,
    /// The server's clock after the call, in ms.
    pub clock: i64,
}

/// Makes the call; a server that does not answer has failed the test.
pub fn ask(con: &mut Connection, words: &[Vec<u8>], keys: &[Vec<u8>], way: Way) -> Seen {
    // The server repeats the name of an unknown subcommand as it is, which the client cannot read if it is no text.
    let mut words = words.to_vec();
    if let [command, subcommand, ..] = &mut words[..]
        && command.eq_ignore_ascii_case(b"RL.POLICY")
    {
        *subcommand = String::from_utf8_lossy(subcommand).into_owned().into_bytes();
    }
    let words = &words[..];
    let mut batch = Batch::default();
    batch.look(keys);
    let at = batch.count;
    match way {
        Way::Plain => batch.add(words),
        Way::Transaction => {
            batch.add(&[b"MULTI"]);
            batch.add(words);
            batch.add(&[b"EXEC"]);
        }
        Way::Script | Way::ProtectedScript => {
            let call = if way == Way::Script { "call" } else { "pcall" };
            let script = format!("return redis.{call}(unpack(ARGV))");
            let mut line = vec![b"EVAL".to_vec(), script.into_bytes(), b"0".to_vec()];
            line.extend_from_slice(words);
            batch.add(&line);
        }
        Way::OutOfMemory => {
            batch.add(&[&b"CONFIG"[..], b"SET", b"maxmemory", b"1"]);
            batch.add(words);
            batch.add(&[&b"CONFIG"[..], b"SET", b"maxmemory", b"0"]);
        }
    }
    let end = batch.count;
    batch.look(keys);
    batch.add(&[b"TIME"]);
    let replies = con.req_packed_commands(&batch.bytes, 0, batch.count);
    let replies = replies.unwrap_or_else(|error| panic!("no answer ({error}) to {}", typed(words)));
    let reply = match way {
        Way::Transaction => match &replies[at + 2] {
            Value::Array(replies) if replies.len() == 1 => replies[0].clone(),
            // It could not be put off, and was answered at once.
            _ => replies[at + 1].clone(),
        },
        Way::OutOfMemory => replies[at + 1].clone(),
        _ => replies[at].clone(),
    };
    let clock = elements(replies.last().unwrap().clone());
    let clock: Vec<i64> = clock.iter().map(|part| simple(part).parse().unwrap()).collect();
    let (before, after) = (looks(&replies[..at]), looks(&replies[end..batch.count - 1]));
    Seen {
        words: words.to_vec(),
        way,
        keys: keys.to_vec(),
        before: before.1,
        after: after.1,
        sizes: [before.0, after.0],
        reply,
        clock: clock[0] * 1000 + clock[1] / 1000,
    }
}

/// Commands that are sent at once.
#[derive(Default)]
pub struct Batch {
    pub bytes: Vec<u8>,
    pub count: usize,
}

impl Batch {
    pub fn add<W: AsRef<[u8]>>(&mut self, words: &[W]) {
        self.bytes.extend(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            let word = word.as_ref();
            self.bytes.extend(format!("${}\r\n", word.len()).as_bytes());
            self.bytes.extend_from_slice(word);
            self.bytes.extend_from_slice(b"\r\n");
        }
        self.count += 1;
    }

    fn look(&mut self, keys: &[Vec<u8>]) {
        self.add(&[b"DBSIZE"]);
        for key in keys {
            for command in ["DUMP", "PEXPIRETIME", "RL.INFO"] {
                self.add(&[command.as_bytes(), key]);
            }
        }
    }
}

/// What `PEXPIRETIME` says of a key that is not there.
const MISSING: i64 = -2;

fn looks(replies: &[Value]) -> (i64, Vec<Look>) {
    let number = |value: &Value| if let Value::Int(number) = value { *number } else { panic!("{value:?}") };
    let look =
        |three: &[Value]| Look { dump: three[0].clone(), expires: number(&three[1]), info: three[2].clone() };
    (number(&replies[0]), replies[1..].chunks_exact(3).map(look).collect())
}

impl Seen {
    pub fn error(&self) -> Option<String> {
        matches!(self.reply, Value::ServerError(_)).then(|| simple(&self.reply))
    }

    /// Whether the keys are as they were, apart from those whose time had come.
    pub fn changed_nothing(&self) -> bool {
        let same = |(before, after): (&Look, &Look)| {
            // Its time may also have come between the words of the look itself: a dump, and then no key.
            let ended_amid = before.dump != Value::Nil && before.expires == MISSING;
            let may_end = ended_amid || (0..=self.clock).contains(&before.expires);
            may_end || (&before.dump, before.expires) == (&after.dump, after.expires)
        };
        self.before.iter().zip(&self.after).all(same) && self.sizes[0] >= self.sizes[1]
    }

    /// Whether none of the keys ends of itself within so many milliseconds.
    pub fn lasts(&self, millis: i64) -> bool {
        let ends = |look: &Look| {
            let ended_amid = look.dump != Value::Nil && look.expires == MISSING;
            ended_amid || (0..=self.clock + millis).contains(&look.expires)
        };
        !self.before.iter().chain(&self.after).any(ends)
    }

    /// What must hold of any call: an error is one of the module's or the server's, never a defect, and changes nothing;
    /// and what the server calls a reading command changes nothing ever.
    pub fn check(&self, reads: bool) {
        if let Some(error) = self.error() {
            const CODES: [&str; 5] = ["ERR ", "WRONGTYPE ", "OOM ", "EXECABORT ", "NOSCRIPT "];
            self.insist(
                CODES.iter().any(|code| error.starts_with(code)),
                "an error must begin with its code",
            );
            self.insist(!error.contains("internal"), "no call may meet a defect");
            self.insist(self.changed_nothing(), "an error must change nothing");
        }
        if reads {
            self.insist(self.changed_nothing(), "a probe must change nothing");
        }
        // Whatever the key is, it must be readable for people.
        for look in self.before.iter().chain(&self.after) {
            self.insist(!simple(&look.info).contains("internal"), "RL.INFO must not meet a defect");
        }
    }

    pub fn insist(&self, holds: bool, what: &str) {
        if !holds {
            self.fail(what);
        }
    }

    /// Fails with the call and the keys as they were, so that it can be repeated by hand.
    pub fn fail(&self, what: &str) -> ! {
        let mut story = format!("{what}, but\n");
        for (key, look) in self.keys.iter().zip(&self.before) {
            if let Value::BulkString(dump) = &look.dump {
                let line = [&b"RESTORE"[..], key, b"0", dump, b"REPLACE"];
                story += &typed(&line);
                story.push('\n');
            }
        }
        let after: Vec<_> = self.after.iter().map(Look::told).collect();
        let expired: Vec<_> = self.before.iter().map(|look| look.expires).collect();
        panic!(
            "{story}{}\n{:?}, expiring at {expired:?}, at {} ms\nreplied {}\nand left {after:?}",
            typed(&self.words),
            self.way,
            self.clock,
            simple(&self.reply)
        );
    }
}

/// Each key is on the replica what it is on the primary.
pub fn agree(primary: &Server, replica: &Server) {
    sync(primary, replica);
    let mut cons = [primary.connection(), replica.connection()];
    for key in elements(call(&mut cons[0], &["KEYS", "*"]).unwrap()) {
        let Value::BulkString(key) = key else { panic!("{key:?} is no key") };
        let [here, there] =
            cons.each_mut().map(|con| ask(con, &[b"PING".to_vec()], std::slice::from_ref(&key), Way::Plain));
        let same = |look: &Look| (look.dump.clone(), look.expires);
        if here.lasts(1000) && same(&here.after[0]) != same(&there.after[0]) {
            eprintln!("on the primary it is {}", here.after[0].told());
            there.fail("the replica must agree with the primary");
        }
    }
}
