//! The access control of `SECURITY.md` and `docs/policies.md`, over the wire. The users are made by the lines of these pages,
//! and may do what the pages say and nothing else.

use redis::Connection;

use crate::support::{PROMPT, Server, call, error, error_line, skipped, text};

const PAGE: &str = include_str!("../../../SECURITY.md");
const POLICIES: &str = include_str!("../../../docs/policies.md");

/// A user, whether it needs our own category, and lines that it may send and may not. Lines that are allowed may
/// still end in an error, of another kind.
struct User {
    name: &'static str,
    by_category: bool,
    may: &'static [&'static str],
    may_not: &'static [&'static str],
}

const LIMITS: [&str; 6] = [
    "RL.GCRA limit:ann 9 1 1m",
    "RL.SLIDINGWINDOW limit:window 9 1m",
    "RL.CONCURRENT limit:lease 9 1m id",
    "RL.RENEW limit:lease 1m id",
    "RL.RELEASE limit:lease id",
    "RL.MULTI 2 limit:one limit:two LIMIT GCRA 9 1 1m",
];
const LOOKS: [&str; 5] = [
    "RL.PEEK limit:ann GCRA 9 1 1m",
    "RL.MULTIPEEK 2 limit:one limit:two LIMIT GCRA 9 1 1m",
    "RL.ASKPEEK limit:ann api",
    "RL.INFO limit:ann",
    "RL.HELP",
];
/// What neither who limits nor who looks may do.
const OTHERS: [&str; 18] = [
    "RL.POLICY LIST",
    "RL.TOP",
    "RL.APPLY limit:ann payload",
    "RL.GCRA session:ann 9 1 1m",
    "RL.PEEK session:ann GCRA 9 1 1m",
    "RL.SKETCH session:sketch ann 9 1 1m",
    "RL.PEEK session:sketch SKETCH ann 9 1ms 1m",
    "RL.INFO session:ann",
    "RL.MULTI 2 limit:one session:two LIMIT GCRA 9 1 1m",
    "RL.MULTIPEEK 2 limit:one session:two LIMIT GCRA 9 1 1m",
    "RL.APPLY limit:ann payload session:ann payload",
    "DEL limit:ann",
    "DUMP limit:ann",
    "RESTORE limit:ann 0 payload",
    "COPY limit:ann limit:bob",
    "KEYS *",
    "CONFIG SET ratelimit.max-leases 1",
    "SUBSCRIBE __keyevent@0__:rl.refuse",
];

const USERS: [User; 8] = [
    User { name: "app", by_category: false, may: &LIMITS, may_not: &LOOKS },
    User { name: "dashboard", by_category: false, may: &LOOKS, may_not: &LIMITS },
    User {
        name: "worker",
        by_category: false,
        may: &["RL.GCRA session:ann 9 1 1m", "RL.XADD jobs:mail 9 * to ann", "RL.INFO limit:ann", "GET key"],
        may_not: &["RL.POLICY LIST", "RL.APPLY limit:ann payload", "RESTORE limit:ann 0 payload", "KEYS *"],
    },
    User {
        name: "producer",
        by_category: false,
        may: &["RL.XADD jobs:mail 9 * to ann"],
        may_not: &["XADD jobs:mail * to ann", "RL.XADD limit:ann 9 * to ann", "RL.LPUSH jobs:list 9 ann"],
    },
    User {
        name: "reader",
        by_category: false,
        may: &["XLEN jobs:mail"],
        may_not: &["XADD jobs:mail * to ann", "RL.XADD jobs:mail 9 * to ann", "RL.APPLY jobs:mail payload"],
    },
    User {
        name: "asker",
        by_category: false,
        may: &["RL.ASK limit:ann api", "RL.ASKPEEK limit:ann api", "RL.ASK limit:ann api KEYS limit:bob"],
        may_not: &[
            "RL.ASK session:ann api",
            "RL.ASK limit:ann api KEYS session:ann",
            "RL.ASKPEEK limit:ann api KEYS session:ann",
            "RL.POLICY GET api",
            "RL.MULTI 1 limit:ann LIMIT GCRA 9 1 1m",
        ],
    },
    User { name: "app4", by_category: true, may: &LIMITS, may_not: &LOOKS },
    User { name: "dashboard4", by_category: true, may: &LOOKS, may_not: &LIMITS },
];

#[test]
fn users_may_do_what_the_page_says_and_nothing_else() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let category = call(con, &["ACL", "CAT", "ratelimit"]).is_ok();
    if !category {
        skipped(con, "categories that modules add");
    }
    let lines: Vec<&str> = PAGE.lines().chain(POLICIES.lines()).filter_map(acl_line).collect();
    assert_eq!(lines.len(), USERS.len(), "a line of ACL for each user that is tried out here");
    for user in USERS.iter().filter(|user| category || !user.by_category) {
        let start = format!("ACL SETUSER {} ", user.name);
        let line = lines.iter().find(|line| line.starts_with(&start)).unwrap();
        assert_eq!(text(con, line), "OK");
        let password = line.split(' ').find_map(|word| word.strip_prefix('>')).unwrap();
        let theirs = &mut server.connection();
        text(theirs, &format!("AUTH {} {password}", user.name));
        // Help is no secret: a rule with `+@ratelimit` grants it.
        let may_not = user.may_not.iter().filter(|line| !(user.by_category && **line == "RL.HELP"));
        let others: &[&str] = if user.may == LIMITS || user.may == LOOKS { &OTHERS } else { &[] };
        for line in user.may {
            assert!(!denied(theirs, line), "{} may not: {line}", user.name);
        }
        for line in may_not.chain(others) {
            assert!(denied(theirs, line), "{} may: {line}", user.name);
        }
    }
    // Those of the worker and of the producer, who may not say XADD.
    assert_eq!(text(con, "XLEN jobs:mail"), "2");
}

#[test]
fn a_script_may_do_what_its_caller_may() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    let line = PAGE.lines().filter_map(acl_line).find(|line| line.contains(" worker ")).unwrap();
    text(con, line);
    let theirs = &mut server.connection();
    text(theirs, "AUTH worker worker-secret");
    let script = |call: &str| format!("EVAL return(redis.call({call})) 1 key");
    assert_eq!(text(theirs, &script("'RL.UNIFORM',KEYS[1],'1m'")), "[0, 1, 0, 0, 60000]");
    let told = error(theirs, &script("'RL.APPLY',KEYS[1],'payload'"));
    assert!(told.contains("can't run this command") || told.contains("no permissions"), "{told}");
}

/// What the page warns of: there the categories of the server's own do not know our commands.
#[test]
fn without_categories_of_modules_only_names_grant_and_deny() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    for (rules, line, with_categories) in [
        ("+@all -@dangerous", "RL.APPLY key payload", true),
        ("+@read", "RL.PEEK key GCRA 9 1 1m", false),
        ("+@write", "RL.GCRA key 9 1 1m", false),
    ] {
        text(con, "ACL DELUSER somebody");
        text(con, &format!("ACL SETUSER somebody on nopass ~* {rules}"));
        let told = text(con, &format!("ACL DRYRUN somebody {line}"));
        let known = text(con, "COMMAND INFO rl.gcra").contains("@write");
        assert_eq!(told != "OK", known == with_categories, "{rules}: {line}: {told}");
    }
}

fn acl_line(line: &str) -> Option<&str> {
    let line = line.strip_prefix(PROMPT).unwrap_or(line);
    line.starts_with("ACL SETUSER ").then_some(line)
}

fn denied(con: &mut Connection, line: &str) -> bool {
    match call(con, &line.split(' ').collect::<Vec<_>>()) {
        Ok(_) => false,
        Err(error) => error_line(&error).starts_with("NOPERM"),
    }
}
