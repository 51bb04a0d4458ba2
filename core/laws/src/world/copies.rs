//! A primary, its copies and its log: what was sent, how far each copy is, and what is compared.

use ratelimit_core::Time;
use ratelimit_engine::memory::{Dumped, Effect, Memory, Role};
use ratelimit_engine::policies::{self, Policies, Sending, To};
use ratelimit_engine::waiting::WaitedKey;

use super::draw::keys;
use super::settings::Settings;

/// What the primary sends in one piece: the effects of a call, a transaction or an alarm.
struct Unit {
    effects: Vec<Effect>,
    to: To,
}

/// A node.
pub(super) struct Node {
    pub(super) memory: Memory,
    /// The number of units that it has.
    at: usize,
    is_linked: bool,
    /// Whether its data are those of another history, so that it needs a full copy.
    is_foreign: bool,
    /// The keys that were sent since it was last compared: a bit for each.
    stale: u64,
}

/// What a log begins with, and its place among the units.
struct Base {
    keys: Vec<Dumped>,
    /// `None` if the policies follow as effects.
    policies: Option<Vec<u8>>,
    at: usize,
}

pub(super) struct Copies {
    pub(super) nodes: Vec<Node>,
    pub(super) primary: usize,
    /// All that was sent, since the primary was another one.
    units: Vec<Unit>,
    base: Base,
    sending: Sending,
    /// The effects of the unit that runs.
    pending: Vec<Effect>,
    names: Vec<&'static str>,
}

impl Copies {
    pub(super) fn new(count: usize, settings: &Settings, start: Time) -> Copies {
        let nodes = (0..count).map(|number| {
            let memory = settings.node(number as u64);
            memory.set_clock(start);
            memory.set_role(if number == 0 { Role::Primary } else { Role::Copy });
            Node { memory, at: 0, is_linked: true, is_foreign: false, stale: 0 }
        });
        Copies {
            nodes: nodes.collect(),
            primary: 0,
            units: Vec::new(),
            base: Base { keys: Vec::new(), policies: None, at: 0 },
            sending: Sending::NOTHING,
            pending: Vec::new(),
            names: keys(),
        }
    }

    pub(super) fn primary(&self) -> &Memory {
        &self.nodes[self.primary].memory
    }

    /// Sends the effects that the primary has made since the last time, in one unit. Returns their number.
    pub(super) fn send(&mut self) -> usize {
        self.collect();
        let effects = std::mem::take(&mut self.pending);
        self.send_to(effects, To::Both)
    }

    /// Adds the effects that the primary has made since the last time to those that are sent next. Returns them.
    pub(super) fn collect(&mut self) -> &[Effect] {
        let before = self.pending.len();
        self.pending.extend(self.nodes[self.primary].memory.take_effects());
        &self.pending[before..]
    }

    fn send_to(&mut self, effects: Vec<Effect>, to: To) -> usize {
        if effects.is_empty() {
            return 0;
        }
        let keys = effects.iter().fold(0, |keys, effect| keys | self.bits(effect));
        self.nodes.iter_mut().for_each(|node| node.stale |= keys);
        let count = effects.len();
        self.units.push(Unit { effects, to });
        self.nodes[self.primary].at = self.units.len();
        count
    }

    /// A bit for each key of an effect.
    fn bits(&self, effect: &Effect) -> u64 {
        let bit =
            |name: &[u8]| self.names.iter().position(|key| key.as_bytes() == name).map_or(0, |at| 1 << at);
        match effect {
            Effect::Apply(payloads) => payloads.iter().fold(0, |bits, (key, _)| bits | bit(&key.name)),
            Effect::Policies(_) => 0,
            Effect::Gone(key) => bit(&key.name),
            Effect::Server { words, .. } => words.iter().fold(0, |bits, word| bits | bit(word)),
        }
    }

    /// A copy applies at most this many units. Returns how many.
    pub(super) fn deliver(&mut self, node: usize, most: usize) -> Result<usize, String> {
        let Copies { nodes, units, primary, .. } = self;
        let copy = &mut nodes[node];
        if node == *primary || !copy.is_linked || copy.is_foreign {
            return Ok(0);
        }
        let end = units.len().min(copy.at.saturating_add(most));
        let count = end - copy.at;
        for unit in &units[copy.at..end] {
            apply(&copy.memory, unit, To::Aof)?;
        }
        copy.at = end;
        // A copy grants nothing and sends nothing of its own.
        copy.memory.take_effects();
        if copy.at == units.len() && copy.stale != 0 {
            self.compare_stale(node)?;
        }
        Ok(count)
    }

    /// Compares the keys of a copy that were sent, now that it has all units.
    fn compare_stale(&mut self, node: usize) -> Result<(), String> {
        let stale = std::mem::take(&mut self.nodes[node].stale);
        let sent = self.names.iter().enumerate().filter(|(place, _)| stale & 1 << place != 0);
        for (_, name) in sent {
            let key: (i32, &[u8]) = (0, name.as_bytes());
            let [own, copy] = [self.primary, node].map(|node| self.nodes[node].memory.stored(&key));
            if own != copy {
                return Err(format!("node {node} has another {name}: {copy:?}, its primary {own:?}"));
            }
        }
        Ok(())
    }

    pub(super) fn cut(&mut self, node: usize) {
        self.nodes[node].is_linked = false;
    }

    /// A copy comes back. Returns whether it got a full copy.
    pub(super) fn join(&mut self, node: usize) -> Result<bool, String> {
        if node == self.primary || self.nodes[node].is_linked && !self.nodes[node].is_foreign {
            return Ok(false);
        }
        let is_foreign = self.nodes[node].is_foreign;
        if is_foreign {
            let (keys, table) = (self.primary().all(), policies::encode(self.primary().node()));
            load(&self.nodes[node].memory, &keys, Some(&table))?;
            self.nodes[node].at = self.units.len();
        }
        let copy = &mut self.nodes[node];
        (copy.is_linked, copy.is_foreign) = (true, false);
        self.sending.replica_came();
        Ok(is_foreign)
    }

    /// A full copy breaks off. The node has its old keys, or none if it was emptied before. It keeps its policies.
    pub(super) fn break_off(&mut self, node: usize, empties: bool) -> Result<(), String> {
        if node == self.primary {
            return Ok(());
        }
        if empties {
            load(&self.nodes[node].memory, &[], None)?;
        }
        let copy = &mut self.nodes[node];
        (copy.is_linked, copy.is_foreign) = (false, true);
        Ok(())
    }

    /// A copy becomes the primary. Returns how many units are lost; `None` if its data are of another history.
    pub(super) fn promote(&mut self, node: usize) -> Option<usize> {
        let lost = self.units.len().checked_sub(self.nodes[node].at).filter(|_| !self.nodes[node].is_foreign);
        let kept = self.units.len() - lost.unwrap_or(self.units.len());
        self.keep(kept, lost.is_none());
        self.nodes[self.primary].memory.set_role(Role::Copy);
        self.primary = node;
        let new = &mut self.nodes[node];
        (new.at, new.is_linked, new.is_foreign) = (kept, true, false);
        new.memory.set_role(Role::Primary);
        new.memory.take_effects();
        self.rewrite(true);
        lost
    }

    /// Forgets the units from this one on. All copies lose their links, and those that have one of the forgotten units, or all if
    /// the history is another one, need a full copy.
    fn keep(&mut self, kept: usize, is_other: bool) {
        self.units.truncate(kept);
        for copy in &mut self.nodes {
            copy.is_foreign |= copy.at > kept || is_other;
            copy.at = copy.at.min(kept);
            copy.is_linked = false;
            copy.stale = u64::MAX;
        }
        self.sending = Sending::NOTHING;
    }

    /// The primary dies, and comes back with its log, whose last units are missing. Returns how many.
    pub(super) fn crash(&mut self, missing: usize, settings: &Settings) -> Result<usize, String> {
        let missing = missing.min(self.units.len() - self.base.at);
        let kept = self.units.len() - missing;
        let fresh = self.of_log(kept, settings)?;
        if missing == 0 {
            self.compare_log(&fresh)?;
        }
        // A log does not say where its copies are, so each needs a full copy.
        self.keep(kept, true);
        fresh.set_role(Role::Primary);
        let node = &mut self.nodes[self.primary];
        (node.memory, node.at, node.is_linked, node.is_foreign) = (fresh, kept, true, false);
        Ok(missing)
    }

    /// A node that has read the log up to a unit.
    fn of_log(&self, end: usize, settings: &Settings) -> Result<Memory, String> {
        let fresh = settings.node(7);
        fresh.set_clock(self.primary().clock());
        fresh.pass(self.primary().now().since(fresh.now()));
        fresh.set_role(Role::Copy);
        load(&fresh, &self.base.keys, self.base.policies.as_deref())?;
        for unit in &self.units[self.base.at..end] {
            apply(&fresh, unit, To::Replicas)?;
        }
        fresh.take_effects();
        Ok(fresh)
    }

    fn compare_log(&self, of_log: &Memory) -> Result<(), String> {
        same("the log has other keys", &self.primary().all(), &of_log.all())?;
        let is_owed = self.sending.is_owed();
        if is_owed || digest(of_log) == digest(self.primary()) {
            Ok(())
        } else {
            Err("the log has other policies".into())
        }
    }

    /// The log begins anew.
    pub(super) fn rewrite(&mut self, with_policies: bool) {
        let policies = with_policies.then(|| policies::encode(self.primary().node()));
        self.base = Base { keys: self.primary().all(), policies, at: self.units.len() };
        if !with_policies {
            self.sending.aof_lacks_policies();
        }
    }

    /// The primary sends what it owes of its policies. Returns whether that was anything.
    pub(super) fn send_owed(&mut self) -> bool {
        let next = self.sending.next(self.nodes[self.primary].memory.node(), true);
        let Some((effects, to)) = next else { return false };
        self.send_to(effects.into_iter().map(Effect::Policies).collect(), to);
        true
    }

    /// All copies come back and get all units. Then all nodes and the log are compared.
    pub(super) fn quiet(&mut self, settings: &Settings) -> Result<(), String> {
        for node in 0..self.nodes.len() {
            self.join(node)?;
        }
        while !self.primary().is_paused() && self.send_owed() {}
        for node in 0..self.nodes.len() {
            self.deliver(node, usize::MAX)?;
            let (own, copy) = (self.primary(), &self.nodes[node].memory);
            same(&format!("node {node} has other keys"), &own.all(), &copy.all())?;
            if !self.sending.is_owed() && digest(own) != digest(copy) {
                return Err(format!("node {node} has other policies"));
            }
        }
        let of_log = self.of_log(self.units.len(), settings)?;
        self.compare_log(&of_log)
    }
}

fn digest(memory: &Memory) -> (u64, usize) {
    let policies = memory.node().policies();
    (policies.digest(), policies.len())
}

fn apply(memory: &Memory, unit: &Unit, but: To) -> Result<(), String> {
    if unit.to == but {
        return Ok(());
    }
    unit.effects
        .iter()
        .try_for_each(|effect| memory.apply(effect).map_err(|error| format!("{effect:?}: {error}")))
}

/// Loads a full copy, with its policies if they are there.
fn load(memory: &Memory, keys: &[Dumped], table: Option<&[u8]>) -> Result<(), String> {
    if !memory.load(keys) {
        return Err("a full copy cannot be read".into());
    }
    if let Some(table) = table {
        let decoded = policies::decode(table, &Policies::NONE).map_err(|error| error.to_string())?;
        (*memory.node().policies(), *memory.node().next_policies()) = decoded;
    }
    Ok(())
}

fn same(what: &str, own: &[Dumped], other: &[Dumped]) -> Result<(), String> {
    if own == other {
        return Ok(());
    }
    let differs = |one: &[Dumped], two: &[Dumped]| -> Vec<(WaitedKey, String)> {
        let missing = one.iter().filter(|key| !two.contains(key));
        missing.map(|(key, bytes, expiry)| (key.clone(), format!("{bytes:?} {expiry:?}"))).collect()
    };
    Err(format!("{what}: {:?}, its primary {:?}", differs(other, own), differs(own, other)))
}
