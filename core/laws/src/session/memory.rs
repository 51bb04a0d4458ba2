//! A node in memory on which sessions run.

use std::collections::BTreeMap;

use ratelimit_core::Span;
use ratelimit_core::line::Caller;
use ratelimit_engine::memory::{Called, Element, Memory};
use ratelimit_engine::reply::Reply;

use super::run::Node;
use super::setting::set;
use crate::T0;

pub struct InMemory {
    memory: Memory,
    callers: BTreeMap<Caller, String>,
    ended: Vec<(String, String)>,
    /// How often something was sent to copies.
    sent: usize,
}

impl Default for InMemory {
    fn default() -> InMemory {
        let memory = Memory::new(0);
        memory.set_clock(T0);
        InMemory { memory, callers: BTreeMap::new(), ended: Vec::new(), sent: 0 }
    }
}

impl InMemory {
    /// Tries those who are due.
    fn advance(&mut self, span: Span) {
        for ended in self.memory.advance(span) {
            let caller = self.callers.remove(&ended.caller).unwrap_or_default();
            self.ended.push((caller, shown(&ended.reply)));
        }
    }
}

impl Node for InMemory {
    fn call(&mut self, words: &[&[u8]]) -> String {
        match self.memory.call(words) {
            Called::Replied(reply) => shown(&reply),
            Called::Waits(caller) => {
                self.memory.hang_up(caller);
                "it waits".into()
            }
        }
    }

    fn enter(&mut self, name: &str, words: &[&[u8]]) -> Result<(), String> {
        match self.memory.call(words) {
            Called::Replied(reply) => Err(shown(&reply)),
            Called::Waits(caller) => {
                self.callers.insert(caller, name.into());
                Ok(())
            }
        }
    }

    fn hang_up(&mut self, name: &str) {
        let caller = self.callers.iter().find(|(_, known)| *known == name).map(|(caller, _)| *caller);
        if let Some(caller) = caller {
            self.callers.remove(&caller);
            self.memory.hang_up(caller);
        }
    }

    fn ended(&mut self) -> Vec<(String, String)> {
        self.advance(Span::from_micros(0));
        std::mem::take(&mut self.ended)
    }

    fn pass(&mut self, micros: u64) {
        self.advance(Span::from_micros(micros));
    }

    fn set(&mut self, name: &str, value: u64) {
        assert!(set(&self.memory, name, value), "{name} is no setting");
    }

    fn stored(&mut self, key: &str) -> Option<Vec<u8>> {
        self.memory.stored(&(0, key.as_bytes())).map(|(bytes, _)| bytes)
    }

    fn expiry(&mut self, key: &str) -> Option<u64> {
        let (_, expiry) = self.memory.stored(&(0, key.as_bytes()))?;
        expiry.map(|millis| millis.saturating_sub(self.memory.clock().as_micros() / 1000))
    }

    fn count(&mut self, name: &str) -> u64 {
        let node = self.memory.node();
        let [waiting, granted, timed_out] = node.waiting.counts();
        match name {
            "waiting" => waiting,
            "waited_granted" => granted,
            "waited_timeout" => timed_out,
            "errors" => node.counts.errors.get(),
            "shadow_refused" => node.counts.refused_in_shadow.get(),
            name => {
                let (row, what) = name.rsplit_once('_').expect("the name of a count");
                let mut decisions = node.counts.decisions();
                let found = decisions.find(|(name, ..)| name.eq_ignore_ascii_case(row));
                let (_, admitted, refused) = found.expect("the name of a count");
                if what == "admitted" { admitted } else { refused }
            }
        }
    }

    fn state(&mut self) -> Vec<u8> {
        self.sent += self.memory.take_effects().len();
        format!("{:?} {} {}", self.memory.all(), self.sent, self.memory.node().policies().digest())
            .into_bytes()
    }
}

/// A reply in one line, as tests of a server show it.
fn shown(reply: &Reply) -> String {
    line(&Element::from(reply))
}

fn line(element: &Element) -> String {
    match element {
        Element::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(line).collect();
            format!("[{}]", elements.join(", "))
        }
        Element::Integer(integer) => integer.to_string(),
        Element::Real(number) => number.to_string(),
        Element::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Element::Null => "(nil)".into(),
        Element::Ok => "OK".into(),
        Element::Error(error) => error.to_string(),
    }
}
