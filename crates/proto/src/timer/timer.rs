//! The transmission timer of one participant (RFC 3550 sections 6.3.2 to 6.3.8).

use std::time::{Duration, Instant};

use super::config::TimerConfig;
use super::feedback::{Feedback, Slot};
use super::interval;
use super::interval::Group;
use super::members::{Evidence, Members};
use super::random::Random;
use crate::ssrc::Ssrc;

/// A BYE needs no back-off below this number of members; RFC 3550 section 6.3.7 leaves exactly 50
/// open.
const BYE_AT_ONCE_BELOW: usize = 50;

/// Intervals without a packet after which a member times out (RFC 3550 section 6.3.5).
const MEMBER_TIMEOUT: u32 = 5;

/// Intervals without RTP after which a member is no longer a sender (RFC 3550 section 6.3.5).
const SENDER_TIMEOUT: u32 = 2;

/// The packet that must be sent now.
#[must_use]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Due {
    /// No packet; [`Timer::poll_timeout`] has advanced.
    Nothing,
    /// A full compound packet: SR or RR, SDES, and any waiting feedback.
    Report,
    /// Feedback, in a minimal compound packet (RFC 4585 section 3.1) or, if both sides have agreed
    /// on it, in a reduced-size one (RFC 5506).
    Feedback,
    /// A compound packet with BYE, the last packet of this participant.
    Bye,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Member,
    /// Waiting to send BYE; `members` counts this participant and the BYEs heard since.
    Leaving {
        members: usize,
        back_off: bool,
    },
    Gone,
}

/// The transmission times of one SSRC's RTCP, and the members of its session.
///
/// An endpoint with several SSRCs keeps one timer for each (RFC 8108 section 5.1). All `now`
/// arguments come from one clock; if it goes back, it is treated as standing still.
/// [`TimerConfig::members_max`] limits the table, however many SSRCs are heard.
#[derive(Clone, Debug)]
pub struct Timer {
    config: TimerConfig,
    ssrc: Ssrc,
    random: Random,
    members: Members,
    phase: Phase,
    feedback: Option<Feedback>,
    avg_rtcp_size: f64,
    initial: bool,
    /// Whether RTP or RTCP was sent under the SSRC.
    has_sent: bool,
    /// When RTP was last sent; `None` means that `we_sent` is false.
    sent: Option<Instant>,
    tp: Instant,
    tn: Instant,
    pmembers: usize,
    /// The packet that [`handle_timeout`](Self::handle_timeout) returned and that is not yet sent.
    due: Due,
    /// Whether the next report skips reconsideration.
    at_once: bool,
}

impl Timer {
    /// Joins a session as `ssrc`: the first report is sent after about half the minimum interval
    /// (RFC 3550 section 6.3.2).
    ///
    /// All randomness comes from `seed`, which must be unpredictable and not shared with others:
    /// a participant that draws the same numbers sends at the same instants.
    pub fn new(config: TimerConfig, ssrc: Ssrc, seed: u64, now: Instant) -> Self {
        let config = config.in_range();
        let mut random = Random::new(seed);
        let mut timer = Self {
            members: Members::new(config.members_max, random.bits()),
            config,
            ssrc,
            random,
            phase: Phase::Member,
            feedback: config.feedback.map(Feedback::new),
            avg_rtcp_size: config.packet_len as f64,
            initial: true,
            has_sent: false,
            sent: None,
            tp: now,
            tn: now,
            pmembers: 1,
            due: Due::Nothing,
            at_once: false,
        };
        timer.schedule(now);
        timer
    }

    /// Notes media from `ssrc`, a source validated by its sequence numbers; once per interval is
    /// enough. The CSRCs of the packet are members: see [`handle_cname`](Self::handle_cname).
    pub fn handle_rtp(&mut self, now: Instant, ssrc: Ssrc) {
        self.note_heard(now, ssrc, Evidence::Media);
    }

    /// Notes a compound packet of `packet_len` octets, including UDP and IP headers; `bye` is
    /// whether it contains a BYE. Call this once, then the others for the SSRCs in the packet.
    ///
    /// If several SSRCs report in the packet, `packet_len` is its length divided by their number
    /// (RFC 8108 section 5.3.1).
    pub fn handle_compound(&mut self, packet_len: usize, bye: bool) {
        match self.phase {
            Phase::Member => self.average(packet_len),
            Phase::Leaving { .. } if bye => self.average(packet_len),
            Phase::Leaving { .. } | Phase::Gone => {}
        }
    }

    /// Notes that `ssrc` sent an RTCP packet; the second packet makes it a member.
    pub fn handle_member(&mut self, now: Instant, ssrc: Ssrc) {
        self.note_heard(now, ssrc, Evidence::Report);
    }

    /// Notes that `ssrc` sent its CNAME, or contributes to validated media: it is a member (RFC
    /// 3550 section 6.2.1).
    ///
    /// Each new SSRC lengthens the interval: if packets are authenticated, or come from one known
    /// address, call this for those packets only.
    pub fn handle_cname(&mut self, now: Instant, ssrc: Ssrc) {
        self.note_heard(now, ssrc, Evidence::Cname);
    }

    /// Notes that `ssrc` left (RFC 3550 section 6.3.4). While this participant waits to leave, the
    /// BYE counts towards its back-off (section 6.3.7).
    pub fn handle_bye(&mut self, now: Instant, ssrc: Ssrc) {
        if ssrc == self.ssrc {
            return;
        }
        match &mut self.phase {
            Phase::Member => {
                self.members.bye(now, ssrc);
                self.reverse_reconsider(now);
            }
            Phase::Leaving { members, .. } => *members += 1,
            Phase::Gone => {}
        }
    }

    /// Notes that this participant sent RTP (RFC 3550 section 6.3.8); once per interval is enough.
    pub fn note_sent_rtp(&mut self, now: Instant) {
        self.has_sent = true;
        if self.phase != Phase::Member {
            return;
        }
        let as_receiver = self.interval();
        if self.sent.replace(now).is_none() {
            // The first SR is due earlier than an RR would be.
            let ratio = self.interval().as_secs_f64() / as_receiver.as_secs_f64();
            self.move_closer(now, ratio);
        }
    }

    /// Notes that the packet that was due has been sent, in `packet_len` octets including UDP and
    /// IP headers; for several SSRCs see [`handle_compound`](Self::handle_compound).
    ///
    /// If the packet could not be sent, do not call this: it is due again an interval later.
    pub fn note_sent_rtcp(&mut self, now: Instant, packet_len: usize) {
        self.has_sent = true;
        self.average(packet_len);
        match std::mem::replace(&mut self.due, Due::Nothing) {
            Due::Report => {
                self.initial = false;
                if let Some(feedback) = &mut self.feedback {
                    feedback.note_report(now, &mut self.random);
                }
                self.schedule(self.tp);
            }
            Due::Feedback => self.initial = false,
            Due::Bye => self.phase = Phase::Gone,
            Due::Nothing => {}
        }
    }

    /// Makes the first report due at once, which RFC 3550 section 6.2 allows between two parties;
    /// later reports and other packets are not affected.
    pub fn report_at_once(&mut self, now: Instant) {
        if self.initial && !self.config.multiparty && self.phase == Phase::Member {
            self.tn = now;
            self.at_once = true;
        }
    }

    /// Schedules urgent feedback (RFC 4585 section 3.5.2), and returns when it will probably be
    /// sent. Timer reconsideration may still postpone feedback that is sent with a regular report.
    ///
    /// Returns `None` and schedules nothing if that would be later than
    /// [`delay_max`](super::FeedbackTiming::delay_max), if the configuration has no feedback, or
    /// while leaving.
    pub fn want_feedback(&mut self, now: Instant) -> Option<Instant> {
        if self.phase != Phase::Member {
            return None;
        }
        let t_rr = self.tn.saturating_duration_since(self.tp);
        let t_dither_max = if self.config.multiparty { t_rr / 2 } else { Duration::ZERO };
        self.feedback.as_mut()?.want(now, self.tn, t_dither_max, &mut self.random)
    }

    /// Cancels waiting feedback because another member has sent the same (RFC 4585 section 3.5.2,
    /// step 5a). The schedule is as if the feedback had never been requested.
    pub fn cancel_feedback(&mut self) {
        if let Some(feedback) = &mut self.feedback {
            feedback.cancel();
        }
    }

    /// Leaves the session with a compound packet of about `packet_len` octets, including headers.
    ///
    /// The packet is due at once below 50 members, otherwise after the back-off of RFC 3550 section
    /// 6.3.7, and never if nothing was ever sent.
    pub fn want_bye(&mut self, now: Instant, packet_len: usize) {
        if self.phase != Phase::Member {
            return;
        }
        if !self.has_sent {
            self.phase = Phase::Gone;
            return;
        }
        let back_off = self.members() >= BYE_AT_ONCE_BELOW;
        self.phase = Phase::Leaving { members: 1, back_off };
        self.feedback = None;
        self.due = Due::Nothing;
        self.sent = None;
        self.initial = true;
        self.pmembers = 1;
        self.avg_rtcp_size = packet_len as f64;
        self.tp = now;
        self.tn = now;
        if back_off {
            self.schedule(now);
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout); `None` after the BYE.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let te = self.feedback.as_ref().and_then(Feedback::te);
        (self.phase != Phase::Gone).then(|| te.map_or(self.tn, |te| te.min(self.tn)))
    }

    /// Returns the packet due at `now`, and schedules the next one (RFC 3550 section 6.3.6).
    pub fn handle_timeout(&mut self, now: Instant) -> Due {
        let due = match self.phase {
            Phase::Member => self.expire(now),
            Phase::Leaving { back_off, .. } if self.tn <= now => {
                if back_off && !self.may_send(now) {
                    Due::Nothing
                } else {
                    self.schedule(now);
                    Due::Bye
                }
            }
            Phase::Leaving { .. } | Phase::Gone => Due::Nothing,
        };
        if due != Due::Nothing {
            self.due = due;
        }
        due
    }

    /// Changes the SSRC of this participant (RFC 3550 section 8.2); it must send under the new SSRC
    /// before it can send BYE.
    pub fn set_ssrc(&mut self, ssrc: Ssrc) {
        self.ssrc = ssrc;
        self.has_sent = false;
        self.members.remove(ssrc);
    }

    /// Sets whether more than two endpoints take part, when that becomes known (RFC 8108 section
    /// 5.4.2).
    pub fn set_multiparty(&mut self, multiparty: bool) {
        self.config.multiparty = multiparty;
    }

    /// Returns the number of members of the session, including this participant; at most
    /// [`members_max`](TimerConfig::members_max) others.
    pub fn members(&self) -> usize {
        self.members.count().0 + 1
    }

    /// Returns the number of members that recently sent RTP, including this participant if it did.
    pub fn senders(&self) -> usize {
        self.members.count().1 + usize::from(self.we_sent())
    }

    /// Returns whether this participant counts as a sender; its reports are then SRs.
    pub fn we_sent(&self) -> bool {
        self.sent.is_some()
    }

    /// Returns whether `ssrc` is this participant or a member in the table.
    pub fn is_member(&self, ssrc: Ssrc) -> bool {
        ssrc == self.ssrc || self.members.contains(ssrc)
    }

    /// Returns the next member that timed out (RFC 3550 section 6.3.5).
    ///
    /// Time-outs are found when a report is due.
    pub fn poll_left(&mut self) -> Option<Ssrc> {
        self.members.poll_left()
    }

    /// Returns the current deterministic interval Td between this participant's reports; the actual
    /// ones are 0.41 to 1.23 times as long.
    pub fn interval(&self) -> Duration {
        let minimum = interval::minimum(&self.config, self.we_sent(), self.initial);
        self.td(self.we_sent(), minimum)
    }

    /// Returns the time without packets after which a member times out (RFC 3550 section 6.3.5).
    pub fn member_timeout(&self) -> Duration {
        self.td(false, self.config.interval_min) * MEMBER_TIMEOUT
    }

    /// Returns Td with the fixed minimum of RFC 3550, 5 s by default: no participant that keeps to
    /// the rules reports less often (RFC 8083 section 4.1).
    pub fn report_interval(&self) -> Duration {
        self.td(self.we_sent(), self.config.interval_min)
    }

    fn td(&self, we_sent: bool, minimum: Duration) -> Duration {
        let group = match self.phase {
            Phase::Leaving { members, .. } => Group { members, senders: 0, we_sent: false },
            _ => Group { members: self.members(), senders: self.senders(), we_sent },
        };
        interval::deterministic(&self.config, group, self.avg_rtcp_size, minimum)
    }

    fn note_heard(&mut self, now: Instant, ssrc: Ssrc, evidence: Evidence) {
        if self.phase == Phase::Member && ssrc != self.ssrc {
            self.members.note_heard(now, ssrc, evidence);
        }
    }

    fn average(&mut self, packet_len: usize) {
        self.avg_rtcp_size += (packet_len as f64 - self.avg_rtcp_size) / 16.0;
    }

    /// Draws T for the current group.
    fn draw(&mut self) -> Duration {
        interval::randomised(self.interval(), &mut self.random)
    }

    /// Sets tn to a newly drawn interval after `tp`.
    fn schedule(&mut self, tp: Instant) {
        self.tp = tp;
        self.tn = tp + self.draw();
        self.pmembers = self.group_size();
    }

    /// Returns `members` of the RFC: the members heard or, while leaving, the BYEs counted.
    fn group_size(&self) -> usize {
        match self.phase {
            Phase::Leaving { members, .. } => members,
            _ => self.members(),
        }
    }

    /// Returns whether the packet due at `now` may be sent after timer reconsideration (RFC 3550
    /// section 6.3.6); if the group has grown, tn is postponed.
    fn may_send(&mut self, now: Instant) -> bool {
        if std::mem::take(&mut self.at_once) {
            return true;
        }
        let tn = self.tp + self.draw();
        if tn <= now {
            return true;
        }
        self.tn = tn;
        self.pmembers = self.group_size();
        false
    }

    fn expire(&mut self, now: Instant) -> Due {
        if self.tn <= now {
            self.time_out(now);
            if self.may_send(now) {
                return self.regular(now);
            }
        }
        let Some(feedback) = &mut self.feedback else { return Due::Nothing };
        if !feedback.take_early(now) {
            return Due::Nothing;
        }
        // The early packet uses up the next regular one: tn = tp + 2 T_rr, tp = the previous tn.
        let t_rr = self.tn.saturating_duration_since(self.tp);
        self.tp = self.tn;
        self.tn += t_rr;
        Due::Feedback
    }

    fn regular(&mut self, now: Instant) -> Due {
        self.schedule(now);
        let slot = self.feedback.as_mut().map_or(Slot::Report, |feedback| feedback.at_regular(now));
        match slot {
            Slot::Report => Due::Report,
            Slot::Feedback => Due::Feedback,
            Slot::Suppressed => Due::Nothing,
        }
    }

    /// Finds the members that timed out (RFC 3550 section 6.3.5, RFC 8108 section 7.1.4).
    fn time_out(&mut self, now: Instant) {
        // Both time-outs use the full minimum: other members may not use a reduced one, and with an
        // AVPF interval of milliseconds a sender of a few packets a second would leave and join
        // repeatedly.
        let member = self.member_timeout();
        let sender = self.td(self.we_sent(), self.config.interval_min) * SENDER_TIMEOUT;
        self.sent = self.sent.filter(|sent| now.saturating_duration_since(*sent) <= sender);
        if self.members.check(now, member, sender) {
            self.reverse_reconsider(now);
        }
    }

    /// Moves tn and tp closer to `now` when members have left (RFC 3550 section 6.3.4).
    fn reverse_reconsider(&mut self, now: Instant) {
        let members = self.members();
        if members < self.pmembers {
            self.move_closer(now, members as f64 / self.pmembers as f64);
            self.pmembers = members;
        }
    }

    fn move_closer(&mut self, now: Instant, ratio: f64) {
        if ratio < 1.0 {
            self.tn = closer(now, self.tn, ratio);
            self.tp = closer(now, self.tp, ratio);
        }
    }
}

/// Returns the instant at `ratio`, 0..1, of the distance from `now` to `time`.
fn closer(now: Instant, time: Instant, ratio: f64) -> Instant {
    if time >= now {
        now + (time - now).mul_f64(ratio)
    } else {
        time + (now - time).mul_f64(1.0 - ratio)
    }
}
