//! Which pictures of a file are left out so that the rest keeps to a rate and can be decoded.

use std::ops::Range;
use std::time::Duration;

use rushes::Framing;
use rushes::payload::TemporalLayers;
use rushes::payload::nal::{Dependence, DependenceReader, NalCodec, find_units};

/// How many seconds of the target may be saved up, and how many a file may be ahead of it before all
/// pictures are left out.
const ALLOWANCE: f64 = 1.0;

/// A temporal layer has room only if this much of the allowance is left for each layer below it, except
/// the base and the first above it.
const LAYER_RESERVE: f64 = 1.0 / 8.0;

/// Receivers end a stream after some seconds of silence.
const SILENCE: Duration = Duration::from_millis(500);

/// Leaves out pictures of a file. Octets that the target allows are saved up, and each sent picture
/// uses some: without enough, pictures that no other needs are left out, and temporal layers from the
/// highest down; far below, all but key frames until there is enough again.
#[derive(Debug)]
pub(super) struct Thinning {
    reader: DependenceReader,
    /// The temporal layers that are sent.
    layers: TemporalLayers,
    units: Vec<Range<usize>>,
    /// Octets that may be sent.
    credit: f64,
    /// When the last picture was due.
    last: Option<Duration>,
    /// Whether everything is left out until a key frame.
    is_waiting: bool,
    /// Whether pictures were left out before the last key frame, which its leading pictures need.
    has_gap: bool,
    /// When the last access unit that was sent was due.
    sent: Duration,
    left_out: u64,
}

impl Thinning {
    pub(super) fn new(codec: NalCodec) -> Self {
        Self {
            reader: DependenceReader::new(codec),
            layers: TemporalLayers::up_to(u8::MAX),
            units: Vec::new(),
            credit: 0.0,
            last: None,
            is_waiting: false,
            has_gap: false,
            sent: Duration::ZERO,
            left_out: 0,
        }
    }

    /// Returns the number of access units left out.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns whether an access unit that is due at `due` is sent, at a target in bits per second.
    pub(super) fn keeps(&mut self, access_unit: &[u8], target: u64, due: Duration) -> bool {
        let allowance = target as f64 / 8.0 * ALLOWANCE;
        let elapsed = self.last.replace(due).map(|last| due.saturating_sub(last).as_secs_f64());
        let earned = elapsed.map_or(allowance, |time| target as f64 / 8.0 * time);
        self.credit = (self.credit + earned).min(allowance);
        let is_read = find_units(access_unit, Framing::AnnexB, &mut self.units).is_ok();
        let units = if is_read { &self.units[..] } else { &[] };
        let picture = self.reader.read(access_unit, units);
        let len = access_unit.len() as f64;
        let is_far_above = self.credit < -allowance;
        let is_kept = if picture.is_random_access {
            self.has_gap = self.is_waiting;
            // A key frame is sent even without credit, to show that the stream goes on; the pictures
            // after it are not.
            self.is_waiting &= self.credit < 0.0;
            !is_far_above
        } else {
            let needs_gap = self.has_gap && picture.needs_earlier;
            let is_skipped = self.is_waiting || is_far_above || needs_gap;
            !is_skipped && !self.spares(picture, len, allowance)
        };
        if is_kept {
            self.layers.takes(picture.layers);
        }
        self.is_waiting |= is_far_above;
        if is_kept {
            self.credit -= len;
            self.sent = due;
        } else {
            self.left_out += 1;
        }
        is_kept
    }

    /// Returns whether a picture is left out that others can be decoded without, or that is of a temporal
    /// layer which is left out.
    fn spares(&mut self, picture: Dependence, len: f64, allowance: f64) -> bool {
        let temporal_id = picture.layers.map_or(0, |layers| layers.temporal_id);
        let reserve = f64::from(temporal_id.saturating_sub(1)) * LAYER_RESERVE * allowance;
        let has_room = self.credit >= len + reserve;
        let is_spared = match temporal_id {
            0 => picture.is_disposable && !has_room,
            _ => !has_room || !self.layers.would_take(picture.layers),
        };
        if let (true, false, Some(layers)) = (is_spared, picture.is_disposable, picture.layers) {
            self.layers.leave_out(layers);
        }
        is_spared
    }

    /// Returns whether nothing has been sent for so long before `due` that a receiver may take the
    /// stream for ended. It returns `true` once in that time.
    pub(super) fn is_silent(&mut self, due: Duration) -> bool {
        let is_silent = due.saturating_sub(self.sent) >= SILENCE;
        if is_silent {
            self.sent = due;
        }
        is_silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: u8 = 0x65;
    const NEEDED: u8 = 0x41;
    const DISPOSABLE: u8 = 0x01;

    /// Returns the kinds of H.264 pictures of 1 000 octets, ten per second, that are kept.
    fn kept(target: u64, kinds: &[u8]) -> Vec<u8> {
        let mut thinning = Thinning::new(NalCodec::H264);
        let picture = |kind| [&[0, 0, 1, kind][..], &[7; 996]].concat();
        let due = |n: u64| Duration::from_millis(100 * n);
        let kinds = (0..).zip(kinds.iter().copied());
        kinds
            .filter(|(n, kind)| thinning.keeps(&picture(*kind), target, due(*n)))
            .map(|it| it.1)
            .collect()
    }

    fn count(kinds: &[u8], kind: u8) -> usize {
        kinds.iter().map(|it| usize::from(*it == kind)).sum()
    }

    #[test]
    fn nothing_is_left_out_of_a_file_below_the_target() {
        let kinds = [&[KEY][..], &[NEEDED, DISPOSABLE].repeat(100)].concat();
        assert_eq!(kept(80_000, &kinds), kinds);
    }

    #[test]
    fn pictures_that_no_other_needs_are_left_out_first() {
        let kinds = [&[KEY][..], &[NEEDED, DISPOSABLE].repeat(100)].concat();
        let kept = kept(60_000, &kinds);
        assert_eq!(count(&kept, NEEDED), 100);
        // Half of them have no room, and a second of the target is saved up at the beginning.
        assert!((50..60).contains(&count(&kept, DISPOSABLE)), "{}", count(&kept, DISPOSABLE));
    }

    #[test]
    fn far_above_the_target_a_file_pauses_until_the_next_key_frame() {
        let group = [&[KEY][..], &[NEEDED; 49]].concat();
        let kinds = group.repeat(10);
        let kept = kept(40_000, &kinds);
        assert_eq!(count(&kept, KEY), 10);
        // No more than the target, but most of it.
        assert!((190..=250).contains(&kept.len()), "{}", kept.len());
    }

    #[test]
    fn leading_pictures_after_a_gap_are_left_out() {
        let mut thinning = Thinning::new(NalCodec::H265);
        let unit = |kind: u8, len: usize| [&[0, 0, 1, kind << 1, 1][..], &vec![7; len]].concat();
        let mut at = 0;
        let mut keeps = |seconds: u64, kind, len| {
            at += 1 + 1000 * seconds;
            thinning.keeps(&unit(kind, len), 8000, Duration::from_millis(at))
        };
        // CRA, RASL_R, TRAIL_R.
        let (cra, leading, trailing) = (21, 9, 1);
        assert!(keeps(0, cra, 10) && keeps(0, leading, 10));
        assert!(keeps(0, trailing, 5000), "it is needed");
        assert!(!keeps(0, trailing, 10) && !keeps(0, cra, 10), "far above the target");
        assert!(keeps(10, cra, 10) && !keeps(0, leading, 10) && keeps(0, trailing, 10));
        assert!(keeps(0, cra, 10) && keeps(0, leading, 10), "nothing was left out before this one");
        assert_eq!(thinning.left_out(), 3);
    }

    #[test]
    fn temporal_layers_are_left_out_from_the_highest_down() {
        // IDR_W_RADL, TRAIL_R of the base, TSA_R above, as in a hierarchy of four pictures.
        let unit = |nal_type: u8, temporal_id: u8| {
            [&[0, 0, 1, nal_type << 1, temporal_id + 1][..], &[7; 995]].concat()
        };
        let group = [(1, 0), (3, 2), (3, 1), (3, 2)];
        let kept = |target| {
            let mut thinning = Thinning::new(NalCodec::H265);
            let mut kept = [0; 3];
            for n in 0..400_u64 {
                let (nal_type, temporal_id) = if n == 0 { (19, 0) } else { group[n as usize % 4] };
                let due = Duration::from_millis(100 * n);
                let is_kept = thinning.keeps(&unit(nal_type, temporal_id), target, due);
                kept[usize::from(temporal_id)] += u64::from(is_kept);
            }
            kept
        };
        assert_eq!(kept(80_000), [100, 100, 200]);
        let [base, middle, upper] = kept(60_000);
        assert!((base, middle) == (100, 100) && (90..=120).contains(&upper), "{upper}");
        let [base, middle, upper] = kept(30_000);
        assert!(base == 100 && (45..=65).contains(&middle) && upper <= 10, "{middle} {upper}");
    }

    #[test]
    fn leading_pictures_of_a_layer_that_was_left_out_are_left_out() {
        let mut thinning = Thinning::new(NalCodec::H265);
        let unit = |nal_type: u8, temporal_id: u8, len: usize| {
            [&[0, 0, 1, nal_type << 1, temporal_id + 1][..], &vec![7; len]].concat()
        };
        let mut at = 0;
        let mut keeps = |seconds: u64, nal_type, temporal_id, len| {
            at += 1 + 1000 * seconds;
            thinning.keeps(&unit(nal_type, temporal_id, len), 8000, Duration::from_millis(at))
        };
        // CRA, TRAIL_R, RASL_R.
        let (cra, trailing, leading) = (21, 1, 9);
        assert!(keeps(0, cra, 0, 10) && keeps(0, trailing, 0, 900), "there is room");
        assert!(!keeps(0, trailing, 1, 200), "there is none");
        assert!(keeps(10, cra, 0, 10) && !keeps(0, leading, 1, 10), "it may need that picture");
        assert!(keeps(0, trailing, 1, 10) && keeps(0, cra, 0, 10) && keeps(0, leading, 1, 10));
    }

    #[test]
    fn above_the_target_by_its_key_frames_a_file_is_its_key_frames() {
        let kinds = [KEY, NEEDED, NEEDED, NEEDED, NEEDED].repeat(40);
        // Two pictures a second, of which one is a key frame for each five.
        let kept = kept(16_000, &kinds);
        assert_eq!(count(&kept, KEY), 40);
        assert!(count(&kept, NEEDED) < 12, "{}", count(&kept, NEEDED));
    }

    #[test]
    fn a_pause_is_noticed_twice_a_second() {
        let mut thinning = Thinning::new(NalCodec::H264);
        let picture = |kind, len| [&[0, 0, 1, kind][..], &vec![7; len]].concat();
        let at = |n: u64| Duration::from_millis(100 * n);
        assert!(thinning.keeps(&picture(KEY, 9_000), 8_000, at(0)));
        let silent = (1..=12).filter(|n| {
            assert!(!thinning.keeps(&picture(NEEDED, 10), 8_000, at(*n)));
            thinning.is_silent(at(*n))
        });
        assert_eq!(silent.collect::<Vec<_>>(), [5, 10]);
    }
}
