//! The lines of hard calls on one kind of state. `hard.rs` explains them.

/// For every state of a million leases.
pub const LEASES: &str = "
RL.PEEK work CONCURRENT 1000000 1h $held AT @mid
RL.PEEK work CONCURRENT 1000000 1h new COST 900000 AT @mid
RL.PEEK work CONCURRENT 1000000 1h new AT @back
RL.CONCURRENT work 500000 1h new AT @now
RL.CONCURRENT work 500000 1h new AT @mid
RL.CONCURRENT work 1000000 1h new COST 500000 AT @now
RL.CONCURRENT work 1000000 1h new COST 900000 AT @mid
RL.CONCURRENT work 1000000 1h new AT @mid
RL.CONCURRENT work 1000000 1h $held AT @mid
RL.CONCURRENT work 1000000 1h new AT @later
RL.CONCURRENT work 1000000 1h new AT @back
RL.RELEASE work nobody AT @back
RL.RELEASE work nobody AT @now
RL.RELEASE work nobody AT @later
RL.RELEASE work $held AT @mid
RL.RENEW work 36500d $held AT @mid
RL.MULTI 1 work AT @mid LIMIT CONCURRENT 1000000 1h new COST 900000
RL.MULTI 1 work AT @later LIMIT UNIFORM 77ms
effect: RL.RELEASE work nobody AT @back";

/// For a million leases, each of its own tenant. A refused call makes its tenant hungry, and so begins a line.
pub const TENANTS: &str = "
RL.INFO work
RL.INFO work LEASES 1
RL.CONCURRENT work 1 1h new TENANT new AT @half
RL.CONCURRENT work 1 1h new TENANT new AT @half; RL.INFO work
RL.CONCURRENT work 1 1h new TENANT new AT @half; RL.CONCURRENT work 1000000 1h other TENANT other AT @half
RL.CONCURRENT work 1 1h new TENANT new AT @half; RL.CONCURRENT work 1000000 1h other TENANT other AT @now
RL.CONCURRENT work 1000000 1h new TENANT new AT @half
RL.CONCURRENT work 1000000 1h $held TENANT new AT @half
RL.RELEASE work $held AT @half
RL.RENEW work 1s $held AT @now
RL.EXPLAIN RL.CONCURRENT work 1 1h new TENANT new AT @half
effect: RL.CONCURRENT work 1000000 1h new TENANT new AT @half";

/// For leases with random ids and deadlines.
pub const MORE_LEASES: &str = "
RL.CONCURRENT work 1 1h new AT @now
RL.CONCURRENT work 1000000 1h new COST 400000 AT @mid
RL.CONCURRENT work 1000000 1h $held AT @now
RL.CONCURRENT work 1000000 1ms $held AT @now
RL.CONCURRENT work 1000000 1h new RESERVED 500000 CRITICAL AT @mid
RL.CONCURRENT work 1000000 36500d $held AT @now; RL.CONCURRENT work 1000000 1s new AT @later
RL.RELEASE work $held AT @now
RL.RELEASE work $held AT @back
RL.RELEASE work nobody AT @back; RL.RELEASE work nobody AT @now
RL.RENEW work 1s $held AT @now
RL.RENEW work 36500d $held AT @now; RL.RELEASE work $held AT @later
RL.RENEW work 1s nobody AT @back
RL.MULTIRELEASE 1 work nobody AT @back
RL.MULTIRELEASE 1 work $held AT @now
COPY work other; RL.MULTIRELEASE 2 work other nobody AT @back
RL.MULTI 1 work AT @mid LIMIT CONCURRENT 1000000 1h new COST 400000
RL.MULTIPEEK 1 work AT @mid LIMIT CONCURRENT 1000000 1h new COST 900000
effect: RL.RELEASE work $held AT @mid
effect: RL.RENEW work 36500d $held AT @now";

/// For a log of a million entries, each a millisecond after the one before it.
pub const LOG: &str = "
RL.SLIDINGLOG work 1000000 30m AT @now
RL.SLIDINGLOG work 1000000 2h AT @half
RL.SLIDINGLOG work 1000000 2h COST 500000 AT @half
RL.SLIDINGLOG work 1000000 1ms AT @now
RL.SLIDINGLOG work 1 1h AT @now
RL.SLIDINGLOG work 500000 1h COST 250000 AT @now
RL.SLIDINGLOG work 1000000 1h GAP 1h AT @half
RL.SLIDINGLOG work 1000000 1h PARTIAL COST 1000000 AT @half
RL.SLIDINGLOG work 1 1h FORCE AT @now
RL.SLIDINGLOG work 1 1h COUNTREFUSED AT @now
RL.SLIDINGLOG work 1000 1h COUNTREFUSED AT @half
RL.SLIDINGLOG work 1 36500d COUNTREFUSED AT @later
RL.SLIDINGLOG work 1000000 1h COUNTREFUSED AT @back
RL.PEEK work SLIDINGLOG 1 1h AT @now
RL.PEEK work SLIDINGLOG 1000000 30m COST 500000 AT @half
RL.REFUND work SLIDINGLOG 1000000 30m COST 250000 AT @now
RL.REFUND work SLIDINGLOG 1000000 1h COST 999999 AT @half
effect: RL.SLIDINGLOG work 1000000 30m AT @half
effect: RL.SLIDINGLOG work 1 1h COUNTREFUSED AT @now
effect: RL.REFUND work SLIDINGLOG 1000000 1h COST 999999 AT @now";

/// Payloads that no node sends.
pub const CRAFTED: &str = "
RL.APPLY work $moves
RL.APPLY work $drop";

/// For ten thousand holds.
pub const HOLDS: &str = "
$own HOLD $held 1000 AT @now
$own HOLD new 1000 AT @half
$own HOLD new 1000 AT @later
$own AT @9999; $own HOLD new 1000 AT @back
RL.SETTLE work $held $limit COST 0 AT @now
RL.SETTLE work $held $limit COST 5 AT @mid
RL.SETTLE work $held $limit COST 50 AT @now
RL.SETTLE work $held $limit COST 5 AT @back
RL.SETTLE work nobody $limit COST 5 AT @now
RL.SETTLE work $held $limit COST 5 AT @now; RL.SETTLE work $held $limit COST 5 AT @now
RL.MULTI 1 work HOLD new 1s AT @now LIMIT $limit LIMIT GCRA 9 9 1s
RL.MULTISETTLE 1 work $held COST 5 AT @now LIMIT $limit
RL.MULTISETTLE 1 work $held COST 5 AT @back LIMIT $limit
effect: $own HOLD new 1s AT @half
effect: RL.SETTLE work $held $limit COST 5 AT @now
effect: RL.SETTLE work $held $limit COST 5 AT @back";

/// Parameters that move what ten thousand holds charged.
pub const HOLDS_OF_A_WINDOW: &str = "
RL.SLIDINGWINDOW work 1000000 1h PRECISION 2m AT @now
RL.SLIDINGWINDOW work 1000000 2h PRECISION 1m AT @now
RL.SETTLE work $held SLIDINGWINDOW 1000000 2h PRECISION 1m COST 5 AT @now
RL.REFUND work SLIDINGWINDOW 1000000 2h PRECISION 1m AT @now
effect: RL.SLIDINGWINDOW work 1000000 2h PRECISION 1m AT @now";

/// For leases and a log in one key.
pub const SET: &str = "
RL.RELEASE work nobody AT @back
RL.RELEASE work $held AT @mid
RL.RENEW work 1s $held AT @mid
RL.MULTIRELEASE 1 work nobody AT @back
RL.SLIDINGLOG work 1000000 2h AT @half
RL.SLIDINGLOG work 1000000 1h AT @back
RL.SLIDINGLOG work 1000000 1h AT @9999; RL.SLIDINGLOG work 1000000 1h AT @back
RL.SLIDINGLOG work 1000000 1h AT @later
RL.FIXEDWINDOW work 1000 2h AT @later
RL.TOKENBUCKET work 1000 1000 1h AT @later
RL.REFUND work FIXEDWINDOW 1000 2h AT @now
RL.PEEK work SLIDINGLOG 1000000 1h AT @back
RL.MULTIREFUND 1 work AT @later LIMIT FIXEDWINDOW 1000 2h
effect: RL.FIXEDWINDOW work 1000 2h AT @later";

/// For a window of 1,024 sub-buckets of a second.
pub const WINDOW: &str = "
RL.SLIDINGWINDOW work 1000000 2048s PRECISION 2s AT @now
RL.SLIDINGWINDOW work 1000000 512s PRECISION 500ms AT @now
RL.SLIDINGWINDOW work 1000000 512s PRECISION 1s AT @now
RL.SLIDINGWINDOW work 1024 1024s PRECISION 1s COST 1000 AT @now
RL.SLIDINGWINDOW work 1000000 1024s PRECISION 1s PARTIAL COST 1000000 AT @half
RL.REFUND work SLIDINGWINDOW 1000000 1024s PRECISION 1s COST 1023 AT @now
RL.PEEK work SLIDINGWINDOW 1024 1024s PRECISION 1s COST 1024 AT @now";

pub const GCRA: &str = "
RL.THROTTLE work 99 100 3600 1 AT @back
RL.THROTTLE work 99 100 3600 1 AT @now
CL.THROTTLE work 99 100 3600 1 AT @now
RL.GCRA work 99 100 1h RESERVE COST 50 AT @now
RL.HELP";

pub const SHED: &str = "
RL.SHED work 0.99 AT @now
RL.SHED work 0.99 AT @later
RL.SHED work 0.99 AT @9999
RL.SHED work 0.99 AT @9999; RL.SHED work 0.5 TIER 1 OF 3 AT @back
RL.INFO work";

pub const LIST: &str = "
RL.LPUSH work 2000000 element
RL.RPUSH work 2000000 a b c d e f
RL.RPUSH work 10 element
RL.LPUSH work 10 element";

pub const STREAM: &str = "
RL.XADD work 2000000 * field value
RL.XADD work 10 * field value";
