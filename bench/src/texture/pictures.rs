//! Generated pictures to send, as frames of any format.

use anyhow::Context as _;
use rushes::texture::source::{Frame, Pattern, PatternSpec, Source as _};
use rushes::texture::{Encoder, Format};

/// A resolution, named by its lines.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Resolution {
    pub(super) width: u32,
    pub(super) height: u32,
}

impl Resolution {
    /// Those of the thesis, 16 to 9.
    pub(super) const ALL: [Self; 9] = [
        Self { width: 256, height: 144 },
        Self { width: 426, height: 240 },
        Self { width: 640, height: 360 },
        Self { width: 854, height: 480 },
        Self { width: 1280, height: 720 },
        Self { width: 1920, height: 1080 },
        Self { width: 2560, height: 1440 },
        UHD,
        FULL,
    ];

    pub(super) fn name(self) -> String {
        format!("{}p", self.height)
    }
}

/// 2160p.
pub(super) const UHD: Resolution = Resolution { width: 3840, height: 2160 };

/// 4320p, the largest of the thesis.
pub(super) const FULL: Resolution = Resolution { width: 7680, height: 4320 };

/// Number of different frames: with two, a receiver cannot mistake the last one for the next.
const FRAMES: u64 = 2;

/// A few frames of one resolution, in one format at a time.
#[derive(Debug)]
pub(super) struct Pictures {
    resolution: Resolution,
    rgba: Vec<Frame>,
    /// The frames in the last requested format, as the next case often has the same.
    made: Option<(Format, Vec<Frame>)>,
}

impl Pictures {
    pub(super) fn draw(resolution: Resolution) -> anyhow::Result<Self> {
        let spec = PatternSpec {
            format: Format::Rgba8,
            size: (resolution.width, resolution.height),
            frames: Some(FRAMES),
            ..PatternSpec::default()
        };
        let mut pattern = Pattern::new(&spec)?;
        let mut rgba = Vec::new();
        while let Some(frame) = pattern.next_frame()? {
            rgba.push(frame);
        }
        Ok(Self { resolution, rgba, made: None })
    }

    pub(super) fn resolution(&self) -> Resolution {
        self.resolution
    }

    /// Returns the frames in a format: RGBA8 as they were drawn, others encoded.
    pub(super) fn of(&mut self, format: Format) -> anyhow::Result<Vec<Frame>> {
        if format == Format::Rgba8 {
            return Ok(self.rgba.clone());
        }
        if self.made.as_ref().is_none_or(|(made, _)| *made != format) {
            // Free the old frames first, as they may be large.
            self.made = None;
            let Resolution { width, height } = self.resolution;
            let encoder = Encoder::new(Format::Rgba8, format, width, height)?;
            let mut frames = Vec::new();
            for picture in &self.rgba {
                let mut octets = vec![0; encoder.output().bytes()];
                encoder.encode(picture, &mut octets)?;
                frames.push(Frame::new(octets));
            }
            self.made = Some((format, frames));
        }
        self.made.as_ref().map(|(_, frames)| frames.clone()).context("no frames")
    }
}

/// Returns the RGBA8 of a 2160p picture that is harder to encode than a drawing: noise of equal
/// strength in each octave, as in photographs, more in luma than in colours.
#[allow(clippy::cast_sign_loss, reason = "colours are clamped to 0..=255")]
pub(super) fn clouds() -> Vec<u8> {
    let luma = octaves(1, &[512, 128, 32, 8, 4]);
    let [orange, green] = [octaves(2, &[512, 256]), octaves(3, &[512, 256])];
    let pixel = |n: usize| {
        let (luma, orange, green) = (128.0 + 90.0 * luma[n], 40.0 * orange[n], 25.0 * green[n]);
        let octet = |value: f32| value.clamp(0.0, 255.0).round() as i32 as u8;
        [octet(luma + orange - green), octet(luma + green), octet(luma - orange - green), 255]
    };
    (0..(UHD.width * UHD.height) as usize).flat_map(pixel).collect()
}

/// Returns smooth noise between −1 and 1 of these wavelengths in pixels.
fn octaves(seed: u64, lengths: &[usize]) -> Vec<f32> {
    let (width, height) = (UHD.width as usize, UHD.height as usize);
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let mut sum = vec![0.0; width * height];
    for &length in lengths {
        let columns = width / length + 2;
        let lattice: Vec<f32> = (0..columns * (height / length + 2)).map(|_| random()).collect();
        let smooth = |place: usize| {
            let part = (place % length) as f32 / length as f32;
            (place / length, part * part * (3.0 - 2.0 * part))
        };
        for (y, row) in sum.chunks_exact_mut(width).enumerate() {
            let (line, down) = smooth(y);
            for (x, value) in row.iter_mut().enumerate() {
                let (column, across) = smooth(x);
                let at = |line: usize| {
                    let corner = line * columns + column;
                    lattice[corner] + across * (lattice[corner + 1] - lattice[corner])
                };
                *value += (at(line) + down * (at(line + 1) - at(line))) / lengths.len() as f32;
            }
        }
    }
    sum
}
