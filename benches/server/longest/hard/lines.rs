//! The lines of hard calls for each state, and those that many states share. `hard.rs` explains them.

use super::own_lines::{
    CRAFTED, GCRA, HOLDS, HOLDS_OF_A_WINDOW, LEASES, LIST, LOG, MORE_LEASES, SET, SHED, STREAM, TENANTS,
    WINDOW,
};
use super::{SMALL, State};

/// The lines for a state.
pub fn of(state: &State) -> String {
    let name = state.name.as_str();
    let mut lines = vec![];
    // To copy a million leases takes seconds, so the other states of leases get only what could differ.
    if !state.limits.is_empty() && !(name.starts_with("leases-")) {
        lines.extend([LIMITS, SERVER]);
        if state.limits.len() == 1 {
            lines.push(LONE);
        }
    }
    match name {
        "leases" => lines.extend([MORE_LEASES, LEASES]),
        "leases-in-order" | "leases-expired" => lines.push(LEASES),
        "leases-of-tenants" | "leases-of-tenants-expired" => lines.extend([LEASES, TENANTS]),
        "log" | "log-gap" | "log-refused" => lines.push(LOG),
        "holds-window" => lines.extend([HOLDS, HOLDS_OF_A_WINDOW]),
        "holds-log" => lines.push(HOLDS),
        "set" => lines.push(SET),
        "window" => lines.push(WINDOW),
        SMALL => lines.push(GCRA),
        "shed" => lines.push(SHED),
        "list" => lines.push(LIST),
        "stream" => lines.push(STREAM),
        _ => {}
    }
    if ["leases", "log"].contains(&name) {
        lines.push(CRAFTED);
    }
    if name == "log" {
        lines.push(LOGS);
    }
    if ["window", "64-windows", "64-small-limits"].contains(&name) {
        lines.push(KEYS);
    }
    lines.join("\n")
}

/// For every state with limits.
const LIMITS: &str = "
RL.PEEK work $limit AT @back
RL.PEEK work $limit COST %most AT @now
RL.PEEK work $limit COST %some AT @half
$own AT @9999; RL.PEEK work $limit AT @back
$own COST 0 AT @back
$own AT @9999; $own COST 0 AT @back
$own AT @now
$own AT @lag
$own COST %some AT @now
$own COST %most AT @now
$own AT @half
$own COST %some AT @half
$own AT @later
$own AT @back
$own AT @9999
$own AT @9999; $own AT @back
$own AT @9999; $own AT @back; $own AT @now
RL.REFUND work $refund COST 1 AT @now
RL.REFUND work $refund COST %some AT @now
RL.REFUND work $refund COST %most AT @now
RL.REFUND work $refund COST %some AT @half
RL.REFUND work $refund COST 1 AT @back
$debt AT @9999; RL.REFUND work $refund COST 1 AT @back
$debt FORCE AT @now
$debt FORCE COST %most AT @now
$debt FORCE COST %most AT @now; $debt FORCE AT @half
RL.MULTIPEEK 1 work AT @back $limits
RL.MULTIPEEK 1 work COST %most AT @now $limits
RL.MULTIPEEK 1 work COST %some AT @half $limits
RL.MULTI 1 work AT @9999 $limits; RL.MULTIPEEK 1 work AT @back $limits
RL.MULTI 1 work AT @now $limits
RL.MULTI 1 work COST %most AT @now $limits
RL.MULTI 1 work COST 0 AT @back $limits
RL.MULTI 1 work AT @half $limits
RL.MULTI 1 work AT @back $limits
RL.MULTI 1 work AT @later $limits
RL.MULTI 1 work AT @9999 $limits; RL.MULTI 1 work AT @back $limits
RL.MULTI 1 work AT @later LIMIT UNIFORM 77ms
RL.MULTI 1 work AT @9999 LIMIT UNIFORM 77ms
RL.MULTIREFUND 1 work AT @now $refunds
RL.MULTIREFUND 1 work COST %some AT @half $refunds
RL.MULTIREFUND 1 work COST %most AT @now $refunds
RL.MULTIREFUND 1 work AT @back $refunds
effect: $own AT @half
effect: $own AT @back
effect: $own AT @9999; $own AT @back
effect: RL.MULTI 1 work AT @back $limits
effect: RL.MULTI 1 work AT @later LIMIT UNIFORM 77ms
effect: RL.REFUND work $refund COST %some AT @now
RL.INFO work";

/// What the server does to a value by itself.
const SERVER: &str = "
TYPE work
OBJECT ENCODING work
EXISTS work
RENAME work other
UNLINK work
FLUSHDB ASYNC
CONFIG SET lazyfree-lazy-expire yes; PEXPIREAT work 1
CONFIG SET lazyfree-lazy-expire yes; PEXPIRE work 1; DEBUG SLEEP 0.003; EXISTS work
CONFIG SET lazyfree-lazy-server-del yes; SET work string
RL.APPLY work $gone
RL.APPLY work $small
CONFIG SET lazyfree-lazy-server-del yes; RL.APPLY work $small
linear: COPY work other
linear: DUMP work
linear: RESTORE other 0 $dump
linear: RL.APPLY other $whole
linear: MEMORY USAGE work SAMPLES 0
linear: DEBUG DIGEST-VALUE work
linear: DEL work
linear: SET work string
linear: PEXPIREAT work 1";

/// For a state of one limit: the key becomes a set.
const LONE: &str = "
RL.MULTI 1 work AT @now LIMIT UNIFORM 77ms
RL.MULTI 1 work AT @now LIMIT UNIFORM 77ms; $own AT @back
RL.MULTI 1 work AT @now LIMIT UNIFORM 77ms; RL.MULTI 1 work AT @9999 LIMIT UNIFORM 77ms
RL.MULTI 1 work AT @now LIMIT UNIFORM 77ms; RL.UNIFORM work 77ms AT @9999
effect: RL.MULTI 1 work AT @now LIMIT UNIFORM 77ms";

/// For states of which 64 copies can be made.
const KEYS: &str = "
$others; RL.MULTIPEEK 64 $keys AT @back LIMIT $limit
$others; RL.MULTIPEEK 64 $keys COST %most AT @now LIMIT $limit
$others; RL.MULTI 64 $keys AT @half LIMIT $limit
$others; RL.MULTI 64 $keys AT @back LIMIT $limit
$others; RL.MULTI 64 $keys AT @later LIMIT $limit
$others; RL.MULTI 64 $keys AT @9999 LIMIT $limit; RL.MULTI 64 $keys AT @back LIMIT $limit
$others; RL.MULTI 64 $keys AT @later LIMIT UNIFORM 77ms
$others; RL.MULTIREFUND 64 $keys COST %some AT @now LIMIT $refund
effect: $others; RL.MULTI 64 $keys AT @back LIMIT $limit
effect: $others; RL.MULTI 64 $keys AT @later LIMIT UNIFORM 77ms";

/// The same for logs. To make 64 copies of these takes seconds.
const LOGS: &str = "
$others; RL.MULTI 64 $keys AT @half LIMIT $limit
$others; RL.MULTI 64 $keys AT @back LIMIT $limit
$others; RL.MULTI 64 $keys AT @later LIMIT UNIFORM 77ms";
