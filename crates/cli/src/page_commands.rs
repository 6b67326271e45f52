//! The commands of README and the guide: their options exist, and their values are accepted.
//! `tests/program/guide` runs them.

use clap::Parser;

use crate::command_line::Cli;

#[path = "../tests/shared/pages.rs"]
mod pages;

/// Returns the parts of a shell command that are commands of `rushes`.
fn parts(command: &str) -> Vec<Vec<String>> {
    let parts = command.split(['|', ';', '&']).map(words);
    let of_rushes = |words: Vec<String>| {
        let start = words.iter().position(|word| word == "rushes")?;
        Some(words[start..].to_vec())
    };
    parts.filter_map(of_rushes).collect()
}

/// Returns the words of a command as a shell splits them, up to a redirection.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in command.trim().chars().chain([' ']) {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ') if !word.is_empty() => words.push(std::mem::take(&mut word)),
            (None, ' ') => {}
            (None, '>' | ')') if word.is_empty() => break,
            _ => word.push(c),
        }
    }
    words
}

#[test]
fn commands_of_pages_are_accepted() {
    let mut count = 0;
    for (page, text) in pages::pages() {
        for command in pages::commands(&text).iter().flat_map(|command| parts(command)) {
            count += 1;
            if let Err(error) = Cli::try_parse_from(&command) {
                panic!("{page}: {}\n{error}", command.join(" "));
            }
        }
    }
    assert!(count > 60, "only {count} commands were found");
}

#[test]
fn words_are_those_of_a_shell() {
    let text = "```sh\nffmpeg -i x - |\n  rushes send - --to 'a b:1' > c  # there\n```";
    let commands = pages::commands(text);
    assert_eq!(commands, ["ffmpeg -i x - | rushes send - --to 'a b:1' > c"]);
    assert_eq!(parts(&commands[0]), [["rushes", "send", "-", "--to", "a b:1"]]);
}
