//! Where the fuzzer begins: inputs that it would not soon find by chance.

use crate::bytes::Bytes;
use crate::key::{Key, encoded};
use crate::limit::{AnyState, Kept, Kind, Limiter, Several, State, parse_shed, with_limiter};
use crate::lines::{BOUNDS, CENTURY, FORMS, line, parse};
use crate::time::{Span, Time};

/// The start of an hour, in 2023.
const T0: Time = Time::from_micros(1_700_002_800_000_000);

/// Something else in each line, of what is read from words.
pub fn calls() -> Vec<&'static str> {
    vec![
        "TOKENBUCKET 5 10 1000 BATCH COST 3 AT 1700002800000000 PARTIAL",
        "TOKENBUCKET 9007199254740991 9007199254740991 3153600000000 RESERVE MAXWAIT 0",
        "LEAKYBUCKET 3 1 1000 FORCE",
        "GCRA 0 1 3153600000000 RESERVE",
        "FIXEDWINDOW 5 60000 ALIGNED COST 0",
        "SLIDINGWINDOW 100 60000",
        "SLIDINGWINDOW 100 61440 PRECISION 60",
        "SLIDINGLOG 200 1000 GAP 0 COUNTREFUSED",
        "UNIFORM 250 FORCE COST 9007199254740991",
        "SMOOTH 2 1000 BURST 0 MAXWAIT 3153600000000",
        "SMOOTH 2 1000 WARMUP 4000 COLDFACTOR 1e3 COST 7",
        "CONCURRENT 300 30000 holder RESERVED 300 CRITICAL",
        "SHED 0.95 GOOD 0.6 BAD 0.9999 DELAY 1 RAMP 3153600000000 TIER 2 OF 3 AT 253402300799999999",
        "THROTTLE 15 30 60 0 AT 1000000000000000",
        "MULTI 2 COST 2 FORCE LIMIT GCRA 9 10 1000 ON 2 LIMIT fixedwindow 5 1000 COST 0",
        "MULTIPEEK 1 AT 1700002800000000 LIMIT CONCURRENT 5 1000 LIMIT LIMIT UNIFORM 5",
        "MULTIREFUND 1 LIMIT SLIDINGLOG 5 1000 GAP 7 LIMIT TOKENBUCKET 1 1 1",
    ]
}

/// What [`Bytes::number`] reads as `least` and so much.
fn put(out: &mut Vec<u8>, number: u64) {
    let bits = u64::BITS - number.leading_zeros();
    let bytes = number.to_be_bytes();
    out.extend(u8::try_from(bits));
    out.extend_from_slice(&bytes[8 - bits.div_ceil(8) as usize..]);
}

/// Each form with middling parameters: ten requests, or periods of a second, and so on.
fn parameters(form: u8) -> Vec<u8> {
    let numbers: [u64; 4] = match form {
        7 => [19, 99, 9, 0],
        9 => [19, 999, 100 + u64::from(form), 0],
        13 => [BOUNDS.leases - 1, 99_999, 1, 0],
        _ => [19, 999, 999, 59_999],
    };
    let mut out = Vec::new();
    for number in numbers {
        put(&mut out, number.min(CENTURY - 1));
    }
    out
}

/// A tame and a wild history of each form.
pub fn lives() -> Vec<(String, Vec<u8>)> {
    let lives = (0..2 * FORMS).map(|first| {
        let mut life = vec![first];
        life.extend(parameters(first % FORMS));
        for step in 0..40u8 {
            life.push(step.wrapping_mul(37));
            (0..3).for_each(|number| put(&mut life, u64::from(step) * number % 11));
        }
        (format!("life-{first:02}"), life)
    });
    lives.collect()
}

/// A state of each kind after many charges, and the changes of some more.
pub fn states() -> Vec<(String, Vec<u8>)> {
    let mut states: Vec<_> = (0..FORMS).map(of_form).collect();
    let (shed, utilization, _) =
        parse_shed(&mut crate::limit::Words::new(&[b"0.9"], BOUNDS)).expect("a shedder");
    let amount = shed.report(&shed.fresh(T0), T0.plus(Span::from_millis(50)), utilization);
    states.push(input(Kind::Amount, 0, &encoded(&amount), &encoded(&amount)));
    // Of each kind that can be one of several, a limit.
    let several: Several = {
        let mut bytes = (states.len() as u64 - 2).to_le_bytes().to_vec();
        let mut kinds: Vec<(Kind, Vec<u8>)> = (0..FORMS).map(|form| run(form, 3).0).collect();
        kinds.sort_by_key(|(kind, _)| *kind);
        kinds.dedup_by_key(|(kind, _)| *kind);
        for (kind, state) in kinds {
            bytes.push(kind as u8);
            bytes.extend_from_slice(&1_000_000u64.to_le_bytes());
            bytes.extend_from_slice(&T0.as_micros().to_le_bytes());
            bytes.extend_from_slice(&state);
        }
        crate::key::decoded(&bytes).expect("several limits in their order")
    };
    states.push(input(
        Kind::Several,
        3,
        &encoded(&several),
        &[2, 3, 1, 0, 0, 0, 0, 0, 0, 0, 4, 3, 1, 0, 0, 0, 0, 0, 0, 0, 5],
    ));
    states.into_iter().enumerate().map(|(i, bytes)| (format!("state-{i:02}"), bytes)).collect()
}

fn of_form(form: u8) -> Vec<u8> {
    let ((kind, state), changes) = run(form, 150);
    input(kind, form, &state, &changes)
}

fn input(kind: Kind, form: u8, state: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut input = vec![kind as u8 - 1];
    put(&mut input, T0.as_micros() + 20_000);
    input.push(form);
    input.extend(parameters(form));
    // As many numbers as the form reads.
    let unread = {
        let mut bytes = Bytes(&input[input.len() - parameters(form).len()..]);
        line(form, &mut bytes);
        bytes.0.len()
    };
    input.truncate(input.len() - unread);
    input.extend_from_slice(&u16::try_from(state.len()).unwrap_or(u16::MAX).to_le_bytes());
    input.extend_from_slice(state);
    input.extend_from_slice(changes);
    input
}

/// The kind and the bytes of a state after so many charges, a few microseconds apart, and the changes of ten more.
fn run(form: u8, charges: u64) -> ((Kind, Vec<u8>), Vec<u8>) {
    let parameters = parameters(form);
    let (mut key, mut before, mut changes) = (None, Vec::new(), Vec::new());
    for charge in 0..charges + 10 {
        let words = line(form, &mut Bytes(&parameters)).replace("holder", &format!("{charge}-"));
        let (_, limiter) = parse(&words).expect("good parameters");
        let now = T0.plus(Span::from_micros(charge * (charge % 7)).plus(Span::from_micros(charge * 50)));
        with_limiter!(&limiter, limiter => {
            let key = key.get_or_insert_with(|| Key::of(limiter.fresh(T0)));
            if charge == charges {
                before = whole(&key.state);
            }
            step(limiter, key, now, if charge < charges { None } else { Some(&mut changes) });
        });
    }
    let kind = crate::limit::with_kept!(&key.expect("a key").state, state => kind_of(state.as_ref()));
    ((kind, before), changes)
}

fn step<L: Limiter>(limiter: &L, key: &mut Key, now: Time, changes: Option<&mut Vec<u8>>) {
    let mut told = Vec::new();
    let state = L::State::of(&key.state).expect("its own kind");
    L::State::encode_change(&limiter.charge(state, now, 1), &mut told);
    if let Some(changes) = changes {
        changes.extend_from_slice(&told);
    }
    key.change::<L::State>(now, |_, out| out.extend_from_slice(&told));
}

fn whole(state: &AnyState) -> Vec<u8> {
    crate::limit::with_kept!(state, state => encoded(state.as_ref()))
}

fn kind_of<S: State>(_: &S) -> Kind {
    S::KIND
}
