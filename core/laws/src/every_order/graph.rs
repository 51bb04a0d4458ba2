//! The states as numbers, and the edges between them: all that is left of states that were searched.

use super::event::Effect;
use super::node::Node;
use super::size::RATE;

/// The most callers.
pub const CALLERS: usize = 4;

/// A caller that waits, as the search through cycles sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiter {
    /// As bits, the limits that it asks.
    pub limits: u8,
    pub critical: bool,
}

/// An event, by what it leads to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Edge {
    pub target: u32,
    /// The callers that wait no more, as bits by arrival.
    gone: u8,
    flags: u8,
}

/// A tick passes.
pub const TICKS: u8 = 4;
/// A critical call is granted something.
pub const CRITICAL: u8 = 8;

impl Edge {
    pub fn of(target: u32, effect: &Effect) -> Edge {
        let ticks = if effect.ticks { TICKS } else { 0 };
        let critical = if effect.critical { CRITICAL } else { 0 };
        Edge { target, gone: effect.gone, flags: effect.granted | ticks | critical }
    }

    /// The place by arrival, after the event, of the caller at a place; `None` if it does not wait any more.
    pub fn place_after(self, place: usize) -> Option<usize> {
        let before = (self.gone & ((1 << place) - 1)).count_ones();
        (self.gone & 1 << place == 0).then(|| place - before as usize)
    }

    /// Whether something of one of these limits is granted.
    pub fn grants(self, limits: u8) -> bool {
        self.flags & limits != 0
    }

    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// States are numbered in the order in which they were found, and so searched.
#[derive(Default)]
pub struct Graph {
    edges: Vec<Edge>,
    /// Where the edges of each state end.
    ends: Vec<usize>,
    /// Who waits in each state: four bits for each caller.
    waiters: Vec<u16>,
}

impl Graph {
    pub fn begin(&mut self, node: &Node) {
        let code = node.waiting.iter().enumerate().map(|(place, waits)| {
            let limits = node.asked(waits.call).map(|limit| 1 << limit).sum::<u16>();
            let code = limits | u16::from(node.ask(waits.call).critical) << (RATE + 1);
            code << (CALLERS * place)
        });
        self.waiters.push(code.sum());
    }

    pub fn push(&mut self, edge: Edge) {
        self.edges.push(edge);
    }

    pub fn end(&mut self) {
        let begin = self.ends.last().copied().unwrap_or(0);
        self.edges[begin..].sort_unstable();
        let mut own = self.edges.split_off(begin);
        own.dedup();
        self.edges.extend(own);
        self.ends.push(self.edges.len());
    }

    pub fn states(&self) -> usize {
        self.ends.len()
    }

    pub fn edges(&self) -> usize {
        self.edges.len()
    }

    pub fn of(&self, state: usize) -> &[Edge] {
        let begin = state.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.edges[begin..self.ends[state]]
    }

    /// The caller that waits at a place by arrival.
    pub fn waiter(&self, state: usize, place: usize) -> Option<Waiter> {
        let code = self.waiters[state] >> (CALLERS * place) & 15;
        let limits = u8::try_from(code & 3).ok().filter(|limits| *limits > 0)?;
        Some(Waiter { limits, critical: code & 4 != 0 })
    }
}
