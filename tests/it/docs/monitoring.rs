//! What docs/operating.md hands out for monitoring speaks of figures that there are.

use std::collections::BTreeSet;
use std::path::Path;

use redis::Value;

use crate::support::{Server, call, error, simple, text};

fn handed_out(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What the script for `redis_exporter` returns: names and numbers in turn.
fn exported(con: &mut redis::Connection) -> Vec<(String, u64)> {
    let Value::Array(pairs) = call(con, &["EVAL", &handed_out("ratelimit.lua"), "0"]).unwrap() else {
        panic!("the script returns no array");
    };
    let words: Vec<String> = pairs.iter().map(simple).collect();
    words.chunks(2).map(|pair| (pair[0].clone(), pair[1].parse().expect("a number"))).collect()
}

#[test]
fn the_exporters_script_tells_every_number_of_the_section() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    text(&mut con, "RL.GCRA key 0 1 1m");
    text(&mut con, "RL.GCRA key 0 1 1m");
    assert!(error(&mut con, "RL.GCRA key 0 1 0").contains("period"));
    let told = exported(&mut con);
    let number = |name: &str| told.iter().find(|(told, _)| told == name).map(|(_, number)| *number);
    assert_eq!(number("gcra_admitted"), Some(1));
    assert_eq!(number("gcra_refused"), Some(1));
    assert_eq!(number("errors"), Some(1));
    let section = simple(&call(&mut con, &["INFO", "ratelimit"]).unwrap());
    let fields: BTreeSet<&str> = section
        .lines()
        .filter_map(|line| line.strip_prefix("ratelimit_")?.split_once(':'))
        .map(|(name, _)| name)
        .filter(|name| !["version", "build", "policies_digest"].contains(name))
        .collect();
    let told: BTreeSet<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(told, fields);
}

#[test]
fn the_script_tells_the_counts_of_each_policy() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    text(&mut con, "RL.POLICY SET plan:free VERSION 7 LIMIT GCRA 0 1 1m");
    text(&mut con, "RL.ASK key plan:free");
    text(&mut con, "RL.ASK key plan:free");
    text(&mut con, "RL.ASK key plan:free");
    let told = exported(&mut con);
    let number = |name: &str| told.iter().find(|(told, _)| told == name).map(|(_, number)| *number);
    assert_eq!(number("policy_version:plan:free"), Some(7));
    assert_eq!(number("policy_admitted:plan:free"), Some(1));
    assert_eq!(number("policy_refused:plan:free"), Some(2));
    assert_eq!(number("policy_errors:plan:free"), Some(0));
}

#[test]
fn the_script_needs_no_more_than_info_and_eval() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    text(&mut con, "ACL SETUSER exporter on nopass resetkeys -@all +info +eval +auth");
    text(&mut con, "AUTH exporter any");
    assert!(!exported(&mut con).is_empty());
}

/// Every `key="..."` and `key=~"..."` in the text, as its owner would write it into a selector.
fn selected(text: &str) -> BTreeSet<String> {
    let text = text.replace('\\', "");
    let parts = text.split("key=").skip(1);
    let quoted = parts.map(|part| part.trim_start_matches('~').trim_start_matches('"'));
    quoted.map(|part| part.split('"').next().unwrap().to_string()).collect()
}

#[test]
fn rules_and_dashboard_ask_for_figures_that_there_are() {
    let server = Server::start(&[]);
    let told = exported(&mut server.connection());
    for file in ["alerts.yml", "dashboard.json"] {
        let keys = selected(&handed_out(file));
        assert!(keys.len() >= 3, "{file} asks for {keys:?}");
        for key in keys {
            // The only patterns that are used: any name with one of these ends.
            let ends: Vec<&str> = match key.as_str() {
                ".*_(admitted|refused)" => vec!["_admitted", "_refused"],
                other => vec![other.trim_start_matches(".*")],
            };
            for end in ends {
                let there =
                    told.iter().any(|(name, _)| if key == end { name == end } else { name.ends_with(end) });
                assert!(there, "{file}: no figure is {key:?}");
            }
        }
    }
}

#[test]
fn the_dashboard_is_json_whose_panels_do_not_overlap() {
    let dashboard: serde_json::Value = serde_json::from_str(&handed_out("dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() >= 8);
    let place = |panel: &serde_json::Value, side: &str| panel["gridPos"][side].as_u64().unwrap();
    for (i, one) in panels.iter().enumerate() {
        assert!(!one["description"].as_str().unwrap().is_empty());
        assert!(!one["targets"].as_array().unwrap().is_empty());
        for other in &panels[..i] {
            let apart = |from, size| {
                place(one, from) >= place(other, from) + place(other, size)
                    || place(other, from) >= place(one, from) + place(one, size)
            };
            assert!(apart("x", "w") || apart("y", "h"), "{} lies on {}", one["title"], other["title"]);
        }
    }
}
