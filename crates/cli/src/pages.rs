//! Completion scripts and manual pages, generated from the definition of the command line.

use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::Outcome;
use crate::command_line::Cli;
use crate::overwrite::OverwriteArgs;

/// The heading of the examples in the text after a command's options.
const EXAMPLES: &str = "Examples:\n";

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rushes man > rushes.1                        all commands in one page
  rushes man --dir ~/.local/share/man/man1     rushes.1, rushes-send.1, rushes-texture-serve.1, ...")]
pub(crate) struct ManArgs {
    /// Folder in which to write a page for each command, instead of one page on the standard
    /// output; created if missing
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    overwrite: OverwriteArgs,
}

pub(crate) fn completions(shell: Shell) -> anyhow::Result<Outcome> {
    // Generated in memory first: the generator panics if the output is closed.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "rushes", &mut script);
    io::stdout().write_all(&script)?;
    Ok(Outcome::Done)
}

pub(crate) fn man(args: &ManArgs) -> anyhow::Result<Outcome> {
    let mut command = without_help(Cli::command());
    command.build();
    let pages = pages(&command);
    let Some(dir) = &args.dir else {
        let mut out = io::stdout().lock();
        for page in &pages {
            page.render(&pages, &mut out)?;
        }
        return Ok(Outcome::Done);
    };
    std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    let path = |page: &Page<'_>| dir.join(format!("{}.1", page.name()));
    // If one of the pages exists, none is written.
    for page in &pages {
        args.overwrite.check(&path(page))?;
    }
    for page in &pages {
        write(&path(page), page, &pages)?;
    }
    Ok(Outcome::Done)
}

/// Removes the commands `help` from a command and its subcommands; they would have pages, too.
fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

fn write(path: &Path, page: &Page<'_>, pages: &[Page<'_>]) -> anyhow::Result<()> {
    let mut text = Vec::new();
    page.render(pages, &mut text)
        .and_then(|()| std::fs::write(path, text))
        .with_context(|| path.display().to_string())
}

/// The page of a command.
struct Page<'c> {
    command: &'c Command,
    /// The index of the parent command's page.
    above: Option<usize>,
}

/// Returns the page of `command`, followed by those of its subcommands.
fn pages(command: &Command) -> Vec<Page<'_>> {
    let mut pages = vec![Page { command, above: None }];
    let mut next = 0;
    while let Some(page) = pages.get(next) {
        let below = page.command.get_subcommands().filter(|it| !it.is_hide_set());
        let below: Vec<_> = below.map(|command| Page { command, above: Some(next) }).collect();
        pages.extend(below);
        next += 1;
    }
    pages
}

impl Page<'_> {
    /// Returns the name of the page, such as `rushes-texture-serve`.
    fn name(&self) -> &str {
        self.command.get_display_name().unwrap_or_else(|| self.command.get_name())
    }

    fn render(&self, pages: &[Page<'_>], out: &mut dyn Write) -> io::Result<()> {
        let man = Man::new(self.command.clone());
        // The page has no date, so that every build makes the same page.
        let (name, version) = (self.name().to_uppercase(), env!("CARGO_PKG_VERSION"));
        writeln!(out, ".TH \"{name}\" \"1\" \"\" \"Rushes {version}\" \"Rushes\"")?;
        man.render_name_section(out)?;
        man.render_synopsis_section(out)?;
        man.render_description_section(out)?;
        if self.command.get_arguments().any(|argument| !argument.is_hide_set()) {
            man.render_options_section(out)?;
        }
        if self.command.has_subcommands() {
            man.render_subcommands_section(out)?;
        }
        self.render_rest(pages, out)
    }

    /// Writes the sections that Clap does not generate.
    fn render_rest(&self, pages: &[Page<'_>], out: &mut dyn Write) -> io::Result<()> {
        let mut roff = Roff::default();
        let text = self.command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let (notes, examples) = text.split_once(EXAMPLES).unwrap_or((&text, ""));
        let (examples, more) = examples.split_once("\n\n").unwrap_or((examples, ""));
        for (heading, text) in [("NOTES", notes), ("NOTES", more)] {
            if !text.trim().is_empty() && !text.starts_with("Exit code:") {
                roff.control("SH", [heading]);
                for (n, paragraph) in text.trim().split("\n\n").enumerate() {
                    if n > 0 {
                        roff.control("PP", []);
                    }
                    roff.text([roman(paragraph.replace('\n', " "))]);
                }
            }
        }
        if !examples.is_empty() {
            roff.control("SH", ["EXAMPLES"]);
            // Examples are copied unchanged, because their columns are aligned and long lines
            // continue.
            roff.control("EX", []);
            for line in examples.lines() {
                roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
            }
            roff.control("EE", []);
        }
        roff.control("SH", ["EXIT STATUS"]);
        for (code, meaning) in [
            ("0", "Success."),
            ("1", "Failure; the reason is on the standard error output."),
            ("2", "An error in the command line."),
        ] {
            roff.control("TP", ["4"]);
            roff.text([bold(code)]);
            roff.text([roman(meaning)]);
        }
        let others = self.related(pages);
        if !others.is_empty() {
            roff.control("SH", ["SEE ALSO"]);
            for (n, name) in others.iter().enumerate() {
                let comma = if n + 1 < others.len() { "," } else { "" };
                roff.text([bold(*name), roman(format!("(1){comma}"))]);
            }
        }
        roff.to_writer(out)
    }

    /// Returns the names of the pages of the parent command and of the subcommands.
    fn related<'p>(&self, pages: &'p [Page<'_>]) -> Vec<&'p str> {
        let is_above = |n: usize| self.above == Some(n);
        let is_below = |page: &Page<'_>| {
            page.above.is_some_and(|above| std::ptr::eq(pages[above].command, self.command))
        };
        let related = pages.iter().enumerate().filter(|(n, page)| is_above(*n) || is_below(page));
        related.map(|(_, page)| page.name()).collect()
    }
}
