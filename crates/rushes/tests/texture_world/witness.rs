//! A sink that checks every octet.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rushes::texture::{FrameMemory, Region, TextureFrame, TextureShape, TextureSink};

use super::noise::{number_of, picture};

/// Octets before and after each region that must not be written.
const GUARD: usize = 64;
const GUARD_OCTET: u8 = 0xa5;

/// Maximum number of recorded faults.
const FAULTS_MAX: usize = 8;

/// Headers that the network has forged, as frame number modulo 256 and packet number.
pub(crate) type Forged = Arc<Mutex<HashSet<(u8, u32)>>>;

/// The relation of picture numbers to frame numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pictures {
    /// Frame n is picture n; this is the number of pictures.
    Numbered(u64),
    /// Frames repeat this number of pictures in order, beginning with any of them.
    Round(u64),
}

pub(crate) struct Witness {
    pictures: Pictures,
    forged: Forged,
    /// Duration of each call of `tile_ready`.
    dawdle: Duration,
    broken: Arc<AtomicBool>,
    state: Mutex<Seen>,
}

/// Counts and faults that the sink has recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) frames: u64,
    pub(crate) damaged: u64,
    pub(crate) concealed: u64,
    pub(crate) packets_missing: u64,
    pub(crate) first: Option<u64>,
    pub(crate) last: Option<u64>,
    pub(crate) first_damaged: Option<u64>,
    pub(crate) faults: Vec<String>,
    pub(crate) ends: u32,
    /// Number of times that memory was requested.
    pub(crate) begun: u32,
    before: Vec<u8>,
    /// Tiles reported since the last frame in this memory.
    reported: Vec<Vec<bool>>,
}

impl Seen {
    fn fault(&mut self, text: String) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(text);
        }
    }
}

impl Witness {
    pub(crate) fn new(pictures: Pictures) -> Self {
        Self {
            pictures,
            forged: Forged::default(),
            dawdle: Duration::ZERO,
            broken: Arc::default(),
            state: Mutex::default(),
        }
    }

    /// Accepts any octets after these headers.
    pub(crate) fn with_forged(self, forged: Forged) -> Self {
        Self { forged, ..self }
    }

    /// Handles tiles slowly.
    pub(crate) fn slow(self, dawdle: Duration) -> Self {
        Self { dawdle, ..self }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forged_headers(&self) -> MutexGuard<'_, HashSet<(u8, u32)>> {
        self.forged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn seen(&self) -> Seen {
        let mut seen = self.lock().clone();
        if self.broken.load(Ordering::Acquire) {
            seen.fault("octets were written outside a region".into());
        }
        seen
    }

    /// Returns the expected octets of the frame, from its picture, the previous frame and its gaps.
    fn expected(&self, frame: &TextureFrame<'_>, seen: &mut Seen, received: &[u8]) -> Vec<u8> {
        let tiles = frame.shape().tiling().tiles();
        let number = match self.pictures {
            Pictures::Numbered(count) => {
                let is_forged =
                    self.forged_headers().iter().any(|(it, _)| *it == frame.number() as u8);
                if frame.number() >= count && !is_forged {
                    seen.fault(format!("frame {} of {count}", frame.number()));
                }
                frame.number()
            }
            Pictures::Round(count) => number_of(received) % count,
        };
        let mut expected = picture(received.len(), number);
        for gap in frame.concealed() {
            let start = tiles[gap.unit].bytes.start;
            let range = start + gap.bytes.start..start + gap.bytes.end;
            if range.is_empty() || range.end > tiles[gap.unit].bytes.end {
                seen.fault(format!("gap {gap:?} in frame {}", frame.number()));
                continue;
            }
            seen.concealed += range.len() as u64;
            match seen.before.get(range.clone()) {
                Some(before) => expected[range].copy_from_slice(before),
                None => expected[range].fill(0),
            }
        }
        let plan = frame.shape().plan();
        let forged = self.forged_headers();
        let of_frame = forged.iter().filter(|(it, _)| *it == frame.number() as u8);
        // The numbers after those of the packets are of packets that are sent again.
        let named = |&(_, index): &(u8, u32)| plan.locate(index % plan.packets());
        for span in of_frame.filter_map(named) {
            let start = tiles[span.unit].bytes.start;
            let range = start + span.bytes.start..start + span.bytes.end;
            let is_gap = frame
                .concealed()
                .iter()
                .any(|gap| gap.unit == span.unit && gap.bytes.contains(&span.bytes.start));
            if !is_gap {
                expected[range.clone()].copy_from_slice(&received[range]);
            }
        }
        expected
    }

    /// Checks that the gaps are whole packets, and that their number is the one that the frame
    /// reports.
    fn check_gaps(frame: &TextureFrame<'_>, seen: &mut Seen) {
        let plan = frame.shape().plan();
        let mut missing = 0;
        for unit in 0..plan.units() {
            for index in plan.unit_packets(unit) {
                let Some(span) = plan.locate(index) else { continue };
                let of_unit = frame.concealed().iter().filter(|gap| gap.unit == unit);
                let covered = of_unit.map(|gap| {
                    let start = gap.bytes.start.max(span.bytes.start);
                    gap.bytes.end.min(span.bytes.end).saturating_sub(start)
                });
                match covered.sum::<usize>() {
                    0 => {}
                    octets if octets == span.bytes.len() => missing += 1,
                    _ => seen.fault(format!("a part of packet {index} is missing")),
                }
            }
        }
        if missing != frame.packets_missing() || frame.is_whole() != (missing == 0) {
            let reported = frame.packets_missing();
            seen.fault(format!(
                "frame {} lacks {missing}, but {reported} were reported",
                frame.number()
            ));
        }
    }
}

impl TextureSink for Witness {
    fn begin(&self, shape: &TextureShape, slots: usize) -> Result<Vec<FrameMemory>, String> {
        let mut seen = self.lock();
        seen.reported = vec![vec![false; shape.plan().units()]; slots];
        seen.before.clear();
        seen.begun += 1;
        let region = |bytes: usize| {
            let octets = vec![GUARD_OCTET; bytes + 2 * GUARD];
            Box::new(Guarded { octets, broken: self.broken.clone() }) as Box<dyn Region>
        };
        let frame = || shape.tiling().tiles().iter().map(|tile| region(tile.bytes.len())).collect();
        Ok((0..slots).map(|_| frame()).collect())
    }

    fn tile_ready(&self, slot: usize, unit: usize) {
        if !self.dawdle.is_zero() && unit.is_multiple_of(2) {
            std::thread::sleep(self.dawdle);
        }
        let mut seen = self.lock();
        if std::mem::replace(&mut seen.reported[slot][unit], true) {
            seen.fault(format!("unit {unit} in memory {slot} was reported twice"));
        }
    }

    fn frame_done(&self, frame: &TextureFrame<'_>) {
        let mut received = vec![0; frame.shape().layout().bytes()];
        frame.copy_to(&mut received);
        let mut seen = self.lock();
        let number = frame.number();
        if seen.last.is_some_and(|last| last >= number) {
            let last = seen.last;
            seen.fault(format!("frame {number} after {last:?}"));
        }
        let expected = self.expected(frame, &mut seen, &received);
        if let Some(at) = (0..received.len()).find(|&at| received[at] != expected[at]) {
            seen.fault(format!("octet {at} of frame {number} is not as sent: {frame:?}"));
        }
        Self::check_gaps(frame, &mut seen);
        let reported = &mut seen.reported[frame.slot()];
        let all_reported = reported.iter().all(|reported| *reported);
        reported.fill(false);
        if !all_reported {
            seen.fault(format!("a tile of frame {number} was not reported before the frame"));
        }
        seen.frames += 1;
        seen.damaged += u64::from(!frame.is_whole());
        if !frame.is_whole() {
            seen.first_damaged.get_or_insert(number);
        }
        seen.packets_missing += u64::from(frame.packets_missing());
        seen.first.get_or_insert(number);
        seen.last = Some(number);
        seen.before = received;
    }

    fn end(&self) {
        self.lock().ends += 1;
    }
}

/// Memory between guard octets that must not change.
struct Guarded {
    octets: Vec<u8>,
    broken: Arc<AtomicBool>,
}

impl Guarded {
    fn check(&self) {
        let end = self.octets.len() - GUARD;
        let mut guards = self.octets[..GUARD].iter().chain(&self.octets[end..]);
        if guards.any(|octet| *octet != GUARD_OCTET) {
            self.broken.store(true, Ordering::Release);
        }
    }
}

impl Region for Guarded {
    fn octets(&mut self) -> &mut [u8] {
        self.check();
        let end = self.octets.len() - GUARD;
        &mut self.octets[GUARD..end]
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.check();
    }
}
