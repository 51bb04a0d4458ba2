//! The states that are kept whole: those from which the states that are searched next came some events ago.
//!
//! A state takes ten kilobytes, and there are millions. Several states of a depth come from one state of some depths before. So that
//! one is kept, and the events from there on are repeated. States are searched in the order in which they were found, so
//! those that came the same way follow one another, and most of the events are repeated once for several of them.

use std::collections::BTreeMap;
use std::ops::Range;

use super::event::Event;
use super::node::Node;

/// From how many events before a state is made again.
const BACK: usize = 5;

pub struct Kept {
    nodes: BTreeMap<u32, Node>,
    /// How many events lead from the kept states to those that are searched.
    events: usize,
    /// The way to the state that was made last.
    way: Vec<(u32, Node)>,
}

impl Kept {
    /// Keeps the first state.
    pub fn new(root: Node) -> Kept {
        Kept { nodes: BTreeMap::from([(0, root)]), events: 0, way: Vec::new() }
    }

    /// Makes a state again, by `parents`: where each state came from.
    pub fn node(&mut self, parents: &[(u32, Event)], number: u32) -> Node {
        let mut steps = Vec::new();
        let mut first = number;
        for _ in 0..self.events {
            steps.push(first);
            first = parents[first as usize].0;
        }
        steps.push(first);
        steps.reverse();
        let same = self.way.iter().zip(&steps).take_while(|((known, _), step)| known == *step).count();
        self.way.truncate(same);
        for step in &steps[same..] {
            let node = match self.way.last() {
                None => self.nodes[step].clone(),
                Some((_, before)) => before.after(parents[*step as usize].1).expect("it was before").0,
            };
            self.way.push((*step, node));
        }
        self.way.last().map(|(_, node)| node.clone()).expect("a state")
    }

    /// Goes on to the states of the next depth.
    pub fn go_on(&mut self, parents: &[(u32, Event)], next: Range<u32>) {
        self.way.clear();
        if self.events < BACK {
            self.events += 1;
            return;
        }
        let mut nodes = BTreeMap::new();
        for number in next {
            let first = (0..BACK).fold(number, |number, _| parents[number as usize].0);
            let (before, event) = parents[first as usize];
            nodes.entry(first).or_insert_with(|| self.nodes[&before].after(event).expect("it was before").0);
        }
        self.nodes = nodes;
    }
}
