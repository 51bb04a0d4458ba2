//! The words of a call: whatever they are, parsing does not panic, and what it accepts is within its ranges.

use ratelimit_core::decide::{peek, rule};
use ratelimit_core::limiter::Unit;
use ratelimit_core::state::{MAX_ID, MAX_TENANT, MAX_WEIGHT};
use ratelimit_core::{
    AnyLimiter, Kind, Limiter, MAX_COUNT, MAX_PAIRS, Manner, Part, Span, State, Time, with_limiter,
};
use ratelimit_language::{
    Arguments, Error, MultiCall, Policy, PolicyCall, Purpose, Request, cell, find, lease_id, multi, named,
    shed,
};
use ratelimit_laws::{charged, copy, knows_its_end};

use crate::lines::BOUNDS;

/// The input: the words of a call with spaces between them. It is a limiter's name and what follows the key; or `SHED`,
/// `THROTTLE` or `SETTLE`; or `MULTI`, `MULTIPEEK`, `MULTIREFUND` or `MULTISETTLE`, and the number of keys, a single
/// digit; or `POLICY`, or `ASK`, `ASKPEEK`, `ASKREFUND` or `ASKSETTLE`, and what follows the policy's name.
pub fn check(bytes: &[u8]) {
    let outcome = parse(bytes);
    // What is accepted is accepted in lower case too. Units have no upper case.
    assert!(outcome.is_err() || parse(&bytes.to_ascii_lowercase()).is_ok());
    if let Err(error) = outcome {
        let text = error.to_string();
        assert!(text.starts_with("ERR ") && text.len() < 350, "{text}");
    }
}

fn parse(bytes: &[u8]) -> Result<(), Error> {
    let words: Vec<&[u8]> = bytes.split(|byte| *byte == b' ').collect();
    let Some((name, words)) = words.split_first() else { return Ok(()) };
    let mut arguments = Arguments::new(words, BOUNDS);
    match name.to_ascii_uppercase().as_slice() {
        b"SHED" => {
            let report = shed(&mut arguments)?;
            assert!((0.0..=1.0).contains(&report.utilization));
            instant(report.at);
            let mut amount = report.shed.fresh(Time::EARLIEST);
            for (seconds, utilization) in [(1, report.utilization), (2, 1.0), (30, 0.5), (40, 0.0)] {
                let now = Time::EARLIEST.plus(Span::from_millis(1000 * seconds));
                amount = report.shed.report(&amount, now, utilization);
                assert!((0.0..=1.0).contains(&report.shed.chance(&amount)));
            }
            copy(&amount);
        }
        b"THROTTLE" => {
            let call = cell(&mut arguments)?;
            assert!(call.quantity <= MAX_COUNT);
            assert!(call.gcra.length().as_micros().is_multiple_of(1_000_000));
            instant(call.at);
            obeys(&call.gcra, &[call.quantity]);
        }
        b"MULTI" => joint(words, Purpose::Charge)?,
        b"MULTIPEEK" => joint(words, Purpose::Peek)?,
        b"MULTIREFUND" => joint(words, Purpose::Refund)?,
        b"MULTISETTLE" => joint(words, Purpose::Settle)?,
        b"POLICY" => policy(words)?,
        b"ASK" => asked(words, Purpose::Charge)?,
        b"ASKPEEK" => asked(words, Purpose::Peek)?,
        b"ASKREFUND" => asked(words, Purpose::Refund)?,
        b"ASKSETTLE" => asked(settled(words)?, Purpose::Settle)?,
        b"SETTLE" => {
            let mut request = Request::default();
            held(lease_id(&mut arguments)?);
            let (_, limiter) = named(&mut arguments, &mut request)?;
            assert!(arguments.is_empty());
            shared(&request);
            ranges(&limiter);
            with_limiter!(&limiter, limiter => obeys(limiter, &[request.cost()]));
        }
        _ => {
            let Some(row) = find(name) else { return Ok(()) };
            let mut request = Request::default();
            let limiter = (row.parse)(&mut arguments, &mut request)?;
            assert!(arguments.is_empty() && request.on.is_none());
            shared(&request);
            ranges(&limiter);
            with_limiter!(&limiter, limiter => obeys(limiter, &[request.cost()]));
        }
    }
    Ok(())
}

/// A call of several limits.
fn joint(words: &[&[u8]], purpose: Purpose) -> Result<(), Error> {
    let Some((keys, words)) = words.split_first() else { return Err(Error::Arity) };
    let keys = u64::from(keys.first().map_or(1, |digit| digit & 0xf));
    let words = if purpose == Purpose::Settle { settled(words)? } else { words };
    let mut arguments = Arguments::new(words, BOUNDS);
    let MultiCall { at, manner, hold, block: _, parts } = multi(&mut arguments, keys, purpose)?;
    assert!(arguments.is_empty());
    if let Some((id, ttl)) = hold {
        assert!(purpose == Purpose::Charge && parts.iter().any(Part::can_be_held));
        held(id);
        duration(ttl, true);
    }
    assert!((1..=MAX_PAIRS).contains(&parts.len()));
    instant(at);
    assert!(matches!((manner, purpose), (Manner::Strict, _) | (Manner::Force, Purpose::Charge)));
    let charges = matches!(purpose, Purpose::Charge | Purpose::Settle);
    assert!(parts.iter().filter(|part| part.tenant.is_some()).count() <= usize::from(charges));
    for Part { limiter, name, cost, on, tenant } in &parts {
        assert!(*cost <= MAX_COUNT);
        if let Some(tenant) = tenant {
            assert!((1..=MAX_TENANT).contains(&tenant.name.len()) && (on.is_some() || keys == 1));
            assert!(tenant.weight.is_none_or(|weight| (1..=MAX_WEIGHT).contains(&weight)));
        }
        assert!(on.is_none_or(|on| (on as u64) < keys));
        assert!(name.kind.is_limit());
        ranges(limiter);
        with_limiter!(limiter, limiter => {
            let capabilities = limiter.capabilities();
            assert!(!capabilities.counts_refused && (capabilities.allows(manner) || capabilities.bans));
            assert!(purpose != Purpose::Refund || capabilities.refund);
            assert_eq!(name.length.span(), limiter.length());
            obeys(limiter, &[*cost]);
        });
    }
    Ok(())
}

/// A policy: what is stored of it is the same policy, in a file too, and the limits are those of a call.
fn policy(words: &[&[u8]]) -> Result<(), Error> {
    let mut arguments = Arguments::new(words, BOUNDS);
    let (version, policy) = Policy::parse(&mut arguments)?;
    assert!(arguments.is_empty() && version.is_none_or(|version| (1..=MAX_COUNT).contains(&version)));
    let stored = policy.words();
    assert!(stored.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()));
    assert!(stored.split(' ').all(|word| !word.is_empty() && !word.starts_with('#')));
    assert_eq!(policy.within(BOUNDS).expect("the same policy").words(), stored);

    let keys = vec![&b"key"[..]; MAX_PAIRS - 1];
    let call = [&[&b"ID"[..], b"id", b"KEYS"], &keys[..]].concat();
    let asked = PolicyCall::parse(&mut Arguments::new(&call, BOUNDS), Purpose::Charge)?;
    let parts = policy.parts(b"name", &asked, Purpose::Charge)?;
    assert!((1..=MAX_PAIRS).contains(&parts.len()));
    for Part { limiter, name, cost, .. } in &*parts {
        assert_eq!(name.length.span(), with_limiter!(limiter, limiter => limiter.length()));
        assert!(*cost <= MAX_COUNT);
        ranges(limiter);
    }
    Ok(())
}

/// A call of a policy.
fn asked(words: &[&[u8]], purpose: Purpose) -> Result<(), Error> {
    let asked = PolicyCall::parse(&mut Arguments::new(words, BOUNDS), purpose)?;
    assert!(asked.more_keys == 0 || words[words.len() - asked.more_keys - 1].eq_ignore_ascii_case(b"KEYS"));
    instant(asked.at());
    assert!(matches!((asked.manner(), purpose), (Manner::Strict, _) | (Manner::Force, Purpose::Charge)));
    if let Some((id, ttl)) = asked.hold() {
        assert!(purpose == Purpose::Charge);
        held(id);
        duration(ttl, true);
    }
    Ok(())
}

/// The words after the id of a settlement.
fn settled<'w, 'a>(words: &'w [&'a [u8]]) -> Result<&'w [&'a [u8]], Error> {
    let mut arguments = Arguments::new(words, BOUNDS);
    held(lease_id(&mut arguments)?);
    Ok(&words[1..])
}

const NOW: Time = Time::from_micros(1_700_002_800_123_456);

/// The options that all limiters share.
fn shared(request: &Request<'_>) {
    assert!(request.cost() <= MAX_COUNT);
    instant(request.at);
    if let Manner::Reserve { longest } = request.manner() {
        duration(longest, longest != Span::FOREVER);
    }
    if let Some((id, ttl)) = request.hold() {
        held(id);
        duration(ttl, true);
    }
}

/// The id of a hold.
fn held(id: &[u8]) {
    assert!((1..=MAX_ID).contains(&id.len()));
}

fn instant(at: Option<Time>) {
    assert!(at.is_none_or(|at| (Time::EARLIEST..=Time::LATEST).contains(&at)));
}

/// Whole milliseconds, at most a century.
fn duration(span: Span, finite: bool) {
    assert!(!finite || span.as_micros().is_multiple_of(1000) && span <= Span::CENTURY);
}

/// What the types leave open.
fn ranges(limiter: &AnyLimiter<'_>) {
    match limiter {
        AnyLimiter::SlidingLog(log) => {
            assert!(log.limit.get() <= BOUNDS.log_entries && log.most.get() == BOUNDS.log_entries);
            duration(log.gap, true);
        }
        AnyLimiter::Concurrent(leases) => {
            assert!(leases.limit <= BOUNDS.leases && (1..=MAX_ID).contains(&leases.id.len()));
            duration(leases.ttl.span(), true);
        }
        AnyLimiter::Calendar(calendar) => match calendar.unit {
            Unit::Week(anchor) => assert!((1..=7).contains(&anchor)),
            Unit::Month(anchor) => assert!((1..=31).contains(&anchor)),
            Unit::Hour | Unit::Day | Unit::Quarter | Unit::Year => {}
        },
        AnyLimiter::Penalty(penalty) => {
            assert!(penalty.grow.get() <= 1000 && penalty.longest >= penalty.ban.span());
            for span in [penalty.ban.span(), penalty.longest, penalty.forgive.span()] {
                duration(span, true);
            }
        }
        AnyLimiter::TokenBucket(_)
        | AnyLimiter::BatchBucket(_)
        | AnyLimiter::LeakyBucket(_)
        | AnyLimiter::Gcra(_)
        | AnyLimiter::FixedWindow(_)
        | AnyLimiter::AlignedWindow(_)
        | AnyLimiter::SlidingWindow(_)
        | AnyLimiter::SlidingBuckets(_)
        | AnyLimiter::Uniform(_)
        | AnyLimiter::Bursty(_)
        | AnyLimiter::Warming(_) => {}
    }
}

/// Asks a limiter about extremes, as of a missing key.
fn obeys<L: Limiter>(limiter: &L, costs: &[u64]) {
    let capabilities = limiter.capabilities();
    duration(limiter.length(), true);
    // Each lease has a length of its own.
    assert_eq!(limiter.length() == Span::ZERO, L::State::KIND == Kind::Leases);
    // What can be forced can be refunded, and what can be held can be both.
    assert!(capabilities.refund || !capabilities.force);
    assert!(capabilities.force || !capabilities.hold);
    let fresh = limiter.fresh(NOW);
    assert!(!capabilities.refund || limiter.refund(&fresh, NOW, 1).is_some());
    let gauge = limiter.gauge(&fresh, NOW);
    assert_eq!((gauge.remaining, gauge.reset), (gauge.limit, Span::ZERO));
    // The limit of GCRA is `max_burst` + 1.
    assert!(gauge.limit <= MAX_COUNT + 1 || capabilities.books);
    let manners =
        [Manner::Strict, Manner::Partial, Manner::Force, Manner::Reserve { longest: Span::CENTURY }];
    for manner in manners.into_iter().filter(|manner| capabilities.allows(*manner)) {
        let extremes =
            [1, gauge.limit, gauge.limit.saturating_add(1), MAX_COUNT].map(|cost| cost.min(MAX_COUNT));
        for cost in extremes.iter().chain(costs) {
            if *cost == 0 {
                assert!(peek(limiter, &fresh, NOW, 0).verdict.admits());
                continue;
            }
            let Ok((verdict, granted)) = rule(limiter, &fresh, NOW, Span::ZERO, *cost, manner) else {
                continue;
            };
            if verdict.admits() && granted > 0 {
                let charged = charged(limiter, &fresh, NOW, granted);
                knows_its_end(limiter, &charged, NOW);
                // A window lasts a century at most, and weighs on the next one; so does a debt.
                let after = limiter.gauge(&charged, NOW).reset;
                assert!(capabilities.books || after <= Span::CENTURY.plus(Span::CENTURY), "{after:?}");
            }
        }
    }
}
