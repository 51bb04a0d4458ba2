//! What packages need to know of each limiter: what it can do, and which of its parameters are its rate.

use std::fmt::Debug;

use ratelimit_core::limiter::{Capabilities, Limiter};
use ratelimit_core::{Span, with_limiter};
use ratelimit_language::{Arguments, Bounds, FORMS, Purpose, Request, find, multi, of_request};
use serde_json::json;

use super::arguments::Parameter;
use super::form::{Form, capitalized};
use super::json::object;
use crate::support::fuzz::grammar::Command;

pub struct Facts {
    name: String,
    class: String,
    parameters: Vec<String>,
    /// The capabilities, by the core's names, and `joint`: whether the limiter can be among several limits.
    can: Vec<&'static str>,
    /// Options with which it can do other things.
    with: Vec<(&'static str, Vec<&'static str>)>,
    /// The parameter with the most at once, if it is another one than `count`.
    burst: Option<String>,
    /// The parameter with the count per time: 1 if there is none, but a time.
    count: Option<String>,
    /// The parameter with that time.
    per: Option<String>,
}

impl Facts {
    /// `None` if the command is no limiter's own.
    pub fn of(command: &Command, form: &Form) -> Option<Facts> {
        let takes_any = form.arguments.iter().any(|argument| argument.kind == "limiter");
        let name = command
            .name
            .strip_prefix("RL.")
            .filter(|_| matches!(form.reply, "decision" | "lease") && !takes_any)?;
        let takes = |name: &str| form.arguments.iter().any(|argument| argument.token == Some(name));
        let is_own = |argument: &&Parameter| match argument.token {
            Some(token) => of_request(token.as_bytes(), takes).is_none(),
            None => argument.kind != "hold",
        };
        let own: Vec<&Parameter> = form.arguments[1..].iter().filter(is_own).collect();
        // The core has no sketch among its limiters, so its line is that of the example.
        let example = command.documentation.example.split(' ').skip(2);
        let example = example.fold(name.to_string(), |line, word| line + " " + word);
        let lines = lines(name);
        let base = lines.first().unwrap_or(&example);
        let can = capabilities(base);
        let with = lines.iter().skip(1).filter_map(|line| {
            let option = own
                .iter()
                .filter_map(|one| one.token)
                .find(|token| !base.contains(token) && line.contains(token))?;
            Some((option, capabilities(line))).filter(|(_, other)| *other != can)
        });
        let with = with.collect();
        let required: Vec<&Parameter> = own.iter().copied().filter(|one| !one.optional).collect();
        let (burst, count, per) =
            if can.contains(&"bans") { (None, None, None) } else { rate(base, &required) };
        Some(Facts {
            name: name.into(),
            class: class(&command.name).unwrap_or_else(|| capitalized(&name.to_lowercase())),
            parameters: own.iter().map(|one| one.name.clone()).collect(),
            can,
            with,
            burst,
            count,
            per,
        })
    }

    pub fn row(&self) -> String {
        let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
        let with = self.with.iter().map(|(option, can)| (option.to_string(), json!(can)));
        object(&[
            ("name", Some(json!(self.name))),
            ("class", Some(json!(self.class))),
            ("parameters", Some(json!(self.parameters))),
            ("can", Some(json!(self.can))),
            ("with", (!self.with.is_empty()).then(|| with.collect())),
            ("burst", text(&self.burst)),
            ("count", text(&self.count)),
            ("per", text(&self.per)),
        ])
    }
}

/// What the core says of a limiter.
struct Known {
    can: Capabilities,
    length: Span,
    /// The variant, such as `TokenBucket`.
    title: String,
}

/// Asks the core about a limiter's name and parameters. `None` if they are not well formed.
fn known(line: &str) -> Option<Known> {
    fn title(limiter: &impl Debug) -> String {
        format!("{limiter:?}").split('(').next().unwrap_or_default().into()
    }
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let row = find(words[0])?;
    let mut arguments = Arguments::new(&words[1..], Bounds::DEFAULT);
    let limiter = (row.parse)(&mut arguments, &mut Request::default()).ok()?;
    let title = title(&limiter);
    with_limiter!(&limiter, limiter => Some(Known { can: limiter.capabilities(), length: limiter.length(), title }))
}

/// The forms of a limiter, without options first.
fn lines(name: &str) -> Vec<String> {
    let own = FORMS.iter().filter(|form| form.template().split(' ').next() == Some(name));
    own.map(|form| form.words(10, 60_000, "id")).collect()
}

/// The name of a limiter's class: with capitals for its words, as in the core.
pub fn class(command: &str) -> Option<String> {
    let name = command.strip_prefix("RL.")?;
    let title = known(lines(name).first()?)?.title;
    Some(if title.to_uppercase() == name { title } else { capitalized(&name.to_lowercase()) })
}

fn capabilities(line: &str) -> Vec<&'static str> {
    let can = known(line).map_or(Capabilities::NONE, |known| known.can);
    let Capabilities {
        partial,
        force,
        reserve,
        refund,
        hold,
        books,
        counts_refused,
        bans,
        block,
        early,
        one_each,
    } = can;
    let words: Vec<&[u8]> = "LIMIT".split(' ').chain(line.split(' ')).map(str::as_bytes).collect();
    let joint = multi(&mut Arguments::new(&words, Bounds::DEFAULT), 1, Purpose::Peek);
    let all = [
        ("joint", joint.is_ok()),
        ("partial", partial),
        ("force", force),
        ("reserve", reserve),
        ("refund", refund),
        ("hold", hold),
        ("block", block),
        ("books", books),
        ("counts_refused", counts_refused),
        ("bans", bans),
        ("early", early),
        ("one_each", one_each),
    ];
    all.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect()
}

/// The parameters with the most at once, the count per time, and the time. In the syntax they stand side by side.
fn rate(line: &str, required: &[&Parameter]) -> (Option<String>, Option<String>, Option<String>) {
    let per = required.iter().enumerate().position(|(at, one)| is_length(line, at + 1, one));
    let name = |at: Option<usize>| {
        let parameter = required.get(at?).filter(|one| one.kind == "int")?;
        Some(parameter.name.clone())
    };
    match per {
        Some(at) => (name(at.checked_sub(2)), name(at.checked_sub(1)), Some(required[at].name.clone())),
        None => (None, name(Some(0)), None),
    }
}

/// Whether a parameter determines the length of time in the limit's name.
fn is_length(line: &str, at: usize, parameter: &Parameter) -> bool {
    let Some(base) = known(line) else { return parameter.kind == "duration" };
    ["7m", "DAY"].into_iter().any(|other| {
        let mut words: Vec<&str> = line.split(' ').collect();
        words[at] = other;
        known(&words.join(" ")).is_some_and(|known| known.length != base.length)
    })
}
