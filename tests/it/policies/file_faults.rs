//! Saves that fail, and a server that dies in the middle of one: the old file is as it was.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use redis::Connection;

use super::folder::Folder;
use super::{get, policies, set};
use crate::support::machine::Machine;
use crate::support::{Server, T0, call, error, faulty_module, ints, module, text};

const OLD: &str = "api VERSION 3 LIMIT GCRA 9 10 1s\n";

/// A save that fails, and changes no policy. Returns the reason.
fn fails(con: &mut Connection, file: &Path) -> String {
    let before = (policies(con), get(con, "api"));
    let told = error(con, "RL.POLICY SAVE");
    assert_eq!((policies(con), get(con, "api")), before);
    assert_eq!(ints(con, &format!("RL.ASK key api COST 0 AT {T0}"))[0], 0);
    let start = format!("ERR cannot write {}: ", file.display());
    told.strip_prefix(&start).unwrap_or_else(|| panic!("{told}, not {start}")).to_string()
}

#[test]
fn a_full_disk_leaves_the_old_file_and_nothing_beside_it() {
    let folder = Folder::with(OLD);
    let file = folder.file();
    let machine = Machine::start(&["--ratelimit.policy-file", file.to_str().unwrap()]);
    let con = &mut machine.server.connection();
    for number in 0..100 {
        set(con, &format!("policy{number} LIMIT GCRA 99 100 1s LIMIT FIXEDWINDOW 9 1h"));
    }
    set(con, "api LIMIT GCRA 9 10 1s");
    // Nothing, a part of the first half, and all but the end of the second one.
    text(con, "RL.POLICY SAVE");
    let size = fs::metadata(&file).unwrap().len();
    folder.write(OLD);
    for bytes in [0, 100, size / 2, size / 2 + 1, size - 1] {
        machine.may_write(&bytes.to_string());
        assert!(!fails(con, &file).is_empty(), "{bytes} of {size} bytes");
        assert_eq!((folder.read(), folder.names()), (OLD.into(), vec!["policies".into()]), "{bytes} bytes");
    }
    machine.may_write("unlimited");
    assert_eq!(text(con, "RL.POLICY SAVE"), "101");
    assert_eq!(fs::metadata(&file).unwrap().len(), size);
    assert_eq!(folder.names(), ["policies"]);
}

#[test]
fn a_folder_that_vanished_is_an_error_until_it_is_back() {
    let folder = Folder::new();
    let (inner, file) = (folder.path().join("inner"), folder.path().join("inner/policies"));
    fs::create_dir(&inner).unwrap();
    fs::write(&file, OLD).unwrap();
    let server = Server::start(&["--ratelimit.policy-file", file.to_str().unwrap()]);
    let con = &mut server.connection();
    set(con, "more LIMIT UNIFORM 1s");
    fs::remove_dir_all(&inner).unwrap();
    assert!(fails(con, &file).starts_with("No such file or directory"));
    fs::write(&inner, "a file in place of the folder").unwrap();
    assert!(fails(con, &file).starts_with("Not a directory"));
    fs::remove_file(&inner).unwrap();
    fs::create_dir(&inner).unwrap();
    assert_eq!(text(con, "RL.POLICY SAVE"), "2");
    assert_eq!(text(con, "RL.POLICY LOAD"), "2");
}

#[test]
fn what_is_no_file_is_never_replaced() {
    let folder = Folder::with(OLD);
    let server = folder.server(&[]);
    let con = &mut server.connection();
    set(con, "api LIMIT UNIFORM 1s");
    let [pipe, socket, inner] = ["pipe", "socket", "folder"].map(|name| folder.path().join(name));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let _listener = UnixListener::bind(&socket).unwrap();
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("treasure"), "").unwrap();
    for other in [&pipe, &socket, &inner] {
        let kind = fs::symlink_metadata(other).unwrap().file_type();
        let unchanged = || fs::symlink_metadata(other).unwrap().file_type() == kind;
        // In the place of the file, and behind links.
        fs::remove_file(folder.file()).unwrap();
        fs::rename(other, folder.file()).unwrap();
        assert_eq!(fails(con, &folder.file()), "it is not a regular file", "{}", other.display());
        fs::rename(folder.file(), other).unwrap();
        assert!(unchanged());
        symlink(other, folder.path().join("link")).unwrap();
        symlink("link", folder.file()).unwrap();
        assert_eq!(fails(con, &folder.file()), "it is not a regular file", "a link to {}", other.display());
        assert!(unchanged());
        fs::remove_file(folder.path().join("link")).unwrap();
    }
    // A link to a file that is missing by now.
    assert_eq!(text(con, "RL.POLICY SAVE"), "1");
    assert_eq!(folder.names(), ["folder", "link", "pipe", "policies", "socket"]);
    assert!(inner.join("treasure").exists());
}

#[test]
fn a_place_where_the_server_may_not_write_is_an_error() {
    // Even root makes no files there.
    let folder = Folder::new();
    symlink("/proc/policies", folder.file()).unwrap();
    let server = folder.server(&[]);
    let con = &mut server.connection();
    set(con, "api LIMIT GCRA 9 10 1s");
    for place in ["/proc/policies", "/proc/version"] {
        fs::remove_file(folder.file()).unwrap();
        symlink(place, folder.file()).unwrap();
        assert!(!fails(con, &folder.file()).is_empty());
        assert_eq!(fs::read_link(folder.file()).unwrap(), Path::new(place));
        assert_eq!(folder.names(), ["policies"]);
    }
}

#[test]
fn a_save_that_is_an_error_has_not_replaced_the_file() {
    let folder = Folder::with(OLD);
    let permit = |bits| fs::set_permissions(folder.path(), fs::Permissions::from_mode(bits)).unwrap();
    permit(0o555);
    let Some(server) = without_privileges(&folder) else { return };
    let server = server.unwrap();
    let con = &mut server.connection();
    set(con, "api LIMIT GCRA 9 10 1s");
    assert!(fails(con, &folder.file()).starts_with("Permission denied"));
    assert_eq!((folder.read(), folder.names()), (OLD.into(), vec!["policies".into()]));
    // Files can be made here, and the folder cannot be read.
    permit(0o333);
    let saved = call(con, &["RL.POLICY", "SAVE"]);
    permit(0o777);
    assert_eq!(saved.is_err(), folder.read() == OLD, "{saved:?}, and the file is {}", folder.read());
    assert_eq!(text(con, "RL.POLICY SAVE"), "1");
    assert!(folder.read().contains("api VERSION 4 LIMIT GCRA 9 10 1s\n"));
    assert_eq!(folder.names(), ["policies"]);
    // Nor may it read.
    fs::set_permissions(folder.file(), fs::Permissions::from_mode(0o000)).unwrap();
    let log = without_privileges(&folder).expect("such a user").err().unwrap();
    let told = format!("ratelimit not loaded: cannot read {}: Permission denied", folder.file().display());
    assert!(log.contains(&told), "{log}");
}

/// What starts a program as another user than root.
const UNPRIVILEGED: [&str; 5] =
    ["setpriv", "--pdeathsig=KILL", "--reuid=65534", "--regid=65534", "--clear-groups"];

/// A server of a user who is not root, whose policies are in the file. `None` if such a user cannot even read the module,
/// as in a checkout in root's home.
fn without_privileges(folder: &Folder) -> Option<Result<Server, String>> {
    // SAFETY: a bare system call.
    let is_root = unsafe { libc::geteuid() } == 0;
    let launcher = if is_root { &UNPRIVILEGED[..] } else { &[] };
    if let [program, arguments @ ..] = launcher {
        let mut test = Command::new(program);
        let readable = test.args(arguments).args(["test", "-r"]).arg(module()).status();
        if !readable.is_ok_and(|status| status.success()) {
            eprintln!("skipped: no user but root can read {}", module().display());
            return None;
        }
    }
    let file = folder.file();
    let setting = ["--ratelimit.policy-file", file.to_str().unwrap()];
    Some(Server::try_start_under(launcher, Some(&module()), &[], &setting))
}

#[test]
fn a_crash_in_the_middle_of_a_save_leaves_the_old_file_and_the_next_save_works() {
    let folder = Folder::with(OLD);
    let file = folder.file();
    let setting = ["--ratelimit.policy-file", file.to_str().unwrap()];
    let mut server = Server::start_with(Some(&faulty_module()), &setting);
    let con = &mut server.connection();
    set(con, "api LIMIT UNIFORM 1s");
    set(con, "more LIMIT UNIFORM 1s");
    text(con, "RL.PANIC SAVE");
    let died = call(con, &["RL.POLICY", "SAVE"]).unwrap_err();
    assert!(died.code().is_none(), "{died}");
    server.kill();
    // It had begun with the new one, which is not the file of policies.
    assert_eq!(folder.read(), OLD);
    let names = folder.names();
    let [leftover, _] = &names[..] else { panic!("too late to be killed: {names:?}") };
    let leftover = folder.path().join(leftover);

    server.start_again();
    let con = &mut server.connection();
    assert_eq!(text(con, "RL.POLICY LIST"), "[api, 3]");
    set(con, "more LIMIT UNIFORM 1s");
    let before = policies(con);
    // It could be that of another server, which is writing it.
    assert_eq!(text(con, "RL.POLICY SAVE"), "2");
    assert!(leftover.exists());
    let others = [
        ".policies.bak",
        ".policies.2026-11-23T18:54",
        ".policies.0123456789abcdef0",
        ".policies",
        ".others.0123456789abcdef",
    ];
    let others = others.map(|name| folder.path().join(name));
    for other in &others {
        fs::write(other, "").unwrap();
    }
    let folder_beside = folder.path().join(".policies.0123456789abcdef");
    fs::create_dir(&folder_beside).unwrap();
    for old in others.iter().chain([&leftover, &folder_beside]) {
        File::open(old).unwrap().set_modified(SystemTime::now() - Duration::from_secs(61)).unwrap();
    }
    assert_eq!(text(con, "RL.POLICY SAVE"), "2");
    assert!(!leftover.exists() && folder_beside.exists() && others.iter().all(|other| other.exists()));
    server.restart();
    assert_eq!(policies(&mut server.connection()), before);
}
