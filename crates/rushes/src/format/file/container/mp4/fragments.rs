//! The samples in movie fragments (ISO/IEC 14496-12 section 8.8).

use std::collections::VecDeque;

use mp4_atom::{Atom, Moof, Traf, Trex, Trun};

use super::{AnyError, Octets, Sample, end_of, next_box, read_index};

/// Bit of a sample's flags: it is not a sync sample.
const IS_NO_KEY: u32 = 1 << 16;

/// The samples of a track in the fragments after the index.
#[derive(Debug)]
pub(super) struct Fragments {
    defaults: Trex,
    /// Where the next box begins.
    position: u64,
    /// The runs of the current fragment that are left.
    runs: VecDeque<Run>,
    /// The time after the last sample; `None` before the first one.
    decoded: Option<i64>,
}

/// The samples of one run that are left.
#[derive(Debug)]
struct Run {
    samples: Trun,
    next: usize,
    offset: u64,
    defaults: Defaults,
    /// The time at which it begins, if the fragment gives it.
    begin: Option<i64>,
}

/// The values for samples without their own.
#[derive(Clone, Copy, Debug)]
struct Defaults {
    duration: u32,
    size: u32,
    flags: u32,
    description: u32,
}

impl Fragments {
    /// Creates the samples of the fragments from `position` on.
    pub(super) fn new(defaults: Trex, position: u64) -> Self {
        Self { defaults, position, runs: VecDeque::new(), decoded: None }
    }

    /// Returns the next sample; `None` after the last one. The first one is at `begin`, unless its
    /// fragment says another time.
    pub(super) fn next(
        &mut self,
        file: &mut dyn Octets,
        len: u64,
        begin: i64,
    ) -> Result<Option<Sample>, AnyError> {
        loop {
            while let Some(run) = self.runs.front_mut() {
                let decoded = self.decoded.get_or_insert(begin);
                *decoded = run.begin.take().unwrap_or(*decoded);
                if let Some(sample) = run.next(decoded) {
                    return Ok(Some(sample));
                }
                self.runs.pop_front();
            }
            let Some((header, body)) = next_box(file, self.position, len)? else { return Ok(None) };
            let (start, end) = (self.position, end_of(&header, body, len));
            self.position = end;
            // A recording that was interrupted ends with a truncated fragment.
            if header.kind == Moof::KIND && end <= len {
                let moof = read_index::<Moof>(file, &header, body, end)?;
                self.take(moof, start);
            }
        }
    }

    /// Takes the runs of the fragment at `start`.
    fn take(&mut self, moof: Moof, start: u64) {
        let mut end_of_last = start;
        for traf in moof.traf {
            let is_own = traf.tfhd.track_id == self.defaults.track_id;
            let Traf { tfhd, tfdt, trun, .. } = traf;
            // Without any of these, the data begin where the previous track's data end.
            let base = tfhd.base_data_offset.unwrap_or(if tfhd.default_base_is_moof {
                start
            } else {
                end_of_last
            });
            let trex = &self.defaults;
            let defaults = Defaults {
                duration: tfhd.default_sample_duration.unwrap_or(trex.default_sample_duration),
                size: tfhd.default_sample_size.unwrap_or(trex.default_sample_size),
                flags: tfhd.default_sample_flags.unwrap_or(trex.default_sample_flags),
                description: tfhd
                    .sample_description_index
                    .unwrap_or(trex.default_sample_description_index),
            };
            let mut begin = tfdt.and_then(|it| i64::try_from(it.base_media_decode_time).ok());
            let mut offset = base;
            for run in trun {
                if let Some(from_base) = run.data_offset {
                    offset = base.saturating_add_signed(from_base.into());
                }
                let octets = octets_of(&run, defaults);
                if is_own && octets > 0 {
                    let begin = begin.take();
                    self.runs.push_back(Run { samples: run, next: 0, offset, defaults, begin });
                }
                offset = offset.saturating_add(octets);
            }
            end_of_last = offset;
        }
    }
}

/// Returns the number of octets of a run.
fn octets_of(run: &Trun, defaults: Defaults) -> u64 {
    match &run.samples {
        mp4_atom::TrunSamples::Inherited { count, .. } => {
            u64::from(*count) * u64::from(defaults.size)
        }
        mp4_atom::TrunSamples::Explicit(samples) => {
            samples.iter().map(|it| u64::from(it.size.unwrap_or(defaults.size))).sum()
        }
    }
}

impl Run {
    fn next(&mut self, decoded: &mut i64) -> Option<Sample> {
        let entry = self.samples.samples.get(self.next)?;
        self.next += 1;
        let len = entry.size.unwrap_or(self.defaults.size);
        let sample = Sample {
            offset: self.offset,
            len,
            decoded: *decoded,
            shift: entry.cts.unwrap_or(0),
            is_key: entry.flags.unwrap_or(self.defaults.flags) & IS_NO_KEY == 0,
            description: self.defaults.description,
        };
        self.offset = self.offset.saturating_add(u64::from(len));
        let duration = entry.duration.unwrap_or(self.defaults.duration);
        *decoded = decoded.saturating_add(i64::from(duration));
        Some(sample)
    }
}
