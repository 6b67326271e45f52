//! Settings of forward error correction.

use std::time::Duration;

use rushes_proto::repair::fec::{DecoderLimits, FecFormat, LossRatio};
use rushes_proto::stream::{FecReception, FecSending, Sender};
use rushes_proto::{PayloadType, Ssrc};

use super::builder::StreamBuilder;
use super::open::{random_ssrc_except, random_word};
use crate::error::Error;

/// The default of [`Fec::delay`].
const DELAY: Duration = Duration::from_millis(60);

/// Maximum octets of the packets that a decoder keeps, unless the stream's own are longer.
const PACKET_LEN: usize = 2048;

/// Forward error correction of a stream: a sender adds repair packets, from which a receiver
/// computes lost packets without asking for them ([`StreamBuilder::fec`]).
///
/// Each repair packet is the parity (XOR) of some packets of media and recovers one of them. They
/// are interleaved: with 20 %, a block of 40 packets has 8 repair packets, each of every eighth
/// packet, so that one lost packet of each of the eight is recovered, and so is a burst of 8. At
/// 2 % of random loss, 20 % of repair packets recover more than nine of ten lost packets.
///
/// ```
/// use rushes::{Codec, Context, Fec};
/// use std::time::Duration;
///
/// # fn main() -> Result<(), rushes::Error> {
/// let session = Context::new().session("127.0.0.1")?;
/// // Both ends must agree; a receiver needs no ratio.
/// let mut receiver = session.stream(Codec::Generic).fec(Fec::receive()).open()?;
/// let port = receiver.local_address().port();
/// let mut sender = session.stream(Codec::Generic).fec(Fec::percent(20)).remote_port(port).open()?;
/// for _ in 0..2 {
///     sender.push_frame(b"frame", None)?;
/// }
/// assert!(receiver.pull_frame(Duration::from_secs(1))?.is_some());
/// assert!(sender.statistics().send.repairs > 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Fec {
    format: FecFormat,
    payload_type: Option<PayloadType>,
    red_payload_type: Option<PayloadType>,
    delay: Duration,
    ratio: Ratio,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Ratio {
    Receive,
    Percent(u8),
    ByLoss(u8),
}

impl Fec {
    fn new(ratio: Ratio) -> Self {
        let (payload_type, red_payload_type) = (None, None);
        Self { format: FecFormat::FlexFec, payload_type, red_payload_type, delay: DELAY, ratio }
    }

    /// Uses received repair packets, and sends none.
    pub fn receive() -> Self {
        Self::new(Ratio::Receive)
    }

    /// Sends `percent` repair packets for 100 packets of media, 1..=100, and uses received ones.
    ///
    /// Every block has at least one, so that a stream of few packets has more: with the default
    /// delay, Opus frames of 20 ms have one for three packets.
    pub fn percent(percent: u8) -> Self {
        Self::new(Ratio::Percent(percent))
    }

    /// Sends repair packets by the loss that receivers report, at most `max` for 100 packets of
    /// media, 1..=100, and uses received ones. See [`LossRatio`]: ten for each lost packet, none
    /// while nothing is lost. Needs RTCP.
    pub fn by_loss(max: u8) -> Self {
        Self::new(Ratio::ByLoss(max))
    }

    /// Sets the format; by default [`FecFormat::FlexFec`] (RFC 8627).
    ///
    /// [`FecFormat::FlexFec03`] and [`FecFormat::Ulp`] are for WebRTC programs and GStreamer. ULPFEC
    /// (RFC 5109) sends media and repair packets as one stream within RED (RFC 2198), so that a lost
    /// repair packet is as harmful as a lost packet of media. [Retransmissions](StreamBuilder::recovery)
    /// repeat the packets within RED.
    #[must_use]
    pub fn format(mut self, format: FecFormat) -> Self {
        self.format = format;
        self
    }

    /// Sets the payload type of repair packets; by default the stream's with its third bit
    /// inverted: 100 for 96, 101 for 97, and so on; 123 for static ones.
    #[must_use]
    pub fn payload_type(mut self, payload_type: PayloadType) -> Self {
        self.payload_type = Some(payload_type);
        self
    }

    /// Sets the payload type of RED, within which ULPFEC has media and repair packets; by default the
    /// stream's with its fourth bit inverted: 104 for 96, 105 for 97, and so on; 122 for static ones.
    /// Other formats do not use it.
    #[must_use]
    pub fn red_payload_type(mut self, payload_type: PayloadType) -> Self {
        self.red_payload_type = Some(payload_type);
        self
    }

    /// Sets the longest time from a packet to the repair packets that protect it, by default 60 ms;
    /// a block is one frame at least.
    ///
    /// A longer time makes larger blocks of streams with few packets, which recover longer bursts
    /// and exceed the ratio less. A receiver waits this long before it
    /// [requests](StreamBuilder::recovery) a missing packet, so both ends should set the same.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Returns the format and the delay.
    pub(crate) fn format_and_delay(self) -> (FecFormat, Duration) {
        (self.format, self.delay)
    }

    /// Returns the payload type of repair packets for `media`.
    pub(crate) fn type_for(self, media: PayloadType) -> PayloadType {
        self.payload_type.unwrap_or_else(|| usual(media, 4, 123))
    }

    /// Returns the payload type of RED for `media`, if the format needs it.
    pub(crate) fn red_type_for(self, media: PayloadType) -> Option<PayloadType> {
        let usual = || usual(media, 8, 122);
        self.format.is_in_red().then(|| self.red_payload_type.unwrap_or_else(usual))
    }

    /// Returns whether repair packets are sent.
    pub(crate) fn is_sent(self) -> bool {
        self.ratio != Ratio::Receive
    }

    /// Returns the ratio by the loss that receivers report, if it depends on that.
    pub(super) fn loss_ratio(self) -> Option<LossRatio> {
        match self.ratio {
            Ratio::ByLoss(max) => Some(LossRatio::new(max)),
            _ => None,
        }
    }
}

/// Returns `media` with the bit `bit` inverted, or `fixed` for a static payload type.
fn usual(media: PayloadType, bit: u8, fixed: u8) -> PayloadType {
    let value = if media.value() < 96 { fixed } else { media.value() ^ bit };
    PayloadType::new(value).unwrap_or(media)
}

impl StreamBuilder {
    /// Sets forward error correction; by default there is none. Both ends must agree.
    ///
    /// Repair packets cost bit rate whether packets are lost or not, but no round trip. With
    /// [`recovery`](Self::recovery), packets that they did not recover within the
    /// [delay](Fec::delay) are requested, which is part of the [latency limit](Self::latency). They
    /// have an SSRC of their own, except with [ULPFEC](FecFormat::Ulp), are secured as the media is,
    /// and are paced with it; packets of media are up to 36 octets shorter. [`description`](Self::description) names them
    /// (`a=rtpmap`, `a=fmtp`), and [`Context::described`](crate::Context::described) reads that.
    ///
    /// A block ends with a later frame. After the last frame of a stream, call
    /// [`StreamSender::send_keep_alive`](crate::StreamSender::send_keep_alive), which ends it: otherwise
    /// the last packets have no repair packets.
    /// [`StreamSender::has_repairs_due`](crate::StreamSender::has_repairs_due) says whether that is
    /// needed.
    ///
    /// [`SendStatistics::repairs`](crate::proto::stream::SendStatistics::repairs) counts repair
    /// packets sent, [`ReceiveStatistics`](crate::proto::stream::ReceiveStatistics) those received
    /// (`repairs`) and the packets recovered by them (`repaired`).
    pub fn fec(mut self, fec: Fec) -> Self {
        self.control.fec = Some(fec);
        self
    }

    /// Sets the SSRC of the repair packets that the stream sends, which must not be that of its
    /// media or of its retransmissions; random by default.
    pub fn fec_ssrc(mut self, ssrc: Ssrc) -> Self {
        self.control.fec_ssrc = Some(ssrc);
        self
    }

    /// Accepts repair packets only from this SSRC. By default any is accepted.
    pub fn remote_fec_ssrc(mut self, ssrc: Ssrc) -> Self {
        self.control.remote_fec_ssrc = Some(ssrc);
        self
    }

    /// Checks that repair packets can be distinguished from media and retransmissions, and their
    /// ratio.
    pub(crate) fn check_fec(&self) -> Result<(), Error> {
        let (own, remote) = (self.control.fec_ssrc, self.control.remote_fec_ssrc);
        let Some(fec) = self.control.fec else {
            return if own.or(remote).is_some() { Err(Error::NoFec) } else { Ok(()) };
        };
        let media = self.payload_type;
        let types = [Some(fec.type_for(media)), fec.red_type_for(media)];
        for (n, payload_type) in types.into_iter().enumerate() {
            let Some(payload_type) = payload_type else { continue };
            let is_other = payload_type == media || types[..n].contains(&Some(payload_type));
            if is_other || Some(payload_type) == self.retransmission_type() {
                return Err(Error::FecPayloadType { payload_type });
            }
        }
        if fec.red_type_for(media).is_some() && own.or(remote).is_some() {
            return Err(Error::FecSharesSsrc);
        }
        if let Ratio::Percent(percent) | Ratio::ByLoss(percent) = fec.ratio
            && !(1..=100).contains(&percent)
        {
            return Err(Error::FecPercent { percent });
        }
        if fec.loss_ratio().is_some() && !self.control.rtcp {
            return Err(Error::NoRtcp);
        }
        let pairs = [
            (own, self.ssrc),
            (own, self.control.rtx_ssrc),
            (remote, self.remote_ssrc),
            (remote, self.control.remote_rtx_ssrc),
        ];
        match pairs.into_iter().find(|(fec, other)| fec.is_some() && fec == other) {
            Some((Some(ssrc), _)) => Err(Error::FecSsrc { ssrc }),
            _ => Ok(()),
        }
    }

    /// Makes `sender` add repair packets, if they are set.
    pub(super) fn with_fec(&self, sender: Sender) -> Result<Sender, Error> {
        let Some(fec) = self.control.fec.filter(|fec| fec.is_sent()) else { return Ok(sender) };
        let ((format, span), media) = (fec.format_and_delay(), self.payload_type);
        let (payload_type, red) = (fec.type_for(media), fec.red_type_for(media));
        let ssrc = match self.control.fec_ssrc {
            Some(ssrc) => ssrc,
            None => random_ssrc_except(&[Some(sender.config().ssrc), self.control.rtx_ssrc])?,
        };
        let percent = match fec.ratio {
            Ratio::Percent(percent) => percent,
            Ratio::Receive | Ratio::ByLoss(_) => 0,
        };
        let first_sequence = self.first_sequence(random_word()?);
        let sending = FecSending { format, payload_type, red, ssrc, first_sequence, percent, span };
        Ok(sender.with_fec(sending)?)
    }

    /// Returns the repair packets that the receiver uses.
    pub(super) fn fec_reception(&self) -> Option<FecReception> {
        let (fec, media) = (self.control.fec?, self.payload_type);
        let ((format, wait), red) = (fec.format_and_delay(), fec.red_type_for(media));
        let payload_type = fec.type_for(media);
        let packet_len = self.mtu.max(PACKET_LEN);
        let limits = DecoderLimits { packet_len, ..DecoderLimits::default() };
        let ssrc = self.control.remote_fec_ssrc;
        Some(FecReception { format, payload_type, red, ssrc, wait, limits })
    }
}
