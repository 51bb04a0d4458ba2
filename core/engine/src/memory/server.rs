//! The commands of the server that a node in memory has.

use ratelimit_core::Time;
use ratelimit_language::Error;

use super::state::{Effect, Memory, Stored};
use crate::reply::Reply;
use crate::waiting::{OfDatabase, WaitedKey};

/// Runs `DEL`, `EXISTS`, `FLUSHALL`, `RENAME`, `COPY`, `PERSIST` or `PEXPIREAT`. `None` if the name is another one.
pub(super) fn own(memory: &Memory, name: &[u8], words: &[&[u8]]) -> Option<Result<Reply, Error>> {
    let run: fn(&Memory, &[&[u8]]) -> Result<Reply, Error> = match &*name.to_ascii_uppercase() {
        b"DEL" => delete,
        b"EXISTS" => exists,
        b"FLUSHALL" => flush,
        b"RENAME" => rename,
        b"COPY" => copy,
        b"PERSIST" => persist,
        b"PEXPIREAT" => expire_at,
        _ => return None,
    };
    let name = String::from_utf8_lossy(name).to_ascii_uppercase();
    Some(run(memory, words).map_err(|error| error.of_command("", &name)))
}

fn delete(memory: &Memory, keys: &[&[u8]]) -> Result<Reply, Error> {
    count(memory, keys, Memory::delete)
}

fn exists(memory: &Memory, keys: &[&[u8]]) -> Result<Reply, Error> {
    count(memory, keys, Memory::has)
}

fn count(
    memory: &Memory,
    keys: &[&[u8]],
    each: impl Fn(&Memory, &dyn OfDatabase) -> bool,
) -> Result<Reply, Error> {
    let counted = |key: &&&[u8]| {
        let key = (memory.database.get(), **key);
        !memory.expire(&key) && each(memory, &key)
    };
    if keys.is_empty() {
        return Err(Error::Arity);
    }
    Ok(Reply::Integer(keys.iter().filter(counted).count() as u64))
}

#[allow(clippy::unnecessary_wraps, reason = "one of the commands")]
fn flush(memory: &Memory, _: &[&[u8]]) -> Result<Reply, Error> {
    memory.flush();
    Ok(Reply::Ok)
}

fn rename(memory: &Memory, words: &[&[u8]]) -> Result<Reply, Error> {
    let [from, to] = words else { return Err(Error::Arity) };
    let [from, to] = [from, to].map(|name| key(memory, name));
    if memory.expire(&from) || !memory.has(&from) {
        return Err(Error::invalid(format_args!("no such key")));
    }
    if from != to {
        memory.expire(&to);
        memory.remove(&to);
        if let Some((_, stored)) = memory.remove(&from) {
            memory.keys.borrow_mut().insert(to, stored);
        }
        send(memory, b"RENAME", words);
    }
    Ok(Reply::Ok)
}

/// The copy does not know its expiry, although it has one.
fn copy(memory: &Memory, words: &[&[u8]]) -> Result<Reply, Error> {
    let [from, to, replace @ ..] = words else { return Err(Error::Arity) };
    let [from, to] = [from, to].map(|name| key(memory, name));
    if from == to {
        return Err(Error::invalid(format_args!("source and destination objects are the same")));
    }
    let is_there = !memory.expire(&to) && memory.has(&to);
    if memory.expire(&from) || is_there && replace.is_empty() {
        return Ok(Reply::Integer(0));
    }
    let copied = memory.keys.borrow().get::<WaitedKey>(&from).map(|stored| {
        let value = stored.value.as_ref().map(|value| {
            let mut copy = value.copy();
            copy.set_expiry(0);
            copy
        });
        Stored { value, expiry: stored.expiry }
    });
    let Some(copied) = copied else { return Ok(Reply::Integer(0)) };
    memory.remove(&to);
    memory.keys.borrow_mut().insert(to, copied);
    send(memory, b"COPY", words);
    Ok(Reply::Integer(1))
}

fn persist(memory: &Memory, words: &[&[u8]]) -> Result<Reply, Error> {
    let [name] = words else { return Err(Error::Arity) };
    Ok(set_expiry(memory, name, None, b"PERSIST", words))
}

fn expire_at(memory: &Memory, words: &[&[u8]]) -> Result<Reply, Error> {
    let [name, millis] = words else { return Err(Error::Arity) };
    let millis = str::from_utf8(millis).ok().and_then(|text| text.parse().ok());
    let millis: u64 = millis.ok_or(Error::Invalid("value is not an integer or out of range".into()))?;
    Ok(set_expiry(memory, name, Some(millis), b"PEXPIREAT", words))
}

/// The value does not learn of it.
fn set_expiry(memory: &Memory, name: &[u8], expiry: Option<u64>, command: &[u8], words: &[&[u8]]) -> Reply {
    let key = key(memory, name);
    let is_gone = memory.expire(&key);
    let mut keys = memory.keys.borrow_mut();
    let Some(stored) = keys.get_mut::<WaitedKey>(&key).filter(|_| !is_gone) else {
        return Reply::Integer(0);
    };
    if expiry == stored.expiry && expiry.is_none() {
        return Reply::Integer(0);
    }
    // A key that is to expire in the past is deleted.
    if expiry.is_some_and(|millis| Time::from_millis(millis) <= memory.clock.get())
        && !memory.is_obeying.get()
    {
        drop(keys);
        memory.delete(&key);
        return Reply::Integer(1);
    }
    stored.expiry = expiry;
    drop(keys);
    send(memory, command, words);
    Reply::Integer(1)
}

fn key(memory: &Memory, name: &[u8]) -> WaitedKey {
    WaitedKey { database: memory.database.get(), name: name.into() }
}

fn send(memory: &Memory, command: &[u8], words: &[&[u8]]) {
    let words = [&[command], words].concat().iter().map(|word| word.to_vec()).collect();
    let effect = Effect::Server { database: memory.database.get(), words };
    memory.effects.borrow_mut().push(effect);
}
