//! A folder with a file of policies, for servers that start with it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Server, fresh_dir, module};

/// It is removed with all that is in it.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        Folder(fresh_dir())
    }

    /// A folder with this file of policies.
    pub fn with(policies: impl AsRef<[u8]>) -> Folder {
        let folder = Folder::new();
        folder.write(policies);
        folder
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The file that the setting names.
    pub fn file(&self) -> PathBuf {
        self.0.join("policies")
    }

    pub fn write(&self, policies: impl AsRef<[u8]>) {
        fs::write(self.file(), policies).unwrap();
    }

    pub fn read(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    /// The names of all files.
    pub fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A server whose policies are in the file.
    pub fn server(&self, args: &[&str]) -> Server {
        self.try_server(args).unwrap_or_else(|log| panic!("the server did not start:\n{log}"))
    }

    /// `Err` is the log of a server that did not start.
    pub fn try_server(&self, args: &[&str]) -> Result<Server, String> {
        let file = self.file();
        let setting = ["--ratelimit.policy-file", file.to_str().unwrap()];
        Server::try_start_with(Some(&module()), &[], &[&setting, args].concat())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
