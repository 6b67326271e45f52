//! The index that players need in order to seek: the places of the parts of a file, and its
//! duration. They are known only at the end of the file, so that space is reserved for them.

use super::written::{Element, size};

/// Maximum number of clusters whose places a file lists: more than an hour with one each second.
const CUES_MAX: usize = 4_096;

/// Identifiers of the parts of a file.
const INFO: u32 = 0x1549_a966;
const TRACKS: u32 = 0x1654_ae6b;
const CUES: u32 = 0x1c53_bb6b;

/// Octets of an element with a number.
const DURATION_LEN: usize = 18;

/// The places of clusters, by time (RFC 9559 section 5.1.5).
#[derive(Debug)]
pub(super) struct Cues {
    /// The number of the track whose key frames these are, from 1 on.
    track: u64,
    /// Times in milliseconds, each with its place in the segment.
    points: Vec<(u64, u64)>,
    /// The number of clusters so far, and the distance in clusters between those that are listed.
    seen: usize,
    every: usize,
}

impl Cues {
    /// Creates an empty list for track `number`, counted from 0.
    pub(super) fn of_track(number: usize) -> Self {
        Self { track: number as u64 + 1, points: Vec::new(), seen: 0, every: 1 }
    }

    /// Notes a cluster at which a player can begin. Of very many, only every second one is kept, then
    /// every fourth, and so on.
    pub(super) fn push(&mut self, millis: u64, place: u64) {
        if self.seen.is_multiple_of(self.every) {
            if self.points.len() == CUES_MAX {
                let mut number = 0;
                self.points.retain(|_| {
                    number += 1;
                    number % 2 == 1
                });
                self.every *= 2;
            }
            self.points.push((millis, place));
        }
        self.seen += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    fn element(&self) -> Element {
        let mut points = self.points.clone();
        // A sender's times may go back.
        points.sort_unstable();
        let mut cues = Element::default();
        for (millis, place) in points {
            let mut position = Element::default();
            position.unsigned(0xf7, self.track).unsigned(0xf1, place);
            let mut point = Element::default();
            point.unsigned(0xb3, millis).octets(0xb7, &position.0);
            cues.octets(0xbb, &point.0);
        }
        let mut element = Element::default();
        element.octets(CUES, &cues.0);
        element
    }
}

/// Where the parts of a file are, counted from its beginning.
#[derive(Debug)]
pub(super) struct Parts {
    /// The segment's size, and its data, which begin with the space for the list of the other parts.
    size: u64,
    segment: u64,
    info: u64,
    duration: u64,
    tracks: u64,
}

impl Parts {
    /// Appends the segment's head, in which the parts are, to `file`. Until the file is completed,
    /// players read it from the beginning to the end.
    pub(super) fn write(file: &mut Element, info: &Element, tracks: &Element) -> Self {
        file.open(0x1853_8067);
        let segment = file.0.len() as u64;
        file.void(seek_head([0; 3]).0.len());
        let at_info = file.0.len() as u64;
        let mut whole = Element::default();
        whole.0.extend_from_slice(&info.0);
        whole.void(DURATION_LEN);
        file.octets(INFO, &whole.0);
        let at_tracks = file.0.len() as u64;
        file.octets(TRACKS, &tracks.0);
        Self {
            size: segment - 8,
            segment,
            info: at_info,
            duration: at_tracks - DURATION_LEN as u64,
            tracks: at_tracks,
        }
    }

    /// Returns the place in the segment that corresponds to `position` in the file.
    pub(super) fn place(&self, position: u64) -> u64 {
        position - self.segment
    }

    /// Returns the index of a file that ends at `end` and lasts so many milliseconds, to be written
    /// there, and what replaces the octets at the beginning of the file: each with its position.
    pub(super) fn complete(
        &self,
        cues: &Cues,
        end: u64,
        millis: u64,
    ) -> (Vec<u8>, Vec<(u64, Vec<u8>)>) {
        let cues = cues.element().0;
        let mut duration = Element::default();
        duration.float(0x4489, millis as f64);
        let list = seek_head([self.info, self.tracks, end].map(|position| self.place(position)));
        let len = self.place(end) + cues.len() as u64;
        let replaced = vec![
            (self.segment, list.0),
            (self.duration, duration.0),
            (self.size, size(len).to_vec()),
        ];
        (cues, replaced)
    }
}

/// Returns the list of the parts at these places in the segment (section 5.1.1).
fn seek_head(places: [u64; 3]) -> Element {
    let mut list = Element::default();
    for (id, place) in [INFO, TRACKS, CUES].into_iter().zip(places) {
        let mut entry = Element::default();
        entry.octets(0x53ab, &id.to_be_bytes()).unsigned(0x53ac, place);
        list.octets(0x4dbb, &entry.0);
    }
    let mut element = Element::default();
    element.octets(0x114d_9b74, &list.0);
    element
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_thinned_out_evenly() {
        let mut cues = Cues::of_track(0);
        for number in 0..CUES_MAX as u64 * 9 {
            cues.push(number * 1_000, number);
            assert!(cues.points.len() <= CUES_MAX);
        }
        assert!(cues.points.len() > CUES_MAX / 2);
        for (number, (millis, place)) in (0..).zip(&cues.points) {
            assert_eq!((*millis, *place), (number * 16_000, number * 16));
        }
    }
}
