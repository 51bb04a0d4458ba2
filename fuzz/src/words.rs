//! A call's words: whatever they are, parsing does not panic, and what it lets through obeys its ranges.

use crate::limit::codec::Reader;
use crate::limit::{
    AnyLimiter, CATALOG, Error, Kind, Limiter, MOST_PAIRS, Manner, Part, Purpose, Request, Row, State, Words,
    find, look, parse_cell, parse_multi, parse_shed, rule, with_limiter,
};
use crate::lines::{BOUNDS, CENTURY, MOST};
use crate::time::{Span, Time};

/// Bytes that are the words of a call, with spaces between them: a limiter's name and what follows the key; or `SHED`,
/// `THROTTLE`, or `MULTI`, `MULTIPEEK`, `MULTIREFUND` and how many keys there are, a single digit.
pub fn check(bytes: &[u8]) {
    let outcome = parse(bytes);
    // Names and options are case-insensitive; so are the numbers that have letters.
    assert_eq!(outcome, parse(&bytes.to_ascii_lowercase()));
    if let Err(error) = outcome {
        let text = error.to_string();
        assert!(text.starts_with("ERR ") && text.len() < 100, "{text}");
    }
}

fn parse(bytes: &[u8]) -> Result<(), Error> {
    let words: Vec<&[u8]> = bytes.split(|byte| *byte == b' ').collect();
    let Some((name, words)) = words.split_first() else { return Ok(()) };
    let mut parameters = Words::new(words, BOUNDS);
    match name.to_ascii_uppercase().as_slice() {
        b"SHED" => {
            let (shed, utilization, at) = parse_shed(&mut parameters)?;
            assert!((0.0..=1.0).contains(&utilization));
            instant(at);
            let mut amount = shed.fresh(Time::EARLIEST);
            for (seconds, utilization) in [(1, utilization), (2, 1.0), (30, utilization), (40, 0.0)] {
                amount =
                    shed.report(&amount, Time::EARLIEST.plus(Span::from_millis(1000 * seconds)), utilization);
                assert!((0.0..=1.0).contains(&shed.chance(&amount)));
            }
            readable(&amount);
        }
        b"THROTTLE" => {
            let (gcra, quantity, at) = parse_cell(&mut parameters)?;
            assert!(quantity <= MOST);
            assert_eq!(gcra.period.as_micros() % 1_000_000, 0);
            instant(at);
            obeys(&gcra, &[quantity]);
        }
        b"MULTI" => several(words, Purpose::Take)?,
        b"MULTIPEEK" => several(words, Purpose::Probe)?,
        b"MULTIREFUND" => several(words, Purpose::GiveBack)?,
        _ => {
            let Some(row) = find(name) else { return Ok(()) };
            let mut request = Request::default();
            let limiter = (row.parse)(&mut parameters, &mut request)?;
            assert!(parameters.is_empty() && request.on.is_none());
            asks(row, &request);
            let cost = request.cost();
            with_limiter!(&limiter, limiter => obeys(limiter, &[cost]));
            ranges(&limiter);
        }
    }
    Ok(())
}

fn several(words: &[&[u8]], purpose: Purpose) -> Result<(), Error> {
    let Some((keys, words)) = words.split_first() else { return Err(Error::Arity) };
    let keys = u64::from(keys.first().map_or(1, |digit| digit & 0xf));
    let mut words = Words::new(words, BOUNDS);
    let (defaults, parts) = parse_multi(&mut words, keys, purpose)?;
    assert!(words.is_empty());
    assert!((1..=MOST_PAIRS).contains(&parts.len()));
    assert!(defaults.cost() <= MOST && defaults.on.is_none());
    instant(defaults.at);
    assert!(matches!((defaults.manner(), purpose), (Manner::Strict, _) | (Manner::Force, Purpose::Take)));
    let owes = defaults.manner() == Manner::Force || purpose == Purpose::GiveBack;
    for Part { limiter, name, cost, on } in &parts {
        assert!(*cost <= MOST);
        assert!(on.is_none_or(|on| (on as u64) < keys));
        assert!(![Kind::Several, Kind::Amount].contains(&name.kind));
        ranges(limiter);
        with_limiter!(limiter, limiter => {
            assert!(!limiter.counts_refused());
            assert_eq!(name.span, limiter.span());
            // What may be forced can be given back.
            assert!(!owes || limiter.refund(&limiter.fresh(NOW), NOW, 1).is_some());
            obeys(limiter, &[*cost]);
        });
    }
    Ok(())
}

const NOW: Time = Time::from_micros(1_700_002_800_123_456);

/// What all limiters' options may say.
fn asks(row: &Row, request: &Request) {
    assert!(request.cost() <= MOST);
    instant(request.at);
    if let Manner::Reserve { longest } = request.manner() {
        duration(longest, longest != Span::FOREVER);
    }
    assert!(CATALOG.iter().any(|each| each.name == row.name));
    assert!(row.allows.manner(Manner::Strict));
}

fn instant(at: Option<Time>) {
    assert!(at.is_none_or(|at| (Time::EARLIEST..=Time::LATEST).contains(&at)));
}

/// Whole milliseconds, at most a century of them.
fn duration(span: Span, finite: bool) {
    assert!(!finite || span.as_micros().is_multiple_of(1000) && span <= Span::CENTURY);
}

fn ranges(limiter: &AnyLimiter<'_>) {
    let count = |number: u64| assert!((1..=MOST).contains(&number));
    match limiter {
        AnyLimiter::TokenBucket(bucket) => [bucket.capacity, bucket.refill].into_iter().for_each(count),
        AnyLimiter::BatchBucket(bucket) => [bucket.capacity, bucket.refill].into_iter().for_each(count),
        AnyLimiter::LeakyBucket(bucket) => [bucket.capacity, bucket.leak].into_iter().for_each(count),
        AnyLimiter::Gcra(gcra) => {
            assert!((1..=MOST + 1).contains(&gcra.limit));
            count(gcra.count);
        }
        AnyLimiter::FixedWindow(window) => count(window.limit),
        AnyLimiter::AlignedWindow(window) => count(window.limit),
        AnyLimiter::SlidingWindow(window) => count(window.limit),
        AnyLimiter::SlidingBuckets(window) => {
            count(window.limit);
            duration(window.precision, true);
            assert!(window.window.as_micros().is_multiple_of(window.precision.as_micros()));
            assert!(window.window.as_micros() / window.precision.as_micros() <= 1024);
        }
        AnyLimiter::SlidingLog(log) => {
            assert!((1..=BOUNDS.log_entries).contains(&log.limit) && log.most == BOUNDS.log_entries);
            duration(log.gap, true);
        }
        AnyLimiter::Concurrent(leases) => {
            assert!(leases.limit <= BOUNDS.leases && (1..=256).contains(&leases.id.len()));
        }
        AnyLimiter::Uniform(_) | AnyLimiter::Bursty(_) | AnyLimiter::Warming(_) => {}
    }
}

/// Asks a limiter about extremes, as of a fresh key and of one that was charged all there was.
fn obeys<L: Limiter>(limiter: &L, costs: &[u64]) {
    assert!(limiter.span() >= Span::from_millis(1));
    duration(limiter.span(), true);
    assert!(limiter.span() <= Span::from_millis(CENTURY));
    let fresh = limiter.fresh(NOW);
    let gauge = limiter.gauge(&fresh, NOW);
    assert_eq!((gauge.remaining, gauge.reset), (gauge.limit, Span::ZERO));
    assert!(gauge.limit <= MOST + 1 || L::BOOKS);
    for manner in [Manner::Strict, Manner::Partial, Manner::Force, Manner::Reserve { longest: Span::CENTURY }]
    {
        for cost in [1, gauge.limit, gauge.limit.saturating_add(1).min(MOST), MOST].iter().chain(costs) {
            if *cost == 0 {
                assert!(look(limiter, &fresh, NOW, 0).verdict.admits());
                continue;
            }
            let Ok((verdict, granted)) = rule(limiter, &fresh, NOW, Span::ZERO, *cost, manner) else {
                continue;
            };
            if verdict.admits() {
                let mut charged = limiter.fresh(NOW);
                let mut change = Vec::new();
                L::State::encode_change(&limiter.charge(&fresh, NOW, granted), &mut change);
                charged.apply(L::State::decode_change(&mut Reader::new(&change)).expect("a change"));
                readable(&charged);
                // Nothing takes longer than a century and the wait for the clock's multiple, or two windows.
                let after = limiter.gauge(&charged, NOW).reset;
                assert!(L::BOOKS || after <= Span::CENTURY.plus(Span::CENTURY), "{after:?}");
            }
        }
    }
}

/// What is stored can be read back.
fn readable<S: State>(state: &S) {
    let mut bytes = Vec::new();
    state.encode(&mut bytes);
    let mut reader = Reader::new(&bytes);
    assert!(S::decode(&mut reader).is_some() && reader.is_empty());
}
