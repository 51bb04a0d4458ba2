//! Reads `table.txt`, whose first lines explain it.

use ratelimit_testing::dice::Dice;

/// Instants by their names, in microseconds.
pub type Instants = Vec<(&'static str, u64)>;
/// The first charge of a state, in November 2023, and the earliest and the latest instant that `AT` takes.
const INSTANTS: [(&str, u64); 3] = [("first", 1_700_000_000_000_000), ("back", BACK), ("9999", LATEST)];
pub const BACK: u64 = 1_000_000_000_000_000;
pub const LATEST: u64 = 253_402_300_799_999_999;
const UNITS: [(&str, u64); 5] =
    [("us", 1), ("ms", 1000), ("s", 1_000_000), ("m", 60_000_000), ("h", 3_600_000_000)];

pub struct State {
    /// Its name and options.
    head: &'static str,
    lines: Vec<&'static str>,
    limits: Vec<String>,
    instants: Instants,
}

/// The blocks of this kind: the words behind it, and the lines.
pub fn blocks(kind: &'static str) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let mut blocks: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in include_str!("table.txt").lines().filter(|line| !line.trim().starts_with('#')) {
        match (line.strip_prefix("  "), blocks.last_mut()) {
            (Some(line), Some((_, lines))) => lines.push(line),
            _ => blocks.push((line, Vec::new())),
        }
    }
    blocks.into_iter().filter_map(move |(head, lines)| Some((head.strip_prefix(kind)?.trim(), lines)))
}

pub fn states() -> Vec<State> {
    let group = |name| blocks("group").find(|group| group.0 == name).expect("a group").1;
    let states = blocks("state").map(|(head, lines)| {
        let lines = lines.into_iter().flat_map(|line| match line.strip_prefix("with ") {
            Some(groups) => groups.split(' ').flat_map(group).collect(),
            None => vec![line],
        });
        State::new(head, lines.collect())
    });
    states.collect()
}

impl State {
    fn new(head: &'static str, lines: Vec<&'static str>) -> State {
        let mut state = State { head, lines, limits: Vec::new(), instants: INSTANTS.to_vec() };
        for (count, limits) in state.counted("limit ") {
            let all = (0..count).map(|i| state.call(&limits, i)).collect::<Vec<_>>().join("; ");
            state.limits.extend(all.split("; ").map(str::to_string));
        }
        let (count, fill) = state.counted("fill ").pop().expect("a call that fills");
        let filled = state.call(&fill, count - 1);
        let last = filled.split(' ').skip_while(|word| *word != "AT").nth(1).map_or(0, |at| sum(at, 0));
        state.instants.extend([("last", last), ("now", last + 1), ("lag", last.saturating_sub(1))]);
        let half = state.option("half=").unwrap_or("@last");
        for (name, at) in [("mid", "@first+30m"), ("later", "@first+5h"), ("half", half)] {
            state.instants.push((name, instant(at, 0, &state.instants)));
        }
        state
    }

    pub fn name(&self) -> &'static str {
        self.option("").unwrap_or_default()
    }

    /// The word of the head that begins so, without its beginning.
    pub fn option(&self, name: &str) -> Option<&'static str> {
        self.head.split(' ').find_map(|word| word.strip_prefix(name))
    }

    pub fn entries(&self) -> u64 {
        self.option("entries=").map_or_else(|| self.counted("fill ")[0].0, |entries| sum(entries, 0))
    }

    /// The call of this number.
    pub fn call(&self, template: &str, i: u64) -> String {
        expanded(template, i, &self.instants)
    }

    /// The templates behind a verb, and how many calls each makes.
    pub fn counted(&self, verb: &str) -> Vec<(u64, String)> {
        let lines = self.lines.iter().filter_map(|line| line.strip_prefix(verb)?.split_once(' '));
        lines
            .map(|(count, call)| (sum(count, 0), self.named(call, self.limits.first()).expect("a limit")))
            .collect()
    }

    /// The templates of lines that look hard, and whether they are linear by nature. A line is left out where the state
    /// lacks what it names.
    pub fn hard(&self) -> Vec<(bool, Vec<String>)> {
        let is_hard = |line: &&&str| !["limit ", "fill ", "run "].iter().any(|verb| line.starts_with(verb));
        let mut hard = Vec::new();
        for line in self.lines.iter().filter(is_hard).flat_map(|line| alternatives(line)) {
            let of_each = ["$own", "$debt", "$refund "].iter().any(|word| line.contains(word));
            for limit in 0..if of_each { self.limits.len() } else { 1 } {
                if let Some(calls) = self.named(line.trim_start_matches("linear "), self.limits.get(limit)) {
                    hard.push((line.starts_with("linear "), calls.split("; ").map(str::to_string).collect()));
                }
            }
        }
        hard
    }

    /// A template whose words that begin with `$` are replaced, for this limit of the state.
    fn named(&self, line: &str, limit: Option<&String>) -> Option<String> {
        let is_debt = |limit: &&String| {
            !["REFUSED", "SMOOTH", "CONC", "PENALTY"].iter().any(|word| limit.contains(word))
        };
        let own = |limit: &String| format!("RL.{}", limit.replacen(' ', " work ", 1));
        let listed = |chosen: &dyn Fn(&&String) -> bool| {
            let limits: Vec<_> =
                self.limits.iter().filter(chosen).map(|limit| format!("LIMIT {limit}")).collect();
            (!limits.is_empty()).then(|| limits.join(" "))
        };
        let most = || limit?.split(' ').nth(1)?.parse().ok().or(Some(100u64));
        let copies =
            |text: &dyn Fn(u32) -> String, between| (1..64).map(text).collect::<Vec<_>>().join(between);
        let replaced = |word: &str| match word {
            "$own" => limit.map(own),
            "$limit" => limit.cloned(),
            "$limits" => listed(&|limit| !limit.contains("COUNTREFUSED")),
            "$debt" => limit.filter(is_debt).map(own),
            "$refund" => limit.filter(is_debt).cloned(),
            "$refunds" => listed(&is_debt),
            "$most" => Some(most()?.to_string()),
            "$some" => Some((most()? / 2).to_string()),
            "$held" => Some(self.option("held=").unwrap_or("{id}").to_string()),
            "$keys" => Some(format!("work {}", copies(&|i| format!("other{i}"), " "))),
            "$others" => Some(copies(&|i| format!("COPY work other{i}"), "; ")),
            word => Some(word.to_string()),
        };
        let words = line.split(' ').filter(|word| !word.is_empty()).map(|word| {
            let end = if word.ends_with(';') { ";" } else { "" };
            Some(replaced(word.trim_end_matches(';'))? + end)
        });
        Some(words.collect::<Option<Vec<_>>>()?.join(" "))
    }
}

/// The lines that one with `(a|b)` stands for.
fn alternatives(line: &str) -> Vec<String> {
    let Some((before, choice, after)) = between(line, '(', ')') else { return vec![line.to_string()] };
    choice.split('|').flat_map(|one| alternatives(&format!("{before}{one}{after}"))).collect()
}

fn between(text: &str, open: char, close: char) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once(open)?;
    let (inside, after) = rest.split_once(close)?;
    Some((before, inside, after))
}

/// A template whose numbers, ids and instants are replaced.
pub fn expanded(template: &str, i: u64, instants: &Instants) -> String {
    let words = template.split(' ').enumerate().map(|(place, word)| {
        let number = |text: &str| match text.split_once("..") {
            None => sum(text, i),
            Some((low, high)) => sum(low, i) + dice(place as u64, i).below(sum(high, i) - sum(low, i)),
        };
        let id =
            |text: &str| format!("{:016x}", dice(7, number(text.strip_prefix(':').unwrap_or("i"))).any());
        match between(word, '{', '}') {
            Some((before, text, after)) => {
                let text = text.strip_prefix("id").map_or_else(|| number(text).to_string(), id);
                format!("{before}{text}{after}")
            }
            None if word.starts_with('@') => instant(word, i, instants).to_string(),
            None => word.to_string(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn dice(seed: u64, number: u64) -> Dice {
    Dice::of(seed, usize::try_from(number).unwrap())
}

fn instant(word: &str, i: u64, instants: &Instants) -> u64 {
    let (name, rest) = word[1..].split_once('+').unwrap_or((&word[1..], "0"));
    instants.iter().find(|(other, _)| *other == name).expect(word).1 + sum(rest, i)
}

/// A sum such as `1h+5ms*i%1000`, in microseconds if it has units.
fn sum(terms: &str, i: u64) -> u64 {
    let factor = |word: &str| {
        let of = |(unit, micros): &(&str, u64)| Some(micros * word.strip_suffix(*unit)?.parse::<u64>().ok()?);
        let number = || word.parse().ok().or_else(|| UNITS.iter().find_map(of));
        if word == "i" { i } else { number().expect(word) }
    };
    match terms.split_once('%') {
        Some((terms, most)) => sum(terms, i) % sum(most, i),
        None => terms.split('+').map(|term| term.split('*').map(factor).product::<u64>()).sum(),
    }
}
