//! The words of a call: whatever they are, the node does not panic, and what it accepts is within its ranges.

use ratelimit_core::decide::rule;
use ratelimit_core::limiter::Unit;
use ratelimit_core::state::MAX_ID;
use ratelimit_core::{
    AnyLimiter, Kind, Limiter, MAX_COUNT, MAX_PAIRS, Manner, Part, Span, State, with_limiter,
};
use ratelimit_engine::reply::Reply;
use ratelimit_language::{Arguments, Policy, PolicyCall, Purpose, Request, find, multi};
use ratelimit_laws::{Case, T0, charged, knows_its_end};

use crate::lines::BOUNDS;
use crate::nodes::Nodes;

/// The input: the words of a call with spaces between them, without its keys. It is a command without `RL.` and what follows
/// the key; or `THROTTLE`; or `MULTI` and its kin, and the number of keys, a single digit; or `POLICY` or `ASK` and its kin,
/// and what follows the policy's name.
pub fn check(bytes: &[u8]) {
    let reply = called(bytes);
    // What is accepted is accepted in lower case too. Units have no upper case.
    assert!(reply.is_err() || called(&bytes.to_ascii_lowercase()).is_ok());
    if let Err(text) = reply {
        assert!(text.len() < 400, "{text}");
        return;
    }
    let words: Vec<&[u8]> = bytes.split(|byte| *byte == b' ').collect();
    let Some((name, words)) = words.split_first() else { return };
    let mut arguments = Arguments::new(words, BOUNDS);
    match name.to_ascii_uppercase().as_slice() {
        b"MULTI" => {
            let keys = u64::from(keys(words));
            let call = multi(&mut Arguments::new(&words[1..], BOUNDS), keys, Purpose::Charge);
            obey(&call.expect("it was accepted").parts);
        }
        b"POLICY" => {
            let (_, policy) = Policy::parse(&mut arguments).expect("it was accepted");
            let stored = policy.words();
            assert_eq!(policy.within(BOUNDS).expect("the same policy").words(), stored);
            let keys = vec![&b"key"[..]; MAX_PAIRS - 1];
            let call = [&[&b"ID"[..], b"id", b"KEYS"], &keys[..]].concat();
            let call = PolicyCall::parse(&mut Arguments::new(&call, BOUNDS), Purpose::Charge);
            let call = call.expect("a good call");
            obey(&policy.parts(b"name", &call, Purpose::Charge).expect("enough keys"));
        }
        name => {
            let Some(row) = find(name) else { return };
            let mut request = Request::default();
            let limiter = (row.parse)(&mut arguments, &mut request).expect("it was accepted");
            assert!(arguments.is_empty() && request.cost() <= MAX_COUNT);
            obey_limit(&limiter, request.cost());
        }
    }
}

fn keys(words: &[&[u8]]) -> u8 {
    words.first().and_then(|digit| digit.first()).map_or(1, |digit| digit & 0xf)
}

/// Makes the call on a node without keys, with one policy. Returns the text of an error.
fn called(bytes: &[u8]) -> Result<(), String> {
    let nodes = Nodes::default();
    nodes.line("RL.POLICY SET name LIMIT GCRA 9 10 1s LIMIT CONCURRENT 20 30s FAIR ON 2");
    let words: Vec<&[u8]> = bytes.split(|byte| *byte == b' ').collect();
    let Some((name, rest)) = words.split_first() else { return Ok(()) };
    let upper = name.to_ascii_uppercase();
    let command = match upper.as_slice() {
        b"THROTTLE" => b"CL.THROTTLE".to_vec(),
        _ => [b"RL.", *name].concat(),
    };
    let mut call = vec![command.as_slice()];
    match upper.as_slice() {
        b"MULTI" | b"MULTIPEEK" | b"MULTIREFUND" | b"MULTISETTLE" => {
            call.extend(rest.first());
            call.extend(
                [&b"a"[..], b"b", b"c", b"d", b"e", b"f", b"g", b"h", b"i"].iter().take(keys(rest).into()),
            );
            call.extend(rest.iter().skip(1));
        }
        b"POLICY" => call.extend([&b"SET"[..], b"other"].iter().chain(rest)),
        b"ASK" | b"ASKPEEK" | b"ASKREFUND" | b"ASKSETTLE" => call.extend([&b"name"[..]].iter().chain(rest)),
        _ => call.extend([&b"key"[..]].iter().chain(rest)),
    }
    match nodes.call(&call) {
        Reply::Error(error) => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// All limits of a call.
fn obey(parts: &[Part<'_>]) {
    assert!((1..=MAX_PAIRS).contains(&parts.len()));
    for Part { limiter, name, cost, .. } in parts {
        assert!(*cost <= MAX_COUNT && name.kind.is_limit());
        assert_eq!(name.length.span(), with_limiter!(limiter, limiter => limiter.length()));
        obey_limit(limiter, *cost);
    }
}

fn obey_limit(limiter: &AnyLimiter<'_>, cost: u64) {
    ranges(limiter);
    let gap = matches!(limiter, AnyLimiter::SlidingLog(log) if log.gap > Span::ZERO);
    // A limit that finds itself begins below what its gauge says.
    let adapts = matches!(limiter, AnyLimiter::Concurrent(leases) if leases.adapt.is_some());
    with_limiter!(limiter, limiter => obeys(limiter, cost.max(1), gap, adapts));
}

/// Whole milliseconds, at most a century.
fn is_duration(span: Span) {
    assert!(span.as_micros().is_multiple_of(1000) && span <= Span::CENTURY);
}

/// What the types leave open.
fn ranges(limiter: &AnyLimiter<'_>) {
    match limiter {
        AnyLimiter::SlidingLog(log) => {
            assert!(log.limit.get() <= BOUNDS.log_entries && log.most.get() == BOUNDS.log_entries);
            is_duration(log.gap);
        }
        AnyLimiter::Concurrent(leases) => {
            assert!(leases.limit <= BOUNDS.leases && (1..=MAX_ID).contains(&leases.id.len()));
            is_duration(leases.ttl.span());
        }
        AnyLimiter::Calendar(calendar) => match calendar.unit {
            Unit::Week(anchor) => assert!((1..=7).contains(&anchor)),
            Unit::Month(anchor) => assert!((1..=31).contains(&anchor)),
            Unit::Day(anchor) => assert!(anchor <= 23),
            Unit::Hour | Unit::Quarter | Unit::Year => {}
        },
        AnyLimiter::Penalty(penalty) => {
            assert!(penalty.grow.get() <= 1000 && penalty.longest >= penalty.ban.span());
            [penalty.ban.span(), penalty.longest, penalty.forgive.span()].into_iter().for_each(is_duration);
        }
        _ => {}
    }
}

/// The laws of an instant on a missing key, and after charges of extremes.
fn obeys<L: Limiter>(limiter: &L, cost: u64, gap: bool, adapts: bool) {
    let capabilities = limiter.capabilities();
    is_duration(limiter.length());
    // Each lease has a length of its own.
    assert_eq!(limiter.length() == Span::ZERO, L::State::KIND == Kind::Leases);
    // What can be forced can be refunded, and what can be held can be both.
    assert!(capabilities.refund || !capabilities.force);
    assert!(capabilities.force || !capabilities.hold);
    let fresh = limiter.fresh(T0);
    let gauge = limiter.gauge(&fresh, T0);
    assert_eq!((gauge.remaining, gauge.reset), (gauge.limit, Span::ZERO));
    // The limit of GCRA is `max_burst` + 1.
    assert!(gauge.limit <= MAX_COUNT + 1 || capabilities.books);
    for cost in [1, gauge.limit.clamp(1, MAX_COUNT), cost] {
        if !adapts {
            Case { gap, ..Case::of(limiter, &fresh, T0) }.obeys(cost);
        }
        if rule(limiter, &fresh, T0, Span::ZERO, cost, Manner::Strict)
            .is_ok_and(|(verdict, _)| verdict.admits())
        {
            let charged = charged(limiter, &fresh, T0, cost);
            knows_its_end(limiter, &charged, T0);
            // A window lasts a century at most, and weighs on the next one.
            let reset = limiter.gauge(&charged, T0).reset;
            assert!(capabilities.books || reset <= Span::CENTURY.plus(Span::CENTURY), "{reset:?}");
        }
    }
}
