//! Lines of text over a picture.

use font8x8::legacy::BASIC_LEGACY;

use crate::device::Gpu;
use crate::draw;

/// Maximum number of letters.
const LETTERS: usize = 1024;
/// Pixels per point of a letter.
const SCALE: u32 = 2;
/// Pixels around the text.
const MARGIN: u32 = 8;
/// Bytes of the shader's `Text`.
const TEXT: usize = 16 + LETTERS;

/// Draws lines in the upper left corner.
pub(super) struct Overlay {
    pipeline: wgpu::RenderPipeline,
    text: wgpu::Buffer,
    group: wgpu::BindGroup,
}

impl Overlay {
    pub(super) fn new(gpu: &Gpu, target: wgpu::TextureFormat) -> Self {
        let device = &gpu.device;
        let module = device.create_shader_module(wgpu::include_wgsl!("overlay.wgsl"));
        let target = wgpu::ColorTargetState {
            format: target,
            blend: Some(wgpu::BlendState::ALPHA_BLENDING),
            write_mask: wgpu::ColorWrites::ALL,
        };
        let pipeline = draw::pipeline(device, (&module, "write"), None, target);
        let buffer = |label, size, usage| {
            let usage = usage | wgpu::BufferUsages::COPY_DST;
            let descriptor = wgpu::BufferDescriptor {
                label: Some(label),
                size,
                usage,
                mapped_at_creation: false,
            };
            device.create_buffer(&descriptor)
        };
        let text = buffer("text", TEXT as u64, wgpu::BufferUsages::UNIFORM);
        let font = buffer("font", 128 * 8, wgpu::BufferUsages::STORAGE);
        gpu.queue.write_buffer(&font, 0, BASIC_LEGACY.as_flattened());
        let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &[
                wgpu::BindGroupEntry { binding: 0, resource: text.as_entire_binding() },
                wgpu::BindGroupEntry { binding: 1, resource: font.as_entire_binding() },
            ],
        });
        Self { pipeline, text, group }
    }

    /// Draws lines, or nothing if there are none. Text that does not fit is omitted.
    pub(super) fn draw(
        &self,
        gpu: &Gpu,
        recorder: &mut wgpu::CommandEncoder,
        target: &wgpu::TextureView,
        lines: &[String],
    ) {
        let (octets, columns, rows) = text(lines);
        if columns == 0 || rows == 0 {
            return;
        }
        gpu.queue.write_buffer(&self.text, 0, &octets);
        let size = target.texture().size();
        let width = (columns * 8 * SCALE + 2 * MARGIN).min(size.width);
        let height = (rows * 10 * SCALE + 2 * MARGIN).min(size.height);
        let mut pass = draw::begin(recorder, target, wgpu::LoadOp::Load);
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.group, &[]);
        pass.set_scissor_rect(0, 0, width, height);
        pass.draw(0..3, 0..1);
    }
}

/// Returns the bytes of the shader's `Text`, and its number of columns and rows.
fn text(lines: &[String]) -> (Vec<u8>, u32, u32) {
    let columns = lines.iter().map(String::len).max().unwrap_or(0).min(LETTERS);
    let rows = LETTERS.checked_div(columns).map_or(0, |most| lines.len().min(most));
    let mut octets = Vec::with_capacity(TEXT);
    for word in [columns as u32, rows as u32, SCALE, MARGIN] {
        octets.extend(word.to_le_bytes());
    }
    for line in &lines[..rows] {
        let letters = line.bytes().map(|letter| if letter.is_ascii() { letter } else { b'?' });
        octets.extend(letters.chain(std::iter::repeat(b' ')).take(columns));
    }
    octets.resize(TEXT, b' ');
    (octets, columns as u32, rows as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_one_width_and_text_that_does_not_fit_is_omitted() {
        let (octets, columns, rows) = text(&["ab".to_owned(), "c".to_owned()]);
        assert_eq!((columns, rows, octets.len()), (2, 2, TEXT));
        assert_eq!(&octets[16..20], b"abc ");
        let (octets, columns, rows) = text(&vec!["x".repeat(300); 9]);
        assert_eq!((columns, rows, octets.len()), (300, 3, TEXT));
        assert_eq!(text(&[]).1, 0);
        assert_eq!(&text(&["\u{e9}".to_owned()]).0[16..18], b"??");
    }
}
