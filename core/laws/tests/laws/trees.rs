//! Budgets in trees: agents of three levels take slices, spend, return and die, by the calls of `docs/recipes-trees.md`.
//!
//! | law | exceptions |
//! |---|---|
//! | what is spent and what the root has left are at most the root's limit | |
//! | after all have ended, the root is charged what was spent | a child settled at its whole slice keeps what it did not spend |
//! | who was closed spends no more | |

use ratelimit_dice::Dice;
use ratelimit_engine::memory::{Called, Memory};
use ratelimit_engine::reply::Reply;
use ratelimit_laws::T0;

const ROOT: u64 = 1000;
const CHILDREN: usize = 20;

/// An agent. That of number 0 is the root.
struct Agent {
    parent: usize,
    level: u64,
    slice: u64,
    end: Option<End>,
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    /// Its key was closed, by itself or by its parent, and its parent settled what it had spent.
    Closed,
    /// Its parent settled the whole slice.
    Whole,
}

struct Tree {
    node: Memory,
    agents: Vec<Agent>,
    spent: u64,
}

impl Tree {
    fn new(seed: u64) -> Tree {
        let node = Memory::new(seed);
        node.set_clock(T0);
        Tree { node, agents: vec![Agent { parent: 0, level: 1, slice: ROOT, end: None }], spent: 0 }
    }

    /// Whether the call is admitted, what remains, and the sixth integer.
    fn call(&self, words: &str) -> (bool, u64, u64) {
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        match self.node.call(&words) {
            Called::Replied(Reply::Answer(answer)) => (answer.verdict.admits(), answer.gauge.remaining, 0),
            Called::Replied(Reply::Six(answer, sixth)) => {
                (answer.verdict.admits(), answer.gauge.remaining, sixth)
            }
            _ => panic!("another reply"),
        }
    }

    fn limit(&self, agent: usize) -> String {
        format!("FIXEDWINDOW {} 36500d", self.agents[agent].slice)
    }

    fn charge(&self, agent: usize, options: &str) -> (bool, u64, u64) {
        self.call(&format!("RL.FIXEDWINDOW agent:{agent} {} 36500d {options}", self.agents[agent].slice))
    }

    fn remaining(&self, agent: usize) -> u64 {
        self.call(&format!("RL.PEEK agent:{agent} {}", self.limit(agent))).1
    }

    /// Begins a child, if its parent can pay the slice.
    fn start(&mut self, parent: usize, slice: u64) -> bool {
        let child = self.agents.len();
        let (admitted, ..) = self.charge(parent, &format!("COST {slice} HOLD child-{child} 36500d"));
        if admitted {
            let level = self.agents[parent].level + 1;
            self.agents.push(Agent { parent, level, slice, end: None });
        }
        admitted
    }

    /// Spends, also if the agent has ended and does not know it.
    fn spend(&mut self, agent: usize, cost: u64) {
        let (admitted, ..) = self.charge(agent, &format!("COST {cost}"));
        if admitted {
            assert!(self.agents[agent].end != Some(End::Closed), "agent {agent} was closed");
            self.spent += cost;
        }
    }

    /// Ends a child, after its own children. Each call may be repeated.
    fn end(&mut self, child: usize, end: End, dice: &mut Dice) {
        for below in child + 1..self.agents.len() {
            if self.agents[below].parent == child && self.agents[below].end.is_none() {
                self.end(below, end, dice);
            }
        }
        let Agent { parent, slice, .. } = self.agents[child];
        let mut cost = slice;
        if end == End::Closed {
            let close = format!("COST {slice} PARTIAL HOLD close 36500d");
            let (_, _, unused) = self.charge(child, &close);
            if dice.one_in(4) {
                assert_eq!(self.charge(child, &close).2, unused);
            }
            cost -= unused;
        }
        let settle = format!("RL.SETTLE agent:{parent} child-{child} {} COST {cost}", self.limit(parent));
        assert_eq!(self.call(&settle).2, 1);
        if dice.one_in(4) {
            assert_eq!(self.call(&settle).2, 0);
        }
        self.agents[child].end = Some(end);
    }
}

#[test]
fn a_tree_spends_at_most_its_root_and_loses_nothing() {
    let [mut children, mut refused, mut returned, mut died] = [0_usize; 4];
    for seed in 0..200 {
        let (mut tree, mut dice) = (Tree::new(seed), Dice::new(seed));
        for _ in 0..300 {
            let agent = dice.index(tree.agents.len());
            let Agent { level, slice, end, .. } = tree.agents[agent];
            match dice.below(8) {
                0..=2 if level < 3 && end.is_none() && tree.agents.len() <= CHILDREN => {
                    let slice = 1 + dice.below(1 + slice / 4);
                    refused += usize::from(!tree.start(agent, slice));
                }
                3 if agent > 0 && end.is_none() => {
                    let how = *dice.pick(&[End::Closed, End::Closed, End::Whole]);
                    tree.end(agent, how, &mut dice);
                }
                _ => {
                    let cost = 1 + dice.below(1 + slice / 8);
                    tree.spend(agent, cost);
                }
            }
            assert!(tree.spent + tree.remaining(0) <= ROOT, "seed {seed}");
        }
        for child in (1..tree.agents.len()).rev() {
            if tree.agents[child].end.is_none() {
                tree.end(child, End::Closed, &mut dice);
            }
        }
        // What a whole settlement gave up is what its key still has.
        let whole = |child: &usize| tree.agents[*child].end == Some(End::Whole);
        let given_up: u64 = (1..tree.agents.len()).filter(whole).map(|child| tree.remaining(child)).sum();
        assert_eq!(tree.remaining(0), ROOT - tree.spent - given_up, "seed {seed}");
        children += tree.agents.len() - 1;
        died += (1..tree.agents.len()).filter(whole).count();
        returned += (1..tree.agents.len()).filter(|child| !whole(child)).count();
    }
    for (name, count) in
        [("children", children), ("refused", refused), ("returned", returned), ("died", died)]
    {
        assert!(count > 300, "{name}: {count}");
    }
}
