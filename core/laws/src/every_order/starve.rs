//! No one starves: there is no cycle in which a caller waits throughout, while others are granted what it asks for.
//!
//! The search looks at pairs of a state and a caller that waits in it, and at the events at which this caller goes on waiting. It
//! starves if the pair is on a cycle in which
//!
//! - something of the limit that it asks is granted: to others, since it waits;
//! - a tick passes. So the cycle takes time, and each lease that is held in it ends in it, as leases last two ticks.
//!
//! Without a grant, no one is served, and a free limit is what property 2 is about. Without a tick, a lease of the caller's tenant
//! could last for ever, and it is only promised to tenants that hold nothing that their turn comes.
//!
//! Two kinds of callers may starve, as `core/src/line/` and `docs/fairness.md` say:
//!
//! - those that ask for two limits, because no room is reserved for them. They are left out as the caller that starves, and are there
//!   as others;
//! - those that are not critical, while critical ones are served. For them, a cycle has no grant to a critical call.
//!
//! A hungry tenant whose cost does not fit stops all others, so nothing is granted, which is no such cycle.

use super::graph::{CALLERS, CRITICAL, Edge, Graph, TICKS};

/// A state, and the place by arrival of a caller that waits in it.
pub type Pair = (usize, usize);

const NEW: u32 = u32::MAX;

/// A cycle in which a caller starves: the pairs on it, from the first one back to it. `None` if there is none.
pub fn starves(graph: &Graph) -> Option<Vec<Pair>> {
    let components = Components::of(graph);
    let mut seen = vec![0u8; components.count as usize];
    let within = |pair: Pair, (next, _): (Pair, Edge)| components.number(pair) == components.number(next);
    for pair in pairs(graph) {
        for step in steps(graph, pair).filter(|step| within(pair, *step)) {
            seen[components.number(pair) as usize] |= marks(graph, pair, step.1);
        }
    }
    let first = pairs(graph).find(|pair| seen[components.number(*pair) as usize] == 3)?;
    Some(walk(graph, first, within))
}

/// What an edge shows: a tick, and a grant of what the caller asks for.
fn marks(graph: &Graph, (state, place): Pair, edge: Edge) -> u8 {
    let grants = graph.waiter(state, place).is_some_and(|waiter| edge.grants(waiter.limits));
    u8::from(edge.has(TICKS)) | u8::from(grants) << 1
}

/// All callers that wait and must not starve.
fn pairs(graph: &Graph) -> impl Iterator<Item = Pair> {
    let all = (0..graph.states()).flat_map(|state| (0..CALLERS).map(move |place| (state, place)));
    all.filter(|(state, place)| {
        graph.waiter(*state, *place).is_some_and(|waiter| waiter.limits.is_power_of_two())
    })
}

/// Where a caller waits after each event that leaves it waiting.
fn steps(graph: &Graph, (state, place): Pair) -> impl Iterator<Item = (Pair, Edge)> {
    let is_critical = graph.waiter(state, place).is_some_and(|waiter| waiter.critical);
    let edges = graph.of(state).iter().copied();
    edges.filter(move |edge| is_critical || !edge.has(CRITICAL)).filter_map(move |edge| {
        let place = edge.place_after(place)?;
        Some(((edge.target as usize, place), edge))
    })
}

/// The shortest walk from a pair back to it, with a tick and a grant.
fn walk(graph: &Graph, first: Pair, within: impl Fn(Pair, (Pair, Edge)) -> bool) -> Vec<Pair> {
    let mut found = vec![(first, 0u8, 0usize)];
    let mut at = 0;
    while let Some((pair, seen, _)) = found.get(at).copied() {
        for step in steps(graph, pair).filter(|step| within(pair, *step)) {
            let seen = seen | marks(graph, pair, step.1);
            if found.iter().all(|(other, before, _)| (*other, *before) != (step.0, seen)) {
                found.push((step.0, seen, at));
            }
            if (step.0, seen) == (first, 3) {
                let mut pairs = vec![first];
                while at > 0 {
                    pairs.push(found[at].0);
                    at = found[at].2;
                }
                pairs.push(first);
                pairs.reverse();
                return pairs;
            }
        }
        at += 1;
    }
    vec![first]
}

/// The strongly connected components of the pairs (Tarjan, without recursion).
struct Components {
    numbers: Vec<u32>,
    count: u32,
}

impl Components {
    fn number(&self, (state, place): Pair) -> u32 {
        self.numbers[state * CALLERS + place]
    }

    fn of(graph: &Graph) -> Components {
        let slot = |(state, place): Pair| state * CALLERS + place;
        let size = graph.states() * CALLERS;
        let (mut index, mut low) = (vec![NEW; size], vec![NEW; size]);
        let mut components = Components { numbers: vec![NEW; size], count: 0 };
        let mut next = 0;
        let mut open: Vec<Pair> = Vec::new();
        // A pair, and how many of its steps were taken.
        let mut path: Vec<(Pair, usize)> = Vec::new();
        for root in pairs(graph) {
            if index[slot(root)] != NEW {
                continue;
            }
            path.push((root, 0));
            while let Some((pair, taken)) = path.pop() {
                let own = slot(pair);
                if index[own] == NEW {
                    (index[own], low[own]) = (next, next);
                    next += 1;
                    open.push(pair);
                }
                let mut steps = steps(graph, pair).skip(taken);
                let mut count = taken;
                let deeper = loop {
                    let Some((to, _)) = steps.next() else { break None };
                    count += 1;
                    let to_slot = slot(to);
                    if index[to_slot] == NEW {
                        break Some(to);
                    }
                    if components.numbers[to_slot] == NEW {
                        low[own] = low[own].min(low[to_slot]);
                    }
                };
                if let Some(to) = deeper {
                    // The step is looked at once more when its target is done, which then has its lowest.
                    path.push((pair, count - 1));
                    path.push((to, 0));
                    continue;
                }
                if low[own] == index[own] {
                    while let Some(member) = open.pop() {
                        components.numbers[slot(member)] = components.count;
                        if member == pair {
                            break;
                        }
                    }
                    components.count += 1;
                }
            }
        }
        components
    }
}
