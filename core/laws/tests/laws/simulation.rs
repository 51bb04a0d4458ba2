//! The requests that each limiter admits of each shape of traffic, as a table. A change of behaviour changes the table.
//!
//! Every limiter is set to 10 per second. Each cell is the number of requests admitted in ten seconds. `SHED` is not in
//! the table, because it decides by the workers' utilization and not by the requests.

use ratelimit_core::limiter::Limiter;
use ratelimit_core::{Span, Time, with_limiter};
use ratelimit_language::{Arguments, Bounds, FORMS, Form, Request, find};
use ratelimit_laws::{charged, decoded, encoded};

use super::T0;

/// The shapes of traffic: a name, and the requests' instants in milliseconds, in order.
fn shapes() -> Vec<(&'static str, Vec<u64>)> {
    let every = |step: u64| (0..10_000).step_by(usize::try_from(step).unwrap_or(1)).collect::<Vec<u64>>();
    let at_once = |at: u64, count: usize| vec![at; count];
    // The rate grows each second: 4, 8, ... 20 per second, then 4 again.
    let sawtooth = (0..10).flat_map(|second| {
        let count = 4 * (second % 5 + 1);
        (0..count).map(move |i| second * 1000 + i * 1000 / count)
    });
    vec![
        ("under", every(125)),
        ("over", every(50)),
        ("bursts", [at_once(0, 100), at_once(5000, 100)].concat()),
        ("sawtooth", sawtooth.collect()),
        (
            "edges",
            (1..10).flat_map(|s| [at_once(s * 1000 - 10, 10), at_once(s * 1000, 10)].concat()).collect(),
        ),
        ("hammer", every(5)),
        ("idle", [at_once(0, 1), at_once(6000, 50), (6100..10_000).step_by(100).collect()].concat()),
    ]
}

/// The number of requests that a limiter of this form admits.
fn admitted(form: &Form, traffic: &[u64]) -> usize {
    let mut state = None;
    let asks = traffic.iter().enumerate().filter(|(i, at)| {
        let now = T0.plus(Span::from_millis(**at));
        let line = form.words(10, 1000, &i.to_string());
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let row = find(words[0]).expect("a limiter");
        let mut words =
            Arguments::new(&words[1..], Bounds { leases: 100, log_entries: 100, ..Bounds::DEFAULT });
        let any = (row.parse)(&mut words, &mut Request::default()).expect("good parameters");
        with_limiter!(any, limiter => ask(&limiter, &mut state, now))
    });
    asks.count()
}

/// Returns whether a request is admitted, and charges it if so or if refusals count. The state is stored as bytes,
/// because its type depends on the limiter.
fn ask<L: Limiter>(limiter: &L, stored: &mut Option<Vec<u8>>, now: Time) -> bool {
    let state = match stored {
        Some(bytes) => decoded::<L::State>(bytes).expect("a state that was just encoded"),
        None => limiter.fresh(now),
    };
    let admits = limiter.judge(&state, now, 1).admits();
    let strikes = limiter.capabilities().bans && limiter.gauge(&state, now).remaining > 0;
    if admits || strikes || limiter.capabilities().counts_refused {
        *stored = Some(encoded(&charged(limiter, &state, now, 1)));
    }
    admits
}

#[test]
fn each_limiter_admits_the_expected_number_of_requests() {
    let shapes = shapes();
    let row = |title: &str, cell: &dyn Fn(&'static str, &[u64]) -> String| {
        let cells = shapes.iter().map(|(name, traffic)| format!("{:>9}", cell(name, traffic)));
        format!("{title:<36}{}", cells.collect::<String>())
    };
    let mut table =
        vec![row("", &|name, _| name.to_string()), row("offered", &|_, traffic| traffic.len().to_string())];
    table.extend(
        FORMS.iter().map(|form| {
            row(&form.words(10, 1000, "{id}"), &|_, traffic| admitted(form, traffic).to_string())
        }),
    );
    let table = table.join("\n");
    assert_eq!(table, EXPECTED, "\n{table}\n");
}

const EXPECTED: &str =
    "                                        under     over   bursts sawtooth    edges   hammer     idle
offered                                    80      200      200      120      180     2000       90
TOKENBUCKET 10 10 1s                       80      109       20      101       90      109       50
TOKENBUCKET 10 10 1s BATCH                 80      100       20       84       90      100       41
LEAKYBUCKET 10 10 1s                       80      109       20      101       90      109       50
GCRA 9 10 1s                               80      109       20      101       90      109       50
FIXEDWINDOW 10 1s                          80      100       20       84       90      100       41
FIXEDWINDOW 10 1s ALIGNED                  80      100       20       84      100      100       41
CALENDAR 10 HOUR TZ +05:45                 10       10       10       10       10       10       10
SLIDINGWINDOW 10 1s                        80       91       20       78       83       91       38
SLIDINGWINDOW 10 1s PRECISION 100ms        80      100       20       84       90      100       41
SLIDINGLOG 10 1s                           80      100       20       84       90      100       41
SLIDINGLOG 10 1s GAP 50ms                  80      100        2       84        9      100       41
SLIDINGLOG 10 1s COUNTREFUSED              80       10       20       35       10       10       41
UNIFORM 100ms                              80      100        2       72        9      100       41
SMOOTH 10 1s MAXWAIT 0                     80      110       22      102       91      110       51
SMOOTH 10 1s WARMUP 1s MAXWAIT 0           27       92        2       61        9       95       15
CONCURRENT 10 1s {id}                      80      100       20       84       90      100       41
PENALTY 10 1s 100ms                        80      164       18      104       81      621       46";
