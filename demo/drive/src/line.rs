//! Callers of tenants that wait in the line of a server, which draws [`FAIRNESS`].
//!
//! The server decides who is next, when a lease ends. The instants are those of the arrivals, and not the server's.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ratelimit_demo::lesson::FAIRNESS;
use ratelimit_demo::reply::Reply;
use ratelimit_demo::trial::{Fate, Outcome};
use ratelimit_testing::pool::{Caller, Limit, Pool};

/// The picture: in order of arrival, and with tenants.
pub fn picture() -> Result<String, String> {
    FAIRNESS.drawn([outcomes(|_| String::new()), outcomes(|user| format!("TENANT tenant-{user}"))])
}

/// What comes of each arrival, if callers have these options.
fn outcomes(options: impl Fn(u64) -> String) -> Vec<Outcome> {
    let settings = (FAIRNESS.settings)();
    let arrivals = (FAIRNESS.arrivals)(&settings);
    let mut pool = Pool::new(Limit::Leases, usize::try_from(settings.workers).unwrap_or(usize::MAX));
    let refused = Fate::Refused { retry: None };
    let mut outcomes: Vec<Outcome> = arrivals
        .iter()
        .map(|arrival| Outcome {
            asked: arrival.at,
            user: arrival.user,
            cost: arrival.cost,
            fate: refused,
            // The picture is of instants alone.
            reply: Reply::Integer(1),
        })
        .collect();
    let mut ends: BinaryHeap<Reverse<(u64, usize, u64)>> = BinaryHeap::new();
    let mut coming = arrivals.iter().peekable();
    loop {
        let next = coming.peek().map(|arrival| arrival.at);
        let (now, granted) = match ends.peek().copied() {
            Some(Reverse((end, id, user))) if next.is_none_or(|next| end <= next) => {
                ends.pop();
                (end, pool.end(&Caller { id, tenant: user.to_string() }))
            }
            _ => {
                let Some(arrival) = coming.next() else { return outcomes };
                let admitted = pool.ask(&arrival.user.to_string(), &options(arrival.user));
                (arrival.at, pool.held.last().filter(|_| admitted).cloned().into_iter().collect())
            }
        };
        // The pool counts its callers from zero.
        for Caller { id, .. } in granted {
            let until = now + settings.service * 1000;
            if let Some(outcome) = outcomes.get_mut(id) {
                outcome.fate = Fate::Admitted { from: now, until };
                ends.push(Reverse((until, id, outcome.user)));
            }
        }
    }
}
