//! `clients/contract/catalog.json`: what a package in any language needs to know of the commands and the limiters. The
//! generators in `clients/generate/` read it.
//!
//! Words and meanings are those of the language, and what a limiter can do is asked from the core. `replies.rs` has the kinds of
//! replies.

mod arguments;
mod facts;
mod form;
mod json;
mod replies;

use std::fs;

use ratelimit_language::syntax::{Kind, Part};
use serde_json::{Value, json};

use super::catalog::flags;
use super::files::{is_written, read, root};
use crate::support::fuzz::grammar::{Command, commands};
use crate::support::{Server, call, text};
use arguments::Parameter;
use facts::Facts;
use form::{Form, capitalized, snake};
use json::{list, object};
use replies::{has_shape, outer_type};

const REWRITE: &str = "`RATELIMIT_REFERENCE=write cargo test --test it reference` writes it";

#[test]
fn the_catalog_of_the_packages_is_what_language_and_core_say() {
    let catalog = catalog();
    serde_json::from_str::<Value>(&catalog).expect("JSON");
    let path = root().join("clients/contract/catalog.json");
    if is_written() {
        return fs::write(&path, &catalog).unwrap();
    }
    let stored = read(&path);
    let differs = stored.lines().zip(catalog.lines()).find(|(stored, said)| stored != said);
    assert!(stored == catalog, "catalog.json is not up to date: {REWRITE}. First difference: {differs:#?}");
}

fn catalog() -> String {
    let (mut rows, mut limiters) = (Vec::new(), Vec::new());
    for command in commands() {
        let forms = forms(&command);
        limiters.extend(Facts::of(&command, &forms[0]));
        rows.push(row(&command, &forms));
    }
    let limiters: Vec<String> = limiters.iter().map(Facts::row).collect();
    format!(
        "{{\n\"commands\": [\n{}\n],\n\"limiters\": [\n{}\n]\n}}\n",
        rows.join(",\n"),
        limiters.join(",\n")
    )
}

/// The words of each form of a command, and what it returns in either protocol.
pub fn types(command: &Command) -> Vec<(String, [&'static str; 2])> {
    forms(command).iter().map(|form| (form.words.join(" "), replies::types(form.reply))).collect()
}

/// The alternatives that begin with a word of their own, and the command without such a word.
fn forms(command: &Command) -> Vec<Form> {
    let alternatives = match &command.arguments[..] {
        [only] if only.kind == Kind::OneOf => only.parts.iter().map(alternative).collect(),
        all => vec![(None, all.iter().collect())],
    };
    let form = |(head, all): (Option<&Part>, Vec<&Part>)| {
        let mut arguments = arguments::flattened(&command.name, &all);
        let mut words = vec![command.name.clone()];
        let mut name = snake(&facts::class(&command.name).unwrap_or_else(|| command.name.clone()));
        let mut summary = command.documentation.summary.to_string();
        if let Some((word, meaning)) = head.and_then(|head| head.token.zip(head.meaning())) {
            name = format!("{name}_{}", word.to_lowercase());
            summary = capitalized(meaning);
            words.push(word.into());
            // The word stands alone, or before the first argument.
            arguments.retain(|argument| argument.kind != "flag" || argument.token != Some(word));
            for argument in &mut arguments {
                argument.token.take_if(|token| *token == word);
            }
        }
        Form { name, reply: replies::kind(&words.join(" ")), words, summary, arguments }
    };
    alternatives.into_iter().map(form).collect()
}

/// The arguments of an alternative, and the one of them that has its word.
fn alternative(form: &Part) -> (Option<&Part>, Vec<&Part>) {
    let all: Vec<&Part> = if form.parts.is_empty() { vec![form] } else { form.parts.iter().collect() };
    (all.first().copied().filter(|head| head.token.is_some() && !head.is_optional), all)
}

fn row(command: &Command, forms: &[Form]) -> String {
    let said = command.documentation;
    let head = object(&[
        ("command", Some(json!(command.name))),
        ("syntax", Some(json!(said.usage()))),
        ("complexity", Some(json!(said.complexity))),
        ("flags", Some(json!(flags(said.flags)))),
        ("keys", Some(json!(said.keys.places()))),
        ("reply_text", Some(json!(said.reply))),
        ("example", (!said.example.is_empty()).then(|| json!(said.example))),
    ]);
    let forms: Vec<String> = forms.iter().map(form_row).collect();
    list(&head, "forms", &forms)
}

fn form_row(form: &Form) -> String {
    let head = object(&[
        ("name", Some(json!(form.name))),
        ("words", Some(json!(form.words))),
        ("reply", Some(json!(form.reply))),
        ("summary", Some(json!(form.summary))),
    ]);
    let arguments: Vec<String> = form.arguments.iter().map(Parameter::row).collect();
    list(&head, "arguments", &arguments)
}

#[test]
fn each_reply_has_the_shape_of_its_kind() {
    let server = Server::start(&[
        "--ratelimit.policy-file",
        "policies",
        "--ratelimit.top",
        "10",
        "--ratelimit.record",
        "9",
    ]);
    let con = &mut server.connection();
    for command in commands() {
        for form in forms(&command) {
            let own = form.words.join(" ");
            // No text can write the payload of RL.APPLY.
            let line = match command.documentation.example {
                "" => continue,
                _ if form.reply == "info" => "RL.INFO refused:1".into(),
                example if example.starts_with(&own) => example.to_string(),
                _ if own == "RL.POLICY TRY" => own + " api LIMIT GCRA 1 2 1s",
                _ if form.arguments.is_empty() => own,
                _ => own + " api",
            };
            for (protocol, kind) in ["2", "3"].into_iter().zip(replies::types(form.reply)) {
                text(con, "FLUSHALL");
                for prepared in [
                    "GCRA refused:1 0 1 1h",
                    "GCRA refused:1 0 1 1h",
                    "POLICY SET api LIMIT GCRA 9 10 1s",
                    "POLICY SAVE",
                ] {
                    text(con, &format!("RL.{prepared}"));
                }
                call(con, &["HELLO", protocol]).unwrap();
                let reply = call(con, &line.split(' ').collect::<Vec<_>>())
                    .unwrap_or_else(|error| panic!("{line}: {error}"));
                call(con, &["HELLO", "2"]).unwrap();
                let outer = outer_type(&reply);
                assert!(kind.starts_with(outer), "{line} in RESP{protocol}: {outer}, not {kind}");
                if protocol == "2" {
                    assert!(has_shape(form.reply, &reply), "{line} returns no {}: {reply:?}", form.reply);
                }
            }
        }
    }
}
