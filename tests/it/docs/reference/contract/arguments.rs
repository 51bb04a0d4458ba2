//! The arguments of a call, in a flat list as methods take them. Arguments that belong together become one.

use ratelimit_core::MAX_PAIRS;
use serde_json::{Value, json};

use super::super::argument::Argument as Explained;
use super::object;
use crate::support::fuzz::grammar::Argument;

pub struct Parameter {
    /// No two of a call have the same.
    pub name: String,
    /// `key`, `int`, `float`, `duration`, `string` and `flag`; the others stand for several words.
    pub kind: &'static str,
    pub token: Option<String>,
    pub optional: bool,
    range: Option<String>,
    default: Option<String>,
    meaning: String,
}

impl Parameter {
    fn group(kind: &'static str, meaning: &str) -> Parameter {
        let (name, meaning) = (kind.into(), meaning.into());
        Parameter { name, kind, token: None, optional: false, range: None, default: None, meaning }
    }

    /// An argument of one word, or of a token and a word.
    fn single(argument: &Argument, explained: &[Explained]) -> Parameter {
        let meaning = argument.meaning.as_ref().expect("a meaning");
        let own = explained.iter().find(|explained| explained.meaning == *meaning);
        let own = own.unwrap_or_else(|| panic!("RL.HELP does not explain {meaning}"));
        let range = own.values.trim_start_matches("duration, ");
        let kind = match argument.kind.as_str() {
            "string" if range != own.values => "duration",
            "string" => "string",
            "key" => "key",
            "integer" => "int",
            "double" => "float",
            "pure-token" => "flag",
            other => panic!("an argument of type {other}"),
        };
        Parameter {
            name: argument.name.clone(),
            kind,
            token: argument.token.clone(),
            optional: kind == "flag",
            range: (!range.is_empty()).then(|| range.into()),
            default: own.stated_default().map(|(_, default)| default),
            meaning: meaning.clone(),
        }
    }

    pub fn row(&self) -> String {
        let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
        object(&[
            ("name", Some(json!(self.name))),
            ("kind", Some(json!(self.kind))),
            ("token", text(&self.token)),
            ("optional", self.optional.then_some(Value::Bool(true))),
            ("range", text(&self.range)),
            ("default", text(&self.default)),
            ("meaning", Some(json!(self.meaning))),
        ])
    }
}

pub fn flattened(command: &str, arguments: &[&Argument], explained: &[Explained]) -> Vec<Parameter> {
    let mut all = Vec::new();
    add(arguments, explained, false, &mut all);
    for one in &mut all {
        match (one.name.as_str(), one.token.as_deref()) {
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

fn add(arguments: &[&Argument], explained: &[Explained], optional: bool, all: &mut Vec<Parameter>) {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let optional = optional || argument.optional;
        let first = argument.parts.first();
        let token = first.and_then(|first| first.token.clone());
        let meaning = || first.and_then(|first| first.meaning.clone()).expect("a meaning");
        let pairs = Some(format!("1 to {MAX_PAIRS}"));
        let found = match (argument.name.as_str(), token.as_deref()) {
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
            (_, Some("HOLD")) => Parameter { optional, ..Parameter::group("hold", &meaning()) },
            (_, Some("KEYS")) => Parameter { token, optional, ..Parameter::group("more_keys", &meaning()) },
            _ if first.is_some_and(|first| first.kind == "key") => {
                Parameter::group("pairs", "keys, and a payload for each")
            }
            _ if first.is_some_and(|first| first.name == "field") => {
                Parameter::group("fields", "the names of the fields, and the value of each")
            }
            _ if argument.multiple => {
                Parameter::group("elements", argument.meaning.as_deref().expect("a meaning"))
            }
            _ if first.is_some() => {
                let parts: Vec<&Argument> = argument.parts.iter().collect();
                add(&parts, explained, optional || argument.kind == "oneof", all);
                continue;
            }
            _ => {
                let single = Parameter::single(argument, explained);
                Parameter { optional: optional || single.optional, ..single }
            }
        };
        all.push(found);
    }
}
