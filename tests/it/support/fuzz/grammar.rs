//! The commands of the module as the server tells of them: `COMMAND LIST` their names, `COMMAND DOCS` their arguments.

use redis::{Connection, Value};

use crate::support::{call, command_names, simple};

/// An argument, as `COMMAND DOCS` tells of it.
pub struct Argument {
    pub name: String,
    pub kind: String,
    pub token: Option<String>,
    /// A group of arguments has none.
    pub meaning: Option<String>,
    pub optional: bool,
    pub multiple: bool,
    pub parts: Vec<Argument>,
}

pub struct Command {
    /// In capitals.
    pub name: String,
    pub reads: bool,
    pub arguments: Vec<Argument>,
}

impl Command {
    /// What it limits by, if it is a limiter's own command.
    pub fn limiter(&self) -> Option<&str> {
        let costs = self.arguments.iter().any(|argument| argument.token.as_deref() == Some("COST"));
        let one_key = self.arguments.first().is_some_and(|first| first.name == "key");
        let own =
            self.arguments.iter().all(|argument| !["limiter", "policy"].contains(&argument.name.as_str()));
        self.name.strip_prefix("RL.").filter(|_| costs && one_key && own)
    }

    /// Whether it asks for limits of any limiter on many keys.
    pub fn names_limits(&self) -> bool {
        self.arguments.first().is_some_and(|first| first.name == "numkeys")
    }
}

/// The module's commands, in the order of their names.
pub fn commands(con: &mut Connection) -> Vec<Command> {
    let names = command_names(con);
    let words =
        |first| [&["COMMAND", first], &names.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat();
    let (docs, infos) = (words("DOCS"), words("INFO"));
    let docs = fields(call(con, &docs).unwrap());
    let infos = elements(call(con, &infos).unwrap()).into_iter().map(elements);
    let mut commands = Vec::new();
    for info in infos {
        let name = simple(&info[0]);
        let reads = simple(&info[2]).contains("readonly");
        let doc = docs.iter().find(|(doc, _)| *doc == name).map(|(_, doc)| fields(doc.clone()));
        let arguments = field(&doc.unwrap(), "arguments").map(arguments).unwrap_or_default();
        commands.push(Command { name: name.to_uppercase(), reads, arguments });
    }
    commands
}

fn arguments(docs: Value) -> Vec<Argument> {
    let argument = |doc| {
        let doc = fields(doc);
        let text = |name| field(&doc, name).map(|value| simple(&value));
        let flags = text("flags").unwrap_or_default();
        Argument {
            name: text("name").unwrap(),
            kind: text("type").unwrap(),
            token: text("token"),
            meaning: text("summary"),
            optional: flags.contains("optional"),
            multiple: flags.contains("multiple"),
            parts: field(&doc, "arguments").map(arguments).unwrap_or_default(),
        }
    };
    elements(docs).into_iter().map(argument).collect()
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
