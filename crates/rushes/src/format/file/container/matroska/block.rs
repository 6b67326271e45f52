//! Blocks: one frame or several of a track (RFC 9559 section 10).

use super::element::number;

/// A block, and the frames in it.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Block<'b> {
    pub(super) track: u64,
    /// The time, counted from that of the cluster.
    pub(super) time: i16,
    /// The flag of a simple block.
    pub(super) is_key: bool,
    pub(super) frames: Vec<&'b [u8]>,
}

/// Reads a block; `None` if it is malformed.
pub(super) fn read(mut data: &[u8]) -> Option<Block<'_>> {
    let (track, _) = number(&mut data, 8, true)?;
    let (&[high, low, flags], data) = data.split_first_chunk()?;
    let frames = match flags >> 1 & 3 {
        0 => vec![data],
        lacing => laced(lacing, data)?,
    };
    Some(Block { track, time: i16::from_be_bytes([high, low]), is_key: flags & 0x80 != 0, frames })
}

/// Returns the frames behind their lengths: of 8 bits each (Xiph), of variable length (EBML), or
/// all equal.
fn laced(lacing: u8, data: &[u8]) -> Option<Vec<&[u8]>> {
    let (&last, mut data) = data.split_first()?;
    let last = usize::from(last);
    let mut lens = Vec::with_capacity(last);
    match lacing {
        1 => {
            for _ in 0..last {
                let more = data.iter().position(|octet| *octet != 255)?;
                lens.push(255 * more + usize::from(data[more]));
                data = &data[more + 1..];
            }
        }
        3 => {
            for place in 0..last {
                let (value, octets) = number(&mut data, 8, true)?;
                let value = i64::try_from(value).ok()?;
                let len = match lens.last() {
                    None if place == 0 => value,
                    // A difference, with the middle of the range for zero.
                    previous => {
                        let zero = (1_i64 << (7 * octets - 1)) - 1;
                        i64::try_from(*previous?).ok()?.checked_add(value - zero)?
                    }
                };
                lens.push(usize::try_from(len).ok()?);
            }
        }
        _ => lens.resize(last, data.len() / (last + 1)),
    }
    let mut frames = Vec::with_capacity(last + 1);
    for len in lens {
        let (frame, rest) = data.split_at_checked(len)?;
        frames.push(frame);
        data = rest;
    }
    frames.push(data);
    Some(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(block: &[u8]) -> Vec<usize> {
        read(block).unwrap().frames.iter().map(|frame| frame.len()).collect()
    }

    #[test]
    fn a_simple_block_has_one_frame() {
        let block = read(b"\x81\xff\xfe\x80frame").unwrap();
        assert_eq!((block.track, block.time, block.is_key), (1, -2, true));
        assert_eq!(block.frames, [b"frame"]);
        assert_eq!(read(b"\x81\0\0"), None);
    }

    /// The examples of RFC 9559 section 10.3: frames of 800, 500 and 1000 octets.
    #[test]
    fn laced_frames_have_the_lengths_of_the_examples_in_the_standard() {
        let with = |head: &[u8]| [head, &[7; 2300]].concat();
        let xiph = with(b"\x81\0\0\x02\x02\xff\xff\xff\x23\xff\xf5");
        assert_eq!(frames(&xiph), [800, 500, 1000]);
        let ebml = with(b"\x81\0\0\x06\x02\x43\x20\x5e\xd3");
        assert_eq!(frames(&ebml), [800, 500, 1000]);
        let equal = [&b"\x81\0\0\x04\x02"[..], &[7; 2400]].concat();
        assert_eq!(frames(&equal), [800; 3]);
        assert_eq!(read(b"\x81\0\0\x02\x02\xff\xff"), None);
        assert_eq!(read(b"\x81\0\0\x06\x02\x81\x80\x80"), None);
    }
}
