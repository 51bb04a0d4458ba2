//! The arguments of a call, in a flat list as methods take them. Arguments that belong together become one.

use ratelimit_core::MAX_PAIRS;
use ratelimit_language::syntax::{Kind, Part};
use serde_json::{Value, json};

use super::super::argument::stated_default;
use super::json::object;

pub struct Parameter {
    /// No two of a call have the same.
    pub name: String,
    /// `key`, `int`, `float`, `duration`, `string` and `flag`; the others stand for several words.
    pub kind: &'static str,
    pub token: Option<&'static str>,
    pub optional: bool,
    range: Option<String>,
    default: Option<String>,
    meaning: &'static str,
}

impl Parameter {
    fn group(kind: &'static str, meaning: &'static str) -> Parameter {
        let name = kind.into();
        Parameter { name, kind, token: None, optional: false, range: None, default: None, meaning }
    }

    /// An argument of one word, or of a token and a word.
    fn single(part: &Part) -> Parameter {
        let argument = part.argument.expect("no group");
        let values = argument.values.to_string();
        let kind = match part.kind {
            Kind::Text if argument.values.is_duration() => "duration",
            Kind::Text => "string",
            Kind::Key => "key",
            Kind::Integer => "int",
            Kind::Real => "float",
            Kind::Token => "flag",
            other => panic!("an argument of the kind {other:?}"),
        };
        Parameter {
            name: part.name(),
            kind,
            token: part.token,
            optional: kind == "flag",
            range: (!values.is_empty()).then(|| values.trim_start_matches("duration, ").into()),
            default: stated_default(argument.meaning).map(|(_, default)| default),
            meaning: argument.meaning,
        }
    }

    pub fn row(&self) -> String {
        let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
        object(&[
            ("name", Some(json!(self.name))),
            ("kind", Some(json!(self.kind))),
            ("token", self.token.map(|token| json!(token))),
            ("optional", self.optional.then_some(Value::Bool(true))),
            ("range", text(&self.range)),
            ("default", text(&self.default)),
            ("meaning", Some(json!(self.meaning))),
        ])
    }
}

pub fn flattened(command: &str, parts: &[&Part]) -> Vec<Parameter> {
    let mut all = Vec::new();
    add(parts, false, &mut all);
    for one in &mut all {
        match (one.name.as_str(), one.token) {
            (_, Some("ID")) => one.name = "lease_id".into(),
            ("timeout", Some("BLOCK")) => one.name = "block".into(),
            // It stands beside the id of a lease.
            ("id", None) if command.contains("SETTLE") => one.name = "hold_id".into(),
            _ => {}
        }
    }
    let names = all.iter().map(|one| &one.name).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(names.len(), all.len(), "two arguments of a call have one name: {names:?}");
    all
}

fn add(parts: &[&Part], optional: bool, all: &mut Vec<Parameter>) {
    let mut rest = parts.iter();
    while let Some(part) = rest.next() {
        let optional = optional || part.is_optional;
        let first = part.parts.first();
        let token = first.and_then(|first| first.token);
        let meaning = || first.and_then(Part::meaning).expect("a meaning");
        let pairs = Some(format!("1 to {MAX_PAIRS}"));
        let found = match (part.name().as_str(), token) {
            ("numkeys", None) => {
                rest.next();
                let group = Parameter::group("keys", "the keys, named after what is limited, such as user:1");
                Parameter { range: pairs, ..group }
            }
            ("limiter", None) => {
                rest.next();
                Parameter::group("limiter", "the limiter with its parameters")
            }
            (_, Some("LIMIT")) => {
                let group = Parameter::group("limits", "the limits, each for all keys or for one of them");
                Parameter { range: pairs, ..group }
            }
            (_, Some("HOLD")) => Parameter { optional, ..Parameter::group("hold", meaning()) },
            (_, Some("KEYS")) => Parameter { token, optional, ..Parameter::group("more_keys", meaning()) },
            _ if first.is_some_and(|first| first.kind == Kind::Key) => {
                Parameter::group("pairs", "keys, and a payload for each")
            }
            _ if first.is_some_and(|first| first.name() == "field") => {
                Parameter::group("fields", "the names of the fields, and the value of each")
            }
            _ if part.is_repeated => Parameter::group("elements", part.meaning().expect("a meaning")),
            _ if first.is_some() => {
                let parts: Vec<&Part> = part.parts.iter().collect();
                add(&parts, optional || part.kind == Kind::OneOf, all);
                continue;
            }
            _ => {
                let single = Parameter::single(part);
                Parameter { optional: optional || single.optional, ..single }
            }
        };
        all.push(found);
    }
}
