//! Rules for the whole repository that the compiler does not check.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The attribute that exports a function to C under its own name.
const NAMED: &str = concat!("#[", "unsafe", "(no_mangle)]");

/// Maximum lines of a source file.
const LINES_MAX: usize = 800;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn all_sources() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    sources(&root.canonicalize().unwrap(), &mut found);
    assert!(found.len() > 50);
    found
}

/// Returns whether a line contains `unsafe` as code.
fn has_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap();
    // Every second piece, between quotes, is a string literal.
    code.split('"').step_by(2).any(|code| {
        let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(|word| word == "unsafe")
    })
}

#[test]
fn unsafe_code_has_one_address() {
    for path in all_sources() {
        let home = path.parent().unwrap().ends_with("crates/net/src/sys")
            || path.parent().unwrap().ends_with("crates/gpu/src/mapped")
            || path.parent().unwrap().ends_with("crates/texture/src/dispatch")
            || path.ends_with("bindings/python/src/buffer.rs")
            || path.ends_with("crates/scan/src/dispatch.rs")
            || path.ends_with("crates/sha1/src/dispatch.rs")
            || path.ends_with("crates/ipsec-mb/src/library.rs")
            || path.ends_with("bindings/capi/src/pointer.rs")
            || path.ends_with("bindings/capi/src/texture/block.rs");
        // `no_mangle` also promises that no other function has the same name, which the prefix
        // ensures.
        let names = path.to_str().unwrap().contains("/bindings/capi/src/");
        let source = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = source.lines().collect();
        for pair in lines.windows(2).filter(|pair| names && pair[0] == NAMED) {
            assert!(pair[1].starts_with("pub extern \"C\" fn rushes_"), "{}", path.display());
        }
        let line = lines.iter().find(|line| has_unsafe(line) && !(names && **line == NAMED));
        assert!(home || line.is_none(), "{}: {}", path.display(), line.unwrap());
    }
}

#[test]
fn the_test_of_unsafe_can_fail() {
    assert!(has_unsafe("    let x = unsafe { y() };"));
    assert!(!has_unsafe("#![forbid(unsafe_code)]"));
    let (quote, word) = ('"', ["un", "safe"].concat());
    assert!(has_unsafe(&format!("let x = ({quote}text{quote}, {word} {{ y() }});")));
    assert!(!has_unsafe("// unsafe in a comment"));
    assert!(!has_unsafe(&format!("let x = {quote}{word}{quote};")));
}

#[test]
fn files_stay_small() {
    for path in all_sources() {
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= LINES_MAX, "{}: {lines} lines", path.display());
    }
}

#[test]
fn nothing_unfinished_is_left() {
    let marks = [["to", "do!("].concat(), ["unimple", "mented!("].concat(), ["FIX", "ME"].concat()];
    for path in all_sources() {
        let source = std::fs::read_to_string(&path).unwrap();
        for mark in &marks {
            assert!(!source.contains(mark.as_str()), "{}: {mark}", path.display());
        }
    }
}

/// Returns words of three parts or more between backticks, which are taken for names of tests.
fn tests_named(text: &str) -> Vec<&str> {
    let is_name = |word: &&str| {
        let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        word.matches('_').count() >= 2 && word.chars().all(is_part)
    };
    text.split('`').skip(1).step_by(2).filter(is_name).collect()
}

/// Returns the target of a source file's log messages, up to its crate's first module, and their
/// levels.
fn messages(path: &Path, text: &str) -> Option<(String, BTreeSet<String>)> {
    let path = path.to_str().unwrap().split_once("/crates/").map(|(_, path)| path.to_owned())?;
    let (name, module) = path.split_once("/src/")?;
    let module = module.split(['/', '.']).next().unwrap();
    let name = if name == "rushes" { name.to_owned() } else { format!("rushes_{name}") };
    let calls = text.split("tracing::").skip(1).filter_map(|call| call.split_once("!("));
    let levels: BTreeSet<_> = calls.map(|(level, _)| level.to_owned()).collect();
    let levels: BTreeSet<_> = levels.into_iter().filter(|level| is_name(level)).collect();
    (!levels.is_empty()).then(|| (format!("{name}::{module}"), levels))
}

fn is_name(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_lowercase())
}

#[test]
fn the_page_on_observing_lists_every_target_of_messages() {
    let mut targets: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in all_sources().iter().filter(|path| !path.ends_with("tests/house.rs")) {
        if let Some((target, levels)) = messages(path, &std::fs::read_to_string(path).unwrap()) {
            targets.entry(target).or_default().extend(levels);
        }
    }
    let row = |(target, levels): (String, BTreeSet<String>)| {
        format!("| `{target}` | {} |", levels.into_iter().collect::<Vec<_>>().join(", "))
    };
    let rows: Vec<String> = targets.into_iter().map(row).collect();
    assert!(rows.len() > 10 && rows.contains(&"| `rushes::media` | warn |".to_owned()), "{rows:?}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/observing.md")).unwrap();
    let is_target = |line: &&str| line.starts_with("| `rushes") && line.contains("::");
    let listed: Vec<_> = page.lines().filter(is_target).collect();
    assert!(listed == rows, "docs/observing.md should list\n{}", rows.join("\n"));
}

#[test]
fn every_test_that_is_named_as_a_proof_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let named = tests_named(&text);
    assert!(named.len() > 20, "{named:?}");
    let all: String =
        all_sources().iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let missing: Vec<_> =
        named.into_iter().filter(|name| !all.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(tests_named("`a_b_c`, a_b_d and `a_b`"), ["a_b_c"]);
}
