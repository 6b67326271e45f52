//! Buffers that wgpu maps, one per tile. While mapped they belong to the receiver, otherwise to the
//! device.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rushes::texture::{FrameMemory, Region};
use rushes_texture::Tile;

use crate::device::Gpu;
use crate::error::GpuError;
use crate::frame::{DeviceFrame, padded};
use crate::mapped::Mapped;

/// Bytes of a word, the unit of copies on the device.
const WORD: usize = 4;

/// The buffers of one frame's tiles.
#[derive(Debug)]
pub(super) struct Ring {
    tiles: Vec<Arc<TileBuffer>>,
}

/// A tile's buffer. The tile's first byte has the same offset within a word as in the frame.
#[derive(Debug)]
struct TileBuffer {
    buffer: wgpu::Buffer,
    /// Offset in the frame and length of the tile, in bytes.
    from: usize,
    length: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The mapping, until the region takes it.
    mapped: Option<Mapped>,
    /// Whether the region has taken the mapping.
    is_taken: bool,
    /// Bytes of the tile that share a word with a neighbour: offset in the frame, and value.
    edges: Vec<(usize, u8)>,
}

/// A tile's memory that is passed to the client.
struct RingRegion {
    tile: Arc<TileBuffer>,
    mapped: Option<Mapped>,
    /// Substitute memory while the device has the buffer.
    substitute: Vec<u8>,
}

impl TileBuffer {
    fn new(gpu: &Gpu, tile: &Tile) -> Result<Self, GpuError> {
        let (from, length) = (tile.bytes.start, tile.bytes.len());
        let buffer = gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("tile"),
            size: padded(from % WORD + length),
            usage: wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: true,
        });
        let state = State { mapped: Some(Mapped::of(&buffer)?), ..State::default() };
        Ok(Self { buffer, from, length, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the bytes of a range that share a word with bytes before or after it.
fn edges(from: usize, octets: &[u8]) -> Vec<(usize, u8)> {
    let end = from + octets.len();
    let head = from..end.min(from.next_multiple_of(WORD));
    let tail = head.end.max(end - end % WORD)..end;
    head.chain(tail).map(|at| (at, octets[at - from])).collect()
}

impl Ring {
    pub(super) fn new(gpu: &Gpu, tiles: &[Tile]) -> Result<(Self, FrameMemory), GpuError> {
        let mut buffers = Vec::new();
        let mut regions: FrameMemory = Vec::new();
        for tile in tiles {
            let tile = Arc::new(TileBuffer::new(gpu, tile)?);
            regions.push(Box::new(RingRegion {
                tile: Arc::clone(&tile),
                mapped: None,
                substitute: Vec::new(),
            }));
            buffers.push(tile);
        }
        Ok((Self { tiles: buffers }, regions))
    }

    /// Records the copy of a tile's whole words.
    pub(super) fn copy(
        &self,
        recorder: &mut wgpu::CommandEncoder,
        (unit, tile): (usize, &Tile),
        frame: &DeviceFrame,
    ) {
        let from = &self.tiles[unit];
        frame.copy_tile(recorder, (&from.buffer, (from.from % WORD) as u64), tile, false);
    }

    /// Writes the words that tiles share.
    pub(super) fn write_edges(&self, gpu: &Gpu, frame: &DeviceFrame) {
        let mut word: Option<(usize, [u8; WORD])> = None;
        let put = |word: &mut Option<(usize, [u8; WORD])>| {
            if let Some((at, octets)) = word.take() {
                frame.write_word(gpu, at as u64, octets);
            }
        };
        for tile in &self.tiles {
            for &(at, octet) in &tile.state().edges {
                let start = at - at % WORD;
                if word.is_some_and(|(before, _)| before != start) {
                    put(&mut word);
                }
                word.get_or_insert((start, [0; WORD])).1[at % WORD] = octet;
            }
        }
        put(&mut word);
    }

    /// Maps all buffers again; the device must be done with them.
    pub(super) fn map(&self, gpu: &Gpu) {
        let mut waiting = Vec::new();
        for tile in &self.tiles {
            let state = tile.state();
            if state.mapped.is_none() && !state.is_taken {
                tile.buffer.map_async(wgpu::MapMode::Write, .., |result| {
                    if let Err(error) = result {
                        tracing::error!("a buffer cannot be mapped: {error}");
                    }
                });
                waiting.push(tile);
            }
        }
        let _ = gpu.device.poll(wgpu::PollType::Poll);
        for tile in waiting {
            match Mapped::of(&tile.buffer) {
                Ok(mapped) => tile.state().mapped = Some(mapped),
                Err(error) => tracing::error!("a buffer is not mapped: {error}"),
            }
        }
    }
}

impl Region for RingRegion {
    fn octets(&mut self) -> &mut [u8] {
        if self.mapped.is_none() {
            let mut state = self.tile.state();
            self.mapped = state.mapped.take();
            state.is_taken = self.mapped.is_some();
        }
        if let Some(mapped) = &mut self.mapped {
            &mut mapped.octets()[self.tile.from % WORD..][..self.tile.length]
        } else {
            self.substitute.resize(self.tile.length, 0);
            &mut self.substitute
        }
    }

    fn filled(&mut self) {
        // A tile that has only concealed bytes may not have been accessed before.
        self.octets();
        let Some(mut mapped) = self.mapped.take() else { return };
        let octets = &mapped.octets()[self.tile.from % WORD..][..self.tile.length];
        let edges = edges(self.tile.from, octets);
        drop(mapped);
        self.tile.buffer.unmap();
        let mut state = self.tile.state();
        (state.edges, state.is_taken) = (edges, false);
    }
}

#[cfg(test)]
mod tests {
    use super::edges;

    #[test]
    fn edges_are_the_bytes_outside_whole_words() {
        let octets: Vec<u8> = (0..20).collect();
        assert_eq!(edges(0, &octets[..8]), []);
        assert_eq!(edges(4, &octets[..6]), [(8, 4), (9, 5)]);
        assert_eq!(edges(3, &octets[..6]), [(3, 0), (8, 5)]);
        assert_eq!(edges(1, &octets[..2]), [(1, 0), (2, 1)], "within a word");
        assert_eq!(edges(6, &octets[..4]), [(6, 0), (7, 1), (8, 2), (9, 3)], "across two");
    }
}
