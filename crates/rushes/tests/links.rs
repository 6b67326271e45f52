//! The links of all pages have targets, the guide contains all pages, and README is short.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Finds all pages except those of other projects' code.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// Returns the targets of the links in a page, except in code.
fn links(text: &str) -> Vec<String> {
    let mut is_code = false;
    let prose = text.lines().filter(|line| {
        is_code ^= line.trim_start().starts_with("```");
        !is_code
    });
    let prose = prose.collect::<Vec<_>>().join("\n");
    let targets = prose.split("](").skip(1);
    targets.map(|rest| rest[..rest.find(')').unwrap()].to_owned()).collect()
}

/// Returns the anchor of a heading, as code hosts generate it.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn every_link_leads_to_a_page_and_its_heading() {
    let mut found = Vec::new();
    pages(&root(), &mut found);
    assert!(found.len() > 20, "{found:?}");
    let mut broken = Vec::new();
    for page in found {
        for link in links(&fs::read_to_string(&page).unwrap()) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target =
                if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let leads = match fs::read_to_string(&target) {
                _ if heading.is_empty() => target.exists(),
                Ok(text) => {
                    let mut headings = text.lines().filter(|line| line.starts_with('#'));
                    headings.any(|line| anchor(line) == heading)
                }
                Err(_) => false,
            };
            if !leads {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

#[test]
fn the_guide_contains_every_page() {
    let folder = root().join("docs");
    let listed = links(&fs::read_to_string(folder.join("SUMMARY.md")).unwrap());
    let mut found = Vec::new();
    pages(&folder, &mut found);
    let name = |page: &PathBuf| page.file_name().unwrap().to_str().unwrap().to_owned();
    let mut missing: Vec<_> = found.iter().map(name).collect();
    missing.retain(|name| name != "SUMMARY.md" && !listed.contains(name));
    assert!(missing.is_empty(), "docs/SUMMARY.md lacks {missing:?}");
}

#[test]
fn the_readme_is_read_in_three_minutes() {
    let words = fs::read_to_string(root().join("README.md")).unwrap().split_whitespace().count();
    assert!(words <= 600, "README.md has {words} words");
}
