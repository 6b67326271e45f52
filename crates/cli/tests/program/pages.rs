//! Completions and manual pages.

use std::path::Path;
use std::process::Command;

use crate::rig::{run, text};

#[test]
fn completions_and_manual_are_made() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(text(&run(&["completions", shell]).stdout).contains("loopback"), "{shell}");
    }
    let manual = text(&run(&["man"]).stdout);
    assert!(manual.contains(".TH") && manual.contains("loopback"));
}

/// Returns the names of the pages in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn each_command_has_a_page_that_names_related_ones() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("share/man1");
    let man = ["man", "--dir", dir.to_str().unwrap()];
    let output = run(&man);
    assert!(output.status.success() && output.stdout.is_empty(), "{}", text(&output.stderr));
    let names = names(&dir);
    for name in ["rushes", "rushes-send", "rushes-keygen", "rushes-texture-serve", "rushes-bench"] {
        assert!(names.contains(&format!("{name}.1")), "{name} is not in {names:?}");
    }
    let page = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    for name in &names {
        let page = page(name);
        let title = name.trim_end_matches(".1").to_uppercase();
        assert!(page.starts_with(&format!(".TH \"{title}\" \"1\"")), "{name}");
        for section in ["NAME", "SYNOPSIS", "\"EXIT STATUS\"", "\"SEE ALSO\""] {
            assert_eq!(page.matches(&format!("\n.SH {section}\n")).count(), 1, "{name}: {section}");
        }
        // References point to existing pages.
        let (_, references) = page.split_once(".SH \"SEE ALSO\"\n").unwrap();
        for reference in references.lines().filter_map(|line| line.strip_prefix("\\fB")) {
            let (name, _) = reference.split_once("\\fR").unwrap();
            let file = format!("{}.1", name.replace("\\-", "-"));
            assert!(names.contains(&file), "{file}");
        }
    }
    let send = page("rushes-send.1");
    assert!(send.contains(".SH EXAMPLES\n.EX\nrushes send film.265 \\-\\-to 192.0.2.7:5004\n"));
    assert!(page("rushes.1").contains("\\fBrushes\\-texture\\fR(1)"));
    assert!(page("rushes-texture-view.1").ends_with("\\fBrushes\\-texture\\fR(1)\n"));

    let again = run(&man);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("rushes.1 exists; --force overwrites it"));
    assert!(run(&[&man[..], &["--force"]].concat()).status.success());
    check_with_mandoc(&dir, &names);
}

/// Checks that mandoc finds no error in any page.
fn check_with_mandoc(dir: &Path, names: &[String]) {
    if !crate::skipped::have(&["mandoc"]) {
        return;
    }
    for name in names {
        let check = ["-T", "lint", "-W", "error", name];
        let output = Command::new("mandoc").args(check).current_dir(dir).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stdout));
    }
}
