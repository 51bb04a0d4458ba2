//! The file of policies, which is loaded at the start and by a call, and saved by a call: the setting
//! `ratelimit.policy-file`.
//!
//! ```text
//! # name, then the words of RL.POLICY SET
//! api VERSION 7 LIMIT GCRA 99 100 1s
//! signup LIMIT FIXEDWINDOW 5 1h LIMIT PENALTY 3 10m 1h
//! ```
//!
//! One policy a line, the words separated by blanks, without quotes. `#` begins a comment. A line without a version has
//! version 1.

use std::fs::{self, DirEntry, File, Metadata, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::iter;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use ratelimit_engine::policies::Policies;
use ratelimit_language::{Bounds, Error};

use crate::server::{NODE, policies};

/// The absolute path of the file, if the setting gives one. It does not change: the server may change its folder.
static PATH: OnceLock<PathBuf> = OnceLock::new();

/// A pipe, a socket, a device or a folder.
const NO_FILE: &str = "it is not a regular file";

const HEADING: &str = "# Policies of the module ratelimit, written by RL.POLICY SAVE.\n";

/// Sets the path from the setting, and reads the file if there is one. Returns a warning if there is none.
///
/// # Errors
///
/// Says what is wrong, with the file's name, and the line if one is wrong.
pub fn load_at_start(setting: &Path, bounds: Bounds) -> Result<Option<String>, String> {
    if setting.as_os_str().is_empty() {
        return Ok(None);
    }
    let absolute = std::path::absolute(setting).map_err(|error| format!("{}: {error}", setting.display()))?;
    let path = PATH.get_or_init(|| absolute);
    if matches!(fs::metadata(path), Err(error) if error.kind() == io::ErrorKind::NotFound) {
        return Ok(Some(format!(
            "there is no {}, so the policies are those of the data, if there are any",
            path.display()
        )));
    }
    policies::begin_with(parsed(path, bounds)?);
    Ok(None)
}

/// Replaces all policies by those of the file, and returns their number. If a line is wrong, nothing changes.
pub fn load(bounds: Bounds) -> Result<usize, Error> {
    let policies = parsed(path()?, bounds).map_err(|wrong| Error::Invalid(wrong.into()))?;
    let count = policies.len();
    *NODE.policies() = policies;
    Ok(count)
}

/// Writes all policies into the file, and returns their number. The file is the old one or the new one, also after a
/// crash: the new one is written beside it, synced, and renamed.
pub fn save() -> Result<usize, Error> {
    let path = path()?;
    let cannot = |error: io::Error| Error::invalid(format_args!("cannot write {}: {error}", path.display()));
    let (text, count) = {
        let policies = NODE.policies();
        (iter::once(HEADING.into()).chain(policies.lines()).collect::<String>(), policies.len())
    };
    write(path, &text).map_err(cannot)?;
    Ok(count)
}

/// Writes a file anew, beside the old one, which it then replaces.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let path = resolved(path)?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidFilename.into());
    };
    let start = format!(".{}.", name.display());
    remove_leftovers(folder, &start);
    // Another server may write the same file.
    let random = RandomState::new().build_hasher().finish();
    let beside = folder.join(format!("{start}{random:016x}"));
    let folder = File::open(folder)?;
    let replace = || {
        write_beside(&beside, &path, text)?;
        to_replace(&path)?;
        fs::rename(&beside, &path)
    };
    let written = replace();
    if written.is_err() {
        _ = fs::remove_file(&beside);
    }
    written?;
    // The new file is in place. It stays after a crash once its folder is synced.
    folder.sync_all()
}

/// The age from which an unfinished new file counts as left by a crash.
const LEFTOVER: Duration = Duration::from_secs(60);

/// Removes the files beside the old one that a crash has left behind.
fn remove_leftovers(folder: &Path, start: &str) {
    let is_leftover = |file: &DirEntry| {
        let name = file.file_name();
        let random = name.to_str()?.strip_prefix(start)?;
        let is_beside = random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
        let metadata = file.metadata().ok().filter(|metadata| is_beside && metadata.is_file())?;
        Some(metadata.modified().ok()?.elapsed().ok()? > LEFTOVER)
    };
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    for file in files.filter(|file| is_leftover(file) == Some(true)) {
        _ = fs::remove_file(file.path());
    }
}

/// The file that is to be replaced; `None` if it is missing. Anything else is an error: root could replace a device.
fn to_replace(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(old) if old.is_file() => Ok(Some(old)),
        Ok(_) => Err(io::Error::other(NO_FILE)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The most links that lead to one another. The same as in Linux.
const MOST_LINKS: usize = 40;

/// The file that a link leads to: it is replaced, not the link. It may be missing.
///
/// `fs::canonicalize` frees a string that libc allocated. On servers that hide their allocator from modules, these are two
/// different allocators.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&path) else { return Ok(path) };
        path = path.parent().unwrap_or(&path).join(target);
    }
    Err(io::Error::from_raw_os_error(libc::ELOOP))
}

/// Writes a new file, with the owner and the permissions of the one that it is to replace.
fn write_beside(beside: &Path, path: &Path, text: &str) -> io::Result<()> {
    let old = to_replace(path)?;
    let mut file = OpenOptions::new().write(true).create_new(true).open(beside)?;
    if let Some(old) = old {
        // Only root may give files away.
        _ = fchown(&file, Some(old.uid()), Some(old.gid()));
        file.set_permissions(old.permissions())?;
    }
    let (start, rest) = text.as_bytes().split_at(text.len() / 2);
    file.write_all(start)?;
    #[cfg(feature = "fault-injection")]
    crate::server::die_if_armed();
    file.write_all(rest)?;
    file.sync_all()
}

fn path() -> Result<&'static PathBuf, Error> {
    PATH.get().ok_or_else(|| Error::Invalid("the setting ratelimit.policy-file is empty".into()))
}

/// The policies of the file. The counts of those that the node has already continue.
fn parsed(path: &Path, bounds: Bounds) -> Result<Policies, String> {
    let text = read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let (old, mut new) = (NODE.policies().clone(), Policies::NONE);
    for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        if let Err(error) = new.add_line(line, bounds, &old) {
            let error = error.to_string();
            let error = error.strip_prefix("ERR ").unwrap_or(&error);
            return Err(format!("{}:{number}: {error}", path.display()));
        }
    }
    Ok(new)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Reading a pipe would wait for its writer.
    if fs::metadata(path)?.is_file() { fs::read(path) } else { Err(io::Error::other(NO_FILE)) }
}
