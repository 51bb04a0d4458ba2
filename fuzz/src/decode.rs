//! The bytes of a dump, a file or a payload: they are refused, or they are a state that can be used, written and read
//! again.

use ratelimit_core::decide::{peek, reading, rule};
use ratelimit_core::hold::{has_room, held};
use ratelimit_core::state::codec::Reader;
use ratelimit_core::{
    Ask, Error, Hold, Kind, LimitSet, Limiter, Limits, MAX_COUNT, Manner, Reading, Span, State, Time,
    Verdict, with_limiter, with_state,
};
use ratelimit_laws::{apply, charged, copy, decoded, encoded, knows_its_end, rebased, refunded};

use crate::bytes::Bytes;
use crate::lines::{line, parse};

const MANNERS: [Manner; 4] =
    [Manner::Strict, Manner::Partial, Manner::Force, Manner::Reserve { longest: Span::CENTURY }];

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
        assert!(
            state.heap_bytes() <= 1024 + 64 * read.len(),
            "{} bytes of {}",
            state.heap_bytes(),
            read.len()
        );
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
    with_limiter!(&limiter, limiter => {
        ask(limiter, &bytes, S::KIND, now);
        ask_in_set(limiter, &bytes, S::KIND, now);
        hold_in_set(limiter, &bytes, S::KIND, now);
    });
}

/// Asks the limiter whose state this is.
fn ask<L: Limiter>(limiter: &L, bytes: &[u8], kind: Kind, asked: Time) {
    if kind != L::State::KIND {
        return;
    }
    // A blank state cannot be read back.
    let Some(state) = decoded::<L::State>(bytes) else { return };
    let capabilities = limiter.capabilities();
    for cost in [0, 1, 1000, MAX_COUNT] {
        peek(limiter, &state, asked, cost);
        let now = match reading(limiter, &state, asked) {
            Reading::At(now) => now,
            Reading::SetBack => {
                rebased(limiter, &state, asked);
                continue;
            }
        };
        for manner in MANNERS.into_iter().filter(|manner| capabilities.allows(*manner)) {
            if cost > 0
                && let Ok((verdict, granted)) = rule(limiter, &state, now, Span::ZERO, cost, manner)
                && (verdict.admits() || capabilities.counts_refused && verdict != Verdict::NEVER)
            {
                let charged = charged(limiter, &state, now, granted);
                // No debt bounds a recorded refusal: a log that bytes filled to `MAX_DEBT` drops it.
                if verdict.admits() {
                    knows_its_end(limiter, &charged, now);
                }
            }
        }
        if capabilities.refund {
            let refunded = refunded(limiter, &state, now, cost);
            knows_its_end(limiter, &refunded.expect("a refund"), now);
        }
    }
}

/// Asks the limiter whose limit is in this set.
fn ask_in_set<L: Limiter>(limiter: &L, bytes: &[u8], kind: Kind, at: Time) {
    if kind != Kind::LimitSet {
        return;
    }
    let read = || decoded::<LimitSet>(bytes);
    let Some(place) = read().and_then(|set| set.find(limiter.name())) else { return };
    for manner in MANNERS.into_iter().filter(|manner| limiter.capabilities().allows(*manner)) {
        for cost in [1, 1000, MAX_COUNT] {
            let Some(mut set) = read() else { return };
            let before = set.limits().count();
            let mut ask = Ask::new(place, at, cost, manner);
            let alone = copy(set.get::<L::State>(place.stored).expect("what was found"));
            match ask.take(&mut set, limiter) {
                Ok(taken) if taken.verdict.admits() => {
                    let state: Option<&L::State> = set.state(place.length);
                    let state = state.expect("what was charged is there, under its new name");
                    let alone = match reading(limiter, &alone, at) {
                        Reading::At(_) => alone,
                        Reading::SetBack => rebased(limiter, &alone, at),
                    };
                    let alone = charged(limiter, &alone, ask.now(), taken.granted);
                    assert_eq!(encoded(&alone), encoded(state), "as alone");
                    knows_its_end(limiter, state, ask.now());
                }
                Ok(_) => {}
                Err(error) => {
                    assert_eq!(error, Error::TooLong);
                    assert_eq!(encoded(&set), bytes, "an error changes nothing");
                }
            }
            assert!(set.limits().count() <= before);
        }
    }
}

/// The id of the holds that are asked for, and of some that the corpus has.
pub const HELD: &[u8] = b"a";

/// Holds what the limiter of a set charges, unless that id is held already, and settles it.
fn hold_in_set<L: Limiter>(limiter: &L, bytes: &[u8], kind: Kind, at: Time) {
    if kind != Kind::LimitSet || !limiter.capabilities().hold {
        return;
    }
    for actual in [0, 1, 1000, MAX_COUNT] {
        let Some(mut set) = decoded::<LimitSet>(bytes) else { return };
        let Some(place) = set.find(limiter.name()) else { return };
        let hold = Hold { id: HELD, ttl: Span::from_millis(1000), most: 3 };
        if held(&set, HELD, at).is_none() && has_room(&set, &hold, at, 1) {
            let mut ask = Ask::new(place, at, 10, Manner::Partial);
            match ask.take_and_hold(&mut set, limiter, &hold) {
                Ok(taken) => {
                    assert_eq!(
                        held(&set, HELD, ask.now()).is_some(),
                        taken.verdict.admits(),
                        "held if admitted"
                    );
                }
                Err(error) => assert_eq!(error, Error::TooLong),
            }
        }
        copy(&set);
        let before = encoded(&set);
        match Ask::settle_held(&mut set, limiter, HELD, at, actual) {
            Ok(Some(_)) => assert!(held(&set, HELD, at).is_none(), "a settled hold has ended"),
            Ok(None) => assert_eq!(encoded(&set), before, "what is not held is not settled"),
            Err(error) => {
                assert_eq!(error, Error::TooLong);
                assert_eq!(encoded(&set), before, "an error changes nothing");
            }
        }
        copy(&set);
    }
}
