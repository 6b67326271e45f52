//! Completion scripts and the manual page, made from the command line itself.

use std::io;
use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::Outcome;
use crate::command_line::Cli;

pub(crate) fn completions(shell: Shell) -> anyhow::Result<Outcome> {
    // Generated in memory first: the generator panics if the output is closed.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "rushes", &mut script);
    io::stdout().write_all(&script)?;
    Ok(Outcome::Done)
}

pub(crate) fn man() -> anyhow::Result<Outcome> {
    let mut command = Cli::command();
    command.build();
    clap_mangen::Man::new(command.clone()).render(&mut io::stdout())?;
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        clap_mangen::Man::new(subcommand.clone()).render(&mut io::stdout())?;
    }
    Ok(Outcome::Done)
}
