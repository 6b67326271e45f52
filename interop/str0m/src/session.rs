//! One connection of str0m.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use str0m::change::SdpOffer;
use str0m::crypto::from_feature_flags;
use str0m::format::{Codec, FormatParams};
use str0m::media::{Frequency, MediaTime, Mid};
use str0m::net::{Protocol, Receive};
use str0m::{Candidate, Event, Input, Output, Rtc, RtcConfig};

use crate::Outcome;
use crate::http::Server;

/// Time between two frames that are sent.
const INTERVAL: Duration = Duration::from_millis(15);

/// Time before the first frame and after the last, in which packets can still be retransmitted.
const GRACE: Duration = Duration::from_millis(500);

/// Time after which a session without an end has failed.
const HANGS: Duration = Duration::from_secs(50);

/// The frames that are sent, or that were received.
pub(crate) enum Way {
    Send(Vec<Vec<u8>>),
    Receive(Vec<Vec<u8>>),
}

pub(crate) struct Session {
    way: Way,
    codec: Codec,
    rtc: Rtc,
    socket: UdpSocket,
    mid: Option<Mid>,
    /// When the next frame is to be sent, once the connection exists, and its number.
    due: Option<Instant>,
    sent: usize,
}

impl Session {
    /// Answers an offer of one medium.
    pub(crate) fn open(way: Way, codec: &str, offer: &str) -> Outcome<(Self, String)> {
        from_feature_flags().install_process_default();
        let config = RtcConfig::new().clear_codecs();
        let (codec, mut config) = match codec {
            "vp8" => (Codec::Vp8, config.enable_vp8(true)),
            "vp9" => (Codec::Vp9, config.enable_vp9(true)),
            "av1" => (Codec::Av1, config.enable_av1(true)),
            "h264" => (Codec::H264, config.enable_h264(true)),
            _ => return Err("the codec is none of vp8, vp9, av1 and h264".into()),
        };
        if codec == Codec::Av1 {
            // str0m takes offers of a level that it has itself only: 5 by default, and the film's is 0.
            let mut lowest = FormatParams::default();
            lowest.level_idx = Some(0);
            let (pt, rtx, rate) = (47.into(), Some(48.into()), Frequency::NINETY_KHZ);
            config.codec_config().add_config(pt, rtx, Codec::Av1, rate, None, lowest);
        }
        let mut rtc = config.build(Instant::now());
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let candidate = Candidate::host(socket.local_addr()?, "udp")?;
        rtc.add_local_candidate(candidate);
        let answer = rtc.sdp_api().accept_offer(SdpOffer::from_sdp_string(offer)?)?;
        let session = Self { way, codec, rtc, socket, mid: None, due: None, sent: 0 };
        Ok((session, answer.to_sdp_string()))
    }

    /// Sends or receives until one of both ends leaves.
    pub(crate) fn run(mut self, server: &Server) -> Outcome<Way> {
        let began = Instant::now();
        while self.rtc.is_alive() {
            let now = Instant::now();
            if now - began > HANGS {
                return Err("the session does not end".into());
            }
            self.send(now)?;
            if server.is_deleted()? {
                self.rtc.close()?;
            }
            match self.rtc.poll_output()? {
                Output::Timeout(until) => self.wait(until)?,
                Output::Transmit(datagram) => {
                    self.socket.send_to(&datagram.contents, datagram.destination)?;
                }
                Output::Event(event) => self.handle(event)?,
            }
        }
        Ok(self.way)
    }

    /// Sends the next frame if it is due; leaves after the last.
    fn send(&mut self, now: Instant) -> Outcome<()> {
        let (Way::Send(frames), Some(due), Some(mid)) = (&self.way, self.due, self.mid) else {
            return Ok(());
        };
        if now < due {
            return Ok(());
        }
        let Some(frame) = frames.get(self.sent) else {
            self.due = None;
            return Ok(self.rtc.close()?);
        };
        let writer = self.rtc.writer(mid).ok_or("the medium is not open")?;
        let mut formats = writer.payload_params();
        let format = formats.find(|format| format.spec().codec == self.codec);
        let pt = format.ok_or("the codec was not agreed on")?.pt();
        let time = MediaTime::from_90khz(self.sent as u64 * 1500);
        drop(formats);
        writer.write(pt, now, time, &frame[..])?;
        self.sent += 1;
        let wait = if self.sent == frames.len() { GRACE } else { INTERVAL };
        self.due = Some(now + wait);
        Ok(())
    }

    fn handle(&mut self, event: Event) -> Outcome<()> {
        match event {
            Event::Connected => self.due = Some(Instant::now() + GRACE),
            Event::MediaAdded(media) => self.mid = Some(media.mid),
            Event::MediaData(data) => {
                if let Way::Receive(frames) = &mut self.way {
                    if !data.contiguous {
                        return Err("frames are missing".into());
                    }
                    frames.push(data.data.to_vec());
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Waits for a datagram, until `until` and no longer than a tenth of the time between two frames.
    fn wait(&mut self, until: Instant) -> Outcome<()> {
        let most = until.saturating_duration_since(Instant::now()).min(INTERVAL / 10);
        if most.is_zero() {
            return Ok(self.rtc.handle_input(Input::Timeout(Instant::now()))?);
        }
        self.socket.set_read_timeout(Some(most))?;
        let mut buffer = [0; 2000];
        let destination = self.socket.local_addr()?;
        let input = match self.socket.recv_from(&mut buffer) {
            Ok((length, source)) => {
                let contents = buffer[..length].try_into()?;
                let proto = Protocol::Udp;
                Input::Receive(Instant::now(), Receive { proto, source, destination, contents })
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Input::Timeout(Instant::now())
            }
            Err(error) => return Err(error.into()),
        };
        Ok(self.rtc.handle_input(input)?)
    }
}
