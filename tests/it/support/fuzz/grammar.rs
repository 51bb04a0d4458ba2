//! The commands of the module, from their documentation; and the parts of a server's reply.

use ratelimit_language::docs;
use ratelimit_language::help::Documentation;
use ratelimit_language::syntax::Part;
use redis::Value;

use crate::support::simple;

pub struct Command {
    pub documentation: &'static Documentation,
    /// In capitals.
    pub name: String,
    pub arguments: Vec<Part>,
}

impl Command {
    pub fn reads(&self) -> bool {
        self.documentation.has_flag("readonly")
    }

    /// What it limits by, if it is a limiter's own command.
    pub fn limiter(&self) -> Option<&str> {
        let costs = self.arguments.iter().any(|argument| argument.token == Some("COST"));
        let one_key = self.arguments.first().is_some_and(|first| first.name() == "key");
        let own =
            self.arguments.iter().all(|argument| !["limiter", "policy"].contains(&argument.name().as_str()));
        self.name.strip_prefix("RL.").filter(|_| costs && one_key && own)
    }

    /// Whether it asks for limits of any limiter on many keys.
    pub fn names_limits(&self) -> bool {
        self.arguments.first().is_some_and(|first| first.name() == "numkeys")
    }
}

/// The module's commands, in the order of their names.
pub fn commands() -> Vec<Command> {
    let mut commands: Vec<Command> = docs::all()
        .map(|documentation| Command {
            documentation,
            name: documentation.full_name(),
            arguments: documentation.parts(),
        })
        .collect();
    commands.sort_by(|one, other| one.name.cmp(&other.name));
    commands
}

/// The elements of an array or a set.
pub fn elements(value: Value) -> Vec<Value> {
    match value {
        Value::Array(elements) | Value::Set(elements) => elements,
        other => panic!("{other:?} is no array"),
    }
}

/// What a map tells, which is an array with older clients.
pub fn fields(value: Value) -> Vec<(String, Value)> {
    match value {
        Value::Map(pairs) => pairs.into_iter().map(|(name, value)| (simple(&name), value)).collect(),
        Value::Array(flat) => flat.chunks_exact(2).map(|pair| (simple(&pair[0]), pair[1].clone())).collect(),
        other => panic!("{other:?} is no map"),
    }
}

pub fn field(fields: &[(String, Value)], name: &str) -> Option<Value> {
    fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.clone())
}
