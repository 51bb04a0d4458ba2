//! The search: by breadth, so that the first history that breaks a property is a shortest one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::{Duration, Instant};

use super::event::{Broken, Effect, Event, NOBODY_STARVES};
use super::graph::{Edge, Graph};
use super::kept::Kept;
use super::node::Node;
use super::rules;
use super::size::Size;
use super::starve::{Pair, starves};

/// What was searched.
#[derive(Clone, Debug)]
pub struct Report {
    pub size: Size,
    pub states: usize,
    pub edges: usize,
    /// The most events that lead to a state, if there is no shorter way.
    pub depth: usize,
    /// The most states that were kept whole at once.
    pub widest: usize,
    pub took: Duration,
}

/// A property that does not hold, and a shortest history that shows it.
#[derive(Clone, Debug)]
pub struct Failure {
    pub broken: Broken,
    pub history: Vec<String>,
}

/// The states that were found: by their forms, and how each was found first.
struct Found {
    size: Size,
    numbers: HashMap<u128, u32, BuildHasherDefault<Low>>,
    parents: Vec<(u32, Event)>,
}

/// Searches all orders of events. `goes_on` is called now and then, with the number of states and the depth.
///
/// # Errors
///
/// A property that does not hold.
pub fn search(size: Size, mut goes_on: impl FnMut(usize, usize)) -> Result<Report, Failure> {
    let began = Instant::now();
    let mut found = Found { size, numbers: HashMap::default(), parents: Vec::new() };
    let mut graph = Graph::default();
    found.numbers.insert(Node::new(size).form().0.0, 0);
    found.parents.push((0, Event::Tick));
    let (mut level, mut depth, mut widest) = (0..1, 0, 1);
    let mut kept = Kept::new(Node::new(size));
    loop {
        for number in level.clone() {
            let node = kept.node(&found.parents, number);
            let (_, blank) = node.form();
            graph.begin(&node);
            for event in node.events(blank) {
                let step = found.step(&node, number, event).map(|edge| graph.push(edge));
                step.map_err(|broken| Failure { broken, history: found.history(number, Some(event)) })?;
            }
            graph.end();
            if number % 1024 == 0 {
                goes_on(found.parents.len(), depth);
            }
        }
        level = level.end..found.count();
        if level.is_empty() {
            break;
        }
        depth += 1;
        widest = widest.max(level.len());
        kept.go_on(&found.parents, level.clone());
    }
    if let Some(cycle) = starves(&graph) {
        return Err(found.cycle(&cycle));
    }
    Ok(Report {
        size,
        states: found.parents.len(),
        edges: graph.edges(),
        depth,
        widest,
        took: began.elapsed(),
    })
}

impl Found {
    fn count(&self) -> u32 {
        u32::try_from(self.parents.len()).expect("fewer states than 2^32")
    }

    /// Goes one step from a state, and checks it.
    fn step(&mut self, node: &Node, number: u32, event: Event) -> Result<Edge, Broken> {
        let (after, effect) = node.after(event)?;
        let (target, is_new) = self.number(after.form().0.0, number, event);
        if is_new {
            rules::of_state(&after)?;
        }
        Ok(Edge::of(target, &effect))
    }

    /// The number of a state, and whether it is new.
    fn number(&mut self, form: u128, parent: u32, event: Event) -> (u32, bool) {
        let new = self.count();
        match self.numbers.entry(form) {
            Entry::Occupied(known) => (*known.get(), false),
            Entry::Vacant(place) => {
                place.insert(new);
                self.parents.push((parent, event));
                (new, true)
            }
        }
    }

    fn events(&self, mut number: u32) -> Vec<Event> {
        let mut events = Vec::new();
        while number > 0 {
            let (parent, event) = self.parents[number as usize];
            events.push(event);
            number = parent;
        }
        events.reverse();
        events
    }

    /// The events up to a state and one more, in words.
    fn history(&self, number: u32, last: Option<Event>) -> Vec<String> {
        let mut node = Node::new(self.size);
        let mut lines = Vec::new();
        for event in self.events(number).into_iter().chain(last) {
            match node.told(event) {
                Ok((after, effect)) => {
                    lines.push(line(&after, &effect));
                    node = after;
                }
                Err(_) => lines.push(self.size.text(event)),
            }
        }
        lines
    }

    /// The events up to a state, and those of a cycle through it.
    fn cycle(&self, pairs: &[Pair]) -> Failure {
        let first = pairs.first().map_or(0, |pair| pair.0);
        let number = u32::try_from(first).expect("fewer states than 2^32");
        let mut history = self.history(number, None);
        let events = self.events(number).into_iter();
        let mut node =
            events.fold(Node::new(self.size), |node, event| node.after(event).expect("it was before").0);
        history.push("from here on, again and again:".to_owned());
        for ((_, place), (target, next)) in pairs.iter().zip(pairs.iter().skip(1)) {
            let (_, blank) = node.form();
            let mut steps = node.events(blank).into_iter().filter_map(|event| node.told(event).ok());
            let step = steps.find(|(after, effect)| {
                let edge = Edge::of(0, effect);
                self.numbers.get(&after.form().0.0).is_some_and(|number| *number as usize == *target)
                    && edge.place_after(*place) == Some(*next)
            });
            let Some((after, effect)) = step else { break };
            history.push(line(&after, &effect));
            node = after;
        }
        let place = pairs.first().map_or(0, |pair| pair.1);
        let what = format!("the caller at place {} of those that wait starves", place + 1);
        Failure { broken: Broken::new(NOBODY_STARVES, what), history }
    }
}

fn line(after: &Node, effect: &Effect) -> String {
    format!("{:<70} {}", effect.text.as_deref().unwrap_or_default(), after.text())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { size, states, edges, depth, widest, took } = self;
        write!(
            f,
            "{}: {states} states, {edges} edges, depth {depth}, at most {widest} states of a depth, {:.1} s",
            size.title,
            took.as_secs_f64()
        )
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.broken.property)?;
        for (number, line) in (1..).zip(&self.history) {
            writeln!(f, "{number:>4}  {line}")?;
        }
        write!(f, "      {}", self.broken.what)
    }
}

/// A form is a hash already.
#[derive(Default)]
struct Low(u64);

impl Hasher for Low {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let (low, _) = bytes.split_first_chunk().expect("a form");
        self.0 = u64::from_le_bytes(*low);
    }
}
