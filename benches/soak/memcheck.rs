//! Valgrind's memcheck around a server, and what it has to say about the module.

use std::fs;
use std::path::{Path, PathBuf};

/// What stands in the report of a frame of the module's.
const OURS: &str = "libredis_ratelimit.so</obj>";
/// Blocks that nothing refers to at the end. What might be referred to, or still is, is no leak.
const LOST: [&str; 2] = ["Leak_DefinitelyLost", "Leak_IndirectlyLost"];
const FRAMES: usize = 14;

pub struct Memcheck {
    reports: PathBuf,
}

impl Memcheck {
    pub fn new() -> Memcheck {
        let reports = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("memcheck-{}", std::process::id()));
        _ = fs::remove_dir_all(&reports);
        fs::create_dir_all(&reports).expect("a folder for the reports");
        Memcheck { reports }
    }

    /// The program that becomes the server.
    pub fn launcher(&self) -> Vec<String> {
        let suppressions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/valgrind.supp");
        let mut words: Vec<String> = [
            "valgrind",
            "--tool=memcheck",
            // The allocator is a library by itself in Debian; valgrind puts its own in its place.
            "--soname-synonyms=somalloc=*jemalloc*",
            "--leak-check=full",
            "--show-leak-kinds=all",
            "--error-limit=no",
            "--num-callers=40",
            "--xml=yes",
        ]
        .map(String::from)
        .into();
        // One report for each process: those that write files are children.
        words.push(format!("--xml-file={}", self.reports.join("%p.xml").display()));
        words.push(format!("--suppressions={}", suppressions.display()));
        words
    }

    /// What is wrong, after the server, a process of this id, has ended.
    pub fn faults(&self, server: u32) -> Vec<String> {
        let mut faults = Vec::new();
        let (mut watched, mut processes, mut theirs) = (false, 0, 0);
        for file in fs::read_dir(&self.reports).expect("the reports").map(|entry| entry.unwrap().path()) {
            let report = fs::read_to_string(&file).unwrap_or_default();
            processes += 1;
            if !report.contains("</valgrindoutput>") {
                faults.push(format!("{}: the report has no end", file.display()));
            }
            let child = !file.ends_with(format!("{server}.xml"));
            for error in report.split("<error>").skip(1) {
                let kind = inside(error, "kind").unwrap_or_default();
                let (ours, leak) = (error.contains(OURS), kind.starts_with("Leak_"));
                watched |= ours && leak;
                // What a child has lost its parent had lost before, or goes with the child.
                if leak && (child || !LOST.contains(&kind)) {
                    continue;
                }
                if ours {
                    // A child reports again what its parent has met before.
                    let told = told(kind, error);
                    if !faults.contains(&told) {
                        faults.push(told);
                    }
                } else {
                    theirs += 1;
                }
            }
        }
        // The strings of the settings are there till the end: if nothing of the module's is left, it was not
        // valgrind's allocator that gave it.
        if !watched {
            faults.push("valgrind saw no memory of the module's: nothing was checked".to_string());
        }
        println!(
            "{processes} processes; {} errors and leaks in the module, {theirs} elsewhere",
            faults.len()
        );
        if faults.is_empty() {
            _ = fs::remove_dir_all(&self.reports);
        } else {
            println!("the reports are in {}", self.reports.display());
        }
        faults
    }
}

/// Kind, text and frames of an error.
fn told(kind: &str, error: &str) -> String {
    let mut lines =
        vec![format!("{kind}: {}", inside(error, "what").or(inside(error, "text")).unwrap_or_default())];
    let frames = error.split("<frame>").skip(1);
    // Those of the standard library are many and tell little.
    for frame in frames
        .filter(|frame| !frame.contains("<dir>/rustc/") && !frame.contains("<file>library/"))
        .take(FRAMES)
    {
        let part = |name| inside(frame, name).unwrap_or("?");
        lines.push(format!("    {} ({}:{})", part("fn"), part("file"), part("line")));
    }
    lines.join("\n").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// What stands between a pair of tags, the first of its name.
fn inside<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, behind) = xml.split_once(&format!("<{name}>"))?;
    behind.split_once(&format!("</{name}>")).map(|(text, _)| text)
}
