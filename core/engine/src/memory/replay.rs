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
            calls.retain(|call| self.counts(call));
            // Those of a key stay in their order.
            calls.sort_by_key(Call::key);
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
        for keys in calls.chunk_by(|one, next| !is_apart || one.key() == next.key()) {
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

    /// Whether the call is counted, and not only replayed for the sake of others.
    fn counts(&self, call: &Call<'_>) -> bool {
        self.key.as_ref().is_none_or(|(database, key)| call.key() == (*database, &**key))
    }

    fn replay_one<'r>(&self, call: &Call<'r>, now: &Node, then: &Node, sum: &mut Sum<'r>) {
        let Entry { hold, ttl, cost, is_forced, deed, keys, .. } = *call.entry;
        let is_counted = self.counts(call);
        let is_held = ttl > Span::ZERO;
        let [hold, ttl] = [format!("{hold:016x}"), format!("{}ms", ttl.as_micros() / 1000)];
        let cost = cost.map(|cost| cost.to_string());
        let name = if is_counted { COUNTED } else { OTHERS };
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
        if is_held {
            words.extend([&b"HOLD"[..], hold.as_bytes(), ttl.as_bytes()]);
        }
        if keys > 1 {
            words.push(b"KEYS");
            words.extend(call.chunk.keys(call.entry).skip(1));
        }
        let [now, then] = [now, then].map(|node| node.run(call.entry, &words));
        if !matches!(deed, Deed::Admitted | Deed::Refused) || !is_counted {
            return;
        }
        match (now, then) {
            (Ok(now), Ok(then)) => sum.add(call, now, then),
            _ => sum.skipped += 1,
        }
    }

    fn reply(&self, by_now: &Node, by_then: &Node, sum: Sum<'_>) -> Fields {
        let Refusals { calls, now, then, newly_refused } = sum.all;
        let warm_up = [&self.now, &self.then].into_iter().flat_map(Policy::limiters).map(|limiter| {
            with_limiter!(limiter, limiter => reset_when_used_up(limiter, sum.from.unwrap_or(Time::EARLIEST)))
        });
        let warm_up = warm_up.max().unwrap_or_default();
        let most = sum.most.into_iter().map(|(database, key, Refusals { calls, now, then, .. })| {
            vec![
                field("key", FieldValue::Bytes(key.to_vec())),
                field("database", u64::from(database.cast_unsigned()).into()),
                field("calls", calls.into()),
                field("now", now.into()),
                field("then", then.into()),
            ]
        });
        let numbers = [
            ("from_us", sum.from.unwrap_or_default().as_micros()),
            ("to_us", sum.to.as_micros()),
            ("calls", calls),
            ("admitted", sum.admitted),
            ("refused_now", now),
            ("refused_then", then),
            ("newly_refused", newly_refused),
            ("newly_admitted", now + newly_refused - then),
            ("keys", sum.keys),
            ("keys_newly_refused", sum.keys_newly_refused),
            ("skipped", sum.skipped),
            ("warm_up_us", warm_up.as_micros()),
        ];
        let numbers = numbers.map(|(name, value)| field(name, value.into()));
        let lists =
            [("limits_now", by_now.limits()), ("limits_then", by_then.limits()), ("most", most.collect())];
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
    /// Its first key, with the database.
    fn key(&self) -> (i32, &'r [u8]) {
        (self.entry.database, self.first)
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
    /// Runs the call of an entry, and returns whether it is admitted.
    fn run(&self, entry: &Entry, words: &[&[u8]]) -> Result<bool, Error> {
        self.memory.set_clock(entry.at);
        let run = match entry.deed {
            Deed::Refund => Memory::run_command::<AskRefund>,
            Deed::Settlement => Memory::run_command::<AskSettle>,
            Deed::Admitted | Deed::Refused => Memory::run_command::<Ask>,
        };
        run(&self.memory, entry.database, words).map(|reply| reply.is_admission())
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
    all: Refusals,
    /// What was admitted when it was recorded.
    admitted: u64,
    skipped: u64,
    keys: u64,
    keys_newly_refused: u64,
    /// The keys with the most new refusals.
    most: Vec<(i32, &'r [u8], Refusals)>,
    /// The first keys of the calls that are replayed together.
    of_keys: HashMap<(i32, &'r [u8]), Refusals>,
}

/// How many calls there are, how many of them are refused by the policy as it is, by the limits to try, and by these alone.
#[derive(Clone, Copy, Default)]
struct Refusals {
    calls: u64,
    now: u64,
    then: u64,
    newly_refused: u64,
}

impl Refusals {
    fn add(&mut self, now: bool, then: bool) {
        self.calls += 1;
        self.now += u64::from(!now);
        self.then += u64::from(!then);
        self.newly_refused += u64::from(now && !then);
    }
}

impl<'r> Sum<'r> {
    fn add(&mut self, call: &Call<'r>, now: bool, then: bool) {
        let Entry { at, deed, .. } = *call.entry;
        self.from = Some(self.from.map_or(at, |from| from.min(at)));
        self.to = self.to.max(at);
        self.admitted += u64::from(deed == Deed::Admitted);
        self.all.add(now, then);
        self.of_keys.entry(call.key()).or_default().add(now, then);
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
