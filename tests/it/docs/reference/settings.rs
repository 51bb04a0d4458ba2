//! The settings and the fields of `INFO` in docs/settings.md are those of the server.

use redis::Connection;

use super::files::{read, root};
use super::section_of;
use crate::support::{Server, call, error, simple, text};

fn page() -> String {
    read(&root().join("docs/settings.md"))
}

/// The rows of the table of settings: name, default and range.
fn rows(page: &str) -> Vec<[String; 3]> {
    let lines = section_of(page, "Settings").lines().filter(|line| line.starts_with("| `ratelimit."));
    let rows = lines.map(|line| {
        let cells: Vec<String> = line.split('|').map(|cell| cell.trim_matches([' ', '`']).into()).collect();
        let [_, name, default, range, ..] = <[String; 6]>::try_from(cells).expect("a row of four cells");
        [name, default, range]
    });
    rows.collect()
}

fn names_with_defaults(con: &mut Connection) -> Vec<(String, String)> {
    let told = text(con, "CONFIG GET ratelimit.*");
    let words: Vec<&str> = told.trim_matches(['[', ']']).split(", ").collect();
    let mut pairs: Vec<_> = words.chunks(2).map(|pair| (pair[0].into(), pair[1].into())).collect();
    pairs.sort();
    pairs
}

#[test]
fn the_page_has_each_setting_with_its_default() {
    let server = Server::start(&[]);
    let page = page();
    let mut shown: Vec<_> = rows(&page).into_iter().map(|[name, default, _]| (name, default)).collect();
    shown.sort();
    assert_eq!(shown, names_with_defaults(&mut server.connection()));
    let file = read(&root().join("redis.conf"));
    for (name, default) in shown.into_iter().filter(|(name, _)| name != "ratelimit.policy-file") {
        assert!(file.contains(&format!("{name} {default}")), "redis.conf lacks {name} {default}");
    }
}

#[test]
fn a_setting_takes_its_range_and_no_other_number() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let page = page();
    let mut checked = 0;
    for [name, _, range] in rows(&page) {
        let Some((least, most)) = range.split_once(" to ") else { continue };
        let number = |words: &str| words.split(' ').next().unwrap().parse::<i64>().expect("a number");
        let (least, most) = (number(least), number(most));
        for inside in [least, most] {
            assert_eq!(text(con, &format!("CONFIG SET {name} {inside}")), "OK");
        }
        for outside in [least - 1, most + 1] {
            let told = error(con, &format!("CONFIG SET {name} {outside}"));
            assert!(told.contains("between") || told.contains("a duration from"), "{name}: {told}");
        }
        checked += 1;
    }
    assert_eq!(checked, 12);
}

#[test]
fn the_page_has_each_field_of_the_section() {
    let server = Server::start(&[]);
    let page = page();
    let shown = section_of(&page, "INFO ratelimit");
    let section = simple(&call(&mut server.connection(), &["INFO", "ratelimit"]).unwrap());
    let (own, _) = section.split_once("# ratelimit_policies").expect("two sections");
    for field in own.lines().filter_map(|line| line.strip_prefix("ratelimit_")?.split_once(':')) {
        let end = ["_admitted", "_refused"].into_iter().find(|end| field.0.ends_with(end));
        let name =
            end.filter(|_| field.0 != "shadow_refused").map_or(field.0.into(), |end| format!("…{end}"));
        assert!(shown.contains(&format!("`{name}`")), "the page lacks {name}");
    }
}
