//! `RL.POLICY TRY`: the recorded calls of a policy, replayed on two nodes in memory: by the policy as it is, and by other limits.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::mem::take;

use ratelimit_core::state::State;
use ratelimit_core::{Limiter, Span, Time, with_limiter};
use ratelimit_language::{Error, Policy};

use super::state::Memory;
use crate::command::{Ask, AskRefund, AskSettle, limit_and_counts};
use crate::record::{Chunk, Deed, Entry, Wanted};
use crate::reply::{FieldValue, Fields};

/// The most keys of a replay whose calls have several keys. The calls of others are replayed key by key.
const MOST_KEYS: usize = 100_000;
/// The most keys in a reply.
const MOST_SHOWN: usize = 10;
/// After how many calls a replay looks whether anybody wants it still.
const CALLS_OF_A_LOOK: usize = 1024;
/// The names of the policy on a node in memory: for calls that are counted, and for those that only change keys.
const COUNTED: &str = "counted";
const OTHERS: &str = "others";

impl Wanted {
    /// Replays the calls. `None` if it is cancelled.
    pub fn replay(&self, is_cancelled: impl Fn() -> bool) -> Option<Result<Fields, Error>> {
        let mut calls = self.calls();
        let is_apart = calls.iter().all(|call| call.entry.keys == 1);
        if is_apart {
            if let Some((database, key)) = &self.key {
                calls.retain(|call| call.entry.database == *database && call.first == &**key);
            }
            // Those of a key stay in their order.
            calls.sort_by_key(|call| (call.entry.database, call.first));
        } else {
            let keys = calls.iter().flat_map(Call::keys).collect::<HashSet<_>>();
            if keys.len() > MOST_KEYS {
                let text = format_args!(
                    "the calls have {} keys; at most {MOST_KEYS} if a call has several",
                    keys.len()
                );
                return Some(Err(Error::invalid(text)));
            }
        }
        let [now, then] = [&self.now, &self.then].map(|policy| self.node(policy));
        let mut sum = Sum::default();
        for keys in calls.chunk_by(|one, next| !is_apart || one.is_of_key_of(next)) {
            for some in keys.chunks(CALLS_OF_A_LOOK) {
                if is_cancelled() {
                    return None;
                }
                for call in some {
                    self.replay_one(call, &now, &then, &mut sum);
                }
            }
            sum.end_keys();
            now.memory.forget();
            then.memory.forget();
        }
        Some(Ok(self.reply(&now, &then, sum)))
    }

    fn node(&self, policy: &Policy) -> Node {
        let memory = Memory::new(0);
        memory.node().settings.set_bounds(self.bounds, self.most_holds);
        memory.node().policies().store([COUNTED, OTHERS], policy);
        Node { memory }
    }

    /// The calls of the policy.
    fn calls(&self) -> Vec<Call<'_>> {
        let calls = self.chunks.iter().flat_map(|chunk| {
            let of_policy = chunk.entries.iter().filter(|entry| entry.policy == self.name);
            of_policy.filter_map(|entry| Some(Call { chunk, entry, first: chunk.keys(entry).next()? }))
        });
        let Some(last) = self.last else { return calls.collect() };
        let newest = calls.clone().map(|call| call.entry.at).max().unwrap_or_default();
        let begin = newest.minus(last);
        calls.filter(|call| call.entry.at >= begin).collect()
    }

    fn replay_one<'r>(&self, call: &Call<'r>, now: &Node, then: &Node, sum: &mut Sum<'r>) {
        let is_of =
            |(database, key): &(i32, Box<[u8]>)| call.entry.database == *database && call.first == &**key;
        let is_counted = self.key.as_ref().is_none_or(is_of);
        let [now, then] = [now, then].map(|node| node.replay(call, is_counted));
        if !matches!(call.entry.deed, Deed::Admitted | Deed::Refused) || !is_counted {
            return;
        }
        match (now, then) {
            (Ok(now), Ok(then)) => sum.add(call, now, then),
            _ => sum.skipped += 1,
        }
    }

    fn reply(&self, now: &Node, then: &Node, sum: Sum<'_>) -> Fields {
        let warm_up = [&self.now, &self.then].into_iter().flat_map(Policy::limiters).map(|limiter| {
            with_limiter!(limiter, limiter => reset_when_used_up(limiter, sum.from.unwrap_or(Time::EARLIEST)))
        });
        let warm_up = warm_up.max().unwrap_or_default();
        let most = sum.most.into_iter().map(|(database, key, KeySum { calls, now, then, .. })| {
            vec![
                field("key", FieldValue::Bytes(key.to_vec())),
                field("database", number(u64::from(database.cast_unsigned()))),
                field("calls", number(calls)),
                field("now", number(now)),
                field("then", number(then)),
            ]
        });
        let numbers = [
            ("from_us", sum.from.unwrap_or_default().as_micros()),
            ("to_us", sum.to.as_micros()),
            ("calls", sum.calls),
            ("admitted", sum.admitted),
            ("refused_now", sum.refused_now),
            ("refused_then", sum.refused_then),
            ("newly_refused", sum.newly_refused),
            ("newly_admitted", sum.newly_admitted),
            ("keys", sum.keys),
            ("keys_newly_refused", sum.keys_newly_refused),
            ("skipped", sum.skipped),
            ("warm_up_us", warm_up.as_micros()),
        ];
        let numbers = numbers.map(|(name, value)| field(name, number(value)));
        let lists = [("limits_now", now.limits()), ("limits_then", then.limits()), ("most", most.collect())];
        let lists = lists.map(|(name, maps)| field(name, FieldValue::Maps(maps)));
        numbers.into_iter().chain(lists).collect()
    }
}

/// A recorded call.
#[derive(Clone, Copy)]
struct Call<'r> {
    chunk: &'r Chunk,
    entry: &'r Entry,
    first: &'r [u8],
}

impl<'r> Call<'r> {
    fn is_of_key_of(&self, other: &Call<'_>) -> bool {
        self.first == other.first && self.entry.database == other.entry.database
    }

    fn keys(&self) -> impl Iterator<Item = (i32, &'r [u8])> {
        self.chunk.keys(self.entry).map(|key| (self.entry.database, key))
    }
}

/// A node in memory with one policy.
struct Node {
    memory: Memory,
}

impl Node {
    /// Replays a call, and returns whether it is admitted.
    fn replay(&self, call: &Call<'_>, is_counted: bool) -> Result<bool, Error> {
        let Entry { at, hold, ttl, cost, database, is_forced, deed, .. } = *call.entry;
        let name = if is_counted { COUNTED } else { OTHERS };
        let [hold, ttl] = [format!("{hold:016x}"), format!("{}ms", ttl.as_micros() / 1000)];
        let cost = cost.map(|cost| cost.to_string());
        let mut words: Vec<&[u8]> = vec![b"", call.first, name.as_bytes()];
        if deed == Deed::Settlement {
            words.push(hold.as_bytes());
        }
        if let Some(cost) = &cost {
            words.extend([&b"COST"[..], cost.as_bytes()]);
        }
        if is_forced {
            words.push(b"FORCE");
        }
        if call.entry.ttl > Span::ZERO {
            words.extend([&b"HOLD"[..], hold.as_bytes(), ttl.as_bytes()]);
        }
        if call.entry.keys > 1 {
            words.push(b"KEYS");
            words.extend(call.chunk.keys(call.entry).skip(1));
        }
        self.memory.set_clock(at);
        let run = match deed {
            Deed::Refund => Memory::run_command::<AskRefund>,
            Deed::Settlement => Memory::run_command::<AskSettle>,
            Deed::Admitted | Deed::Refused => Memory::run_command::<Ask>,
        };
        run(&self.memory, database, &words).map(|reply| reply.is_admission())
    }

    /// The words of each limit, and what it refused.
    fn limits(&self) -> Vec<Fields> {
        let Some(policy) = self.memory.node().policies().get(COUNTED.as_bytes()) else { return Vec::new() };
        policy.limits().map(limit_and_counts).collect()
    }
}

/// What came of the calls.
#[derive(Default)]
struct Sum<'r> {
    from: Option<Time>,
    to: Time,
    calls: u64,
    admitted: u64,
    refused_now: u64,
    refused_then: u64,
    newly_refused: u64,
    newly_admitted: u64,
    skipped: u64,
    keys: u64,
    keys_newly_refused: u64,
    /// The keys with the most new refusals.
    most: Vec<(i32, &'r [u8], KeySum)>,
    /// The first keys of the calls that are replayed together.
    of_keys: HashMap<(i32, &'r [u8]), KeySum>,
}

/// What came of the calls whose first key is one of these.
#[derive(Clone, Copy, Default)]
struct KeySum {
    calls: u64,
    now: u64,
    then: u64,
    newly_refused: u64,
}

impl<'r> Sum<'r> {
    fn add(&mut self, call: &Call<'r>, now: bool, then: bool) {
        let Entry { at, database, deed, .. } = *call.entry;
        self.from = Some(self.from.map_or(at, |from| from.min(at)));
        self.to = self.to.max(at);
        self.calls += 1;
        self.admitted += u64::from(deed == Deed::Admitted);
        self.refused_now += u64::from(!now);
        self.refused_then += u64::from(!then);
        self.newly_refused += u64::from(now && !then);
        self.newly_admitted += u64::from(!now && then);
        let key = self.of_keys.entry((database, call.first)).or_default();
        key.calls += 1;
        key.now += u64::from(!now);
        key.then += u64::from(!then);
        key.newly_refused += u64::from(now && !then);
    }

    /// All calls on some keys have been replayed.
    fn end_keys(&mut self) {
        for ((database, name), key) in take(&mut self.of_keys) {
            self.keys += 1;
            if key.newly_refused > 0 {
                self.keys_newly_refused += 1;
                self.most.push((database, name, key));
            }
        }
        // Of equal ones the first by database and name.
        self.most.sort_by_key(|(database, name, key)| (u64::MAX - key.newly_refused, *database, *name));
        self.most.truncate(MOST_SHOWN);
    }
}

/// After what time a limit that is used up at `now` is fully reset.
fn reset_when_used_up<L: Limiter>(limiter: &L, now: Time) -> Span {
    let mut state = limiter.fresh(now);
    let most = limiter.most(limiter.gauge(&state, now));
    let charged = state.clone();
    state.apply(limiter.charge(&charged, now, most));
    limiter.gauge(&state, now).reset
}

fn field(name: &'static str, value: FieldValue) -> (Cow<'static, str>, FieldValue) {
    (name.into(), value)
}

fn number(number: u64) -> FieldValue {
    FieldValue::Integer(number.cast_signed())
}
