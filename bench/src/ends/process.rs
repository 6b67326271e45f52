//! Processes of this program that run one end of a measurement.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::hosts::{Hosts, Side};

/// The arguments of such a process.
#[derive(Args, Clone, Debug)]
pub(crate) struct EndArgs {
    /// What to do, as JSON
    pub(crate) spec: String,
}

/// Such a process, seen from the one that measures; it is ended when this is dropped.
pub(crate) struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts `rushes bench COMMAND SPEC` at the location of `side`.
    pub(crate) fn start(
        hosts: &Hosts,
        side: Side,
        command: &str,
        spec: &impl Serialize,
    ) -> anyhow::Result<Self> {
        let mut program = hosts.command(side)?;
        program.args(["bench", command, &serde_json::to_string(spec)?]);
        program.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = program.spawn().context("cannot start a process")?;
        let output = child.stdout.take().map(BufReader::new).context("an end has no output")?;
        Ok(Self { child, output })
    }

    /// Returns the next line that it prints.
    pub(crate) fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            bail!("an end ended before it printed a line");
        }
        Ok(line.trim().to_owned())
    }

    /// Writes a line to its input.
    pub(crate) fn write(&mut self, line: &str) -> anyhow::Result<()> {
        let input = self.child.stdin.as_mut().context("an end has no input")?;
        Ok(writeln!(input, "{line}")?)
    }

    pub(crate) fn close_input(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Its results, printed as one line of JSON.
    pub(crate) fn report<R: DeserializeOwned>(&mut self) -> anyhow::Result<R> {
        let line = self.line()?;
        serde_json::from_str(&line)
            .with_context(|| format!("unexpected output of an end: {line:?}"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails for a process that has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
