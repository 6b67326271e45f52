//! The program that forwards frames between namespaces (`interop/weather.py`).

use std::path::Path;
use std::process::Stdio;

use super::{Running, command};

pub(super) struct Hub(Running);

impl Hub {
    /// Starts it between the interfaces `port0`, `port1` and so on of a namespace.
    pub(super) fn start(namespace: &str, ports: usize, seed: u64) -> Result<Self, String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/weather.py");
        let mut python = command(namespace, Path::new("python3"));
        python.arg(script).arg(seed.to_string());
        python.args((0..ports).map(|port| format!("port{port}"))).stderr(Stdio::piped());
        let mut running = Running::start(&mut python)?;
        if running.line() == "ready" {
            return Ok(Self(running));
        }
        let said = running.complaint();
        Err(said.lines().last().unwrap_or("weather.py did not start").to_owned())
    }

    /// Sets the conditions of frames towards a port.
    pub(super) fn set(&mut self, port: usize, weather: &str) {
        self.0.tell(&format!("port{port} {weather}"));
        assert_eq!(self.0.line(), "ok", "{weather}");
    }
}
