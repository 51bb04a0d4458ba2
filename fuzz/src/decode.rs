//! Whatever a dump, a file or a payload says: it is refused, or it is a state that can be used, written and read again.

use crate::bytes::Bytes;
use crate::key::{apply, charged, copy, decoded, encoded, refunded};
use crate::limit::codec::Reader;
use crate::limit::{Kind, Limiter, Manner, Reading, State, look, read_clock, rule, with_limiter, with_state};
use crate::lines::{FORMS, line, parse};
use crate::time::{Span, Time};

/// A kind, and which form of a limiter asks, of which parameters and when; the length of a state; that; changes.
pub fn check(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let Some(kind) = Kind::from_byte(1 + bytes.byte() % 15) else { return };
    let now = Time::from_micros(bytes.number(0, Time::LATEST.as_micros()));
    let words = line(bytes.byte() % FORMS, &mut bytes);
    let length = usize::from(bytes.byte()) | usize::from(bytes.byte()) << 8;
    let (state, changes) = (bytes.take(length), bytes.0);
    with_state!(kind, S => survive::<S>(state, changes, &words, now));
}

fn survive<S: State>(bytes: &[u8], changes: &[u8], words: &str, now: Time) {
    let mut reader = Reader::new(bytes);
    let mut state = S::decode(&mut reader);
    if let Some(state) = &state {
        let read = Reader::new(bytes).before(reader);
        // Only a log's numbers can be written in more ways than one.
        if ![Kind::Log, Kind::Several].contains(&S::KIND) {
            assert_eq!(encoded(state), read);
        }
        assert!(
            state.heap_bytes() <= 1024 + 64 * read.len(),
            "{} bytes of {}",
            state.heap_bytes(),
            read.len()
        );
        use_it(state, words, now);
    }
    let mut reader = Reader::new(changes);
    let mut before = reader;
    while S::decode_change(&mut reader).is_some() {
        let state = state.get_or_insert_with(S::blank);
        assert!(apply(state, before.before(reader)));
        assert!(state.heap_bytes() <= 1024 + 64 * (bytes.len() + changes.len()));
        before = reader;
    }
    if let Some(state) = &state {
        use_it(state, words, now);
    }
}

/// Asks a state everything, as all commands would together.
fn use_it<S: State>(state: &S, words: &str, now: Time) {
    state.describe(&mut |name, _| assert!(!name.is_empty()));
    assert!(state.effort() > 0);
    let _ = (state.last(), state.span(), state.settles());
    let Some((row, limiter)) = parse(words) else { return };
    with_limiter!(&limiter, limiter => ask(row.allows.debt, limiter, &encoded(state), S::KIND, now));
}

fn ask<L: Limiter>(debt: bool, limiter: &L, bytes: &[u8], kind: Kind, asked: Time) {
    if kind != L::State::KIND {
        return;
    }
    // A state that nothing was ever applied to cannot be read.
    let Some(state) = decoded::<L::State>(bytes) else { return };
    for cost in [0, 1, 1000, (1 << 53) - 1] {
        look(limiter, &state, asked, cost);
        let now = match read_clock(state.last(), asked, || limiter.gauge(&state, state.last()).reset) {
            Reading::At(now) => now,
            Reading::SetBack => {
                let mut change = Vec::new();
                L::State::encode_change(&limiter.rebase(&state, asked), &mut change);
                assert!(apply(&mut copy(&state), &change), "a clock that was set back can be written down");
                continue;
            }
        };
        for manner in [Manner::Strict, Manner::Force, Manner::Reserve { longest: Span::CENTURY }] {
            if cost > 0
                && (debt || manner == Manner::Strict)
                && let Ok((verdict, granted)) = rule(limiter, &state, now, Span::ZERO, cost, manner)
                && verdict.admits()
            {
                assert!(
                    charged(limiter, &state, now, granted).is_some(),
                    "what is admitted can be written down"
                );
            }
        }
        if debt {
            refunded(limiter, &state, now, cost);
        }
    }
}
