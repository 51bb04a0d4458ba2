//! The settings of the module: what they bound, and which values and arguments are refused.

use redis::{Connection, Value};

use crate::support::{Server, call, error, error_line, info, ints, module, simple, text};

#[test]
fn arguments_that_the_module_does_not_take_are_refused() {
    let log = Server::try_start_with(Some(&module()), &["max-leases", "5"], &[]).err().unwrap();
    assert!(log.contains("ratelimit not loaded: it takes no arguments"), "{log}");
}

#[test]
fn the_log_names_the_version_and_the_build_once() {
    let server = Server::start(&["--enable-module-command", "yes"]);
    let con = &mut server.connection();
    let [version, build] =
        ["ratelimit_version", "ratelimit_build"].map(|field| info(con, "ratelimit", field).unwrap());
    assert_eq!(server.log().matches(&format!("ratelimit {version} ({build})")).count(), 1);
    // As when `redis.conf` and a file that it includes both load it.
    let twice = Server::try_start_with(Some(&module()), &[], &["--loadmodule", module().to_str().unwrap()])
        .err()
        .unwrap();
    let told =
        "ratelimit not loaded: it is loaded already. Is loadmodule in redis.conf and in an included file?";
    assert!(twice.contains(told), "{twice}");
    // A server in use goes on.
    let error = call(con, &["MODULE", "LOAD", module().to_str().unwrap()]).unwrap_err();
    assert!(error_line(&error).starts_with("ERR Error loading the extension."), "{error}");
    assert!(server.log().contains(told), "{}", server.log());
    assert_eq!(ints(con, "RL.GCRA k 1 1 1s")[0], 0);
}

#[test]
fn a_setting_that_may_not_be_is_refused_with_the_module() {
    for (setting, value) in [
        ("max-leases", "0"),
        ("max-log-entries", "100000001"),
        ("max-holds", "0"),
        ("max-holds", "100001"),
        ("events", "perhaps"),
        ("max-sketch-bytes", "524287"),
        ("max-sketch-bytes", "257mb"),
        ("top", "10001"),
        ("top-window", "999"),
    ] {
        let log = Server::try_start_with(Some(&module()), &[], &[&format!("--ratelimit.{setting}"), value]);
        let log = log.err().unwrap();
        let named = format!("Issue during loading of configuration ratelimit.{setting} : ");
        assert!(log.contains(&named), "{setting} {value}: {log}");
        let told = "ratelimit not loaded: the server refused the setting that its log names before this line";
        assert!(log.contains(told), "{setting} {value}: {log}");
    }
}

/// Valkey would end (its issue 4630). Redis 7.0 replies an error and keeps the module, and Redis 8 unloads it.
#[test]
fn a_server_survives_settings_of_loadex_that_do_not_exist() {
    let module = module();
    let told = "ratelimit: settings of MODULE LOADEX that do not exist are ignored";
    for unknown in ["ratelimit.max-lease", "nothing"] {
        let server = Server::start_with(None, &["--enable-module-command", "yes"]);
        let con = &mut server.connection();
        let words = ["MODULE", "LOADEX", module.to_str().unwrap(), "CONFIG", "ratelimit.top", "5"];
        let loaded = call(con, &[&words[..], &["CONFIG", unknown, "5"]].concat()).is_ok();
        assert_eq!(text(con, "PING"), "PONG");
        let is_valkey = info(con, "server", "server_name").as_deref() == Some("valkey");
        assert_eq!((loaded, server.log().contains(told)), (is_valkey, is_valkey), "{}", server.log());
        if is_valkey {
            assert_eq!(text(con, "CONFIG GET ratelimit.top"), "[ratelimit.top, 5]");
        }
    }
    // While it starts, a server has settings of modules that are loaded later.
    assert!(!Server::start(&["--ratelimit.top", "5"]).log().contains(told));
}

/// As the suite of Redis does, with the settings of all modules.
#[test]
fn each_setting_can_be_set_to_its_own_value() {
    for file in ["", "/nowhere/policies"] {
        let server = Server::start(&["--ratelimit.policy-file", file]);
        let con = &mut server.connection();
        let all = |con: &mut Connection| match call(con, &["CONFIG", "GET", "ratelimit.*"]).unwrap() {
            Value::Array(settings) => settings.iter().map(simple).collect::<Vec<String>>(),
            other => panic!("{other:?}"),
        };
        let settings = all(con);
        assert!(settings.len() > 18, "{settings:?}");
        for setting in settings.chunks(2) {
            assert_eq!(
                simple(&call(con, &["CONFIG", "SET", &setting[0], &setting[1]]).unwrap()),
                "OK",
                "{setting:?}"
            );
        }
        assert_eq!(text(con, "CONFIG GET ratelimit.policy-file"), format!("[ratelimit.policy-file, {file}]"));
        for low in ["max-leases 0", "max-log-entries 0"] {
            assert!(error(con, &format!("CONFIG SET ratelimit.{low}")).starts_with("ERR"));
        }
        let words: Vec<&str> =
            ["CONFIG", "SET"].into_iter().chain(settings.iter().map(String::as_str)).collect();
        assert_eq!(simple(&call(con, &words).unwrap()), "OK");
        for other in ["other", "policies2", "/nowhere/policies "] {
            let told = call(con, &["CONFIG", "SET", "ratelimit.policy-file", other]).unwrap_err().to_string();
            assert!(
                told.contains("policy-file") && told.contains("it cannot be changed while the server runs"),
                "{told}"
            );
            // All or nothing.
            let two = ["CONFIG", "SET", "ratelimit.max-leases", "7", "ratelimit.policy-file", other];
            assert!(call(con, &two).is_err());
        }
        assert_eq!(all(con), settings);
    }
}
