//! Tries callers that wait: their commands run again, and judge anew. `ratelimit_core::line` says whose turn it is.

use ratelimit_core::Span;
use ratelimit_core::line::Caller;

use super::Turn;
use super::clients::Clients;
use super::look::look;
use crate::reply::Reply;

/// The most callers that are tried before clients are served again, and for how long.
const AT_ONCE: usize = 24;
const LONGEST: Span = Span::from_micros(200);

/// Tries the callers whose turn it is, at most [`AT_ONCE`], and looks at a table.
pub fn try_callers(clients: &impl Clients) {
    let may_write = clients.may_write();
    let began = clients.now();
    for _ in 0..AT_ONCE {
        match next(clients, may_write) {
            Some((caller, turn)) => try_again(clients, caller, turn),
            None => break,
        }
        if clients.now().since(began) >= LONGEST {
            break;
        }
    }
    if may_write {
        look(clients, began.plus(LONGEST));
    }
}

fn next(clients: &impl Clients, may_write: bool) -> Option<(Caller, Turn)> {
    clients.node().waiting.with(|state| {
        let now = clients.now();
        if let Some(caller) = state.lines.timed_out(now) {
            return Some((caller, if may_write { Turn::Leaves } else { Turn::Looks }));
        }
        let due = if may_write { state.lines.due(now) } else { None };
        due.map(|caller| (caller, Turn::IsTried))
    })
}

fn try_again(clients: &impl Clients, caller: Caller, turn: Turn) {
    let waiting = &clients.node().waiting;
    match clients.run(caller, turn) {
        None => {}
        Some(Reply::Wait(wait)) => waiting.with(|state| state.lines.stay(caller, clients.now(), wait.stands)),
        Some(reply) => {
            let is_granted = reply.is_admission();
            let is_refused = !is_granted && !matches!(reply, Reply::Error(_));
            let left = waiting.with(|state| {
                state.granted += u64::from(is_granted);
                state.timed_out += u64::from(is_refused);
                state.lines.leave(caller)
            });
            if left {
                clients.end(caller, reply);
            }
        }
    }
}
