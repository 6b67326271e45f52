//! The commands of README and the guide: their options exist, and their values are accepted.

use std::fs;
use std::path::Path;

use clap::Parser;

use crate::command_line::Cli;

/// The commands of `rushes` in the shell code of a page.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut blocks = text.split("```sh\n");
    blocks.next();
    for block in blocks {
        let code = block.split("```").next().unwrap_or_default().replace("\\\n", " ");
        for line in code.replace("|\n", "| ").lines() {
            for part in line.split(['|', ';', '&']) {
                let words = words(part);
                if let Some(start) = words.iter().position(|word| word == "rushes") {
                    found.push(words[start..].to_vec());
                }
            }
        }
    }
    found
}

/// The words of a command as a shell splits them, up to a comment or a redirection.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in command.trim().chars().chain([' ']) {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ') if !word.is_empty() => words.push(std::mem::take(&mut word)),
            (None, ' ') => {}
            (None, '#' | '>' | ')') if word.is_empty() => break,
            _ => word.push(c),
        }
    }
    words
}

#[test]
fn commands_of_pages_are_accepted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = guide.chain([root.join("README.md"), root.join("bench/README.md")]);
    let mut count = 0;
    for page in pages.filter(|page| page.extension().is_some_and(|it| it == "md")) {
        for command in commands(&fs::read_to_string(&page).unwrap()) {
            count += 1;
            if let Err(error) = Cli::try_parse_from(&command) {
                panic!("{}: {}\n{error}", page.display(), command.join(" "));
            }
        }
    }
    assert!(count > 60, "only {count} commands were found");
}

#[test]
fn words_are_those_of_a_shell() {
    let text = "```sh\nffmpeg -i x - |\n  rushes send - --to 'a b:1'   # there\n```";
    assert_eq!(commands(text), [["rushes", "send", "-", "--to", "a b:1"]]);
}
