//! The commands of README and the guide, as their readers type them.

use std::fs;
use std::path::{Path, PathBuf};

/// README, the pages of the guide, and that of the measurements, with their names.
pub(crate) fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let others = ["README.md", "bench/README.md"].map(|page| root.join(page));
    let mut found: Vec<_> = guide.chain(others).filter(|page| is_page(page)).collect();
    found.sort();
    let name = |page: &PathBuf| page.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
    found.iter().map(|page| (name(page), fs::read_to_string(page).unwrap())).collect()
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// The commands in the shell code of a page: lines that continue are joined, comments left out.
pub(crate) fn commands(text: &str) -> Vec<String> {
    let blocks = text.split("```sh\n").skip(1);
    let code = blocks.map(|block| block.split("```").next().unwrap_or_default());
    let joined = code.map(|code| code.replace("\\\n", " ").replace("|\n", "| "));
    let lines: Vec<_> =
        joined.flat_map(|code| code.lines().map(command).collect::<Vec<_>>()).collect();
    lines.into_iter().filter(|line| !line.is_empty()).collect()
}

/// A line without its comment, with single spaces.
fn command(line: &str) -> String {
    let is_comment = |word: &&str| word.starts_with('#');
    let words: Vec<_> = line.split_whitespace().take_while(|word| !is_comment(word)).collect();
    words.join(" ")
}
