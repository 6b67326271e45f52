//! The samples in the tables of an index (ISO/IEC 14496-12 section 8.6 to 8.7).

use mp4_atom::{Ctts, Stbl, Stsc, Stss, StszSamples, Stts};

use super::Sample;

/// The samples of a track, one by one. The tables are not expanded: a few of their octets can
/// stand for millions of samples.
#[derive(Debug)]
pub(super) struct Table {
    sizes: StszSamples,
    chunks: Vec<u64>,
    groups: Stsc,
    /// The sample numbers of key frames, from 1; all if there is no table.
    keys: Option<Stss>,
    key: usize,
    times: Runs,
    shifts: Option<Runs>,
    /// The number of the next sample, from 0.
    number: u32,
    /// The number of the current chunk, from 0, and of its group.
    chunk: usize,
    group: usize,
    /// Samples that are left in the chunk, and where they begin.
    left: u32,
    offset: u64,
    decoded: i64,
}

/// Values, each with the number of samples to which it applies.
#[derive(Debug)]
struct Runs {
    values: Vec<(u32, i64)>,
    run: usize,
    used: u32,
}

impl Runs {
    fn new(values: Vec<(u32, i64)>) -> Self {
        Self { values, run: 0, used: 0 }
    }

    /// Returns the value of the next sample; after the last sample, its value again.
    fn next(&mut self) -> i64 {
        while self.run + 1 < self.values.len() && self.used >= self.values[self.run].0 {
            (self.run, self.used) = (self.run + 1, 0);
        }
        self.used = self.used.saturating_add(1);
        self.values.get(self.run).map_or(0, |(_, value)| *value)
    }
}

impl Table {
    pub(super) fn new(stbl: Stbl) -> Self {
        let Stts { entries } = stbl.stts;
        let times = entries.iter().map(|it| (it.sample_count, i64::from(it.sample_delta)));
        let shifts = stbl.ctts.map(|Ctts { entries }| {
            Runs::new(entries.iter().map(|it| (it.sample_count, it.sample_offset)).collect())
        });
        let chunks = match (stbl.co64, stbl.stco) {
            (Some(table), _) => table.entries,
            (None, Some(table)) => table.entries.into_iter().map(u64::from).collect(),
            (None, None) => Vec::new(),
        };
        Self {
            sizes: stbl.stsz.samples,
            chunks,
            groups: stbl.stsc,
            keys: stbl.stss,
            key: 0,
            times: Runs::new(times.collect()),
            shifts,
            number: 0,
            chunk: 0,
            group: 0,
            left: 0,
            offset: 0,
            decoded: 0,
        }
    }

    /// Returns the time after the last sample that was returned.
    pub(super) fn end(&self) -> i64 {
        self.decoded
    }

    pub(super) fn next(&mut self) -> Option<Sample> {
        let len = match &self.sizes {
            StszSamples::Identical { count, size } => (self.number < *count).then_some(*size)?,
            StszSamples::Different { sizes } => *sizes.get(self.number as usize)?,
        };
        while self.left == 0 {
            self.begin_chunk()?;
        }
        let sample = Sample {
            offset: self.offset,
            len,
            decoded: self.decoded,
            shift: self.shifts.as_mut().map_or(0, Runs::next),
            is_key: self.is_key(),
            description: self.groups.entries.get(self.group)?.sample_description_index,
        };
        self.left -= 1;
        self.offset = self.offset.saturating_add(u64::from(len));
        self.decoded = self.decoded.saturating_add(self.times.next());
        self.number += 1;
        Some(sample)
    }

    /// Moves to the next chunk; `None` if there are no more.
    fn begin_chunk(&mut self) -> Option<()> {
        self.offset = *self.chunks.get(self.chunk)?;
        self.chunk += 1;
        let groups = &self.groups.entries;
        while groups.get(self.group + 1).is_some_and(|next| next.first_chunk as usize <= self.chunk)
        {
            self.group += 1;
        }
        self.left = groups.get(self.group)?.samples_per_chunk;
        Some(())
    }

    fn is_key(&mut self) -> bool {
        let Some(Stss { entries }) = &self.keys else { return true };
        while entries.get(self.key).is_some_and(|key| *key <= self.number) {
            self.key += 1;
        }
        entries.get(self.key) == Some(&(self.number + 1))
    }
}

#[cfg(test)]
mod tests {
    use mp4_atom::{CttsEntry, Stco, StscEntry, Stsz, SttsEntry};

    use super::*;

    fn table(samples: StszSamples, chunks: &[u32], groups: &[(u32, u32)]) -> Stbl {
        let group = |&(first_chunk, samples_per_chunk)| StscEntry {
            first_chunk,
            samples_per_chunk,
            sample_description_index: 1,
        };
        Stbl {
            stsz: Stsz { samples },
            stco: Some(Stco { entries: chunks.to_vec() }),
            stsc: Stsc { entries: groups.iter().map(group).collect() },
            stts: Stts { entries: vec![SttsEntry { sample_count: 9, sample_delta: 10 }] },
            ..Stbl::default()
        }
    }

    #[test]
    fn samples_follow_each_other_in_their_chunks() {
        let sizes = StszSamples::Different { sizes: vec![5, 6, 7, 8] };
        let mut stbl = table(sizes, &[100, 200, 300], &[(1, 2), (2, 1)]);
        let entry = |sample_count, sample_offset| CttsEntry { sample_count, sample_offset };
        stbl.ctts = Some(Ctts { entries: vec![entry(1, 20), entry(3, -10)] });
        stbl.stss = Some(Stss { entries: vec![1, 4] });
        let mut table = Table::new(stbl);
        let samples: Vec<_> = std::iter::from_fn(|| table.next()).collect();
        let seen = |it: &Sample| (it.offset, it.len, it.decoded, it.shift, it.is_key);
        assert_eq!(
            samples.iter().map(seen).collect::<Vec<_>>(),
            [
                (100, 5, 0, 20, true),
                (105, 6, 10, -10, false),
                (200, 7, 20, -10, false),
                (300, 8, 30, -10, true)
            ]
        );
        assert_eq!(table.end(), 40);
    }

    #[test]
    fn a_table_that_stands_for_many_samples_takes_no_memory() {
        let sizes = StszSamples::Identical { count: u32::MAX, size: 1 };
        let mut table = Table::new(table(sizes, &[8], &[(1, u32::MAX)]));
        assert!(
            (0..1_000_000).all(|number| table.next().is_some_and(|it| it.offset == 8 + number))
        );
    }

    #[test]
    fn empty_chunks_and_missing_tables_end_the_samples() {
        let sizes = || StszSamples::Different { sizes: vec![1, 1] };
        assert_eq!(Table::new(table(sizes(), &[1, 2], &[(1, 0)])).next(), None);
        assert_eq!(Table::new(table(sizes(), &[], &[(1, 1)])).next(), None);
        assert_eq!(Table::new(table(sizes(), &[1], &[])).next(), None);
        assert_eq!(Table::new(Stbl::default()).next(), None);
    }
}
