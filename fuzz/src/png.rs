//! PNG files, read from memory.

use std::io::Cursor;

use rushes::texture::file::read_png_from;

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Reads a PNG as it is, then with correct checksums, so that chunks that were changed are read, too.
///
/// A frame has the length that its layout says, and takes twice its length of memory at most.
pub fn read(octets: &[u8]) {
    decode(octets);
    if octets.starts_with(SIGNATURE) {
        decode(&with_checksums(octets));
    }
}

fn decode(octets: &[u8]) {
    let mut frame = Vec::new();
    match read_png_from(Cursor::new(octets), &mut frame) {
        Ok(layout) => {
            assert_eq!(frame.len(), layout.bytes());
            assert!(frame.capacity() <= 2 * frame.len() + 64);
        }
        Err(_) => assert!(frame.capacity() <= 16 * octets.len() + 2 * frame.len() + 64),
    }
}

/// Returns the file with correct checksums of all chunks.
fn with_checksums(octets: &[u8]) -> Vec<u8> {
    let (mut file, mut at) = (octets.to_vec(), SIGNATURE.len());
    while let Some(&length) = file.get(at..).and_then(<[u8]>::first_chunk) {
        let end = at + 8 + u32::from_be_bytes(length) as usize;
        let Some(sum) = file.get(at + 4..end).map(checksum) else { break };
        let Some(place) = file.get_mut(end..end + 4) else { break };
        place.copy_from_slice(&sum.to_be_bytes());
        at = end + 4;
    }
    file
}

/// Returns the CRC-32 of ISO 3309.
fn checksum(octets: &[u8]) -> u32 {
    !octets.iter().fold(u32::MAX, |crc, &octet| {
        (0..8).fold(crc ^ u32::from(octet), |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1)))
    })
}

fn chunk(kind: &[u8; 4], octets: &[u8]) -> Vec<u8> {
    let octets = [&kind[..], octets].concat();
    let length = octets.len() as u32 - 4;
    [&length.to_be_bytes()[..], &octets, &checksum(&octets).to_be_bytes()].concat()
}

/// Returns octets as zlib data, uncompressed. Its checksum is not read.
fn stored(octets: &[u8]) -> Vec<u8> {
    let length = octets.len() as u16;
    let lengths = [length.to_le_bytes(), (!length).to_le_bytes()].concat();
    [&[0x78, 1, 1][..], &lengths, octets, &[0; 4]].concat()
}

/// Returns a file of 8×5 pixels for each colour type and depth, in rows and interlaced, with the chunks that may
/// precede pixels.
pub fn seeds() -> Vec<Vec<u8>> {
    let kinds = [(0, 1, 1), (0, 8, 8), (2, 8, 24), (2, 16, 48), (3, 1, 1), (4, 8, 16), (6, 16, 64)];
    let file = |((color, depth, bits), interlace): ((u8, u8, usize), u8)| {
        let header = [0, 0, 0, 8, 0, 0, 0, 5, depth, color, 0, 0, interlace];
        // Rows of passes have a filter octet each, and up to seven bits that are not used.
        let pixels: Vec<u8> = (0..15 + bits * 5 + 15).map(|at| (at % 5) as u8).collect();
        let frames = [[0, 0, 0, 1], [0; 4]].concat();
        let transparent = match color {
            0 | 3 => chunk(b"tRNS", &[0, 1]),
            2 => chunk(b"tRNS", &[0, 1, 0, 2, 0, 3]),
            _ => Vec::new(),
        };
        let frame = [&[0; 4][..], &header[..8], &[0; 8], &[0, 1, 0, 1, 0, 0]].concat();
        [
            SIGNATURE.to_vec(),
            chunk(b"IHDR", &header),
            chunk(b"cICP", &[9, 16, 0, 1]),
            chunk(b"gAMA", &45_455_u32.to_be_bytes()),
            chunk(b"iCCP", &[&b"name\0\0"[..], &stored(b"profile")].concat()),
            chunk(b"PLTE", &[1, 2, 3, 4, 5, 6]),
            transparent,
            chunk(b"acTL", &frames),
            chunk(b"fcTL", &frame),
            chunk(b"zTXt", &[&b"key\0\0"[..], &stored(b"text")].concat()),
            chunk(b"IDAT", &stored(&pixels)),
            chunk(b"IEND", &[]),
        ]
        .concat()
    };
    kinds.into_iter().flat_map(|kind| [(kind, 0), (kind, 1)]).map(file).collect()
}
