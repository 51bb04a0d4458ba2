//! The forms of limiter that a test, a bench, the demo or the pages lack. The table of forms is `ratelimit_language::FORMS`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ratelimit_core::limiter::Limiter;
use ratelimit_core::{Kind, State, with_limiter};
use ratelimit_language::{Arguments, Bounds, FORMS, Request, find};

use crate::support::families::FAMILIES;
use crate::support::kinds::KINDS;

/// A form: the kind of its state, and whether it counts refused requests.
type Form = (Kind, bool);

fn form_of<L: Limiter>(limiter: &L) -> Form {
    (L::State::KIND, limiter.capabilities().counts_refused)
}

/// The form of a limiter's name and arguments, if they are well formed.
fn parse(line: &str) -> Option<Form> {
    let words: Vec<&[u8]> = line.split_ascii_whitespace().map(str::as_bytes).collect();
    let (name, arguments) = words.split_first()?;
    let row = find(name)?;
    let bounds = Bounds::DEFAULT;
    let limiter = (row.parse)(&mut Arguments::new(arguments, bounds), &mut Request::default()).ok()?;
    Some(with_limiter!(&limiter, limiter => form_of(limiter)))
}

/// The placeholders of durations, which are filled in with their units.
const DURATIONS: [&str; 6] = ["period", "precision", "gap", "interval", "wait", "ttl"];

/// The forms of all limiters' own calls in a text. A number stands for each placeholder in braces.
fn forms_in(text: &str) -> BTreeSet<Form> {
    let calls = text.match_indices("RL.").filter_map(|(at, _)| {
        let call = text[at + 3..].split(['"', '\n', '`', ']']).next()?;
        // `AT +100` and the like are written out later.
        let call = call.split(" AT ").next()?;
        let (name, rest) = call.split_once(' ')?;
        let (_key, arguments) = rest.split_once(' ')?;
        let mut line = format!("{name} ");
        for word in arguments.split(' ') {
            // A placeholder may be followed by a unit.
            match word.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
                Some((name, "")) if DURATIONS.contains(&name) => line += "10ms ",
                Some((_, unit)) => line.extend(["10", unit, " "]),
                None => line.extend([word, " "]),
            }
        }
        parse(&line)
    });
    calls.collect()
}

fn forms_of<'a>(limits: impl Iterator<Item = (&'a str, &'a str)>) -> BTreeSet<Form> {
    limits.filter_map(|(limiter, parameters)| parse(&format!("{limiter} {parameters}"))).collect()
}

/// The README and all pages.
fn pages() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut text = fs::read_to_string(root.join("README.md")).unwrap();
    for page in fs::read_dir(root.join("docs")).unwrap() {
        let path = page.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
    text
}

/// What need not be there: a file, and the kind of a form.
const EXEMPT: [(&str, Kind); 2] = [
    // The demo's charts last minutes, and a calendar's shortest window is an hour.
    ("demo/src/strategies.rs", Kind::Page),
    // A penalty limits no rate by itself. The demo has one beside a window, in a call with several limits.
    ("demo/src/strategies.rs", Kind::Strikes),
];

#[test]
fn every_form_has_tests_benches_a_strategy_and_a_page() {
    let families =
        FAMILIES.iter().flat_map(|family| family.parameters.iter().map(|words| (family.limiter, *words)));
    let consumers = [
        ("tests/support/src/families.rs", forms_of(families)),
        ("tests/it/support/kinds.rs", forms_of(KINDS.into_iter())),
        ("tests/it/persistence/golden_files.rs", forms_in(include_str!("persistence/golden_files.rs"))),
        ("benches/server/rows.rs", forms_in(include_str!("../../benches/server/rows.rs"))),
        ("benches/server/memory.rs", forms_in(include_str!("../../benches/server/memory.rs"))),
        ("demo/src/strategies.rs", forms_in(include_str!("../../demo/src/strategies.rs"))),
        ("README.md or docs/", forms_in(&pages())),
    ];
    let mut lacking = Vec::new();
    for form in &FORMS {
        let line = form.words(10, 1000, "id");
        let wanted = parse(&line).expect("a form is a limiter");
        let lack = consumers
            .iter()
            .filter(|(file, forms)| !forms.contains(&wanted) && !EXEMPT.contains(&(*file, wanted.0)));
        lacking.extend(lack.map(|(file, _)| format!("{file} has no {line}")));
    }
    assert!(lacking.is_empty(), "{}", lacking.join("\n"));
}
