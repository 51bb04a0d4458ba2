//! Links of a page to other pages and to their headings.

use std::path::Path;

use super::files::read;

/// The links of a page that lead to no file, or to no heading of it.
pub fn dead(page: &Path) -> Vec<String> {
    let text = prose(&read(page));
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    let within = targets.filter(|target| !target.contains("://"));
    within
        .filter(|target| !leads(page, target))
        .map(|target| format!("{}: {target}", page.display()))
        .collect()
}

fn leads(page: &Path, target: &str) -> bool {
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() { page.to_owned() } else { page.with_file_name(file) };
    path.exists() && (heading.is_empty() || headings(&read(&path)).any(|slug| slug == heading))
}

/// The names that a page's headings have in links.
fn headings(page: &str) -> impl Iterator<Item = String> {
    let headings: Vec<String> =
        prose(page).lines().filter(|line| line.starts_with('#')).map(str::to_lowercase).collect();
    headings.into_iter().map(|heading| {
        let kept = |letter: &char| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter);
        heading.trim_start_matches('#').trim().chars().filter(kept).collect::<String>().replace(' ', "-")
    })
}

/// A page without its blocks of code.
fn prose(page: &str) -> String {
    let outside = page.split("```").step_by(2);
    outside.collect()
}
