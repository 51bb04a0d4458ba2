//! Who may ask, and who may change policies: access control, scripts and transactions.

use redis::{Connection, Value};

use super::{get, policies, set, stats};
use crate::support::{Server, T0, call, error, error_line, text};

fn denied(con: &mut Connection, line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    call(con, &words).is_err_and(|error| error_line(&error).starts_with("NOPERM"))
}

/// A connection of a new user with these rules.
fn user(server: &Server, name: &str, rules: &str) -> Connection {
    let mut con = server.connection();
    text(&mut con, &format!("ACL SETUSER {name} on nopass {rules}"));
    text(&mut con, &format!("AUTH {name} x"));
    con
}

#[test]
fn a_user_asks_its_own_keys_only_also_behind_keys() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "api LIMIT GCRA 9 10 1h LIMIT CONCURRENT 99 1h");
    set(con, "plain LIMIT GCRA 9 10 1h");
    let app = &mut user(&server, "app", "~user:* +rl.ask +rl.askpeek +rl.asksettle +rl.askrefund +eval");
    for line in [
        "RL.ASK user:1 api ID x",
        "RL.ASK user:1 api ID x KEYS user:2 user:3",
        "RL.ASK user:1 api ID KEYS HOLD KEYS 1h KEYS user:2",
        "RL.ASKPEEK user:1 api ID x KEYS user:2",
        "RL.ASKREFUND user:1 api KEYS user:2",
        "RL.ASKSETTLE user:1 api KEYS COST 1 KEYS user:2",
    ] {
        assert!(!denied(app, line), "{line}");
    }
    let before = text(con, "DEBUG DIGEST");
    for line in [
        "RL.ASK team:1 api ID x",
        "RL.ASK team:1 api ID x KEYS user:1",
        "RL.ASK user:1 api ID x KEYS user:2 team:1",
        "RL.ASK user:1 api ID x KEYS team:1 user:2",
        "RL.ASK user:1 api ID x keys team:1",
        "RL.ASK user:1 api ID KEYS KEYS team:1",
        "RL.ASK user:1 api ID x HOLD KEYS 1h KEYS team:1",
        "RL.ASK user:1 api ID x KEYS KEYS",
        "RL.ASK user:1 missing KEYS team:1",
        "RL.ASKPEEK user:1 api ID x KEYS team:1",
        "RL.ASKREFUND user:1 api KEYS team:1",
        "RL.ASKSETTLE user:1 api KEYS COST 1 KEYS team:1",
        "RL.ASKSETTLE user:1 api id COST 1 ID KEYS KEYS team:1",
    ] {
        assert!(denied(app, line), "{line}");
        let script = format!("return redis.call('{}')", line.replace(' ', "','"));
        let told = error_line(&call(app, &["EVAL", &script, "0"]).unwrap_err()).to_lowercase();
        assert!(told.contains("no permissions") || told.contains("can't access"), "{told}");
    }
    // A malformed call reads no key that the server was not asked for.
    for line in ["RL.ASK user:1 api BOGUS KEYS team:1", "RL.ASK user:1 api ID KEYS team:1"] {
        assert!(error(app, line).starts_with("ERR syntax error"), "{line}");
    }
    assert_eq!(text(con, "EXISTS team:1 KEYS"), "0");
    assert_eq!(text(con, "DEBUG DIGEST"), before);

    // Who only may read may peek; also of the second key.
    let board = &mut user(&server, "board", "%R~* +rl.ask +rl.askpeek +rl.askrefund +rl.asksettle");
    assert!(!denied(board, "RL.ASKPEEK user:1 plain KEYS user:2"));
    for line in ["ASK user:1 plain", "ASK user:1 plain COST 0", "ASKREFUND user:1 plain"] {
        assert!(denied(board, &format!("RL.{line}")), "{line}");
    }
    assert!(denied(board, "RL.ASKSETTLE user:1 plain x COST 1"));
    let half = &mut user(&server, "half", "~user:1 %R~user:2 +rl.ask +rl.askpeek");
    assert!(!denied(half, "RL.ASK user:1 plain"));
    assert!(!denied(half, "RL.ASKPEEK user:1 plain KEYS user:2"));
    assert!(denied(half, "RL.ASK user:1 plain KEYS user:2"));
}

#[test]
fn an_operator_can_keep_applications_from_changing_policies() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "api LIMIT GCRA 9 10 1h");
    let app = &mut user(&server, "app", "~* +@all -rl.policy");
    let before = (policies(con), get(con, "api"));
    for line in
        ["SET api LIMIT UNIFORM 1s", "GET api", "DEL api", "LIST", "STATS api", "LOAD", "SAVE", "HELP"]
    {
        assert!(denied(app, &format!("RL.POLICY {line}")), "{line}");
    }
    assert!(!denied(app, "RL.ASK user:1 api"));
    assert_eq!((policies(con), get(con, "api")), before);
    // Where the server gives commands of modules their categories, these do the same.
    let known = text(con, "COMMAND INFO rl.gcra").contains("@write");
    for category in ["@admin", "@dangerous"] {
        let app = &mut user(&server, "other", &format!("~* +@all -{category}"));
        assert_eq!(denied(app, "RL.POLICY LIST"), known, "{category}");
        for line in ["RL.ASK k api", "RL.ASKPEEK k api", "RL.ASKREFUND k api", "RL.ASKSETTLE k api x COST 1"]
        {
            assert!(!denied(app, line), "{category}: {line}");
        }
        text(con, "ACL DELUSER other");
    }
}

#[test]
fn scripts_ask_policies_and_do_not_change_them() {
    let server = Server::start(&[]);
    let con = &mut server.connection();
    set(con, "api LIMIT GCRA 9 10 1h LIMIT FIXEDWINDOW 5 1h ON 2");
    let eval = |con: &mut Connection, command: &str, words: &str| {
        let script = format!("return redis.call({words})");
        call(con, &[command, &script, "2", "user:1", "team:1"]).map_err(|error| error_line(&error))
    };
    let ask = format!("'RL.ASK',KEYS[1],'api','AT','{T0}','KEYS',KEYS[2]");
    for left in [4, 3] {
        let six = [0, 5, left, 0, 3_600_000, 3].map(Value::Int).to_vec();
        assert_eq!(eval(con, "EVAL", &ask), Ok(Value::Array(six)));
    }
    let looked = [0, 5, 3, 0, 3_600_000, 3].map(Value::Int).to_vec();
    assert_eq!(eval(con, "EVAL_RO", &ask.replace("ASK", "ASKPEEK")), Ok(Value::Array(looked)));
    assert!(eval(con, "EVAL_RO", &ask).is_err());
    let told = eval(con, "EVAL", "'RL.ASK',KEYS[1],'missing'").unwrap_err();
    assert!(told.starts_with("ERR no such policy 'missing'"), "{told}");
    let before = policies(con);
    assert!(eval(con, "EVAL", "'RL.POLICY','LIST'").is_ok());
    for words in ["'SET','api','LIMIT','UNIFORM','1s'", "'LOAD'", "'DEL','api'"] {
        let told = eval(con, "EVAL", &format!("'RL.POLICY',{words}")).unwrap_err();
        assert!(told.contains("not allowed from script"), "{told}");
    }
    assert_eq!(policies(con), before);
    assert_eq!(stats(con, "api"), [2, 0, 0, 0]);
}

#[test]
fn a_transaction_asks_by_the_policy_of_its_moment() {
    let server = Server::start(&[]);
    let (con, other) = (&mut server.connection(), &mut server.connection());
    set(con, "api LIMIT FIXEDWINDOW 1 1h");
    text(con, "MULTI");
    let ask = format!("RL.ASK k api AT {T0}");
    for line in [&ask, &ask, "RL.POLICY SET api LIMIT FIXEDWINDOW 5 1h", &ask, "RL.POLICY DEL api", &ask] {
        assert_eq!(text(con, line), "QUEUED");
    }
    assert_eq!(
        text(con, "EXEC"),
        "[[0, 1, 0, 0, 3600000, 1], [1, 1, 0, 3600000, 3600000, 1], 2, [0, 5, 3, 0, 3600000, 1], 1, \
         ERR no such policy 'api']"
    );
    // Who watches a key is disturbed by a charge, and not by a refusal or a policy.
    set(con, "api LIMIT FIXEDWINDOW 2 1h");
    for (line, executes) in [
        ("RL.ASK watched api COST 9", true),
        ("RL.ASKPEEK watched api", true),
        ("RL.ASK watched api COST 0", true),
        ("RL.ASKREFUND watched api", true),
        ("RL.POLICY SET api LIMIT FIXEDWINDOW 3 1h", true),
        ("RL.ASK watched api", false),
        ("RL.ASK watched api COST 3", true),
        ("RL.ASKREFUND watched api", false),
    ] {
        text(con, "WATCH watched");
        text(other, line);
        text(con, "MULTI");
        text(con, "PING");
        assert_eq!(call(con, &["EXEC"]).unwrap() != Value::Nil, executes, "{line}");
    }
}
