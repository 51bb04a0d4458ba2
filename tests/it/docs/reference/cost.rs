//! The rows of docs/performance.md that a command has.

/// A command that does the same work as another one, and has no rows of its own.
const SAME_WORK: [(&str, &str); 2] = [("CL.THROTTLE", "RL.THROTTLE"), ("RL.RPUSH", "RL.LPUSH")];

/// The part of a page between the markers.
pub fn table(command: &str, performance: &str) -> String {
    let same = SAME_WORK.iter().find(|(one, _)| *one == command).map(|(_, other)| *other);
    let rows: String = performance.lines().filter_map(|line| row(line, same.unwrap_or(command))).collect();
    if rows.is_empty() {
        return "`make bench WHAT=instructions` has no row for this command.\n".into();
    }
    format!(
        "Instructions per call, which `make bench WHAT=instructions` counts ([method](../performance.md#method)):\n\n\
         | call | alone | with a backlog |\n|---|--:|--:|\n{rows}\n\
         *Alone*: no replica, no replication backlog, no AOF. For comparison: `INCR` {}, `SET key value PX ms` {}.\n",
        alone(performance, "INCR"),
        alone(performance, "SET PX")
    )
}

/// The row of the page, if the line is a row of this command in the table of instructions.
fn row(line: &str, command: &str) -> Option<String> {
    let [_, call, alone, backlog, _, _] = cells(line)[..] else { return None };
    let rest = call.strip_prefix('`')?.strip_prefix(command)?;
    // The other tables have ratios and microseconds.
    let counted = alone.contains(',') && alone.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
    let named = rest.starts_with(['`', ' ']);
    (named && counted).then(|| format!("| {call} | {alone} | {backlog} |\n"))
}

fn cells(line: &str) -> Vec<&str> {
    line.split('|').map(str::trim).collect()
}

/// What a call of the server's own takes on a server alone.
fn alone<'p>(performance: &'p str, call: &str) -> &'p str {
    let row = performance.lines().map(cells).find(|cells| cells.get(1) == Some(&call) && cells.len() == 6);
    row.expect("a row of the table of instructions")[2]
}
