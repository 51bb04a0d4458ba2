//! `RL.POLICY SAVE`: a file from which the next start has the same policies.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use super::folder::Folder;
use super::random::RandomPolicy;
use super::{get, policies, set, stats};
use crate::support::dice::Dice;
use crate::support::{Server, call, ints, text};

fn mode(file: &Path) -> u32 {
    fs::metadata(file).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_restart_after_a_save_has_the_same_policies_versions_and_digest() {
    let folder = Folder::new();
    let mut server = folder.server(&[]);
    let con = &mut server.connection();
    let mut dice = Dice::new(50);
    let mut names = Vec::new();
    for number in 0..700 {
        let words = RandomPolicy::new(&mut dice).words();
        let line =
            format!("RL.POLICY SET random:{number} VERSION {} {words}", 1 + dice.any() % (1 << 53) / 2);
        // Some policies are wrong: they have a limit twice, or a cost above its limit.
        if call(con, &line.split_whitespace().collect::<Vec<_>>()).is_ok() {
            names.push(format!("random:{number}"));
        }
    }
    for line in [
        "a limit calendar 9 day tz japan".to_string(),
        "b SHADOW LIMIT SMOOTH 9 1s WARMUP 2s COLDFACTOR 4.5 SHADOW".into(),
        format!("{} LIMIT CONCURRENT 9 1h RESERVED 2 CRITICAL ON 64", "x".repeat(64)),
    ] {
        set(con, &line);
        names.push(line.split(' ').next().unwrap().into());
    }
    assert!(names.len() > 400, "{}", names.len());
    let before = policies(con);
    let each: Vec<_> = names.iter().map(|name| get(con, name)).collect();
    assert_eq!(text(con, "RL.POLICY SAVE"), names.len().to_string());
    assert_eq!(folder.names(), ["policies"]);
    server.restart();
    let con = &mut server.connection();
    assert_eq!(policies(con), before);
    for (name, stored) in names.iter().zip(each) {
        assert_eq!(get(con, name), stored);
        assert_eq!(stats(con, name), [0; 4]);
    }
    // What is loaded and saved again is the same file.
    let file = folder.read();
    assert_eq!(text(con, "RL.POLICY LOAD"), names.len().to_string());
    assert_eq!(text(con, "RL.POLICY SAVE"), names.len().to_string());
    assert_eq!(folder.read(), file);
    assert_eq!(policies(con), before);
}

#[test]
fn the_file_has_a_line_for_each_policy() {
    let folder = Folder::new();
    let server = folder.server(&[]);
    let con = &mut server.connection();
    let lines = |folder: &Folder| -> Vec<String> {
        folder.read().lines().filter(|line| !line.starts_with('#')).map(str::to_string).collect()
    };
    assert_eq!(text(con, "RL.POLICY SAVE"), "0");
    assert!(lines(&folder).is_empty());
    set(con, "b shadow limit gcra 9 10 1s");
    set(con, "a VERSION 7 LIMIT UNIFORM 1s ON 2 COST 0");
    assert_eq!(text(con, "RL.POLICY SAVE"), "2");
    let written = ["a VERSION 7 LIMIT UNIFORM 1s ON 2 COST 0", "b VERSION 1 SHADOW LIMIT GCRA 9 10 1s"];
    assert_eq!(lines(&folder), written);
    assert!(folder.read().ends_with('\n'));
    // Only a save writes.
    text(con, "RL.POLICY DEL a");
    ints(con, "RL.ASK key b");
    assert_eq!(lines(&folder), written);
    assert_eq!(text(con, "RL.POLICY SAVE"), "1");
    assert_eq!(lines(&folder), written[1..]);
}

#[test]
fn a_save_writes_a_new_file_with_the_permissions_of_the_old_one() {
    let folder = Folder::with("api LIMIT UNIFORM 1s\n");
    let server = folder.server(&[]);
    let con = &mut server.connection();
    let file = folder.file();
    // Who has the old file open, or another link to it, keeps it as it is.
    let other = folder.path().join("other");
    fs::hard_link(&file, &other).unwrap();
    for bits in [0o600, 0o640, 0o644, 0o666, 0o400, 0o755] {
        fs::set_permissions(&file, fs::Permissions::from_mode(bits)).unwrap();
        set(con, "api LIMIT UNIFORM 1s");
        assert_eq!(text(con, "RL.POLICY SAVE"), "1");
        assert_eq!(mode(&file), bits, "{bits:o}");
        let version = get(con, "api").0;
        assert!(folder.read().contains(&format!("api VERSION {version} ")), "{bits:o}");
    }
    assert_eq!(fs::read_to_string(&other).unwrap(), "api LIMIT UNIFORM 1s\n");
    assert_ne!(fs::metadata(&other).unwrap().ino(), fs::metadata(&file).unwrap().ino());
    assert_eq!(folder.names(), ["other", "policies"]);
}

#[test]
fn a_save_follows_a_link_and_leaves_it_a_link() {
    let (folder, elsewhere) = (Folder::new(), Folder::with("api LIMIT UNIFORM 1s\n"));
    fs::set_permissions(elsewhere.file(), fs::Permissions::from_mode(0o640)).unwrap();
    // A link to a link.
    symlink(elsewhere.file(), folder.path().join("link")).unwrap();
    symlink("link", folder.file()).unwrap();
    let mut server = folder.server(&[]);
    let con = &mut server.connection();
    set(con, "more LIMIT UNIFORM 1s");
    assert_eq!(text(con, "RL.POLICY SAVE"), "2");
    assert_eq!(fs::read_link(folder.file()).unwrap(), Path::new("link"));
    assert_eq!(fs::read_link(folder.path().join("link")).unwrap(), elsewhere.file());
    assert_eq!(
        (elsewhere.names(), folder.names()),
        (vec!["policies".into()], vec!["link".into(), "policies".into()])
    );
    assert!(elsewhere.read().contains("\nmore VERSION 1 LIMIT UNIFORM 1s\n"));
    assert_eq!(mode(&elsewhere.file()), 0o640);
    let before = policies(con);
    server.restart();
    let con = &mut server.connection();
    assert_eq!(policies(con), before);
    // Also to a file that is missing.
    fs::remove_file(elsewhere.file()).unwrap();
    assert_eq!(text(con, "RL.POLICY SAVE"), "2");
    assert_eq!(elsewhere.names(), ["policies"]);
    assert_eq!(fs::read_link(folder.file()).unwrap(), Path::new("link"));
}

#[test]
fn two_servers_may_save_into_one_file() {
    let folder = Folder::new();
    let servers = [folder.server(&[]), folder.server(&[])];
    for (number, server) in servers.iter().enumerate() {
        set(&mut server.connection(), &format!("of-server-{number} LIMIT UNIFORM 1s"));
    }
    std::thread::scope(|scope| {
        for server in &servers {
            let mut con = server.connection();
            scope.spawn(move || (0..100).for_each(|_| assert_eq!(text(&mut con, "RL.POLICY SAVE"), "1")));
        }
    });
    assert_eq!(folder.names(), ["policies"]);
    // The file is one server's or the other one's.
    let server: &Server = &servers[0];
    assert_eq!(text(&mut server.connection(), "RL.POLICY LOAD"), "1");
}
