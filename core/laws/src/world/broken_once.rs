//! Histories that broke a law once, shortened. They run in memory and on a server.

/// What the history shows, and its lines.
pub const BROKEN_ONCE: [(&str, &str); 1] = [(
    "a caller whose policy gives it a tenant while it waits stands in line",
    include_str!("broken_once/a_policy_becomes_fair.txt"),
)];
