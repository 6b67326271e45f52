//! Settings of a stream.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rushes_net::{MulticastOptions, ReceivePath, SendPath, SocketOptions};
use rushes_proto::payload::{Delivery, FrameSettings, Framing};
use rushes_proto::rtp::{ExtensionKind, ExtensionMap};
use rushes_proto::stream::ReceiverConfig;
use rushes_proto::{ClockRate, FrameRate, PayloadType, RtpTimestamp, SequenceNumber, Ssrc};

use super::control::ControlSettings;
use super::session::Session;
use crate::error::Error;
use crate::format::file::Sampling;
use crate::format::{FormatOptions, RawParameters, StreamFormat};
use crate::pace::{Burst, Pacing};
use crate::port::OnlyFrom;
use crate::security::Security;

/// The octets that may be added by default so that packets have one length, in thousandths.
const PADDING_LIMIT: u16 = 20;

/// A stream being set up. Every setting has a working default; [`open`](Self::open) checks them
/// all.
///
/// Streams of a session with the same local port share a socket; its settings (buffers, paths,
/// multicast, the port of RTCP) are those of the stream that was opened first.
#[derive(Clone, Debug)]
#[must_use = "nothing happens until `open`"]
pub struct StreamBuilder {
    pub(crate) session: Session,
    pub(crate) stream_format: StreamFormat,
    pub(super) local_port: u16,
    pub(super) remote_port: Option<u16>,
    /// Destinations beside the peer.
    pub(super) also_to: Vec<SocketAddr>,
    pub(crate) payload_type: PayloadType,
    pub(crate) ssrc: Option<Ssrc>,
    pub(crate) remote_ssrc: Option<Ssrc>,
    pub(super) only_from: Option<OnlyFrom>,
    pub(crate) clock_rate: Option<ClockRate>,
    pub(super) mtu: usize,
    pub(crate) frame_rate: Option<FrameRate>,
    pub(crate) frame: FrameSettings,
    pub(crate) format: FormatOptions,
    pub(super) pacing: Pacing,
    pub(super) burst: Burst,
    /// In thousandths.
    pub(super) padding_limit: u16,
    pub(super) reorder_packets: Option<usize>,
    pub(super) reorder_octets: usize,
    pub(super) reorder_time: Option<Duration>,
    pub(super) latency: Option<Duration>,
    pub(super) memory: Option<usize>,
    pub(super) probation: u8,
    pub(super) sources_max: usize,
    pub(super) source_timeout: Duration,
    pub(super) spin: Duration,
    pub(super) send_timeout: Duration,
    pub(super) first: Option<(SequenceNumber, RtpTimestamp)>,
    pub(crate) extensions: ExtensionMap,
    /// The only hosts from which a multicast group is received.
    pub(crate) sources: Vec<IpAddr>,
    /// Elements by URI, which are added to `extensions`.
    pub(crate) named_extensions: Vec<(u8, String)>,
    pub(crate) mid: Option<String>,
    pub(crate) rid: Option<String>,
    pub(crate) socket: SocketOptions,
    /// Whether the application has set the socket's buffers.
    pub(super) has_socket_buffer: bool,
    pub(crate) control: ControlSettings,
    pub(crate) security: Option<Security>,
    /// Whether frames go where the port's [`Path`](crate::port::Path) leads.
    pub(crate) follows_path: bool,
    /// Whether media is received; without it, other streams of the port may have the payload type.
    pub(crate) receives: bool,
    /// The payload type of sent packets, if it is not that of received ones.
    pub(crate) send_type: Option<PayloadType>,
    #[cfg(feature = "zrtp")]
    pub(crate) chain: crate::agreement::ChainStart,
}

impl StreamBuilder {
    pub(crate) fn new(
        session: Session,
        stream_format: StreamFormat,
        payload_type: PayloadType,
    ) -> Self {
        let defaults = ReceiverConfig::new(payload_type, ClockRate::VIDEO);
        let group = session.peer().filter(IpAddr::is_multicast);
        let socket = SocketOptions {
            multicast: group.map(MulticastOptions::new),
            ..SocketOptions::default()
        };
        Self {
            session,
            stream_format,
            local_port: 0,
            remote_port: None,
            also_to: Vec::new(),
            payload_type,
            ssrc: None,
            remote_ssrc: None,
            only_from: None,
            clock_rate: None,
            mtu: 1500,
            frame_rate: None,
            frame: defaults.frame,
            format: FormatOptions::default(),
            pacing: Pacing::default(),
            burst: Burst::default(),
            padding_limit: PADDING_LIMIT,
            reorder_packets: None,
            reorder_octets: defaults.reorder_len_max,
            reorder_time: None,
            latency: None,
            memory: None,
            probation: defaults.probation,
            sources_max: defaults.sources_max,
            source_timeout: defaults.source_timeout,
            spin: Duration::ZERO,
            send_timeout: Duration::from_secs(1),
            first: None,
            extensions: ExtensionMap::default(),
            sources: Vec::new(),
            named_extensions: Vec::new(),
            mid: None,
            rid: None,
            socket,
            has_socket_buffer: false,
            control: ControlSettings::default(),
            security: None,
            follows_path: false,
            receives: true,
            send_type: None,
            #[cfg(feature = "zrtp")]
            chain: crate::agreement::ChainStart::default(),
        }
    }

    /// Sets the local UDP port; 0, the default, takes a free one.
    pub fn local_port(mut self, port: u16) -> Self {
        self.local_port = port;
        self
    }

    /// Sets the peer's UDP port. Without it the stream only receives.
    pub fn remote_port(mut self, port: u16) -> Self {
        self.remote_port = Some(port);
        self
    }

    /// Sets the payload type to send and to accept; by default that of the
    /// [format](crate::format::MediaFormat::payload_type): 96 for H.264, 97 for H.265, 98 for H.266,
    /// 111 for Opus, 0 for PCMU, 8 for PCMA, 99 for generic frames.
    pub fn payload_type(mut self, payload_type: PayloadType) -> Self {
        self.payload_type = payload_type;
        self
    }

    /// Sets the stream's own SSRC; random by default (RFC 3550 section 8.1).
    pub fn ssrc(mut self, ssrc: Ssrc) -> Self {
        self.ssrc = Some(ssrc);
        self
    }

    /// Sets the only source to accept, from its first packet on; by default any source. Streams
    /// that share a port need this setting or different payload types.
    pub fn remote_ssrc(mut self, ssrc: Ssrc) -> Self {
        self.remote_ssrc = Some(ssrc);
        self
    }

    /// Sets the only host to accept packets from, and the port of its media if that is known.
    ///
    /// Packets from others are counted ([`Statistics::foreign`](crate::Statistics)) and ignored.
    /// The default is the session's peer and [further destinations](Self::also_to), or any host if there is no peer or it is a multicast
    /// group.
    ///
    /// Addresses can be forged; SRTP and ZRTP keep strangers out reliably.
    pub fn only_from(mut self, host: IpAddr, port: Option<u16>) -> Self {
        self.only_from = Some(OnlyFrom { host, port });
        self
    }

    /// Sets the rate of the timestamps; by default the format's: 90 kHz for video, 48 kHz for
    /// Opus, L16 and L24, 8 kHz for PCMU and PCMA.
    pub fn clock_rate(mut self, rate: ClockRate) -> Self {
        self.clock_rate = Some(rate);
        self.format.clock_rate = Some(rate);
        self
    }

    /// Sets the number of audio channels of L16, L24, PCMU and PCMA, 1..=255; by default 2, and 1 of
    /// PCMU and PCMA. Both ends must agree.
    pub fn channels(mut self, channels: u8) -> Self {
        self.format.channels = Some(channels);
        self
    }

    /// Sets the duration of the samples in a packet of L16, L24, PCMU and PCMA: more than zero, up to
    /// 200 ms, rounded to whole samples. By default 1 ms of L16 and L24 and 20 ms of PCMU and PCMA, or
    /// less if they do not fit
    /// ([`Pcm::packet_samples`](crate::proto::payload::pcm::Pcm::packet_samples)).
    ///
    /// A frame that is pushed is cut into packets of this duration, the last of which may be shorter;
    /// a received frame is one packet.
    pub fn packet_time(mut self, time: Duration) -> Self {
        self.format.packet_time = Some(time);
        self
    }

    /// Returns how the samples of L16, L24, PCMU and PCMA are sampled, for files of them; `None` for
    /// other formats.
    pub fn sampling(&self) -> Option<Sampling> {
        let pcm = self.stream_format.pcm(&self.format)?;
        Some(Sampling { rate: pcm.rate, channels: pcm.channels })
    }

    /// Sets the octets in the largest IP packet to send, headers included: 100..=65 535, by default
    /// 1 500. Received packets may be of any size.
    pub fn mtu(mut self, octets: usize) -> Self {
        self.mtu = octets;
        self
    }

    /// Sets the octets in the socket's send and receive buffers, by default 4 MiB each. Of uncompressed
    /// video that is only received, the receive buffer has room for a frame by default, if that is larger
    /// and at most 64 MiB. The kernel may allow less; a warning in the log then names the setting to raise.
    pub fn socket_buffer(mut self, octets: usize) -> Self {
        self.socket.send_buffer = octets;
        self.socket.receive_buffer = octets;
        self.has_socket_buffer = true;
        self
    }

    /// Sets the rate of the frames to send, for automatic timestamps and for pacing. By default
    /// timestamps are 1/30 s apart and pacing follows the calls.
    pub fn frame_rate(mut self, rate: FrameRate) -> Self {
        self.frame_rate = Some(rate);
        self
    }

    /// Sets the spreading of large frames over time; by default over 0.9 of the frame interval.
    pub fn pacing(mut self, pacing: Pacing) -> Self {
        self.pacing = pacing;
        self
    }

    /// Sets the largest burst of a paced sender; by default 32 KiB, or 2 ms at a given rate.
    pub fn burst(mut self, burst: Burst) -> Self {
        self.burst = burst;
        self
    }

    /// Sets how much may be added to what is sent so that the packets of neighbouring NAL units, or of lines
    /// of uncompressed video, have one length, in thousandths of its octets, 0..=1000; by default 20, and 0
    /// adds nothing.
    ///
    /// A frame of hundreds of NAL units, as of encoders that make slices, or of lines then costs the system
    /// little more than a frame of one. Added are octets of padding, which every receiver removes (RFC 3550
    /// section 5.1), and headers of packets that are needed because others are shorter. Frames of one
    /// unit, and other formats, are sent as without this.
    pub fn padding_limit(mut self, per_mille: u16) -> Self {
        self.padding_limit = per_mille;
        self
    }

    /// Sets whether access units or NAL units are delivered; by default whole access units.
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.frame.delivery = delivery;
        self
    }

    /// Sets how NAL units are delimited in frames pushed and pulled; by default with start codes.
    pub fn framing(mut self, framing: Framing) -> Self {
        self.frame.framing = framing;
        self.format.framing = framing;
        self
    }

    /// Sets the octets in the largest frame to accept, by default 64 MiB; the first start code or length
    /// field does not count. A larger frame is dropped, and counted as
    /// [`FrameTooLarge`](crate::Discard::FrameTooLarge); a sender has no limit.
    ///
    /// While frames are that large, a receiver needs the memory of one that arrives and of those that
    /// the application holds, and keeps that of two more ([`memory`](Self::memory) limits the former).
    pub fn frame_len_max(mut self, octets: usize) -> Self {
        self.frame.frame_len_max = octets;
        self
    }

    /// Sets the size, the sampling and the depth of uncompressed video ([`Codec::Uncompressed`]), which
    /// a description gives as well; [`RawParameters`] or, with default colours, a
    /// [`RawVideo`](crate::payload::raw::RawVideo).
    ///
    /// A frame is one piece of memory, in the layout of `RawVideo`. In interlaced video it is a field;
    /// fields are pushed in turn, the first of a frame first, each with its own timestamp.
    ///
    /// ```
    /// use rushes::payload::raw::{RawVideo, Sampling};
    /// use rushes::{Codec, Context};
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let video = RawVideo::new(Sampling::YCbCr422, 8, 320, 180)?;
    /// let session = Context::new().session("127.0.0.1")?;
    /// let monitor = session.stream(Codec::Uncompressed).raw_video(video);
    /// let mut monitor = monitor.probation(1).open()?;
    /// let port = monitor.local_address().port();
    /// let camera = session.stream(Codec::Uncompressed).raw_video(video);
    /// let mut camera = camera.remote_port(port).open()?;
    /// camera.push_frame(&vec![128; video.frame_len()], None)?;
    /// let frame = monitor.pull_frame(Duration::from_secs(1))?.expect("a frame");
    /// assert_eq!(frame.len(), 320 * 180 * 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`Codec::Uncompressed`]: crate::Codec::Uncompressed
    pub fn raw_video(mut self, video: impl Into<RawParameters>) -> Self {
        self.format.raw = Some(video.into());
        self
    }

    /// Returns the uncompressed video of the stream, which was set or described.
    pub fn raw_parameters(&self) -> Option<&RawParameters> {
        self.format.raw.as_ref()
    }

    /// Sets whether frames of uncompressed video are delivered although parts of them are missing;
    /// by default only whole frames are. At least half of a frame must have arrived.
    /// [`Frame::missing`](crate::Frame::missing) returns the missing parts, so that they can be concealed;
    /// they contain zeros.
    pub fn incomplete_frames(mut self, on: bool) -> Self {
        self.frame.incomplete = on;
        self
    }

    /// Options of the payload format that a description gives; the framing stays.
    pub(crate) fn format_options(mut self, options: FormatOptions) -> Self {
        self.format = FormatOptions { framing: self.format.framing, ..options };
        self
    }

    /// Sets `sprop-max-don-diff` of H.265 and H.266 (RFC 7798 section 7.1), 0..=32 767; 0 by
    /// default.
    ///
    /// If it is not 0, NAL units travel with their decoding order numbers, and the sender may
    /// interleave them. Both sides must agree. Received units are put into decoding order: each
    /// waits until the numbers show that no other can precede it, and an access unit waits for the
    /// first unit of the next. A larger number delays them more. Units to be sent are not
    /// interleaved.
    pub fn max_don_diff(mut self, max: u16) -> Self {
        self.format.max_don_diff = max;
        self
    }

    /// Sets `sprop-depack-buf-nalus` of H.265 (RFC 7798 section 7.1), 0..=32 767.
    ///
    /// This is the maximum number of NAL units sent before one that they follow in decoding order,
    /// so that received units need not wait for more. 0, the default, if unknown. See
    /// [`max_don_diff`](Self::max_don_diff).
    pub fn depack_buf_nalus(mut self, units: u16) -> Self {
        self.format.depack_buf_nalus = units;
        self
    }

    /// Sets `sprop-depack-buf-bytes` of H.265 and H.266 (RFC 7798 and RFC 9328, section 7).
    ///
    /// This is the maximum number of octets of NAL units that wait for others. 0, the default, if
    /// unknown: the limit is then the size of the [largest frame](Self::frame_len_max). See
    /// [`max_don_diff`](Self::max_don_diff).
    pub fn depack_buf_bytes(mut self, octets: u32) -> Self {
        self.format.depack_buf_bytes = octets;
        self
    }

    /// Sets how long to wait for a missing packet, from the arrival of the first packet after it:
    /// by default 50 ms.
    ///
    /// With [`recovery`](Self::recovery) this is the minimum of that time (see
    /// [`latency`](Self::latency)). Nothing is delayed while no packet is missing.
    pub fn reorder_time(mut self, time: Duration) -> Self {
        self.reorder_time = Some(time);
        self
    }

    /// Sets the longest wait of a frame for packets that are [requested](Self::recovery), by
    /// default 500 ms.
    ///
    /// The wait is as long as four requests take at the measured round-trip time, which is often
    /// less; until that is known, it is the whole limit. Packets whose retransmission could not
    /// arrive in time are not requested, and counted
    /// ([`not_requested`](crate::proto::stream::ReceiveStatistics::not_requested)): with a round
    /// trip of 200 ms, a limit below 205 ms recovers nothing, and one of 600 ms nearly everything.
    pub fn latency(mut self, limit: Duration) -> Self {
        self.latency = Some(limit);
        self
    }

    /// Sets the octets that incomplete frames and reorder windows of all the stream's sources may
    /// hold.
    ///
    /// The minimum is [`frame_len_max`](Self::frame_len_max), the default 64 MiB more. Beyond the
    /// limit, the source that has delivered least drops its frame.
    pub fn memory(mut self, octets: usize) -> Self {
        self.memory = Some(octets);
        self
    }

    /// Sets the maximum packets that the reorder window spans (1..=16 384), and octets that it
    /// holds.
    ///
    /// By default 512 packets (with [`recovery`](Self::recovery) 4 096) and 4 MiB.
    pub fn reorder_window(mut self, packets: usize, octets: usize) -> Self {
        self.reorder_packets = Some(packets);
        self.reorder_octets = octets;
        self
    }

    /// Sets the number of packets after which a source is accepted, by default 2 (RFC 3550 appendix
    /// A.1).
    ///
    /// Earlier packets are kept until then, so none is lost. With 1 a source is accepted at once.
    pub fn probation(mut self, packets: u8) -> Self {
        self.probation = packets;
        self
    }

    /// Sets the maximum number of concurrent sources (default 16), and the idle time before one
    /// ends (default 30 s).
    ///
    /// A source is idle while it sends neither media nor reports. If another source needs its
    /// place, it is evicted after two idle seconds.
    pub fn sources(mut self, max: usize, timeout: Duration) -> Self {
        self.sources_max = max;
        self.source_timeout = timeout;
        self
    }

    /// Sets the time for which [`pull_frame`](crate::MediaStream::pull_frame) spins before it
    /// sleeps; none by default. Spinning occupies a core and saves a few microseconds of latency.
    pub fn spin(mut self, time: Duration) -> Self {
        self.spin = time;
        self
    }

    /// Sets the maximum wait for room in the socket's send buffer, by default 1 s.
    pub fn send_timeout(mut self, timeout: Duration) -> Self {
        // A year is practically unlimited, and does not overflow an `Instant`.
        self.send_timeout = timeout.min(Duration::from_secs(365 * 24 * 3600));
        self
    }

    /// Sets the first sequence number and timestamp; random by default (RFC 3550 section 5.1).
    pub fn first_packet(mut self, sequence: SequenceNumber, timestamp: RtpTimestamp) -> Self {
        self.first = Some((sequence, timestamp));
        self
    }

    /// Sets the elements of RTP header extensions that both ends agreed on (RFC 8285); by default
    /// none.
    ///
    /// With an element for the capture time, the first packet of each frame carries the time given
    /// to [`push_frame_captured`](crate::StreamSender::push_frame_captured), or that of the call,
    /// and the packets of the frame have up to 24 octets less of it. Received frames have it as
    /// [`Frame::capture_time`](crate::Frame::capture_time). The stream itself also writes
    /// [MID and RID](Self::mid), the time at which each packet is sent
    /// ([`AbsSendTime`](crate::ExtensionKind::AbsSendTime)) and its
    /// [transport-wide number](crate::ExtensionKind::TransportSequence). The application gives
    /// others with a frame ([`push_frame_with`](crate::StreamSender::push_frame_with)), for example
    /// an [audio level](crate::AudioLevel). A received frame has the elements of its first and its
    /// last packet ([`Frame::element`](crate::Frame::element)). Elements that were not agreed on are
    /// ignored, and without any nothing changes.
    ///
    /// [`description`](Self::description) names the elements (`a=extmap`), and
    /// [`Context::described`](crate::Context::described) reads them. With SRTP they are clear,
    /// except those in [`Policy::encrypted_extensions`](crate::proto::srtp::Policy) (RFC 6904) and
    /// with [`Policy::cryptex`](crate::proto::srtp::Policy) (RFC 9335).
    ///
    /// ```
    /// use rushes::{Codec, Context, ExtensionKind, ExtensionMap};
    /// use std::time::{Duration, Instant};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let elements = ExtensionMap::default().with(ExtensionKind::AbsCaptureTime, 1)?;
    /// let session = Context::new().session("127.0.0.1")?;
    /// let mut monitor = session.stream(Codec::Generic).extensions(elements).open()?;
    /// let port = monitor.local_address().port();
    /// let camera = session.stream(Codec::Generic).extensions(elements).remote_port(port);
    /// let mut camera = camera.open()?;
    ///
    /// let captured = Instant::now() - Duration::from_millis(20);
    /// camera.sender().push_frame_captured(b"picture", None, captured)?;
    /// camera.sender().push_frame_captured(b"picture", None, Instant::now())?;
    /// let frame = monitor.pull_frame(Duration::from_secs(1))?.expect("a frame");
    /// let latency = monitor.rtcp().frame_latency(&frame).expect("a capture time");
    /// assert!(frame.capture_time().is_some() && latency >= 20_000_000);
    /// # Ok(())
    /// # }
    /// ```
    pub fn extensions(mut self, elements: ExtensionMap) -> Self {
        let is_mixed = self.extensions.has_mixed_forms() || elements.has_mixed_forms();
        self.extensions = elements.with_mixed_forms(is_mixed);
        self
    }

    /// Adds an element of header extensions by its URI, known to the library or the application's own,
    /// as `id`, in place of an earlier one: 1..=14, or 16..=255, with which all extensions have headers that are longer by an octet
    /// for each element. The other end must agree. See [`extensions`](Self::extensions).
    ///
    /// [`open`](Self::open) fails with [`Error::Extension`](crate::Error::Extension) if the
    /// identifier is reserved or denotes two elements.
    ///
    /// ```
    /// use rushes::{AudioLevel, Codec, Context, ExtensionKind, FrameElements, Placement};
    /// use std::time::{Duration, Instant};
    ///
    /// # fn main() -> Result<(), rushes::Error> {
    /// let session = Context::new().session("127.0.0.1")?;
    /// let level = ExtensionKind::AudioLevel.uri();
    /// let receiver = session.stream(Codec::Generic).extension(1, level);
    /// let mut receiver = receiver.extension(2, "urn:example:seat").open()?;
    /// let port = receiver.local_address().port();
    /// let sender = session.stream(Codec::Generic).extension(1, level);
    /// let mut sender = sender.extension(2, "urn:example:seat").remote_port(port).open()?;
    ///
    /// let loud = AudioLevel { below_overload: 12, has_voice: true };
    /// let elements = FrameElements::default()
    ///     .with(Placement::Every, 1, loud.to_bytes())
    ///     .with(Placement::First, 2, *b"12A");
    /// for _ in 0..2 {
    ///     sender.sender().push_frame_with(b"frame", None, Instant::now(), &elements)?;
    /// }
    /// let frame = receiver.pull_frame(Duration::from_secs(1))?.expect("a frame");
    /// assert_eq!(frame.element(1).and_then(AudioLevel::from_data), Some(loud));
    /// assert_eq!(frame.element(2), Some(&b"12A"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn extension(mut self, id: u8, uri: &str) -> Self {
        self.named_extensions.retain(|(_, other)| other != uri);
        self.named_extensions.push((id, uri.to_owned()));
        self
    }

    /// Sets whether packets of the stream may have header extensions of both forms
    /// (`a=extmap-allow-mixed`, RFC 8285 section 6); off by default. Then elements with identifiers up
    /// to 14 may be empty or longer than 16 octets, too. Both sides must agree.
    pub fn extmap_allow_mixed(mut self, on: bool) -> Self {
        self.extensions = self.extensions.with_mixed_forms(on);
        self
    }

    /// Sets the identification of the stream's media in descriptions (`a=mid`, RFC 5888). With the
    /// element [`Mid`](crate::ExtensionKind::Mid) among the [extensions](Self::extensions), packets
    /// carry it: all until a report of the receiver shows that it knows the stream's SSRC (to a
    /// group or several destinations: all), and always those of retransmissions and repair streams.
    ///
    /// [`open`](Self::open) fails with [`Error::Config`](crate::Error::Config) if it is empty or
    /// longer than an element may be.
    pub fn mid(mut self, mid: &str) -> Self {
        self.mid = Some(mid.to_owned());
        self
    }

    /// Sets the identification of the stream among those of its media (RFC 8851), such as the sizes
    /// of one picture. Packets carry it as they carry the [MID](Self::mid), with the element
    /// [`Rid`](crate::ExtensionKind::Rid), and those of retransmissions and repair streams with
    /// [`RepairedRid`](crate::ExtensionKind::RepairedRid).
    pub fn rid(mut self, rid: &str) -> Self {
        self.rid = Some(rid.to_owned());
        self
    }

    /// Returns the identifier of the element that `uri` denotes, if the stream has it: as it was set,
    /// or as a [description](crate::Context::described) gave it.
    pub fn extension_id(&self, uri: &str) -> Option<u8> {
        let named = self.named_extensions.iter().find(|(_, name)| name == uri).map(|(id, _)| *id);
        named.or_else(|| self.extensions.id(ExtensionKind::of_uri(uri)?))
    }

    /// Returns all elements.
    pub(crate) fn extension_map(&self) -> Result<ExtensionMap, Error> {
        let mut map = self.extensions;
        for (id, uri) in &self.named_extensions {
            map = match ExtensionKind::of_uri(uri) {
                Some(kind) => map.with(kind, *id)?,
                None => map.with_own(*id)?,
            };
        }
        Ok(map)
    }

    /// Sets the send path of datagrams to the kernel; by default the fastest that works.
    pub fn send_path(mut self, path: SendPath) -> Self {
        self.socket.send_path = path;
        self
    }

    /// Sets the receive path of datagrams from the kernel; by default the fastest that works.
    pub fn receive_path(mut self, path: ReceivePath) -> Self {
        self.socket.receive_path = path;
        self
    }

    /// Sets the differentiated services code point of sent packets, 0..=63 (RFC 2474).
    pub fn dscp(mut self, dscp: u8) -> Self {
        self.socket.dscp = Some(dscp);
        self
    }

    /// Sets the network interface to use, by name.
    pub fn interface(mut self, name: &str) -> Self {
        self.socket.interface = Some(name.to_owned());
        self
    }

    /// Sets the only hosts from which the session's multicast group is received (source-specific
    /// multicast, RFC 4607); by default any host.
    ///
    /// The network delivers nothing else (version 3 of IGMP, 2 of MLD), and what arrives in another
    /// way is counted ([`Statistics::foreign`](crate::Statistics)) and ignored, so that two senders to
    /// one group and port are kept apart. A stream that sends to the group still hears the RTCP of any
    /// member. A [description](Self::description) of a stream to a group names them
    /// (`a=source-filter`, RFC 4570); without them it names this host, if the group is one of those
    /// that have a single source (`232.0.0.0/8`, `ff3x::/32`).
    pub fn multicast_sources(mut self, hosts: impl IntoIterator<Item = IpAddr>) -> Self {
        self.sources = hosts.into_iter().collect();
        self
    }

    /// Sets the multicast group to join, and options for sending to it.
    ///
    /// By default, if the peer is a group, that group on the default interface, with a hop limit of
    /// 1, and with this host among the receivers.
    pub fn multicast(mut self, options: MulticastOptions) -> Self {
        self.socket.multicast = Some(options);
        self
    }
}
