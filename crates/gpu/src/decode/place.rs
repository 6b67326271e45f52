//! The place in a target at which a frame is drawn.

use rushes_texture::{Layout, Primaries, Siting, Transfer};

/// A rectangle in pixels of a target; parts outside the target are not visible.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// The left edge.
    pub x: f32,
    /// The upper edge.
    pub y: f32,
    /// Width in pixels.
    pub width: f32,
    /// Height in pixels.
    pub height: f32,
}

impl Place {
    /// Returns the largest centred place in a target that keeps the frame's aspect ratio; sizes are
    /// in pixels.
    ///
    /// ```
    /// use rushes_gpu::Place;
    ///
    /// let place = Place::fitted((1920, 1080), (960, 960));
    /// assert_eq!(place, Place { x: 0.0, y: 210.0, width: 960.0, height: 540.0 });
    /// ```
    pub fn fitted(frame: (u32, u32), target: (u32, u32)) -> Self {
        let (across, down) = (target.0 as f32 / frame.0 as f32, target.1 as f32 / frame.1 as f32);
        let scale = across.min(down);
        let (width, height) = (frame.0 as f32 * scale, frame.1 as f32 * scale);
        let (x, y) = ((target.0 as f32 - width) / 2.0, (target.1 as f32 - height) / 2.0);
        Self { x, y, width, height }
    }

    /// Returns the place in the upper left corner with one pixel of the target per pixel of the
    /// frame.
    pub fn exact(layout: &Layout) -> Self {
        let (width, height) = (layout.width() as f32, layout.height() as f32);
        Self { x: 0.0, y: 0.0, width, height }
    }

    /// Returns the bytes of the shader's `View`.
    pub(super) fn view(&self, layout: &Layout, linear: bool) -> [u8; VIEW] {
        let (width, height) = (layout.width(), layout.height());
        let step = [width as f32 / self.width, height as f32 / self.height];
        let smoothed = step.iter().any(|step| step.to_bits() != 1.0_f32.to_bits());
        let mut words = vec![width, height, smoothed.into(), linear.into()];
        words.extend([self.x, self.y, step[0], step[1]].map(f32::to_bits));
        let offsets = layout.planes().iter();
        words.extend(offsets.flat_map(|plane| {
            [plane.offset as u32, plane.row_bytes as u32, plane.width, plane.height]
        }));
        let colour = layout.colour();
        let factors = colour.factors();
        words.resize(PLANES_END, 0);
        // Whether chroma lies between the pixels that share it, across and down; both are of one
        // height if their rows do not share it.
        let is_between = [colour.siting == Siting::Centre, colour.siting != Siting::TopLeft];
        words.extend(is_between.map(u32::from));
        words.extend([factors.black, factors.luma].map(i32::cast_unsigned));
        let of_cr_and_cb =
            [factors.red_of_cr, factors.green_of_cb, factors.green_of_cr, factors.blue_of_cb];
        words.extend(of_cr_and_cb.map(i32::cast_unsigned));
        let curve = [colour.transfer == Transfer::Pq, colour.primaries == Primaries::Bt2020];
        words.extend(curve.map(u32::from));
        let mut octets = [0; VIEW];
        for (to, word) in octets.as_chunks_mut().0.iter_mut().zip(words) {
            *to = word.to_le_bytes();
        }
        octets
    }
}

/// Bytes of the shader's `View`.
pub(super) const VIEW: usize = 4 * PLANES_END + 48;

/// Words of `View` up to the end of its planes.
const PLANES_END: usize = 20;
