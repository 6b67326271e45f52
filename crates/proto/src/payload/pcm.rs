//! Audio as samples: L16, PCMU and PCMA (RFC 3551 sections 4.5.11 and 4.5.14), L24 (RFC 3190 section
//! 4).
//!
//! A payload consists of sample groups: one sample of each channel, in the order of the channels and
//! in network byte order (RFC 3551 section 4.1). No group is split between packets. A frame to send is
//! any number of whole groups; it is cut into packets of the packet time, whose timestamps count the
//! samples. A received packet is a frame.

use std::time::Duration;

use super::builder::FrameBuilder;
use super::error::{FrameError, PayloadError};
use super::fragment::Fragment;
use super::{Depacketiser, PacketInfo, Packetiser, PayloadFormat};
use crate::time::ClockRate;

/// The coding of one sample.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Sample {
    /// 16 bits, signed, linear.
    L16,
    /// 24 bits, signed, linear.
    L24,
    /// 8 bits in the µ-law of ITU-T G.711.
    Pcmu,
    /// 8 bits in the A-law of ITU-T G.711.
    Pcma,
}

impl Sample {
    /// Returns the encoding name in descriptions.
    pub const fn name(self) -> &'static str {
        match self {
            Self::L16 => "L16",
            Self::L24 => "L24",
            Self::Pcmu => "PCMU",
            Self::Pcma => "PCMA",
        }
    }

    /// Returns the octets of a sample.
    #[allow(clippy::len_without_is_empty, reason = "no sample is empty")]
    pub const fn len(self) -> usize {
        match self {
            Self::L16 => 2,
            Self::L24 => 3,
            Self::Pcmu | Self::Pcma => 1,
        }
    }

    /// Returns the octet of which silence consists.
    pub const fn silence(self) -> u8 {
        match self {
            Self::L16 | Self::L24 => 0,
            // Zero, with the bits that G.711 inverts.
            Self::Pcmu => 0xff,
            Self::Pcma => 0xd5,
        }
    }

    /// Returns the packet times in nanoseconds of which the first is the default that fits: 20 ms for
    /// speech (RFC 3551 section 4.2), 1 ms for linear samples, as in AES67, and shorter ones.
    const fn packet_times(self) -> &'static [u64] {
        const ALL: &[u64] =
            &[20_000_000, 10_000_000, 5_000_000, 1_000_000, 333_333, 250_000, 125_000];
        match self {
            Self::L16 | Self::L24 => ALL.split_at(3).1,
            Self::Pcmu | Self::Pcma => ALL,
        }
    }
}

/// Octets of payload that fit a packet of Ethernet with every overhead of Rushes: UDP over IPv6, SRTP,
/// a capture time, repair packets.
pub const PAYLOAD_LEN: usize = 1372;

/// Audio as samples.
///
/// ```
/// use rushes_proto::ClockRate;
/// use rushes_proto::payload::pcm::{Pcm, Sample};
///
/// let studio = Pcm::new(Sample::L24, ClockRate::OPUS, 8);
/// assert_eq!((studio.group_len(), studio.packet_samples()), (24, 48));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pcm {
    /// The coding of each sample.
    pub sample: Sample,
    /// The sampling rate, which is the rate of the timestamps.
    pub rate: ClockRate,
    /// The number of channels, at least 1.
    pub channels: u8,
    /// The duration of the samples in a sent packet, rounded to whole samples; `None` for the
    /// [default](Self::packet_samples).
    pub packet_time: Option<Duration>,
}

impl Pcm {
    /// Creates a format with the default packet time.
    pub const fn new(sample: Sample, rate: ClockRate, channels: u8) -> Self {
        Self { sample, rate, channels, packet_time: None }
    }

    /// Returns the octets of a sample group: one sample of each channel.
    pub fn group_len(&self) -> usize {
        self.sample.len() * usize::from(self.channels.max(1))
    }

    /// Returns the samples of each channel in a sent packet, at least 1.
    ///
    /// Without a packet time, these are 20 ms of PCMU and PCMA and 1 ms of L16 and L24, or the longest
    /// shorter time of 10, 5, 1, 0.333, 0.25 and 0.125 ms whose samples fit a packet of Ethernet.
    pub fn packet_samples(&self) -> u32 {
        let samples = |nanos: u128| {
            let samples = (nanos * u128::from(self.rate.hertz()) + 500_000_000) / 1_000_000_000;
            u32::try_from(samples).unwrap_or(u32::MAX).max(1)
        };
        if let Some(time) = self.packet_time {
            return samples(time.as_nanos());
        }
        let mut defaults =
            self.sample.packet_times().iter().map(|nanos| samples(u128::from(*nanos)));
        let shortest = defaults.clone().next_back().unwrap_or(1);
        defaults.find(|it| self.octets(*it) <= PAYLOAD_LEN).unwrap_or(shortest)
    }

    /// Returns the octets of the samples in a sent packet.
    pub fn payload_len(&self) -> usize {
        self.octets(self.packet_samples())
    }

    /// Returns the octets of so many samples of each channel.
    fn octets(&self, samples: u32) -> usize {
        self.group_len().saturating_mul(samples as usize)
    }
}

impl PayloadFormat for Pcm {
    fn name(&self) -> &'static str {
        self.sample.name()
    }

    fn clock_rate(&self) -> ClockRate {
        self.rate
    }

    fn packetiser(&self) -> Box<dyn Packetiser> {
        let packet_samples = self.packet_samples();
        let (group_len, packet_len) = (self.group_len(), self.payload_len());
        Box::new(PcmPacketiser { group_len, packet_samples, packet_len, frame_len: 0, sent: 0 })
    }

    fn depacketiser(&self) -> Box<dyn Depacketiser> {
        Box::new(PcmDepacketiser { group_len: self.group_len() })
    }

    fn has_one_packet_frames(&self) -> bool {
        true
    }
}

struct PcmPacketiser {
    group_len: usize,
    packet_samples: u32,
    packet_len: usize,
    /// Octets of the frame, and those that were sent.
    frame_len: usize,
    sent: usize,
}

impl Packetiser for PcmPacketiser {
    fn check(&self, limit: usize) -> Result<(), FrameError> {
        if self.packet_len <= limit {
            return Ok(());
        }
        let (samples, len) = (self.packet_samples, self.packet_len);
        Err(FrameError::PacketTime { samples, len, limit, fit: limit / self.group_len })
    }

    fn start(&mut self, frame: &[u8], limit: usize) -> Result<(), FrameError> {
        if frame.is_empty() {
            return Err(FrameError::Empty);
        }
        let (len, group_len) = (frame.len(), self.group_len);
        if !len.is_multiple_of(group_len) {
            return Err(FrameError::SampleGroup { len, group_len });
        }
        self.check(limit)?;
        (self.frame_len, self.sent) = (len, 0);
        Ok(())
    }

    fn next(&mut self, frame: &[u8], fragment: &mut Fragment) -> bool {
        if self.sent >= frame.len() {
            return false;
        }
        let end = frame.len().min(self.sent + self.packet_len);
        fragment.push_frame(self.sent..end);
        fragment.set_time_offset((self.sent / self.group_len) as u32);
        self.sent = end;
        true
    }

    fn ends_unmarked(&self) -> bool {
        self.sent >= self.frame_len
    }

    fn duration(&self, frame: &[u8]) -> Option<u32> {
        Some((frame.len() / self.group_len) as u32)
    }
}

struct PcmDepacketiser {
    group_len: usize,
}

impl Depacketiser for PcmDepacketiser {
    fn push(
        &mut self,
        payload: &[u8],
        _packet: PacketInfo,
        frame: &mut FrameBuilder,
    ) -> Result<(), PayloadError> {
        if payload.is_empty() {
            // This is a keep-alive, or a packet of padding only.
            return Ok(());
        }
        let (len, group_len) = (payload.len(), self.group_len);
        if !len.is_multiple_of(group_len) {
            return Err(PayloadError::SampleGroup { len, group_len });
        }
        frame.push_unit(payload)
    }

    fn lost(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::super::builder::Delivery;
    use super::super::rig::Listener;
    use super::*;

    fn rate(hertz: u32) -> ClockRate {
        ClockRate::new(hertz).unwrap()
    }

    /// Returns the payloads of a frame, each with its time offset.
    fn send(format: &Pcm, frame: &[u8], limit: usize) -> Result<Vec<(u32, Vec<u8>)>, FrameError> {
        let mut packetiser = format.packetiser();
        packetiser.start(frame, limit)?;
        let (mut fragment, mut sent) = (Fragment::default(), Vec::new());
        while packetiser.next(frame, &mut fragment) {
            assert!(!fragment.marker(), "there is no silence suppression (RFC 3551 section 4.1)");
            let mut octets = vec![0; fragment.len()];
            fragment.write(frame, &mut octets);
            sent.push((fragment.time_offset(), octets));
            let len: usize = sent.iter().map(|(_, octets)| octets.len()).sum();
            assert_eq!(packetiser.ends_unmarked(), len == frame.len());
            fragment.clear();
        }
        Ok(sent)
    }

    #[test]
    fn the_default_packet_time_is_that_of_its_use_if_it_fits() {
        for (sample, hertz, channels, samples) in [
            (Sample::Pcmu, 8000, 1, 160),
            (Sample::Pcma, 8000, 1, 160),
            (Sample::Pcma, 48_000, 2, 480),
            (Sample::L16, 44_100, 2, 44),
            (Sample::L24, 48_000, 2, 48),
            (Sample::L24, 48_000, 8, 48),
            (Sample::L24, 96_000, 2, 96),
            (Sample::L24, 48_000, 16, 16),
            (Sample::L24, 48_000, 32, 12),
            (Sample::L24, 48_000, 64, 6),
            (Sample::L16, 48_000, 64, 6),
            (Sample::L24, 96_000, 64, 12),
        ] {
            let format = Pcm::new(sample, rate(hertz), channels);
            assert_eq!(format.packet_samples(), samples, "{format:?}");
            let fits = format.octets(samples) <= PAYLOAD_LEN;
            assert_eq!(fits, (hertz, channels) != (96_000, 64), "{format:?}");
        }
    }

    #[test]
    fn a_packet_time_is_rounded_to_samples_as_aes67_counts_them() {
        for (hertz, micros, samples) in [
            (48_000, 125, 6),
            (48_000, 250, 12),
            (48_000, 333, 16),
            (48_000, 1000, 48),
            (48_000, 4000, 192),
            (44_100, 125, 6),
            (44_100, 1000, 44),
            (96_000, 20_000, 1920),
            (8000, 1, 1),
        ] {
            let time = Duration::from_micros(micros);
            let format = Pcm { packet_time: Some(time), ..Pcm::new(Sample::L16, rate(hertz), 1) };
            assert_eq!(format.packet_samples(), samples, "{hertz} Hz, {micros} us");
            // The duration of these samples, as in a=ptime, means the same number.
            let time = Some(format.rate.duration(samples));
            assert_eq!(Pcm { packet_time: time, ..format }.packet_samples(), samples);
        }
        let endless =
            Pcm { packet_time: Some(Duration::MAX), ..Pcm::new(Sample::L24, rate(u32::MAX), 255) };
        assert!(send(&endless, &[0; 765], 1400).is_err());
    }

    #[test]
    fn a_frame_is_cut_into_packets_of_the_packet_time_between_sample_groups() {
        // Three samples of two channels in each packet.
        let time = Some(Duration::from_micros(375));
        let format = Pcm { packet_time: time, ..Pcm::new(Sample::L24, rate(8000), 2) };
        let frame: Vec<u8> = (0..7 * 6).collect();
        let sent = send(&format, &frame, 18).unwrap();
        let times: Vec<u32> = sent.iter().map(|(time, _)| *time).collect();
        assert_eq!(times, [0, 3, 6]);
        let lens: Vec<usize> = sent.iter().map(|(_, octets)| octets.len()).collect();
        assert_eq!(lens, [18, 18, 6]);
        assert_eq!(sent.iter().flat_map(|(_, octets)| octets.clone()).collect::<Vec<_>>(), frame);
        assert_eq!(format.packetiser().duration(&frame), Some(7));
    }

    #[test]
    fn frames_that_cannot_be_sent_are_named() {
        let stereo = Pcm::new(Sample::L16, rate(48_000), 2);
        assert_eq!(send(&stereo, &[], 1400), Err(FrameError::Empty));
        let error = FrameError::SampleGroup { len: 6, group_len: 4 };
        assert_eq!(send(&stereo, &[0; 6], 1400), Err(error));
        let error = FrameError::PacketTime { samples: 48, len: 192, limit: 191, fit: 47 };
        assert_eq!(send(&stereo, &[0; 4], 191), Err(error));
        assert!(error.to_string().contains("at most 47"), "{error}");
        let crowd = Pcm::new(Sample::L24, rate(96_000), 64);
        let error = crowd.packetiser().check(1460).unwrap_err();
        assert_eq!(error, FrameError::PacketTime { samples: 12, len: 2304, limit: 1460, fit: 7 });
    }

    #[test]
    fn a_packet_is_a_frame_and_one_that_is_lost_takes_no_other_with_it() {
        let mut listener = Listener::new(&Pcm::new(Sample::L16, rate(48_000), 1), Delivery::Unit);
        listener.take(&[1, 2, 3, 4], 0, true).unwrap();
        listener.take(&[5, 6], 2, false).unwrap();
        listener.lose(1);
        listener.take(&[7, 8], 5, false).unwrap();
        let frames = [(0, vec![1, 2, 3, 4]), (2, vec![5, 6]), (5, vec![7, 8])];
        assert_eq!(listener.timed_frames(), frames);
    }

    #[test]
    fn a_packet_that_ends_within_a_sample_group_is_refused() {
        let mut listener = Listener::new(&Pcm::new(Sample::L24, rate(48_000), 2), Delivery::Unit);
        for len in (1..20).filter(|len| len % 6 != 0) {
            let error = PayloadError::SampleGroup { len, group_len: 6 };
            assert_eq!(listener.take(&vec![0; len], 0, false), Err(error));
        }
        assert_eq!(listener.take(&[], 0, false), Ok(()));
        assert!(listener.frames().is_empty());
    }
}
