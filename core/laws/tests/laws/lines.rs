//! Laws of lines:
//!
//! - With no caller ahead, a call with several limits is decided as without lines.
//! - A call that waits, or that only lines refuse, charges nothing and strikes no penalty.
//! - A change tries two callers at most of those that wait, and each line wakes by itself.
//!
//! The world and the search of all orders show the order in which callers are served, and that none is forgotten.

mod joint;

use ratelimit_core::line::{Claim, Comer};
use ratelimit_core::state::Leases;
use ratelimit_core::{Length, Lines, Name, Span, Stand, Time};

use super::T0;

#[test]
fn a_release_tries_two_of_ten_thousand_callers() {
    let (key, name) = (0u8, Name::of::<Leases>(Length::NONE));
    let stand = || {
        vec![Stand {
            key,
            name,
            claim: Claim::plain(1, false).into_owned(),
            retry: Some(Span::from_millis(60_000)),
        }]
    };
    let mut lines = Lines::new();
    for _ in 0..10_000 {
        lines.enter(T0, T0.plus(Span::CENTURY), stand());
    }
    for admitted in 1..=10_000 {
        lines.mark(&key);
        assert_eq!(lines.due(T0), Some(admitted));
        assert!(lines.leave(admitted));
        if let Some(next) = lines.due(T0) {
            assert_eq!(next, admitted + 1);
            assert_eq!(lines.ahead(&key, name, &Claim::plain(1, false), Comer::Waits(next), T0), None);
            lines.stay(next, T0, stand());
        }
        assert_eq!(lines.due(T0), None);
    }
    assert!(lines.is_empty());
    assert_eq!(lines.next_due(), None);
}

#[test]
fn callers_of_ten_thousand_keys_wake_one_by_one() {
    let name = Name::of::<Leases>(Length::NONE);
    let at = |millis: u64| T0.plus(Span::from_millis(millis));
    let mut lines = Lines::new();
    for key in 0..10_000u64 {
        let retry = Some(Span::from_millis(10_000 - key));
        lines.enter(
            T0,
            at(99_999),
            vec![Stand { key, name, claim: Claim::plain(1, false).into_owned(), retry }],
        );
    }
    for millis in 1..=10_000 {
        assert_eq!(lines.next_due(), Some(at(millis)));
        assert_eq!(lines.due(at(millis)), Some(10_001 - millis));
        assert_eq!(lines.due(at(millis)), None);
    }
    // They have been tried, and none says when it may be tried again.
    assert_eq!(lines.next_due(), None);
    assert_eq!(lines.len(), 10_000);
}

#[test]
fn a_line_that_is_due_tells_no_time() {
    let (key, name) = (0u8, Name::of::<Leases>(Length::NONE));
    let mut lines = Lines::new();
    let retry = Some(Span::from_millis(60_000));
    lines.enter(
        T0,
        T0.plus(Span::CENTURY),
        vec![Stand { key, name, claim: Claim::plain(1, false).into_owned(), retry }],
    );
    assert_eq!(lines.ahead(&key, name, &Claim::plain(1, false), Comer::Passes, T0), retry);
    // A lease is released. The first caller will be tried at once.
    lines.mark(&key);
    assert_eq!(lines.next_due(), Some(Time::EPOCH));
    assert_eq!(lines.ahead(&key, name, &Claim::plain(1, false), Comer::Passes, T0), Some(Span::ZERO));
}
