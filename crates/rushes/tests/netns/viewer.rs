//! A client of `texture_peer`, and its report.

use serde_json::Value;

use super::Running;

pub(crate) struct Viewer {
    running: Running,
    latest: Option<u64>,
    report: Option<Value>,
}

impl Viewer {
    /// Connects by a transport from a namespace to a server of so many frames; waits for packets for `deadline`
    /// milliseconds, or for the default time.
    pub(crate) fn start(
        namespace: &str,
        (server, transport): (&str, &str),
        frames: u64,
        deadline: Option<u64>,
    ) -> Self {
        let (frames, deadline) = (frames.to_string(), deadline.map(|it| it.to_string()));
        let mut arguments = vec!["view", server, transport, &frames];
        arguments.extend(deadline.as_deref());
        Self { running: Running::peer(namespace, &arguments), latest: None, report: None }
    }

    /// Returns the number of the latest frame that it has.
    pub(crate) fn latest(&mut self) -> Option<u64> {
        while let Some(line) = self.running.line_now() {
            self.take(&line);
        }
        self.latest
    }

    /// Waits until it has a frame with this number or a later one; returns the latest one's number.
    pub(crate) fn wait_for(&mut self, number: u64) -> u64 {
        loop {
            if let Some(latest) = self.latest().filter(|latest| *latest >= number) {
                return latest;
            }
            assert!(self.report.is_none(), "no frame {number}: {:?}", self.report);
            let line = self.running.line();
            self.take(&line);
        }
    }

    /// Notes a line that it has printed.
    fn take(&mut self, line: &str) {
        if let Some(frame) = line.strip_prefix("frame ") {
            self.latest = Some(frame.parse().unwrap());
        } else {
            let report = serde_json::from_str(line);
            self.report = Some(report.unwrap_or_else(|_| panic!("no report: {line}")));
        }
    }

    /// Leaves the stream; returns the report, as [`counted`].
    pub(crate) fn leave(mut self) -> Value {
        self.running.tell("leave");
        let seen = counted(self.report());
        assert_eq!(seen["end"], "none", "{seen}");
        seen
    }

    /// Waits for the end that the server sends; returns the report, as [`counted`].
    pub(crate) fn end(self) -> Value {
        let seen = counted(self.report());
        assert!(seen["end"].as_str().unwrap().contains("source has ended"), "{seen}");
        seen
    }

    /// Waits for the end of any kind; returns the report.
    pub(crate) fn report(mut self) -> Value {
        loop {
            if let Some(report) = self.report.take() {
                return report;
            }
            let line = self.running.line();
            self.take(&line);
        }
    }
}

/// Returns a number of a report.
pub(crate) fn number(report: &Value, name: &str) -> u64 {
    report[name].as_u64().unwrap_or_else(|| panic!("no {name}: {report}"))
}

/// Returns how many frames between its first and its last one a viewer has not seen.
pub(crate) fn missing(seen: &Value) -> u64 {
    number(seen, "last") + 1 - number(seen, "first") - number(seen, "frames")
}

/// Checks that the octets of a report's frames were all right, and that their packets are each counted once.
pub(crate) fn counted(seen: Value) -> Value {
    assert!(seen["faults"].as_array().unwrap().is_empty(), "{seen}");
    let number = |name: &str| number(&seen, name);
    let (frames, all) = (number("frames"), number("packets_of_a_frame"));
    let packets = number("packets") + number("packets_repaired") + number("packets_lost");
    assert_eq!(packets, frames * all, "{seen}");
    assert_eq!(number("frames_whole") + number("frames_damaged"), frames, "{seen}");
    assert!(frames > 0, "{seen}");
    seen
}
