//! The machine that the figures were measured on.

use std::process::Command;

/// The known facts about the machine.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// The facts, with their names.
    pub(crate) facts: Vec<(&'static str, String)>,
}

impl Machine {
    pub(crate) fn find() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut facts = vec![("rushes", env!("CARGO_PKG_VERSION").to_owned())];
        let model = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned());
        facts.push(("processor", format!("{model}, {cores} cores, {}", std::env::consts::ARCH)));
        let has = |flag: &str| {
            field("/proc/cpuinfo", "flags")
                .is_some_and(|all| all.split_whitespace().any(|one| one == flag))
        };
        let flags: Vec<&str> = ["aes", "sha_ni", "avx2", "avx512f", "vaes", "hypervisor"]
            .into_iter()
            .filter(|flag| has(flag))
            .collect();
        facts.push(("extensions", flags.join(" ")));
        if let Some(memory) = field("/proc/meminfo", "MemTotal") {
            facts.push(("memory", memory));
        }
        let kernel = read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned());
        facts.push(("system", format!("{} {kernel}", std::env::consts::OS)));
        for (name, file) in [
            ("net.core.rmem_max", "/proc/sys/net/core/rmem_max"),
            ("net.core.wmem_max", "/proc/sys/net/core/wmem_max"),
        ] {
            facts.extend(read(file).map(|value| (name, value)));
        }
        let build = if cfg!(debug_assertions) {
            "debug: the figures are not meaningful"
        } else {
            "release"
        };
        facts.push(("build", build.to_owned()));
        for (name, program, option) in
            [("FFmpeg", "ffmpeg", "-version"), ("GStreamer", "gst-launch-1.0", "--version")]
        {
            facts.push((name, version(program, option).unwrap_or_else(|| "absent".to_owned())));
        }
        Self { facts }
    }
}

fn read(file: &str) -> Option<String> {
    Some(std::fs::read_to_string(file).ok()?.trim().to_owned())
}

/// Returns the first value of a name in a file of lines `name : value`.
fn field(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let value = text.lines().filter_map(|line| line.split_once(':'));
    value.into_iter().find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// Returns the first line of a program's version output.
fn version(program: &str, option: &str) -> Option<String> {
    let output = Command::new(program).arg(option).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next()?;
    Some(line.split(" Copyright").next().unwrap_or(line).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::Machine;

    #[test]
    fn every_fact_has_a_value() {
        let machine = Machine::find();
        for name in ["rushes", "processor", "system", "build", "FFmpeg", "GStreamer"] {
            let fact = machine.facts.iter().find(|(one, _)| *one == name);
            assert!(fact.is_some_and(|(_, value)| !value.is_empty()), "{name}");
        }
    }
}
