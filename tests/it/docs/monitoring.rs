//! What docs/operating.md hands out for monitoring speaks of figures that there are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use redis::Value;

use crate::support::{Server, call, error, info, simple, text};

fn handed_out(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A figure of the script: the name of the metric, its labels, and the number.
struct Series {
    metric: String,
    labels: BTreeMap<String, String>,
    number: u64,
}

/// What the script for `redis_exporter` returns: names and numbers in turn. A name carries its labels.
fn exported(con: &mut redis::Connection) -> Vec<Series> {
    let Value::Array(pairs) = call(con, &["EVAL", &handed_out("ratelimit.lua"), "0"]).unwrap() else {
        panic!("the script returns no array");
    };
    let words: Vec<String> = pairs.iter().map(simple).collect();
    let series = words.chunks(2).map(|pair| {
        let mut parts = pair[0].split('|');
        let metric = parts.next().unwrap().to_string();
        let labels = parts.map(|part| part.split_once('=').expect("a label"));
        let labels = labels.map(|(label, value)| (label.to_string(), value.to_string())).collect();
        Series { metric, labels, number: pair[1].parse().expect("a number") }
    });
    series.collect()
}

/// The number of a metric with these labels, such as `policy=api`.
fn number(exported: &[Series], metric: &str, labels: &[&str]) -> Option<u64> {
    let labels: BTreeMap<String, String> = labels
        .iter()
        .map(|label| label.split_once('=').unwrap())
        .map(|(label, value)| (label.to_string(), value.to_string()))
        .collect();
    exported
        .iter()
        .find(|series| series.metric == metric && series.labels == labels)
        .map(|series| series.number)
}

/// A server that has each metric: with a policy, one of whose limits is a shadow.
fn exporting() -> (Server, redis::Connection) {
    let server = Server::start(&["--ratelimit.max-waiters", "77"]);
    let mut con = server.connection();
    let limits = "LIMIT GCRA 0 1 60s LIMIT CALENDAR 1 DAY TZ Europe/Lisbon SHADOW";
    text(&mut con, &format!("RL.POLICY SET plan:free VERSION 7 {limits}"));
    (server, con)
}

#[test]
fn the_exporters_script_tells_every_number_of_the_section() {
    let (_server, mut con) = exporting();
    text(&mut con, "RL.GCRA key 0 1 1m");
    text(&mut con, "RL.GCRA key 0 1 1m");
    assert!(error(&mut con, "RL.GCRA key 0 1 0").contains("period"));
    let told = exported(&mut con);
    let requests = "ratelimit_requests_total";
    assert_eq!(number(&told, requests, &["command=gcra", "outcome=admitted"]), Some(1));
    assert_eq!(number(&told, requests, &["command=gcra", "outcome=refused"]), Some(1));
    assert_eq!(number(&told, "ratelimit_errors_total", &[]), Some(1));
    assert_eq!(number(&told, "ratelimit_max_waiters", &[]), Some(77));
    assert_eq!(number(&told, "ratelimit_policies", &[]), Some(1));
    let digest = info(&mut con, "ratelimit_policies", "ratelimit_policies_digest").unwrap();
    assert_eq!(number(&told, "ratelimit_policies_info", &[&format!("digest={digest}")]), Some(1));
    // Version and build have one series together; each line of a policy or a limit has one for each of its numbers.
    let section = simple(&call(&mut con, &["INFO", "ratelimit"]).unwrap());
    let fields = section.lines().filter_map(|line| line.strip_prefix("ratelimit_")?.split_once(':'));
    let numbers = fields.map(|(field, value)| match field {
        "build" => 0,
        _ if field.starts_with("policy_") => value.split('=').count() - 2,
        _ => 1,
    });
    assert_eq!(told.len(), numbers.sum::<usize>());
    let all: BTreeSet<_> = told.iter().map(|series| (&series.metric, &series.labels)).collect();
    assert_eq!(all.len(), told.len(), "a series is there twice");
}

#[test]
fn the_script_tells_the_counts_of_each_policy_and_of_its_limits() {
    let (_server, mut con) = exporting();
    for _ in 0..3 {
        text(&mut con, "RL.ASK key plan:free");
    }
    text(&mut con, "RL.ASK other plan:free");
    text(&mut con, "RL.REFUND other GCRA 0 1 60s");
    text(&mut con, "RL.ASK other plan:free");
    let told = exported(&mut con);
    let policy = "policy=plan:free";
    assert_eq!(number(&told, "ratelimit_policy_version", &[policy]), Some(7));
    let requests = |outcome: &str| number(&told, "ratelimit_policy_requests_total", &[policy, outcome]);
    assert_eq!([requests("outcome=admitted"), requests("outcome=refused")], [Some(3), Some(2)]);
    assert_eq!(number(&told, "ratelimit_policy_errors_total", &[policy]), Some(0));
    assert_eq!(number(&told, "ratelimit_policy_shadow_refused_total", &[policy]), Some(1));
    let limit = |metric: &str, limit: &str| number(&told, metric, &[policy, &format!("limit={limit}")]);
    let (gcra, calendar) = ("GCRA 0 1 60s", "CALENDAR 1 DAY TZ Europe/Lisbon SHADOW");
    let refused = "ratelimit_policy_limit_refused_total";
    assert_eq!([limit(refused, gcra), limit(refused, calendar)], [Some(2), Some(0)]);
    let shadow_refused = "ratelimit_policy_limit_shadow_refused_total";
    assert_eq!([limit(shadow_refused, gcra), limit(shadow_refused, calendar)], [Some(0), Some(1)]);
}

#[test]
fn the_script_needs_no_more_than_info_and_eval() {
    let server = Server::start(&[]);
    let mut con = server.connection();
    text(&mut con, "ACL SETUSER exporter on nopass resetkeys -@all +info +eval +auth");
    text(&mut con, "AUTH exporter any");
    assert!(!exported(&mut con).is_empty());
}

/// The expressions of the rules, or of the dashboard.
fn expressions(file: &str) -> Vec<String> {
    let text = handed_out(file);
    if file == "dashboard.json" {
        let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
        let panels = dashboard["panels"].as_array().unwrap().iter();
        let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
        let queries = dashboard["templating"]["list"].as_array().unwrap().iter().map(|list| &list["query"]);
        let texts = targets.map(|target| &target["expr"]).chain(queries);
        return texts.map(|text| text.as_str().unwrap().to_string()).collect();
    }
    let without_words =
        |line: &&str| !["#", "summary:", "todo:", "- name:"].iter().any(|word| line.starts_with(word));
    text.lines().map(str::trim).filter(without_words).map(str::to_string).collect()
}

/// The metrics of the module in an expression, each with what its braces contain.
fn selected(expression: &str) -> Vec<(&str, &str)> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let starts = expression.match_indices("ratelimit_").map(|(start, _)| start);
    let starts = starts.filter(|start| !expression[..*start].ends_with(is_of_name));
    let metrics = starts.map(|start| {
        let rest = &expression[start..];
        let (metric, rest) = rest.split_at(rest.find(|c| !is_of_name(c)).unwrap_or(rest.len()));
        let braces = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        (metric, braces.map_or("", |(inside, _)| inside))
    });
    metrics.collect()
}

#[test]
fn rules_and_dashboard_ask_for_metrics_that_there_are() {
    let (_server, mut con) = exporting();
    let told = exported(&mut con);
    for file in ["alerts.yml", "dashboard.json"] {
        let expressions = expressions(file);
        let selectors: Vec<_> = expressions.iter().flat_map(|expression| selected(expression)).collect();
        assert!(selectors.len() >= 8, "{file} asks for {selectors:?}");
        for (metric, labels) in selectors {
            let labels = labels.split(',').filter_map(|label| label.split_once('='));
            // Prometheus adds the instance, and a variable of the dashboard can be any value.
            let labels: Vec<(&str, &str)> = labels
                .filter(|(label, _)| *label != "instance")
                .map(|(label, value)| (label, value.trim_matches(['~', '"'])))
                .collect();
            let is_selected = |series: &&Series| {
                let has = |label: &str, value: &str| {
                    series.labels.get(label).is_some_and(|own| own == value || value.starts_with('$'))
                };
                series.metric == metric && labels.iter().all(|(label, value)| has(label, value))
            };
            assert!(
                told.iter().any(|series| is_selected(&series)),
                "{file}: nothing is {metric} with {labels:?}"
            );
        }
        // The names that the exporter gives are replaced.
        assert!(!handed_out(file).contains("redis_script_values"), "{file}");
    }
}

/// Each label that the script writes becomes one of Prometheus.
#[test]
fn prometheus_has_a_rule_for_each_label_of_the_script() {
    let (_server, mut con) = exporting();
    let config = handed_out("prometheus.yml");
    let labels: BTreeSet<String> =
        exported(&mut con).into_iter().flat_map(|series| series.labels.into_keys()).collect();
    for label in &labels {
        let rule = format!(
            r"regex: 'redis_script_values;ratelimit_.*\|{label}=([^|]*).*', target_label: {label} }}"
        );
        assert!(config.contains(&rule), "{label}");
    }
    assert_eq!(config.matches(r"ratelimit_.*\|").count(), labels.len());
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
