//! One stream of the library, at both ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes::{Context, FrameRate, MediaStream, Pacing, Recovery, Security, StreamBuilder};

use super::flow::{Inlet, Outlet};
use super::spec::{Clock, ETHERNET_LEN, IP_UDP_LEN, Spec, Spread};
use super::trial::Report;
use crate::sequence::Sequence;

/// The maximum length of a received access unit; all that the measurements send are shorter.
const FRAME_LEN_MAX: usize = 256 << 20;

/// Adds the settings that both ends share.
fn configured(spec: &Spec, builder: StreamBuilder) -> anyhow::Result<StreamBuilder> {
    let builder = builder.recovery(if spec.recovery { Recovery::On } else { Recovery::Off });
    let Some(suite) = spec.suite()? else { return Ok(builder) };
    // A fixed key, known to both ends, is sufficient here.
    Ok(builder.security(Security::shared(suite, &vec![0x2d; suite.key_and_salt_len()])?))
}

pub(super) struct StreamOutlet {
    stream: MediaStream,
    sequence: Arc<Sequence>,
    keep_alive: bool,
}

impl StreamOutlet {
    pub(super) fn open(
        spec: &Spec,
        sequence: &Arc<Sequence>,
        to: SocketAddr,
    ) -> anyhow::Result<Self> {
        let mut builder = Context::new()
            .session(&spec.host)?
            .stream(spec.codec()?)
            .remote_port(to.port())
            .mtu(spec.mtu)
            .send_path(spec.path.send())
            .socket_buffer(spec.buffers[0])
            .pacing(Pacing::Off);
        if let Clock::Steady(rate, spread) = spec.clock {
            builder = builder.pacing(match spread {
                Spread::Burst => Pacing::Off,
                Spread::Default => Pacing::default(),
                Spread::Rate(bits) => Pacing::Rate(bits),
            });
            if let Some(rate) = FrameRate::from_f64(rate) {
                builder = builder.frame_rate(rate);
            }
        }
        if let Some(per_mille) = spec.padding_limit {
            builder = builder.padding_limit(per_mille);
        }
        let stream = configured(spec, builder)?.open()?;
        Ok(Self { stream, sequence: Arc::clone(sequence), keep_alive: spec.keep_alive })
    }
}

impl Outlet for StreamOutlet {
    fn push(&mut self, n: u64, _due: Instant) -> anyhow::Result<u64> {
        let unit = self.sequence.unit(usize::try_from(n)?);
        self.stream.push_frame(unit, None)?;
        Ok(unit.len() as u64)
    }

    fn finish(&mut self, report: &mut Report) -> anyhow::Result<()> {
        if self.keep_alive {
            for _ in 0..2 {
                std::thread::sleep(Duration::from_millis(60));
                self.stream.sender().send_keep_alive()?;
            }
        }
        let socket = self.stream.statistics().socket;
        let headers = (ETHERNET_LEN + IP_UDP_LEN) as u64 * socket.sent_datagrams;
        report.wire_octets = socket.sent_bytes + headers;
        report.system_calls = socket.calls();
        Ok(())
    }
}

pub(super) struct StreamInlet(MediaStream);

impl StreamInlet {
    pub(super) fn open(spec: &Spec) -> anyhow::Result<Self> {
        let session = Context::new().session_any().local_address(&spec.host)?;
        let builder = session
            .stream(spec.codec()?)
            .receive_path(spec.path.receive())
            .probation(1)
            .socket_buffer(spec.buffers[1])
            .frame_len_max(FRAME_LEN_MAX);
        Ok(Self(configured(spec, builder)?.open()?))
    }
}

impl Inlet for StreamInlet {
    fn port(&self) -> u16 {
        self.0.local_address().port()
    }

    fn pull(&mut self, deadline: Instant, whole: &mut dyn FnMut(usize)) -> anyhow::Result<bool> {
        let timeout = deadline.saturating_duration_since(Instant::now());
        let Some(frame) = self.0.pull_frame(timeout)? else { return Ok(false) };
        let octets = frame.len();
        drop(frame);
        whole(octets);
        Ok(true)
    }

    fn finish(&mut self, report: &mut Report) {
        let statistics = self.0.statistics();
        report.packets_lost = statistics.receive.packets_lost;
        report.system_calls = statistics.socket.calls();
        report.socket_drops = statistics.socket.kernel_drops;
    }
}
