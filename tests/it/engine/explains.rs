//! The verdict is that of `RL.PEEK`, `RL.MULTIPEEK` and `RL.ASKPEEK`, and that of the call itself, in random states, also when
//! the clock is set back.

use std::collections::BTreeMap;

use ratelimit_engine::memory::Memory;
use redis::Value;

use super::node::{call, ints, text};
use crate::support::dice::Dice;
use crate::support::{T0, simple};

const CALLS: u64 = 3000;

/// The limits of a call have different names. `#` is the id of a lease.
const LIMITS: [&str; 16] = [
    "TOKENBUCKET 7 3 1s",
    "TOKENBUCKET 7 5 1s BATCH",
    "LEAKYBUCKET 8 7 1100ms",
    "GCRA 6 7 1100ms",
    "GCRA 3 1 250ms",
    "FIXEDWINDOW 9 1s",
    "FIXEDWINDOW 6 700ms ALIGNED",
    "CALENDAR 9 HOUR TZ +05:45",
    "CALENDAR 30 MONTH TZ America/New_York ANCHOR 31",
    "SLIDINGWINDOW 9 1s",
    "SLIDINGWINDOW 9 1s PRECISION 100ms",
    "SLIDINGLOG 9 1s GAP 20ms",
    "UNIFORM 90ms",
    "SMOOTH 9 1100ms BURST 0 MAXWAIT 90ms",
    "CONCURRENT 6 2s #",
    "PENALTY 2 1s 5s GROW 2 MAX 30s FORGIVE 900ms",
];

/// A duration as the sentences write it, in milliseconds.
fn millis(text: &str) -> i64 {
    let words: Vec<&str> = text.split(' ').collect();
    let unit = |name: &str| match name {
        "d" => 86_400_000,
        "h" => 3_600_000,
        "m" => 60_000,
        "s" => 1000,
        "ms" => 1,
        other => panic!("no unit {other} in {text}"),
    };
    words.chunks(2).map(|pair| pair[0].parse::<i64>().unwrap() * unit(pair[1])).sum()
}

/// Whether a duration of the sentences is this one, rounded up.
fn is_rounded(text: &str, exact: i64) -> bool {
    let most = match exact {
        ..=10_000 => 0,
        10_001..3_600_000 => 999,
        3_600_000..86_400_000 => 59_999,
        _ => 3_599_999,
    };
    // A larger unit may be reached by rounding.
    (exact..=exact + most).contains(&millis(text))
}

/// Compares the sentences with the integers of a look, and the verdict with those of the call. Returns the kind of the
/// verdict.
fn compare(
    line: &str,
    texts: &[String],
    combined: &[i64],
    pairs: &[Vec<i64>],
    called: &[i64],
) -> &'static str {
    let told = || format!("{line}: {texts:?}, {combined:?}, {pairs:?}");
    assert_eq!(texts.len(), 1 + pairs.len(), "{}", told());
    for (number, (text, pair)) in texts[1..].iter().zip(pairs).enumerate() {
        assert!(text.starts_with(&format!("{}. ", number + 1)), "{}", told());
        let (_, own) = text.split_once(": ").unwrap();
        let own = own.strip_prefix("a shadow: would ").unwrap_or(own);
        assert_eq!(own.starts_with("refuse"), pair[0] == 1, "{}", told());
        assert_eq!(own.contains("for good"), pair[3] == -1, "{}", told());
        let left = format!("{} of {} left", pair[2], pair[1]);
        let used = format!("{} of {} ", pair[1] - pair[2], pair[1]);
        let leases = own.contains("lease") || own.contains(" held");
        // A look at a strike that bans has the numbers of the ban.
        let banned = own.contains("banned") || pairs.len() == 1 && texts[0].contains("this strike bans");
        assert!(own.contains(&left) || own.contains(&used) || banned || leases, "{}", told());
    }
    let kind = agree(line, texts, called);
    // Only the call itself strikes.
    if kind != "bans" || pairs.len() == 1 {
        assert_eq!(agree(line, texts, combined), kind, "{}", told());
    }
    kind
}

/// Compares the verdict with five integers. Returns its kind.
fn agree(line: &str, texts: &[String], combined: &[i64]) -> &'static str {
    let verdict = texts[0].split("on this node: ").last().unwrap();
    let told = || format!("{line}: {texts:?}, {combined:?}");
    let (kind, retry) = if let Some(wait) = verdict.strip_prefix("admitted; wait ") {
        ("wait", Some(wait))
    } else if verdict.starts_with("admitted") {
        assert_eq!(combined[3], 0, "{}", told());
        ("admitted", None)
    } else if let Some((_, retry)) = verdict.split_once("; try again in ") {
        ("refused", Some(retry))
    } else if let Some(banned) = verdict.strip_prefix("banned for ") {
        ("banned", banned.split(" by ").next())
    } else if let Some((_, ban)) = verdict.split_once("this strike bans for ") {
        ("bans", Some(ban))
    } else if verdict.starts_with("refused for good") {
        assert_eq!(combined[3], -1, "{}", told());
        ("never", None)
    } else {
        panic!("{}", told());
    };
    assert_eq!(combined[0], i64::from(!kind.starts_with('a') && kind != "wait"), "{}", told());
    assert!(retry.is_none_or(|retry| is_rounded(retry, combined[3])), "{}", told());
    kind
}

/// The texts of an explanation, which changes nothing.
fn explain(con: &Memory, line: &str) -> Vec<String> {
    let before = con.dump();
    let Ok(Value::Array(lines)) = call(con, &format!("RL.EXPLAIN {line}")) else {
        panic!("{line}: no lines")
    };
    assert_eq!(con.dump(), before, "{line}");
    lines.iter().map(simple).collect()
}

/// The integers of a reply with those of each pair.
fn nested(con: &Memory, line: &str) -> (Vec<i64>, Vec<Vec<i64>>) {
    let reply = text(con, line);
    let lists = reply.split('[').filter(|list| list.contains(']'));
    let mut lists = lists.map(|list| {
        list.split([',', ']']).filter_map(|number| number.trim().parse().ok()).collect::<Vec<i64>>()
    });
    (lists.next().unwrap(), lists.collect())
}

#[test]
fn the_verdict_is_that_of_a_look() {
    let con = &Memory::new(1);
    let mut kinds = BTreeMap::new();
    let mut dice = Dice::of(53, 1);
    let mut at = T0;
    for number in 0..CALLS {
        at += dice.below(300_000);
        if dice.one_in(40) {
            at -= dice.below(4_000_000);
        }
        let id = format!("id{}", dice.below(9));
        let cost = dice.below(11);
        let own = dice.index(LIMITS.len());
        let words = LIMITS[own].replace('#', &id);
        let (limiter, parameters) = words.split_once(' ').unwrap();
        let options = format!("COST {cost} AT {at}");
        text(con, &format!("RL.{limiter} own:{own} {parameters} COST {} AT {at}", dice.below(6)));
        let look = ints(con, &format!("RL.PEEK own:{own} {words} {options}"));
        let line = format!("RL.{limiter} own:{own} {parameters} {options}");
        let texts = explain(con, &line);
        let kind = compare(&line, &texts, &look, std::slice::from_ref(&look), &ints(con, &line));
        *kinds.entry(format!("one: {kind}")).or_insert(0) += 1;

        let mut chosen = LIMITS;
        dice.shuffle(&mut chosen);
        let limits: Vec<&str> = chosen[..=dice.index(5)].to_vec();
        let mut line = String::new();
        for limit in &limits {
            line += " LIMIT ";
            line += limit;
            // No policy has a cost that never fits.
            let options = ["", "", " ON 2", " SHADOW", " COST 0", " COST 2"];
            line += options[dice.index(if limit.starts_with("UNIFORM") { 5 } else { 6 })];
        }
        let keys = ["k:1 k:2", "k:3 k:4"][dice.index(2)];
        let with_id = line.replace('#', &id);
        text(con, &format!("RL.MULTI 2 {keys} COST {} AT {at}{with_id}", dice.below(3)));
        let (combined, pairs) = nested(con, &format!("RL.MULTIPEEK 2 {keys} {options}{with_id}"));
        let asked = format!("RL.MULTI 2 {keys} {options}{with_id}");
        let texts = explain(con, &asked);
        let (called, _) = nested(con, &asked);
        let kind = compare(&asked, &texts, &combined, &pairs, &called);
        *kinds.entry(format!("several: {kind}")).or_insert(0) += 1;

        let policy = format!("p{}", number % 7);
        text(con, &format!("RL.POLICY SET {policy}{}", line.replace(" #", "")));
        let [first, more] = [0, 1].map(|place| keys.split(' ').nth(place).unwrap());
        let rest = format!("{options} ID {id} FULL KEYS {more}");
        let (combined, pairs) = nested(con, &format!("RL.ASKPEEK {first} {policy} {rest}"));
        let asked = format!("RL.ASK {first} {policy} {rest}");
        let texts = explain(con, &asked);
        let (called, _) = nested(con, &asked);
        let kind = compare(&asked, &texts, &combined, &pairs, &called);
        *kinds.entry(format!("asked: {kind}")).or_insert(0) += 1;
        // The pair that binds is the limit of the verdict.
        if called[0] == 1 {
            let limit = format!("by limit {}", called[5]);
            assert!(texts[0].contains(&limit), "{asked}: {texts:?}, {called:?}");
        }
    }
    println!("{kinds:?}");
    for kind in ["admitted", "wait", "refused", "banned", "bans", "never"] {
        for way in ["one", "several", "asked"] {
            let count = kinds.get(&format!("{way}: {kind}"));
            assert!(
                count.is_some_and(|count| *count >= if kind == "bans" { 5 } else { 20 }),
                "{way}: {kind}: {kinds:?}"
            );
        }
    }
}
