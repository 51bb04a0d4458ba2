//! The lines of hard calls. `hard.rs` explains them.

use super::{SMALL, State};

/// The lines for a state.
pub fn of(state: &State) -> String {
    let name = state.name.as_str();
    let mut lines = vec![];
    // To copy a million leases takes seconds, so the other states of leases get only what could differ.
    if !state.limits.is_empty() && !["leases-in-order", "leases-expired"].contains(&name) {
        lines.extend([LIMITS, SERVER]);
        if state.limits.len() == 1 {
            lines.push(LONE);
        }
    }
    match name {
        "leases" => lines.extend([MORE_LEASES, LEASES]),
        "leases-in-order" | "leases-expired" => lines.push(LEASES),
        "log" | "log-gap" | "log-refused" => lines.push(LOG),
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
RL.MULTI 1 work AT @later LIMIT UNIFORM 77
RL.MULTI 1 work AT @9999 LIMIT UNIFORM 77
RL.MULTIREFUND 1 work AT @now $refunds
RL.MULTIREFUND 1 work COST %some AT @half $refunds
RL.MULTIREFUND 1 work COST %most AT @now $refunds
RL.MULTIREFUND 1 work AT @back $refunds
effect: $own AT @half
effect: $own AT @back
effect: $own AT @9999; $own AT @back
effect: RL.MULTI 1 work AT @back $limits
effect: RL.MULTI 1 work AT @later LIMIT UNIFORM 77
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
RL.MULTI 1 work AT @now LIMIT UNIFORM 77
RL.MULTI 1 work AT @now LIMIT UNIFORM 77; $own AT @back
RL.MULTI 1 work AT @now LIMIT UNIFORM 77; RL.MULTI 1 work AT @9999 LIMIT UNIFORM 77
RL.MULTI 1 work AT @now LIMIT UNIFORM 77; RL.UNIFORM work 77 AT @9999
effect: RL.MULTI 1 work AT @now LIMIT UNIFORM 77";

/// For every state of a million leases.
const LEASES: &str = "
RL.PEEK work CONCURRENT 1000000 3600000 $held AT @mid
RL.PEEK work CONCURRENT 1000000 3600000 new COST 900000 AT @mid
RL.PEEK work CONCURRENT 1000000 3600000 new AT @back
RL.CONCURRENT work 500000 3600000 new AT @now
RL.CONCURRENT work 500000 3600000 new AT @mid
RL.CONCURRENT work 1000000 3600000 new COST 500000 AT @now
RL.CONCURRENT work 1000000 3600000 new COST 900000 AT @mid
RL.CONCURRENT work 1000000 3600000 new AT @mid
RL.CONCURRENT work 1000000 3600000 $held AT @mid
RL.CONCURRENT work 1000000 3600000 new AT @later
RL.CONCURRENT work 1000000 3600000 new AT @back
RL.RELEASE work nobody AT @back
RL.RELEASE work nobody AT @now
RL.RELEASE work nobody AT @later
RL.RELEASE work $held AT @mid
RL.RENEW work 3153600000000 $held AT @mid
RL.MULTI 1 work AT @mid LIMIT CONCURRENT 1000000 3600000 new COST 900000
RL.MULTI 1 work AT @later LIMIT UNIFORM 77
effect: RL.RELEASE work nobody AT @back";

/// For leases with random ids and deadlines.
const MORE_LEASES: &str = "
RL.CONCURRENT work 1 3600000 new AT @now
RL.CONCURRENT work 1000000 3600000 new COST 400000 AT @mid
RL.CONCURRENT work 1000000 3600000 $held AT @now
RL.CONCURRENT work 1000000 1 $held AT @now
RL.CONCURRENT work 1000000 3600000 new RESERVED 500000 CRITICAL AT @mid
RL.CONCURRENT work 1000000 3153600000000 $held AT @now; RL.CONCURRENT work 1000000 1000 new AT @later
RL.RELEASE work $held AT @now
RL.RELEASE work $held AT @back
RL.RELEASE work nobody AT @back; RL.RELEASE work nobody AT @now
RL.RENEW work 1000 $held AT @now
RL.RENEW work 3153600000000 $held AT @now; RL.RELEASE work $held AT @later
RL.RENEW work 1000 nobody AT @back
RL.MULTIRELEASE 1 work nobody AT @back
RL.MULTIRELEASE 1 work $held AT @now
COPY work other; RL.MULTIRELEASE 2 work other nobody AT @back
RL.MULTI 1 work AT @mid LIMIT CONCURRENT 1000000 3600000 new COST 400000
RL.MULTIPEEK 1 work AT @mid LIMIT CONCURRENT 1000000 3600000 new COST 900000
effect: RL.RELEASE work $held AT @mid
effect: RL.RENEW work 3153600000000 $held AT @now";

/// For a log of a million entries, each a millisecond after the one before it.
const LOG: &str = "
RL.SLIDINGLOG work 1000000 1800000 AT @now
RL.SLIDINGLOG work 1000000 7200000 AT @half
RL.SLIDINGLOG work 1000000 7200000 COST 500000 AT @half
RL.SLIDINGLOG work 1000000 1 AT @now
RL.SLIDINGLOG work 1 3600000 AT @now
RL.SLIDINGLOG work 500000 3600000 COST 250000 AT @now
RL.SLIDINGLOG work 1000000 3600000 GAP 3600000 AT @half
RL.SLIDINGLOG work 1000000 3600000 PARTIAL COST 1000000 AT @half
RL.SLIDINGLOG work 1 3600000 FORCE AT @now
RL.SLIDINGLOG work 1 3600000 COUNTREFUSED AT @now
RL.SLIDINGLOG work 1000 3600000 COUNTREFUSED AT @half
RL.SLIDINGLOG work 1 3153600000000 COUNTREFUSED AT @later
RL.SLIDINGLOG work 1000000 3600000 COUNTREFUSED AT @back
RL.PEEK work SLIDINGLOG 1 3600000 AT @now
RL.PEEK work SLIDINGLOG 1000000 1800000 COST 500000 AT @half
RL.REFUND work SLIDINGLOG 1000000 1800000 COST 250000 AT @now
RL.REFUND work SLIDINGLOG 1000000 3600000 COST 999999 AT @half
effect: RL.SLIDINGLOG work 1000000 1800000 AT @half
effect: RL.SLIDINGLOG work 1 3600000 COUNTREFUSED AT @now
effect: RL.REFUND work SLIDINGLOG 1000000 3600000 COST 999999 AT @now";

/// Payloads that no node sends.
const CRAFTED: &str = "
RL.APPLY work $moves
RL.APPLY work $drop";

/// For leases and a log in one key.
const SET: &str = "
RL.RELEASE work nobody AT @back
RL.RELEASE work $held AT @mid
RL.RENEW work 1000 $held AT @mid
RL.MULTIRELEASE 1 work nobody AT @back
RL.SLIDINGLOG work 1000000 7200000 AT @half
RL.SLIDINGLOG work 1000000 3600000 AT @back
RL.SLIDINGLOG work 1000000 3600000 AT @9999; RL.SLIDINGLOG work 1000000 3600000 AT @back
RL.SLIDINGLOG work 1000000 3600000 AT @later
RL.FIXEDWINDOW work 1000 7200000 AT @later
RL.TOKENBUCKET work 1000 1000 3600000 AT @later
RL.REFUND work FIXEDWINDOW 1000 7200000 AT @now
RL.PEEK work SLIDINGLOG 1000000 3600000 AT @back
RL.MULTIREFUND 1 work AT @later LIMIT FIXEDWINDOW 1000 7200000
effect: RL.FIXEDWINDOW work 1000 7200000 AT @later";

/// For a window of 1,024 sub-buckets of a second.
const WINDOW: &str = "
RL.SLIDINGWINDOW work 1000000 2048000 PRECISION 2000 AT @now
RL.SLIDINGWINDOW work 1000000 512000 PRECISION 500 AT @now
RL.SLIDINGWINDOW work 1000000 512000 PRECISION 1000 AT @now
RL.SLIDINGWINDOW work 1024 1024000 PRECISION 1000 COST 1000 AT @now
RL.SLIDINGWINDOW work 1000000 1024000 PRECISION 1000 PARTIAL COST 1000000 AT @half
RL.REFUND work SLIDINGWINDOW 1000000 1024000 PRECISION 1000 COST 1023 AT @now
RL.PEEK work SLIDINGWINDOW 1024 1024000 PRECISION 1000 COST 1024 AT @now";

/// For states of which 64 copies can be made.
const KEYS: &str = "
$others; RL.MULTIPEEK 64 $keys AT @back LIMIT $limit
$others; RL.MULTIPEEK 64 $keys COST %most AT @now LIMIT $limit
$others; RL.MULTI 64 $keys AT @half LIMIT $limit
$others; RL.MULTI 64 $keys AT @back LIMIT $limit
$others; RL.MULTI 64 $keys AT @later LIMIT $limit
$others; RL.MULTI 64 $keys AT @9999 LIMIT $limit; RL.MULTI 64 $keys AT @back LIMIT $limit
$others; RL.MULTI 64 $keys AT @later LIMIT UNIFORM 77
$others; RL.MULTIREFUND 64 $keys COST %some AT @now LIMIT $refund
effect: $others; RL.MULTI 64 $keys AT @back LIMIT $limit
effect: $others; RL.MULTI 64 $keys AT @later LIMIT UNIFORM 77";

/// The same for logs. To make 64 copies of these takes seconds.
const LOGS: &str = "
$others; RL.MULTI 64 $keys AT @half LIMIT $limit
$others; RL.MULTI 64 $keys AT @back LIMIT $limit
$others; RL.MULTI 64 $keys AT @later LIMIT UNIFORM 77";

const GCRA: &str = "
RL.THROTTLE work 99 100 3600 1 AT @back
RL.THROTTLE work 99 100 3600 1 AT @now
CL.THROTTLE work 99 100 3600 1 AT @now
RL.GCRA work 99 100 3600000 RESERVE COST 50 AT @now
RL.HELP";

const SHED: &str = "
RL.SHED work 0.99 AT @now
RL.SHED work 0.99 AT @later
RL.SHED work 0.99 AT @9999
RL.SHED work 0.99 AT @9999; RL.SHED work 0.5 TIER 1 OF 3 AT @back
RL.INFO work";

const LIST: &str = "
RL.LPUSH work 2000000 element
RL.RPUSH work 2000000 a b c d e f
RL.RPUSH work 10 element
RL.LPUSH work 10 element";

const STREAM: &str = "
RL.XADD work 2000000 * field value
RL.XADD work 10 * field value";
