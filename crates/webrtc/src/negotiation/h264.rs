//! Profiles and levels of H.264 (RFC 6184 section 8.1, H.264 annex A).

use core::fmt;

use rushes_proto::sdp::H264Parameters;

/// Baseline at level 1, which an absent `profile-level-id` means.
const DEFAULT: [u8; 3] = [0x42, 0x00, 0x0a];

/// A profile: a set of coding tools.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Profile {
    ConstrainedBaseline,
    Baseline,
    Main,
    Extended,
    ConstrainedHigh,
    High,
    High10,
    High422,
    High444,
    High10Intra,
    High422Intra,
    High444Intra,
    Cavlc444Intra,
    /// One that is not known, by its `profile_idc`.
    Other(u8),
}

/// `profile_idc`, the octet of constraint flags under a mask, and the profile: table 5 of RFC 6184,
/// and constrained high (H.264 annex A.2.4.2). The first row that fits applies.
const PROFILES: [(u8, u8, u8, Profile); 16] = [
    (0x42, 0b0100_0000, 0b0100_0000, Profile::ConstrainedBaseline),
    (0x4d, 0b1000_0000, 0b1000_0000, Profile::ConstrainedBaseline),
    (0x58, 0b1100_0000, 0b1100_0000, Profile::ConstrainedBaseline),
    (0x42, 0b0100_0000, 0b0000_0000, Profile::Baseline),
    (0x58, 0b1100_0000, 0b1000_0000, Profile::Baseline),
    (0x4d, 0b1000_0000, 0b0000_0000, Profile::Main),
    (0x58, 0b1000_0000, 0b0000_0000, Profile::Extended),
    (0x64, 0b0000_1100, 0b0000_1100, Profile::ConstrainedHigh),
    (0x6e, 0b0001_0000, 0b0001_0000, Profile::High10Intra),
    (0x7a, 0b0001_0000, 0b0001_0000, Profile::High422Intra),
    (0xf4, 0b0001_0000, 0b0001_0000, Profile::High444Intra),
    (0x2c, 0, 0, Profile::Cavlc444Intra),
    (0x64, 0, 0, Profile::High),
    (0x6e, 0, 0, Profile::High10),
    (0x7a, 0, 0, Profile::High422),
    (0xf4, 0, 0, Profile::High444),
];

impl Profile {
    fn of([profile_idc, flags, _]: [u8; 3]) -> Self {
        let fits = |row: &&(u8, u8, u8, Self)| row.0 == profile_idc && flags & row.1 == row.2;
        PROFILES.iter().find(fits).map_or(Self::Other(profile_idc), |row| row.3)
    }

    /// Returns the profiles, besides its own, that a decoder of this one decodes.
    fn also_decodes(self) -> &'static [Self] {
        use Profile::{
            Baseline, Cavlc444Intra, ConstrainedBaseline, ConstrainedHigh, Extended, High, High10,
            High10Intra, High422, High422Intra, High444, High444Intra, Main,
        };
        match self {
            Baseline | ConstrainedHigh | Main => &[ConstrainedBaseline],
            Extended => &[ConstrainedBaseline, Baseline],
            High => &[ConstrainedBaseline, Main, ConstrainedHigh],
            High10 => &[ConstrainedBaseline, Main, ConstrainedHigh, High, High10Intra],
            High422 => &[
                ConstrainedBaseline,
                Main,
                ConstrainedHigh,
                High,
                High10,
                High10Intra,
                High422Intra,
            ],
            High444 => &[
                ConstrainedBaseline,
                Main,
                ConstrainedHigh,
                High,
                High10,
                High10Intra,
                High422,
                High422Intra,
                High444Intra,
                Cavlc444Intra,
            ],
            _ => &[],
        }
    }

    fn decodes(self, stream: Self) -> bool {
        self == stream || self.also_decodes().contains(&stream)
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ConstrainedBaseline => "constrained baseline",
            Self::Baseline => "baseline",
            Self::Main => "main",
            Self::Extended => "extended",
            Self::ConstrainedHigh => "constrained high",
            Self::High => "high",
            Self::High10 => "high 10",
            Self::High422 => "high 4:2:2",
            Self::High444 => "high 4:4:4 predictive",
            Self::High10Intra => "high 10 intra",
            Self::High422Intra => "high 4:2:2 intra",
            Self::High444Intra => "high 4:4:4 intra",
            Self::Cavlc444Intra => "CAVLC 4:4:4 intra",
            Self::Other(profile_idc) => return write!(f, "profile {profile_idc}"),
        })
    }
}

/// A level: a hundred times its number; level 1b, between 1 and 1.1, is 105.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Level(u16);

impl Level {
    fn of([profile_idc, flags, level_idc]: [u8; 3]) -> Self {
        let is_old = matches!(profile_idc, 0x42 | 0x4d | 0x58);
        match level_idc {
            11 if is_old && flags & 0x10 != 0 => Self(105),
            9 if !is_old => Self(105),
            level_idc => Self(u16::from(level_idc) * 10),
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            105 => f.write_str("1b"),
            number => write!(f, "{}.{}", number / 100, number / 10 % 10),
        }
    }
}

/// A stream that the receiver says it cannot decode.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Shortfall {
    /// What the receiver decodes: `constrained baseline up to level 3.1`.
    pub decoder: String,
    /// What the stream is: `high 4.0`.
    pub stream: String,
    /// Whether the peer is the receiver; otherwise it is this end.
    pub at_peer: bool,
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { decoder, stream, at_peer } = self;
        let (receiver, sender) = if *at_peer { ("peer", "our") } else { ("end here", "its") };
        write!(f, "the {receiver} decodes H.264 {decoder}, {sender} stream is {stream}")
    }
}

/// How well a receiver's parameters fit a stream's.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Fit {
    /// Whether both have the same profile.
    pub(super) is_same_profile: bool,
    /// Whether the receiver's profile includes that of the stream.
    pub(super) decodes: bool,
    /// What the receiver says that it cannot decode: profile or level does not suffice.
    pub(super) shortfall: Option<Shortfall>,
}

/// Returns how well `decoder` fits the stream of `stream`.
pub(super) fn fit(decoder: &H264Parameters, stream: &H264Parameters, at_peer: bool) -> Fit {
    let [decoder, stream] = [decoder, stream].map(|it| it.profile_level_id.unwrap_or(DEFAULT));
    let (from, to) = (Profile::of(stream), Profile::of(decoder));
    let (needed, level) = (Level::of(stream), Level::of(decoder));
    let decodes = to.decodes(from);
    let shortfall = (!decodes || level < needed).then(|| Shortfall {
        decoder: format!("{to} up to level {level}"),
        stream: format!("{from} {needed}"),
        at_peer,
    });
    Fit { is_same_profile: from == to, decodes, shortfall }
}

/// Returns whether levels of the two directions may differ (`level-asymmetry-allowed`).
fn is_asymmetric(parameters: &H264Parameters) -> bool {
    let named = |(name, value): &&(String, String)| name == ASYMMETRY && value == "1";
    parameters.other.iter().any(|it| named(&it))
}

const ASYMMETRY: &str = "level-asymmetry-allowed";

/// Returns the parameters of an answer with those of `local` to an offer with those of `remote` (RFC
/// 6184 section 8.2.2): profile and packetisation of the offer; our level if levels may differ, or
/// else the lower one.
pub(super) fn answer(
    local: &H264Parameters,
    remote: &H264Parameters,
    sends: bool,
) -> H264Parameters {
    let mut answer = H264Parameters {
        profile_level_id: remote.profile_level_id,
        packetization_mode: remote.packetization_mode,
        ..H264Parameters::default()
    };
    let asymmetric = is_asymmetric(remote);
    if let (Some(ours), Some(theirs)) = (local.profile_level_id, &mut answer.profile_level_id) {
        theirs[2] = answered_level(ours, *theirs, asymmetric);
    }
    if asymmetric {
        answer.other.push((ASYMMETRY.to_owned(), "1".to_owned()));
    }
    if sends {
        answer.parameter_sets.clone_from(&local.parameter_sets);
    }
    answer
}

/// Returns the `level_idc` of an answer.
fn answered_level(ours: [u8; 3], theirs: [u8; 3], asymmetric: bool) -> u8 {
    // Level 1b is not written alike in all profiles; then the offer's level stands.
    let is_alike = Level::of([theirs[0], theirs[1], ours[2]]) == Level::of(ours);
    let ours_applies = asymmetric || Level::of(ours) < Level::of(theirs);
    if is_alike && ours_applies { ours[2] } else { theirs[2] }
}

/// Returns the parameters of an offer: those of `local`, with levels that may differ.
pub(super) fn offer(local: &H264Parameters) -> H264Parameters {
    let mut offer = local.clone();
    if !is_asymmetric(local) {
        offer.other.push((ASYMMETRY.to_owned(), "1".to_owned()));
    }
    offer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_of_table_5_are_recognised() {
        use Profile::*;
        let table = [
            ([0x42, 0xe0, 31], ConstrainedBaseline),
            ([0x42, 0xc0, 31], ConstrainedBaseline),
            ([0x42, 0x40, 31], ConstrainedBaseline),
            ([0x4d, 0x80, 31], ConstrainedBaseline),
            ([0x58, 0xc0, 31], ConstrainedBaseline),
            ([0x42, 0x00, 31], Baseline),
            ([0x42, 0x80, 31], Baseline),
            ([0x58, 0x80, 31], Baseline),
            ([0x4d, 0x00, 31], Main),
            ([0x4d, 0x40, 31], Main),
            ([0x58, 0x00, 31], Extended),
            ([0x64, 0x00, 31], High),
            ([0x64, 0x0c, 31], ConstrainedHigh),
            ([0x6e, 0x00, 31], High10),
            ([0x6e, 0x10, 31], High10Intra),
            ([0x7a, 0x00, 31], High422),
            ([0x7a, 0x10, 31], High422Intra),
            ([0xf4, 0x00, 31], High444),
            ([0xf4, 0x10, 31], High444Intra),
            ([0x2c, 0x10, 31], Cavlc444Intra),
            ([0x07, 0x00, 31], Other(7)),
        ];
        for (id, profile) in table {
            assert_eq!(Profile::of(id), profile, "{id:02x?}");
            assert!(profile.decodes(profile));
        }
        assert!(High.decodes(ConstrainedBaseline) && !High.decodes(Baseline));
        assert!(Baseline.decodes(ConstrainedBaseline) && !ConstrainedBaseline.decodes(Baseline));
    }

    #[test]
    fn level_1b_is_between_1_and_1_1() {
        let levels = [[0x42, 0, 10], [0x42, 0x10, 11], [0x42, 0, 11]].map(Level::of);
        assert!(levels.is_sorted_by(|a, b| a < b));
        assert_eq!(Level::of([0x64, 0, 9]), levels[1]);
        assert_eq!(levels.map(|level| level.to_string()), ["1.0", "1b", "1.1"]);
    }

    #[test]
    fn the_level_of_an_answer_is_ours_if_levels_may_differ_or_else_the_lower_one() {
        let id = |flags, level| [0x42, flags, level];
        let table = [
            (id(0xe0, 40), id(0xe0, 31), true, 40),
            (id(0xe0, 40), id(0xe0, 31), false, 31),
            (id(0xe0, 30), id(0xe0, 31), false, 30),
            (id(0xe0, 30), id(0xe0, 31), true, 30),
            // 11 with constraint_set3_flag is level 1b, which the offer's flags cannot express.
            (id(0xf0, 11), id(0xe0, 31), true, 31),
        ];
        for (ours, theirs, asymmetric, expected) in table {
            assert_eq!(answered_level(ours, theirs, asymmetric), expected, "{ours:?} {theirs:?}");
        }
    }
}
