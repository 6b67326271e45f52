//! What is delivered as a frame, and how large it may be.

/// The unit of delivery: the data that is delivered as one frame.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Delivery {
    /// Whole access units: if a packet is missing, the access unit is dropped as a whole.
    #[default]
    AccessUnit,
    /// Each NAL unit as soon as it is complete. This has the lowest latency, and a lost packet
    /// affects only the units in it.
    Unit,
}

/// The framing of NAL units in frames that are sent or received.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Framing {
    /// Start codes: `00 00 00 01` before each NAL unit (ITU-T H.264, H.265 and H.266 annex B).
    #[default]
    AnnexB,
    /// A 4-octet length before each NAL unit, as in MP4 files (ISO/IEC 14496-15).
    LengthPrefixed,
}

/// Settings of a [`FrameBuilder`](super::FrameBuilder).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FrameSettings {
    /// The unit of delivery.
    pub delivery: Delivery,
    /// The framing of NAL units.
    pub framing: Framing,
    /// Maximum octets of a frame, not counting its first start code or length field.
    pub frame_len_max: usize,
    /// Whether frames with missing parts are delivered, too, in formats whose packets state their
    /// [place]; [`Frame::missing`] then returns these parts. At least half of a frame must have arrived:
    /// a few packets must not cost the work of whole frames.
    ///
    /// [place]: super::super::PayloadFormat::placement
    /// [`Frame::missing`]: super::super::Frame::missing
    pub incomplete: bool,
    /// Whether frames are delivered [together], without their time and what else a [`Frame`] tells, in
    /// formats of [one packet a frame].
    ///
    /// [together]: super::super::PackedFrames
    /// [`Frame`]: super::super::Frame
    /// [one packet a frame]: super::super::PayloadFormat::has_one_packet_frames
    pub packed: bool,
}

impl Default for FrameSettings {
    /// Returns whole access units with start codes, of up to 64 MiB each.
    fn default() -> Self {
        Self {
            delivery: Delivery::AccessUnit,
            framing: Framing::AnnexB,
            frame_len_max: 64 << 20,
            incomplete: false,
            packed: false,
        }
    }
}
