//! Opening a stream: checks all settings, creates the parts and assembles them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_proto::control::{Participant, ParticipantConfig};
use rushes_proto::payload::PayloadFormat;
use rushes_proto::repair::RequestTiming;
use rushes_proto::rtp::ExtensionKind;
use rushes_proto::sdp::static_format;
use rushes_proto::stream::{
    MEMORY_BESIDE_A_FRAME, Receiver, ReceiverConfig, Retransmission, Route, Sender, SenderConfig,
};
use rushes_proto::{Batch, FrameRate, PayloadType, RtpTimestamp, Ssrc};

use super::builder::StreamBuilder;
use super::control::{ControlSettings, Recovery};
use super::fec::Fec;
use super::session::ControlPort;
use crate::error::{self, Error};
use crate::format::{PACKET_TIME_MAX, StreamFormat};
use crate::media::{MediaStream, Receiving, StreamReceiver, StreamSender};
use crate::pace::Pacer;
use crate::port::{Destinations, Inbox, Outbox, Port, Retransmissions, SendState};
use crate::rate::RateShare;
use crate::reports::{Attached, Reporter, ReporterConfig};

/// Octets in the IPv4 and UDP headers.
const IPV4_UDP_LEN: usize = 20 + 8;

/// Octets in the IPv6 and UDP headers.
const IPV6_UDP_LEN: usize = 40 + 8;

/// Octets of a receive buffer that has room for a frame of uncompressed video.
const FRAME_BUFFER_MAX: usize = 64 << 20;

/// Maximum number of packets in the index of the history.
const HISTORY_PACKETS: usize = 8192;

/// Packets that the reorder window spans by default with recovery.
const RECOVERY_PACKETS: usize = 4096;

/// Octets in the largest IP packet of RTCP: jumbo frames are for media.
const REPORT_MTU_MAX: usize = 1500;

/// Maximum number of peers whose reports are kept.
const PEERS_MAX: usize = 64;

impl StreamBuilder {
    /// Opens the stream: checks every setting and binds the socket, unless another stream of the
    /// session has done so.
    ///
    /// # Errors
    /// [`Error::Net`] if the port is in use or the socket cannot be set up,
    /// [`Error::SharedPort`], or the error of an invalid setting.
    pub fn open(self) -> Result<MediaStream, Error> {
        #[cfg(any(feature = "webrtc", feature = "zrtp"))]
        if self.awaits_keys() {
            return self.open_agreeing();
        }
        let (builder, port) = self.bind()?;
        builder.open_on(port)
    }

    /// Checks the settings, and binds the socket.
    pub(crate) fn bind(mut self) -> Result<(Self, Arc<Port>), Error> {
        self.check()?;
        let control = match (self.control.rtcp, self.control.mux) {
            (false, _) => ControlPort::Off,
            (true, true) => ControlPort::Muxed,
            (true, false) => ControlPort::Separate(self.control.local_port),
        };
        let sends = self.destination().is_some();
        let port =
            self.session.port(self.local_port, &self.socket, control, self.accepted(), sends)?;
        self.check_heard(&port)?;
        Ok((self, port))
    }

    /// Checks the settings before a socket is bound, so that a wrong one leaves nothing behind, and
    /// completes those that follow from others.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        if !(100..=65_535).contains(&self.mtu) {
            return Err(Error::Mtu { mtu: self.mtu });
        }
        if self.padding_limit > 1000 {
            return Err(Error::PaddingLimit { per_mille: self.padding_limit });
        }
        match &mut self.socket.multicast {
            Some(options) if !self.sources.is_empty() => options.sources.clone_from(&self.sources),
            None if !self.sources.is_empty() => return Err(Error::SourceWithoutGroup),
            _ => {}
        }
        if self.socket.multicast.is_some() && self.local_port == 0 {
            // A group's members listen on the port that its senders send to.
            self.local_port = self.remote_port.unwrap_or(0);
        }
        let ControlSettings { recovery, arrivals, wide_arrivals, rate, rtcp, .. } = &self.control;
        let reports = *arrivals || *wide_arrivals;
        if (*recovery != Recovery::Off || reports || rate.is_some()) && !rtcp {
            return Err(Error::NoRtcp);
        }
        let extensions = self.extension_map()?;
        if *wide_arrivals && extensions.id(ExtensionKind::TransportSequence).is_none() {
            return Err(Error::NoTransportSequence);
        }
        self.check_rtx()?;
        self.check_rate()?;
        self.check_destinations()?;
        if let Some(settings) = &self.control.rate {
            self.socket.ecn = settings.mark() as u8;
        }
        self.check_fec()?;
        self.check_samples()?;
        self.stream_format.check(&self.format)?;
        let format = self.stream_format.payload(&self.format);
        let limit = self.frame.frame_len_max;
        if let Some(len) = format.placement().map(|it| it.frame_len) {
            if len > limit {
                return Err(Error::FrameLen { len, limit });
            }
            if self.receives && !self.has_socket_buffer && self.destination().is_none() {
                let buffer = &mut self.socket.receive_buffer;
                *buffer = len.min(FRAME_BUFFER_MAX).max(*buffer);
            }
        }
        let sender = self.sender(&*format)?;
        if self.destination().is_some() {
            sender.check()?;
        }
        self.receiver(format)?;
        let interval = self.frame_rate.map(FrameRate::interval);
        Pacer::new(self.pacing, self.burst, interval, Instant::now())?;
        if let Some(only) = self.only_from {
            error::check_peer(only.host)?;
        }
        if let Some(only) = self.only_from
            && only.host.is_ipv4() != self.session.is_ipv4()
            && !self.session.is_dual_stack()
        {
            let (local, peer) = (self.session.local(0).ip(), only.host);
            return Err(Error::AddressFamily { local, peer });
        }
        Ok(())
    }

    /// Opens the stream on a port that is bound.
    pub(crate) fn open_on(self, port: Arc<Port>) -> Result<MediaStream, Error> {
        if self.awaits_keys() {
            return Err(Error::NoKeys);
        }
        let to = self.destination();
        let interval = self.frame_rate.map(FrameRate::interval);
        let pacer = Box::new(Pacer::new(self.pacing, self.burst, interval, Instant::now())?);
        let format = self.stream_format.payload(&self.format);
        let sender = self.sender(&*format)?.with_transport_counter(port.wide().counter());
        let receiver = self.receiver(format)?;
        let participant = if port.has_control() && self.control.rtcp {
            Some(self.participant(&sender)?)
        } else {
            None
        };
        let route = Route {
            payload_type: self.payload_type,
            remote_ssrc: self.remote_ssrc,
            beside: [
                self.retransmission_type().map(|rtx| (rtx, self.control.remote_rtx_ssrc)),
                self.fec_reception().map(|fec| (fec.red.unwrap_or(fec.payload_type), fec.ssrc)),
            ],
        };
        if self.control.arrivals || self.control.wide_arrivals {
            port.socket().enable_arrival_details();
        }
        // Multicast is never answered by ICMP.
        if to.is_some_and(|to| !to.ip().is_multicast()) {
            port.socket().enable_refusals();
        }
        let inbox = port.add(self.receives.then_some(route), receiver)?;
        Ok(self.assemble(Parts { port, inbox, sender, pacer, participant }))
    }

    /// Returns the destination of frames, if there is one.
    pub(crate) fn destination(&self) -> Option<SocketAddr> {
        let (mut peer, port) = (self.session.peer?, self.remote_port?);
        peer.set_port(port);
        Some(peer)
    }

    fn sender(&self, format: &dyn PayloadFormat) -> Result<Sender, Error> {
        let ssrc = self.own_ssrc()?;
        let (first_sequence, first_timestamp) = match self.first {
            Some(first) => first,
            None => (self.first_sequence(random_word()?), RtpTimestamp(random_word()?)),
        };
        // A retransmission is two octets longer than its packet.
        let rtx_len = if self.retransmission_type().is_some() { 2 } else { 0 };
        let config = SenderConfig {
            ssrc,
            payload_type: self.send_type.unwrap_or(self.payload_type),
            first_sequence,
            first_timestamp,
            clock_rate: self.clock_rate.unwrap_or_else(|| format.clock_rate()),
            frame_rate: self.frame_rate.unwrap_or_default(),
            packet_len_max: self.mtu - self.headers_len() - rtx_len,
        };
        let sender = Sender::new(format.packetiser(), config)?
            .with_padding_limit(self.padding_limit)
            .with_extensions(self.extension_map()?)
            .with_wall_clock(self.session.context.wall_clock())
            .with_names(self.mid.as_deref(), self.rid.as_deref())?;
        let sender = self.with_fec(self.secure_sender(sender)?)?;
        let retransmission = match (self.control.recovery, self.retransmission_type()) {
            (Recovery::Off, _) => return Ok(sender),
            (_, None) => Retransmission::Verbatim,
            (_, Some(payload_type)) => Retransmission::Rtx {
                payload_type,
                ssrc: match self.control.rtx_ssrc {
                    Some(ssrc) => ssrc,
                    None => random_ssrc_except(&[Some(ssrc), sender.fec_ssrc()])?,
                },
                first_sequence: self.first_sequence(random_word()?),
            },
        };
        let receivers = 1 + self.also_to.len();
        Ok(sender.with_history(HISTORY_PACKETS, retransmission).with_receivers(receivers))
    }

    /// Returns the SSRC that was set, or a random one.
    pub(crate) fn own_ssrc(&self) -> Result<Ssrc, Error> {
        let others = [self.control.rtx_ssrc, self.control.fec_ssrc];
        self.ssrc.map_or_else(|| random_ssrc_except(&others), Ok)
    }

    fn receiver(&self, format: Arc<dyn PayloadFormat>) -> Result<Receiver, Error> {
        let clock_rate = self.clock_rate.unwrap_or_else(|| format.clock_rate());
        let recovers = self.control.recovery != Recovery::Off;
        let defaults = ReceiverConfig::new(self.payload_type, clock_rate);
        let packets = if recovers { RECOVERY_PACKETS } else { defaults.reorder_packets_max };
        let mut requests = RequestTiming::default();
        if let Some(limit) = self.latency {
            requests.latency_max = limit;
        }
        let fec = self.fec_reception();
        // The limit includes the wait for repair packets.
        let wait = fec.map_or(Duration::ZERO, |fec| fec.wait);
        requests.latency_max = requests.latency_max.saturating_sub(wait);
        let memory = self.frame.frame_len_max.saturating_add(MEMORY_BESIDE_A_FRAME);
        let config = ReceiverConfig {
            remote_ssrc: self.remote_ssrc,
            frame: self.frame,
            reorder_packets_max: self.reorder_packets.unwrap_or(packets),
            reorder_len_max: self.reorder_octets,
            reorder_time: self.reorder_time.unwrap_or(defaults.reorder_time),
            memory_max: self.memory.unwrap_or(memory),
            arrivals: self.control.arrivals,
            requests: recovers.then_some(requests),
            retransmission: self
                .retransmission_type()
                .map(|payload_type| (payload_type, self.control.remote_rtx_ssrc)),
            fec,
            probation: self.probation,
            sources_max: self.sources_max,
            source_timeout: self.source_timeout,
            extensions: self.extension_map()?,
            // Reports with marks are better, and one kind is enough.
            wide_arrivals: self.control.wide_arrivals && !self.control.arrivals,
            ..defaults
        };
        self.secure_receiver(Receiver::new(format, config)?)
    }

    fn participant(&self, sender: &Sender) -> Result<Participant, Error> {
        let SenderConfig { ssrc, clock_rate, .. } = *sender.config();
        let context = &self.session.context;
        let in_group = self.session.peer.is_some_and(|peer| peer.ip().is_multicast());
        let config = ParticipantConfig {
            ssrc,
            retransmission: sender.retransmission_ssrc(),
            cname: context.cname()?.to_owned(),
            description: self.control.description.clone(),
            clock_rate,
            wall_clock: context.wall_clock(),
            timer: self.control.timer(in_group),
            seed: u64::from(random_word()?) << 32 | u64::from(random_word()?),
            packet_len_max: self.mtu.min(REPORT_MTU_MAX) - self.headers_len(),
            header_len: self.headers_len(),
            reduced_size: self.control.reduced_size,
            sources_max: PEERS_MAX,
        };
        let mut participant = Participant::new(config, Instant::now());
        participant.set_circuit_breakers(self.control.breaks(in_group));
        participant.set_receivers(1 + self.also_to.len());
        if sender.has_transport_sequence() {
            participant.read_wide_arrivals();
        }
        self.secure_participant(participant)
    }

    fn headers_len(&self) -> usize {
        if self.session.is_ipv4() { IPV4_UDP_LEN } else { IPV6_UDP_LEN }
    }

    pub(super) fn retransmission_type(&self) -> Option<PayloadType> {
        self.control.recovery.payload_type(self.payload_type)
    }

    /// Checks that retransmissions can be distinguished from the media.
    pub(crate) fn check_rtx(&self) -> Result<(), Error> {
        let (own, remote) = (self.control.rtx_ssrc, self.control.remote_rtx_ssrc);
        let Some(payload_type) = self.retransmission_type() else {
            return if own.or(remote).is_some() { Err(Error::NoRtx) } else { Ok(()) };
        };
        if payload_type == self.payload_type {
            return Err(Error::RtxPayloadType { payload_type });
        }
        for (media, rtx) in [(self.ssrc, own), (self.remote_ssrc, remote)] {
            if let Some(ssrc) = rtx.filter(|_| media == rtx) {
                return Err(Error::RtxSsrc { ssrc });
            }
        }
        Ok(())
    }

    /// Checks the settings of audio as samples.
    fn check_samples(&self) -> Result<(), Error> {
        if let Some(time) = self.format.packet_time
            && !(Duration::from_nanos(1)..=PACKET_TIME_MAX).contains(&time)
        {
            return Err(Error::PacketTime { time });
        }
        if self.format.channels == Some(0) {
            return Err(Error::Channels);
        }
        let StreamFormat::Codec(codec) = &self.stream_format else { return Ok(()) };
        let payload_type = self.payload_type;
        let rate = self.clock_rate.unwrap_or(codec.clock_rate);
        let channels = self.format.channels.or(codec.channels).unwrap_or(1);
        match static_format(payload_type.value()) {
            Some((name, hertz, of_type))
                if codec.encoding == Some(name)
                    && (hertz, of_type.unwrap_or(1)) != (rate.hertz(), channels) =>
            {
                Err(Error::StaticPayloadType { payload_type, name, rate, channels })
            }
            _ => Ok(()),
        }
    }

    /// Checks the settings of rate control.
    fn check_rate(&self) -> Result<(), Error> {
        if self.control.rate.is_none() {
            return Ok(());
        }
        if self.control.rate_priority == 0 {
            return Err(Error::RatePriority);
        }
        match self.session.peer().filter(IpAddr::is_multicast) {
            Some(group) => Err(Error::RateOfGroup { group }),
            None => Ok(()),
        }
    }

    /// Joins the stream to the congestion controller of its session, with rate control.
    fn rate_share(&self, port: &Port) -> Option<RateShare> {
        let settings = self.control.rate?;
        let path = self.session.rate(settings);
        let priority = self.control.rate_priority;
        let of_port = (self.headers_len(), port.wide().clone());
        Some(path.join(settings, priority, of_port, Instant::now()))
    }

    fn assemble(self, parts: Parts) -> MediaStream {
        let Parts { port, inbox, sender, pacer, participant } = parts;
        let recovers = self.control.recovery != Recovery::Off;
        {
            let mut receiver = inbox.lock();
            if participant.is_some() || self.security.is_some() {
                receiver.set_own_ssrc(sender.config().ssrc);
            }
            for ssrc in [sender.retransmission_ssrc(), sender.fec_ssrc()].into_iter().flatten() {
                receiver.add_own_ssrc(ssrc);
            }
        }
        let state = SendState {
            sender,
            batch: self.batch(),
            queue: port.socket().send_queue(),
            retransmissions: recovers.then(Retransmissions::new),
        };
        let loss_ratio = self.control.fec.and_then(Fec::loss_ratio);
        let destinations = match port.path() {
            Some(path) if self.follows_path => Destinations::along(path.clone()),
            _ => self.destinations(),
        };
        let to_control = self.control_addresses(&port, &destinations);
        let mut outbox = Outbox::new(state, destinations, self.send_timeout, loss_ratio);
        outbox.rate = self.rate_share(&port);
        // Sets what repair packets take of the target.
        drop(outbox.lock());
        let outbox = Arc::new(outbox);
        let config = ReporterConfig {
            to: to_control,
            port: self.control.remote_port,
            local: port.local_address(),
            keep_alive: self.control.keep_alive,
        };
        let reporter = Reporter::new(inbox, outbox, participant, config);
        let (inbox, outbox) = (reporter.inbox.clone(), reporter.outbox.clone());
        let span = reporter.span.clone();
        let clock = self.session.context.wall_clock();
        let attached = Arc::new(Attached::new(port.clone(), reporter, clock));
        let (has_warned, unfinished, attached_to) = (false, None, attached.clone());
        let sender =
            StreamSender { attached: attached_to, outbox, span, pacer, has_warned, unfinished };
        let receiver = StreamReceiver {
            attached,
            port,
            inbox,
            spin: self.spin,
            events: Vec::new(),
            on_event: None,
            on_error: None,
        };
        MediaStream { sender, receiver: Receiving::Pulled(receiver) }
    }

    /// Returns the batch that packets are written to.
    fn batch(&self) -> Batch {
        let history = if self.control.recovery == Recovery::Off { 0 } else { self.control.history };
        Batch::with_history(history)
    }

    /// Returns the addresses to which RTCP is sent; none if they are not known yet.
    fn control_addresses(&self, port: &Port, destinations: &Destinations) -> Vec<SocketAddr> {
        if destinations.count() > 0 {
            return destinations.reports().collect();
        }
        // A group's members report to the group.
        let group = self.session.peer.filter(|peer| peer.ip().is_multicast());
        let of_group =
            |group: SocketAddr| Some(SocketAddr::new(group.ip(), port.control_address()?.port()));
        group.and_then(of_group).into_iter().collect()
    }

    /// Returns the address at which the peer receives RTCP, if its media goes to `to`.
    pub(super) fn control_address(&self, mut to: SocketAddr) -> Option<SocketAddr> {
        let port = match (self.control.remote_port, self.control.mux) {
            (Some(port), _) => port,
            (None, true) => to.port(),
            (None, false) => to.port().checked_add(1)?,
        };
        to.set_port(port);
        Some(to)
    }
}

/// The parts of a stream before they are assembled.
struct Parts {
    port: Arc<Port>,
    inbox: Arc<Inbox>,
    sender: Sender,
    pacer: Box<Pacer>,
    participant: Option<Participant>,
}

pub(super) fn random_word() -> Result<u32, Error> {
    getrandom::u32().map_err(|error| Error::Random(error.to_string()))
}

/// Returns a random SSRC that is none of `others`.
pub(crate) fn random_ssrc_except(others: &[Option<Ssrc>]) -> Result<Ssrc, Error> {
    loop {
        let ssrc = Ssrc(random_word()?);
        if !others.contains(&Some(ssrc)) {
            return Ok(ssrc);
        }
    }
}

#[cfg(test)]
mod tests {
    use rushes_proto::payload::raw::{RawVideo, Sampling};

    use crate::{Codec, Context};

    #[test]
    fn a_receiver_has_room_for_a_frame_of_uncompressed_video_unless_the_application_says_otherwise()
    {
        let buffer = |width: u16, to: Option<u16>, set: Option<usize>| {
            let video = RawVideo::new(Sampling::Rgb, 8, width, 1000).unwrap();
            let session = Context::new().session("127.0.0.1").unwrap();
            let mut builder = session.stream(Codec::Uncompressed).raw_video(video);
            if let Some(port) = to {
                builder = builder.remote_port(port);
            }
            if let Some(octets) = set {
                builder = builder.socket_buffer(octets);
            }
            builder.check().unwrap();
            builder.socket.receive_buffer
        };
        assert_eq!(buffer(100, None, None), 4 << 20);
        assert_eq!(buffer(3000, None, None), 9_000_000);
        assert_eq!(buffer(3000, Some(5004), None), 4 << 20);
        assert_eq!(buffer(3000, None, Some(1 << 20)), 1 << 20);
    }
}
