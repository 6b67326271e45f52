//! Pictures scaled down for the sessions that send them in one size.

use std::num::NonZero;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use rushes_texture::{Frame, Layout, Scaler};

use super::super::lock;
use super::encoding::Picture;

/// Octets of the source's picture that a thread scales at a time: below, others would cost more than they save.
const PART: usize = 1 << 20;

/// Maximum number of threads that scale a picture.
const THREADS_MAX: usize = 8;

/// What makes pictures of one size of the source's.
#[derive(Debug)]
pub(super) struct Scaling {
    scaler: Scaler,
    threads: usize,
}

impl Scaling {
    pub(super) fn new(scaler: Scaler) -> Self {
        let threads = thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX);
        Self { scaler, threads }
    }

    /// Returns the layout of the scaled pictures.
    pub(super) fn output(&self) -> &Layout {
        self.scaler.output()
    }

    /// Returns the octets of a scaled picture; of one of a wrong length, which the feed lets nobody give, none.
    fn scale(&self, picture: &[u8]) -> Frame {
        let mut out = vec![0; self.output().bytes()];
        let parts = Mutex::new(self.parts(&mut out).into_iter());
        let work = || {
            loop {
                let Some((plane, rows, out)) = lock(&parts).next() else { return true };
                if self.scaler.scale_rows(picture, plane, rows, out).is_err() {
                    return false;
                }
            }
        };
        let others = (self.scaler.input().bytes() / PART).min(self.threads.saturating_sub(1));
        let is_scaled = thread::scope(|scope| {
            // If the system has no more threads, this one does their work.
            let spawn =
                |_| thread::Builder::new().name("rushes-scale".into()).spawn_scoped(scope, work);
            let others: Vec<_> = (0..others).map_while(|it| spawn(it).ok()).collect();
            let own = work();
            others.into_iter().all(|other| other.join().unwrap_or(false)) && own
        });
        Frame::new(if is_scaled { out } else { Vec::new() })
    }

    /// Divides the octets of a scaled picture into rows of its planes.
    fn parts<'a>(&self, mut out: &'a mut [u8]) -> Vec<(usize, Range<u32>, &'a mut [u8])> {
        let mut parts = Vec::new();
        let planes = self.scaler.input().planes().iter().zip(self.output().planes());
        for (plane, (from, to)) in planes.enumerate() {
            let rows =
                (PART as u64 * u64::from(to.rows) / from.bytes().max(1) as u64).max(1) as u32;
            for start in (0..to.rows).step_by(rows as usize) {
                let rows = start..(start + rows).min(to.rows);
                let (part, rest) = out.split_at_mut(to.row_range(&rows).len());
                parts.push((plane, rows, part));
                out = rest;
            }
        }
        parts
    }
}

/// A picture in another size than the source's, for the sessions that send it so. The first thread that needs it
/// makes it.
#[derive(Debug)]
pub(super) struct ScaledPicture {
    scaling: Arc<Scaling>,
    /// The source's picture, until it was scaled.
    source: Mutex<Option<Picture>>,
    frame: OnceLock<Frame>,
}

impl ScaledPicture {
    pub(super) fn new(scaling: Arc<Scaling>, source: Picture) -> Self {
        Self { scaling, source: Mutex::new(Some(source)), frame: OnceLock::new() }
    }

    /// Returns the layout of the picture.
    pub(super) fn layout(&self) -> &Layout {
        self.scaling.output()
    }

    /// Returns whether the source's picture is complete.
    pub(super) fn is_ready(&self) -> bool {
        let whole = self.scaling.scaler.input().bytes();
        lock(&self.source).as_ref().is_none_or(|source| source.so_far() >= whole)
    }

    /// Returns the octets, or none while the source's picture still grows. Other threads wait while one scales it.
    pub(super) fn octets(&self) -> &[u8] {
        if let Some(frame) = self.frame.get() {
            return frame;
        }
        let source = lock(&self.source).clone();
        if let Some(source) = source.filter(|source| !source.whole().is_empty()) {
            self.frame.get_or_init(|| self.scaling.scale(source.whole()));
            *lock(&self.source) = None;
        }
        self.frame.get().map_or(&[], |frame| frame)
    }

    /// Returns the octets of its memory.
    pub(super) fn memory(&self) -> usize {
        let source = lock(&self.source).as_ref().map_or(0, Picture::memory);
        self.layout().bytes() + source
    }
}

#[cfg(test)]
mod tests {
    use rushes_texture::Format;
    use rushes_texture::source::GrowingFrame;

    use super::*;

    fn scaling(format: Format, size: (u32, u32), to: (u32, u32)) -> Arc<Scaling> {
        let input = Layout::new(format, size.0, size.1).unwrap();
        Arc::new(Scaling::new(Scaler::new(input, to.0, to.1).unwrap()))
    }

    fn noise(len: usize) -> Vec<u8> {
        (0..len as u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect()
    }

    #[test]
    fn parts_scaled_by_several_threads_are_the_whole() {
        for format in [Format::Rgb24, Format::Rgba8, Format::Yuv420, Format::Yuv422] {
            let scaling = scaling(format, (1_501, 1_003), (777, 666));
            let octets = noise(scaling.scaler.input().bytes());
            let mut expected = vec![0; scaling.output().bytes()];
            scaling.scaler.scale(&octets, &mut expected).unwrap();
            for threads in [1, 5] {
                let scaling = Scaling { scaler: scaling.scaler.clone(), threads };
                assert!(*scaling.scale(&octets) == *expected, "{format} {threads}");
            }
        }
    }

    #[test]
    fn a_picture_that_grows_is_scaled_when_it_is_whole_and_its_source_is_freed() {
        let scaling = scaling(Format::Rgba8, (64, 64), (32, 32));
        let len = scaling.scaler.input().bytes();
        let frame = GrowingFrame::new(len, len / 2);
        let source = Picture::Growing { frame: frame.clone(), takes: None };
        let scaled = ScaledPicture::new(scaling.clone(), source);
        assert!(frame.add(&noise(len / 2)));
        assert!(!scaled.is_ready() && scaled.octets().is_empty());
        assert!(frame.add(&noise(len / 2)));
        assert!(scaled.is_ready() && scaled.memory() > len);
        let mut expected = vec![0; scaling.output().bytes()];
        scaling.scaler.scale(&noise(len / 2).repeat(2), &mut expected).unwrap();
        assert_eq!(scaled.octets(), expected);
        assert!(scaled.is_ready() && scaled.memory() == expected.len());
    }

    #[test]
    fn all_threads_get_the_same_octets() {
        let scaling = scaling(Format::Rgba8, (640, 640), (320, 320));
        let source = Picture::Whole(Frame::new(noise(scaling.scaler.input().bytes())));
        let scaled = ScaledPicture::new(scaling, source);
        let addresses = thread::scope(|scope| {
            let spawn = |_| scope.spawn(|| scaled.octets().as_ptr() as usize);
            let threads: Vec<_> = (0..4).map(spawn).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(addresses.iter().all(|address| *address == addresses[0]));
        assert!(!scaled.octets().is_empty());
    }
}
