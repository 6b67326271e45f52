//! Reusable memory for a stripe that the device encodes.

use std::ops::Range;
use std::sync::mpsc;
use std::sync::mpsc::TryRecvError;

use rushes_texture::Layout;

use crate::device::Gpu;
use crate::encode::pipeline::{Input, Pipeline};
use crate::encode::pixels;
use crate::encode::pixels::Pixels;
use crate::error::GpuError;

/// The result of mapping a buffer.
type Mapped = Result<(), wgpu::BufferAsyncError>;

/// A picture to encode.
#[derive(Debug)]
pub(super) enum Picture<'a> {
    Pixels(Pixels<'a>),
    Rows(&'a wgpu::Buffer),
    Texels(wgpu::TextureView),
}

/// The memory of a stripe that a shader reads.
#[derive(Debug)]
enum Source {
    /// `upload` is mapped whenever the device is not using it.
    Pixels { upload: wgpu::Buffer, pixels: wgpu::Buffer },
    /// The number of the first block row, and the picture's size; all of the picture is bound.
    Whole { place: wgpu::Buffer },
}

/// One stripe's memory.
#[derive(Debug)]
pub(super) struct Stripe {
    source: Source,
    blocks: wgpu::Buffer,
    back: wgpu::Buffer,
    /// Bytes of a block row, before and after encoding.
    row_bytes: [u64; 2],
    /// The rows on the device; below, the submission and the number of buffers to be mapped again.
    rows: Range<u32>,
    work: Option<wgpu::SubmissionIndex>,
    awaited: usize,
    /// The picture's width and height in pixels.
    size: (u32, u32),
    sender: mpsc::SyncSender<Mapped>,
    receiver: mpsc::Receiver<Mapped>,
}

impl Stripe {
    /// Allocates memory for `rows` block rows.
    pub(super) fn new(
        gpu: &Gpu,
        pipeline: &Pipeline,
        output: &Layout,
        rows: u32,
    ) -> Result<Self, GpuError> {
        use wgpu::BufferUsages as Usage;

        let row_bytes = [pixels::row_bytes(output.width()), output.planes()[0].row_bytes as u64];
        let size = (output.width(), output.height());
        let [input, output] = row_bytes.map(|octets| octets * u64::from(rows));
        let limits = gpu.device.limits();
        let most = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size);
        let largest = match pipeline.input() {
            Input::Pixels => input,
            Input::Rows | Input::Texels { .. } => output,
        };
        if largest > most {
            return Err(GpuError::TooLarge { octets: largest, most, driver: gpu.driver() });
        }
        let buffer = |label, size, usage, mapped_at_creation| {
            let label = Some(label);
            let descriptor = wgpu::BufferDescriptor { label, size, usage, mapped_at_creation };
            gpu.device.create_buffer(&descriptor)
        };
        let source = match pipeline.input() {
            Input::Pixels => Source::Pixels {
                upload: buffer("upload", input, Usage::MAP_WRITE | Usage::COPY_SRC, true),
                pixels: buffer("pixels", input, Usage::STORAGE | Usage::COPY_DST, false),
            },
            Input::Rows | Input::Texels { .. } => Source::Whole {
                place: buffer("place", 16, Usage::UNIFORM | Usage::COPY_DST, false),
            },
        };
        let blocks = buffer("blocks", output, Usage::STORAGE | Usage::COPY_SRC, false);
        let back = buffer("read back", output, Usage::MAP_READ | Usage::COPY_DST, false);
        let (sender, receiver) = mpsc::sync_channel(2);
        Ok(Self {
            source,
            blocks,
            back,
            row_bytes,
            rows: 0..0,
            work: None,
            awaited: 0,
            size,
            sender,
            receiver,
        })
    }

    /// Returns the size of all memory in bytes.
    pub(super) fn memory(&self) -> u64 {
        let source = match &self.source {
            Source::Pixels { upload, pixels } => upload.size() + pixels.size(),
            Source::Whole { place } => place.size(),
        };
        source + self.blocks.size() + self.back.size()
    }

    /// Submits a picture's block rows to the device.
    pub(super) fn begin(
        &mut self,
        gpu: &Gpu,
        pipeline: &Pipeline,
        picture: &Picture<'_>,
        rows: Range<u32>,
    ) -> Result<(), GpuError> {
        let count = rows.end - rows.start;
        let [pixels, back] = self.row_bytes.map(|octets| octets * u64::from(count));
        let mut recorder = gpu.recorder();
        let resources = self.give(gpu, &mut recorder, picture, (&rows, pixels))?;
        let bound = pipeline.bound(gpu, resources);
        pipeline.record(&mut recorder, &bound, count);
        recorder.copy_buffer_to_buffer(&self.blocks, 0, &self.back, 0, back);
        self.work = Some(gpu.queue.submit([recorder.finish()]));
        let mapped = || {
            let sender = self.sender.clone();
            move |mapped| drop(sender.try_send(mapped))
        };
        self.back.map_async(wgpu::MapMode::Read, ..back, mapped());
        self.awaited = 1;
        if let Source::Pixels { upload, .. } = &self.source {
            upload.map_async(wgpu::MapMode::Write, .., mapped());
            self.awaited += 1;
        }
        self.rows = rows;
        Ok(())
    }

    /// Gives a picture's rows to the shader, and returns the resources that it is bound to.
    fn give<'a>(
        &'a self,
        gpu: &Gpu,
        recorder: &mut wgpu::CommandEncoder,
        picture: &'a Picture<'_>,
        (range, octets): (&Range<u32>, u64),
    ) -> Result<Vec<wgpu::BindingResource<'a>>, GpuError> {
        let blocks = self.blocks.as_entire_binding();
        match (&self.source, picture) {
            (Source::Pixels { upload, pixels }, Picture::Pixels(picture)) => {
                let mut view = upload.get_mapped_range_mut(..octets).map_err(lost)?;
                picture.write(range, view.slice(..));
                drop(view);
                upload.unmap();
                recorder.copy_buffer_to_buffer(upload, 0, pixels, 0, octets);
                Ok(vec![pixels.as_entire_binding(), blocks])
            }
            (Source::Whole { place }, Picture::Rows(rows)) => {
                Ok(vec![rows.as_entire_binding(), blocks, self.placed(gpu, place, range)])
            }
            (Source::Whole { place }, Picture::Texels(view)) => {
                let view = wgpu::BindingResource::TextureView(view);
                Ok(vec![view, blocks, self.placed(gpu, place, range)])
            }
            _ => Err(GpuError::Device("a stripe of another kind of picture".to_owned())),
        }
    }

    /// Writes the place of block rows in their picture, and returns it for the shader.
    fn placed<'a>(
        &self,
        gpu: &Gpu,
        place: &'a wgpu::Buffer,
        rows: &Range<u32>,
    ) -> wgpu::BindingResource<'a> {
        let octets = [rows.start, self.size.0, self.size.1, 0].map(u32::to_le_bytes);
        gpu.queue.write_buffer(place, 0, octets.as_flattened());
        place.as_entire_binding()
    }

    /// Returns whether the device is done and all buffers are mapped again.
    pub(super) fn is_done(&mut self, gpu: &Gpu) -> Result<bool, GpuError> {
        gpu.device.poll(wgpu::PollType::Poll).map_err(lost)?;
        self.poll_mapped()
    }

    fn poll_mapped(&mut self) -> Result<bool, GpuError> {
        while self.awaited > 0 {
            match self.receiver.try_recv() {
                Ok(mapped) => mapped.map_err(lost)?,
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return Ok(false),
            }
            self.awaited -= 1;
        }
        Ok(true)
    }

    /// Waits for the device, and passes the blocks to `ready`.
    pub(super) fn finish(
        &mut self,
        gpu: &Gpu,
        ready: impl FnOnce(Range<u32>, &[u8]),
    ) -> Result<(), GpuError> {
        let wait = wgpu::PollType::Wait { submission_index: self.work.take(), timeout: None };
        gpu.device.poll(wait).map_err(lost)?;
        if !self.poll_mapped()? {
            return Err(GpuError::Device("a stripe was not returned".to_owned()));
        }
        let octets = self.row_bytes[1] * self.rows.len() as u64;
        let view = self.back.get_mapped_range(..octets).map_err(lost)?;
        ready(self.rows.clone(), &view);
        drop(view);
        self.back.unmap();
        Ok(())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes errors by value")]
fn lost(error: impl ToString) -> GpuError {
    GpuError::Device(error.to_string())
}

#[cfg(test)]
mod tests {
    use rushes_texture::Format;

    use super::*;
    use crate::encode::tests::devices;

    #[test]
    fn a_stripe_that_the_device_cannot_read_at_once_is_refused() {
        for gpu in devices() {
            let output = Layout::new(Format::Bc1, 16, 16).unwrap();
            let pipeline = Pipeline::new(&gpu, &output, Input::Pixels).unwrap();
            let stripe = Stripe::new(&gpu, &pipeline, &output, u32::MAX);
            let Err(GpuError::TooLarge { octets, most, .. }) = stripe else { panic!("{stripe:?}") };
            assert_eq!(octets, 256 * u64::from(u32::MAX));
            assert!(most < octets);
            assert_eq!(gpu.first_error(), None);
        }
    }
}
