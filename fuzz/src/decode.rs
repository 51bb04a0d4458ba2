//! The bytes of a dump, a file or a payload: they are refused, or they are a state that can be used, written and read
//! again, by a limiter alone and by a node that has it in a key.

use ratelimit_core::decide::{reading, rule};
use ratelimit_core::state::codec::Reader;
use ratelimit_core::{
    AnyLimiter, Kind, Length, Limiter, MAX_COUNT, Manner, Reading, Span, State, Time, with_limiter,
    with_state,
};
use ratelimit_laws::{apply, charged, decoded, encoded, knows_its_end, rebased, refunded};
use ratelimit_value::Value;

use crate::bytes::Bytes;
use crate::lines::{line, parse};
use crate::nodes::{KEY, Nodes};

/// The input: the kind; the instant of a request; the form and the parameters of the limiter that is asked; the length
/// of a state in two bytes; the state; changes.
pub fn check(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let kind = Kind::ALL[usize::from(bytes.byte()) % Kind::ALL.len()];
    let now = Time::from_micros(bytes.number(0, Time::LATEST.as_micros()));
    let form = bytes.byte();
    let words = line(form, &mut bytes);
    let length = usize::from(bytes.byte()) | usize::from(bytes.byte()) << 8;
    let (state, changes) = (bytes.take(length), bytes.0);
    with_state!(kind, S => survive::<S>(state, changes, &words, now));
}

fn survive<S: State>(bytes: &[u8], changes: &[u8], words: &str, now: Time) {
    let mut reader = Reader::new(bytes);
    let mut state = S::decode(&mut reader);
    if let Some(state) = &state {
        let read = Reader::new(bytes).up_to(reader);
        // Only a log's numbers can be written in more ways than one.
        if ![Kind::Log, Kind::LimitSet].contains(&S::KIND) {
            assert_eq!(encoded(state), read);
        }
        if S::KIND == Kind::LimitSet {
            assert_eq!(encoded(state).get(..8), read.get(..8), "a set has as many limits as it says");
        }
        let heap = state.heap_bytes();
        assert!(heap <= 1024 + 64 * read.len(), "{heap} bytes of {}", read.len());
        examine(state, words, now);
    }
    let mut reader = Reader::new(changes);
    let mut before = reader;
    while S::decode_change(&mut reader).is_some() {
        let state = state.get_or_insert_with(S::blank);
        apply(state, before.up_to(reader));
        assert!(state.heap_bytes() <= 1024 + 64 * (bytes.len() + changes.len()));
        before = reader;
    }
    if let Some(state) = &state {
        examine(state, words, now);
    }
}

/// Asks a state all questions that commands ask.
fn examine<S: State>(state: &S, words: &str, now: Time) {
    state.describe(&mut |name, _| assert!(!name.is_empty()));
    assert!(state.effort() > 0);
    let _ = state.last();
    let Some(limiter) = parse(words) else { return };
    let bytes = encoded(state);
    with_limiter!(&limiter, limiter => ask(limiter, &bytes, S::KIND, now));
    // A blank state cannot be read back.
    let name = with_limiter!(&limiter, limiter => limiter.name());
    if let Some(state) = decoded::<S>(&bytes) {
        call(
            &Value::new(if S::KIND == name.kind { name.length } else { Length::NONE }, state),
            &limiter,
            words,
            now,
        );
    }
}

/// Charges a limiter's own state, and gives back.
fn ask<L: Limiter>(limiter: &L, bytes: &[u8], kind: Kind, asked: Time) {
    if kind != L::State::KIND {
        return;
    }
    let Some(state) = decoded::<L::State>(bytes) else { return };
    let Reading::At(now) = reading(limiter, &state, asked) else {
        rebased(limiter, &state, asked);
        return;
    };
    for cost in [0, 1, 1000, MAX_COUNT] {
        if cost > 0
            && rule(limiter, &state, now, Span::ZERO, cost, Manner::Strict)
                .is_ok_and(|(verdict, _)| verdict.admits())
        {
            knows_its_end(limiter, &charged(limiter, &state, now, cost), now);
        }
        if limiter.capabilities().refund {
            let refunded = refunded(limiter, &state, now, cost);
            knows_its_end(limiter, &refunded.expect("a refund"), now);
        }
    }
}

/// The id of the holds that are asked for, and of some that the corpus has.
pub const HELD: &[u8] = b"a";

/// Calls a node that has the value in a key: copies hold the same, whatever the call is and whether it fits.
fn call(value: &Value, limiter: &AnyLimiter<'_>, words: &str, now: Time) {
    let mut nodes = Nodes::default();
    // A set that no node wrote may have two limits of one name, or holds of what it has not.
    nodes.repeats = value.kind() != Kind::LimitSet;
    nodes.set_clock(now);
    let (command, parameters) = words.split_once(' ').expect("a limiter and its parameters");
    let at = now.as_micros();
    for (cost, option) in [
        (1, ""),
        (1000, " FORCE"),
        (MAX_COUNT, " RESERVE MAXWAIT 36500d"),
        (MAX_COUNT, " PARTIAL"),
        (10, " PARTIAL HOLD a 1s"),
    ] {
        // A set of one limit is no value.
        if !nodes.load(value, Time::LATEST) {
            return;
        }
        nodes.line(&format!("RL.PEEK {KEY} {words} COST {cost} AT {at}"));
        nodes.line(&format!("RL.{command} {KEY} {parameters} COST {cost} AT {at}{option}"));
        nodes.line(&format!("RL.SETTLE {KEY} a {words} COST {} AT {at}", cost / 3));
        nodes.line(&format!("RL.REFUND {KEY} {words} COST {cost} AT {at}"));
        nodes.line(&format!("RL.INFO {KEY}"));
    }
    if matches!(limiter, AnyLimiter::Concurrent(_)) {
        nodes.line(&format!("RL.RELEASE {KEY} a AT {at}"));
    }
}
