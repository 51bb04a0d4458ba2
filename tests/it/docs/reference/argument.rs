//! An argument of a command, from its line of `RL.HELP` and the command's syntax to its row of a page.

pub struct Argument {
    name: String,
    pub meaning: String,
    /// What stands in brackets behind the meaning.
    pub values: String,
}

impl Argument {
    /// Of a line such as `key  the key, named after what is limited`, which may end with values in brackets.
    pub fn of_line(line: &str) -> Argument {
        let (name, rest) = line.split_once(' ').expect("a name and its meaning");
        let bracket = rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("));
        let (meaning, values) = bracket.unwrap_or((rest, ""));
        Argument { name: name.into(), meaning: meaning.trim().into(), values: values.into() }
    }

    pub fn row(&self, syntax: &str) -> String {
        let (meaning, default) = self
            .stated_default()
            .unwrap_or_else(|| (self.meaning.clone(), self.without_value(syntax).into()));
        let (unit, range) = self.unit_and_range(syntax);
        let shown = [Some(self.name.as_str()), self.value_name(syntax)].into_iter().flatten();
        let shown = shown.collect::<Vec<_>>().join(" ");
        format!("| `{shown}` | {meaning} | {unit} | {range} | {default} |\n")
    }

    pub fn is_option(&self) -> bool {
        self.name.starts_with(|letter: char| letter.is_ascii_uppercase())
    }

    /// The name of an option's value, as the syntax has it.
    fn value_name<'s>(&self, syntax: &'s str) -> Option<&'s str> {
        let bare = |word: &'s str| word.trim_matches(['[', ']']);
        let mut words = syntax.split(' ').skip_while(|word| bare(word) != self.name);
        let (own, next) = (words.next()?, words.next()?);
        let has_value = self.is_option() && !own.ends_with(']') && next.starts_with(char::is_lowercase);
        has_value.then(|| bare(next))
    }

    /// Takes `…, 1 by default` or `UTC (the default)` out of the meaning.
    pub fn stated_default(&self) -> Option<(String, String)> {
        if let Some((before, after)) = self.meaning.split_once(" by default") {
            let at = before.rfind([',', ';']).expect("a default is a clause of its own");
            return Some((format!("{}{after}", &before[..at]), before[at + 1..].trim().into()));
        }
        let (before, after) = self.meaning.split_once(" (the default)")?;
        Some((format!("{before}{after}"), before.rsplit(' ').next().unwrap_or_default().into()))
    }

    /// What the column of defaults has for an argument without a default value.
    fn without_value(&self, syntax: &str) -> &'static str {
        let has_alternatives = parts(syntax).iter().any(|part| part.starts_with('|'));
        match (is_optional(&self.name, syntax), self.is_option()) {
            (true, true) if self.value_name(syntax).is_none() => "off",
            (true, true) => "none",
            (true, false) => "",
            (false, _) if has_alternatives => "",
            (false, _) => "required",
        }
    }

    fn unit_and_range(&self, syntax: &str) -> (String, String) {
        if let Some(range) = self.values.strip_prefix("duration, ") {
            return ("duration".into(), in_years(range, "ms"));
        }
        if let Some(range) = self.values.strip_prefix("decimal, ") {
            return ("decimal number".into(), range.into());
        }
        if self.values.starts_with("Unix time in microseconds") {
            return ("µs of Unix time".into(), "the years 2001 to 9999".into());
        }
        if let Some(range) = self.values.strip_suffix(" bytes") {
            return ("bytes".into(), range.into());
        }
        if let Some(range) = self.values.strip_suffix(" s") {
            return ("s".into(), in_years(range, "s"));
        }
        if let Some((least, most)) = self.values.split_once(" to ") {
            let most = most.trim_start_matches("the setting ");
            return ("integer".into(), format!("{least} to {}", shown(most)));
        }
        let unit = match self.name.as_str() {
            "key" => "key",
            _ if self.is_option() && self.value_name(syntax).is_none() => "flag",
            _ => "string",
        };
        (unit.into(), String::new())
    }
}

/// Whether the argument stands in brackets where the syntax has it first.
fn is_optional(name: &str, syntax: &str) -> bool {
    let mut depth = 0;
    for word in syntax.split(' ') {
        depth += word.matches('[').count();
        if word.trim_matches(['[', ']']) == name {
            return depth > 0;
        }
        depth -= word.matches(']').count();
    }
    false
}

const CENTURY: &str = "36500d";
const CENTURY_IN_SECONDS: &str = "3153600000";

/// A range up to the longest duration, of a number or from another argument.
fn in_years(range: &str, unit: &str) -> String {
    let (least, most) = range.split_once(" to ").expect("a range");
    assert!([CENTURY, CENTURY_IN_SECONDS].contains(&most), "{range} does not end at 100 years");
    match least.parse::<u64>() {
        _ if least == "0ms" => "0 to 100 years".into(),
        _ if least == "1ms" => "1 ms to 100 years".into(),
        Ok(_) => format!("{least} {unit} to 100 years"),
        Err(_) => format!("`{least}` to 100 years"),
    }
}

/// The end of a range: a number, an argument or a setting.
fn shown(most: &str) -> String {
    match most.parse::<u64>() {
        Ok(9_007_199_254_740_991) => "2^53−1".into(),
        Ok(number) => number.to_string(),
        Err(_) => format!("`{most}`"),
    }
}

/// The parts of a syntax between which a line may end.
pub fn parts(syntax: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut depth = 0;
    for word in syntax.split(' ') {
        let is_start = word.starts_with(['[', '|']) || word == "LIMIT";
        match parts.last_mut() {
            Some(part) if depth > 0 || !is_start => {
                part.push(' ');
                part.push_str(word);
            }
            _ => parts.push(word.into()),
        }
        depth += word.matches('[').count();
        depth -= word.matches(']').count();
    }
    parts
}
