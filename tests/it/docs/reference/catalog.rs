//! What a server says of a command (`COMMAND DOCS`, `COMMAND INFO`, `RL.HELP`), as the part of its page.

use redis::{Connection, Value};

use super::argument::{Argument, parts};
use crate::support::{call, simple};

/// The widest line of a syntax.
const WIDTH: usize = 88;

/// Links to what the pages share.
const FIVE_EXPLAINED: &str = "[The reply](README.md#the-reply) explains each integer.";
const UNITS: &str = "See [durations and numbers](README.md#durations-and-numbers) for units.";
const UNITS_AND_OPTIONS: &str = "See [durations and numbers](README.md#durations-and-numbers) for units, and \
                                 [options](README.md#options) for those that commands share.";

/// A command, as the server describes it.
pub struct Described {
    name: String,
    /// With the name.
    pub syntax: String,
    /// A sentence.
    pub summary: String,
    since: String,
    pub complexity: String,
    pub flags: Vec<String>,
    /// The first key, the last one and the step, as `COMMAND INFO` has them.
    pub keys: Vec<i64>,
    pub arguments: Vec<Argument>,
    pub reply: Vec<String>,
    /// Empty if there is none.
    pub example: String,
}

impl Described {
    pub fn by_server(con: &mut Connection, name: &str) -> Described {
        let help = lines(&call(con, &["RL.HELP", name]).unwrap());
        let below = |title: &str| -> Vec<&str> {
            let rest = help.iter().skip_while(|line| *line != title).skip(1);
            rest.take_while(|line| line.starts_with(' ')).map(|line| line.trim()).collect()
        };
        let docs = call(con, &["COMMAND", "DOCS", name]).unwrap();
        let field = |name: &str| {
            let fields = elements(&elements(&docs)[1]);
            simple(&fields.chunks(2).find(|field| simple(&field[0]) == name).expect("a field")[1])
        };
        let info = call(con, &["COMMAND", "INFO", name]).unwrap();
        let info = elements(&elements(&info)[0]);
        let explained =
            below("Arguments:").into_iter().filter(|line| !line.starts_with("A duration has a unit"));
        Described {
            name: name.into(),
            syntax: help[0].clone(),
            summary: help[1].trim().into(),
            since: field("since"),
            complexity: field("complexity"),
            flags: lines(&info[2]),
            keys: info[3..6].iter().map(|place| simple(place).parse().expect("a number")).collect(),
            arguments: explained.map(Argument::of_line).collect(),
            reply: below("Reply:").into_iter().map(String::from).collect(),
            example: below("Example:").concat(),
        }
    }

    /// The part of the page between the markers. `types` has a row for each form: its reply in either protocol.
    pub fn page_part(&self, types: &str) -> String {
        let Described { since, complexity, .. } = self;
        let (syntax, flags, categories) =
            (self.wrapped(), self.flags.join(", "), self.categories().join(" "));
        let rows: String = self.arguments.iter().map(|argument| argument.row(&self.syntax)).collect();
        let explained = self.reply[0].starts_with("Five integers").then_some(FIVE_EXPLAINED);
        let sentences = self.reply.iter().map(String::as_str).chain(explained);
        let reply: Vec<_> = sentences.map(|sentences| format!("- {sentences}\n")).collect();
        let reply = reply.concat();
        let units = if self.arguments.iter().any(Argument::is_option) { UNITS_AND_OPTIONS } else { UNITS };
        format!(
            "## Syntax\n\n```text\n{syntax}\n```\n\n\
             | since | complexity | flags | ACL categories |\n|---|---|---|---|\n\
             | {since} | {complexity} | {flags} | {categories} |\n\n\
             ## Arguments\n\n| argument | meaning | unit | range | default |\n|---|---|---|---|---|\n{rows}\n{units}\n\n\
             ## Reply\n\n{reply}\n| call | RESP2 | RESP3 |\n|---|---|---|\n{types}"
        )
    }

    /// The categories that the module asks for (`server/register.rs`). Redis 7.0 has none for modules, so it cannot say.
    fn categories(&self) -> Vec<&'static str> {
        let has = |flag: &str| self.flags.iter().any(|own| own == flag);
        let all = [
            ("@admin", has("admin")),
            ("@read", has("readonly") && !has("admin")),
            ("@write", has("write")),
            ("@fast", has("fast")),
            ("@blocking", has("blocking")),
            ("@dangerous", has("admin") || self.name == "rl.apply"),
            ("@ratelimit", true),
        ];
        all.into_iter().filter(|(_, is_in)| *is_in).map(|(category, _)| category).collect()
    }

    /// The syntax in lines that fit a page. A line ends before an option, a limit or an alternative.
    fn wrapped(&self) -> String {
        let mut lines = vec![String::new()];
        for part in parts(&self.syntax) {
            let line = lines.last_mut().expect("one at least");
            let is_alternative = part.starts_with('|');
            if line.is_empty() {
                line.push_str(&part);
            } else if !is_alternative && line.len() + 1 + part.len() <= WIDTH {
                line.push(' ');
                line.push_str(&part);
            } else {
                lines.push(format!("  {part}"));
            }
        }
        lines.join("\n")
    }
}

fn elements(value: &Value) -> &[Value] {
    if let Value::Array(elements) = value { elements } else { panic!("no array: {value:?}") }
}

fn lines(value: &Value) -> Vec<String> {
    match value {
        Value::Set(elements) => elements.iter().map(simple).collect(),
        value => elements(value).iter().map(simple).collect(),
    }
}
