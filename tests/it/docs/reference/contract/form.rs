//! A form of a command, and its name in the packages.

use super::arguments::Parameter;

/// A command, or one of the alternatives of `RL.POLICY` and `RL.TOP`.
pub struct Form {
    /// In `snake_case`, as methods are called.
    pub name: String,
    /// The command, and the alternative's first word.
    pub words: Vec<String>,
    pub summary: String,
    pub reply: &'static str,
    pub arguments: Vec<Parameter>,
}

/// `RL.ASKPEEK` is `ask_peek`, `CL.THROTTLE` is `cl_throttle`, `TokenBucket` is `token_bucket`.
pub fn snake(name: &str) -> String {
    let name = name.strip_prefix("RL.").unwrap_or(name);
    let is_constant = name.to_uppercase() == name;
    let mut snake = String::new();
    for (at, letter) in name.char_indices() {
        let begins_word =
            if is_constant { ["ASK", "MULTI"].contains(&&name[..at]) } else { letter.is_uppercase() };
        if begins_word && at > 0 {
            snake.push('_');
        }
        snake.push(if letter == '.' { '_' } else { letter.to_ascii_lowercase() });
    }
    snake
}

pub fn capitalized(text: &str) -> String {
    text[..1].to_uppercase() + &text[1..]
}
