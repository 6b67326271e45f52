//! An asking and an answering process, and the times measured by the former.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};

use super::shape::Shape;
use super::side::Measured;
use super::way::Way;

/// Round trips in milliseconds, shortest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times(Vec<f64>);

impl Times {
    fn add(&mut self, more: &[f64]) {
        self.0.extend_from_slice(more);
        self.0.sort_by(f64::total_cmp);
    }

    /// The time within which `share` of all lie; `None` if there are none.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        #[allow(clippy::cast_sign_loss, reason = "neither is negative")]
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.max(1) - 1).copied()
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.iter().sum::<f64>() / self.0.len() as f64)
    }

    /// The number of times of `limit` milliseconds or more.
    pub(crate) fn above(&self, limit: f64) -> usize {
        self.0.iter().filter(|time| **time >= limit).count()
    }
}

/// The results of one way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trial {
    pub(crate) intra: Times,
    pub(crate) inter: Times,
    pub(crate) sent: u64,
    pub(crate) failed: u64,
}

impl Trial {
    pub(crate) fn add(&mut self, other: &Self) {
        self.intra.add(&other.intra.0);
        self.inter.add(&other.inter.0);
        self.sent += other.sent;
        self.failed += other.failed;
    }

    pub(crate) fn all(&self) -> Times {
        let mut all = self.intra.clone();
        all.add(&self.inter.0);
        all
    }
}

/// Runs both processes once.
pub(crate) fn measure(shape: Shape, frames: u64, way: Way) -> anyhow::Result<Trial> {
    let start = |core: &str, more: &[&str]| -> anyhow::Result<ChildGuard> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let child = Command::new(program)
            .args(["bench", "echo", "--core", core, "--way", &way.argument()])
            .args(["--intra", &shape.intra.to_string(), "--inter", &shape.inter.to_string()])
            .args(["--rate", &shape.rate.to_string(), "--frames", &frames.to_string()])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        Ok(ChildGuard(child.context("cannot start a process")?))
    };
    // Each process reports its port, and is passed that of the other.
    let mut asking = start("0", &["--ask"])?;
    let mut from_asking = asking.output()?;
    let port = line(&mut from_asking)?;
    let mut answering = start("1", &["--port", &port])?;
    let mut from_answering = answering.output()?;
    let port = line(&mut from_answering)?;
    let mut to_asking = asking.0.stdin.take().context("a side has no input")?;
    writeln!(to_asking, "{port}")?;
    let mut text = String::new();
    from_asking.read_to_string(&mut text)?;
    let measured: Measured = serde_json::from_str(&text)
        .with_context(|| format!("unexpected output of a side: {text:?}"))?;
    // The answering process ends when its standard input is closed.
    drop(answering.0.stdin.take());
    for side in [&mut asking, &mut answering] {
        if !side.0.wait()?.success() {
            bail!("a side of {} failed", way.name());
        }
    }
    let mut trial = Trial { sent: frames, failed: measured.failed, ..Trial::default() };
    trial.intra.add(&measured.intra);
    trial.inter.add(&measured.inter);
    Ok(trial)
}

/// A process that is ended when this value is dropped.
struct ChildGuard(Child);

impl ChildGuard {
    fn output(&mut self) -> anyhow::Result<BufReader<std::process::ChildStdout>> {
        self.0.stdout.take().map(BufReader::new).context("a side has no output")
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // Fails for a process that has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn line(from: &mut impl BufRead) -> anyhow::Result<String> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        bail!("a side ended before it printed a line");
    }
    Ok(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::Times;

    #[test]
    fn quantiles_are_of_what_was_measured() {
        let mut times = Times::default();
        assert_eq!(times.quantile(0.5), None);
        times.add(&[3.0, 1.0]);
        times.add(&[2.0, 4.0]);
        assert_eq!(times.quantile(0.5), Some(2.0));
        assert_eq!(times.quantile(0.99), Some(4.0));
        assert_eq!(times.quantile(1.0), Some(4.0));
        assert_eq!(times.mean(), Some(2.5));
        assert_eq!(times.above(3.0), 2);
    }
}
