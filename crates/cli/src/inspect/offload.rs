//! Datagrams that the network interface segments or coalesces.
//!
//! If a sender passes many packets to the kernel at once, as Rushes does, a capture on its machine
//! contains one large datagram: packets back to back, all but the last of equal length. The capture
//! does not contain this length, but consecutive sequence numbers of one source reveal it.

use std::slice::Chunks;

/// The fixed part of an RTP header.
const HEADER_LEN: usize = 12;

/// Returns the RTP packets in `datagram`, or the datagram itself if it is a single packet.
pub(crate) fn segments(datagram: &[u8]) -> Chunks<'_, u8> {
    datagram.chunks(segment_len(datagram).unwrap_or(datagram.len()).max(1))
}

/// Returns the length of the packets if the whole datagram consists of consecutive packets of one
/// source.
fn segment_len(datagram: &[u8]) -> Option<usize> {
    let longest = datagram.len().checked_sub(HEADER_LEN)?;
    let [_, _, high, low, _, _, _, _, ssrc @ ..] = datagram.first_chunk::<HEADER_LEN>()?;
    let first = u16::from_be_bytes([*high, *low]);
    let follows = |at: usize, number: usize| {
        let sequence = first.wrapping_add(number as u16).to_be_bytes();
        let head = datagram.get(at..).and_then(|rest| rest.first_chunk::<HEADER_LEN>());
        head.is_some_and(|head| {
            head[2..4] == sequence && head[0] >> 6 == 2 && head[8..] == ssrc[..]
        })
    };
    (HEADER_LEN..=longest).find(|len| {
        follows(*len, 1)
            && (2..datagram.len().div_ceil(*len)).all(|number| follows(number * len, number))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(sequence: u16, len: usize) -> Vec<u8> {
        let [high, low] = sequence.to_be_bytes();
        let mut packet = vec![0x80, 96, high, low, 0, 0, 0, 5, 1, 2, 3, 4];
        packet.resize(len, 0x55);
        packet
    }

    #[test]
    fn a_run_of_packets_is_divided_across_a_wrap() {
        let run: Vec<Vec<u8>> =
            [(65_534, 40), (65_535, 40), (0, 40), (1, 17)].map(|(n, len)| packet(n, len)).into();
        let joined = run.concat();
        assert_eq!(segments(&joined).collect::<Vec<_>>(), run);
    }

    #[test]
    fn a_single_packet_stays_whole() {
        for datagram in [packet(7, 12), packet(7, 1400), [packet(7, 40), packet(9, 40)].concat()] {
            assert_eq!(segments(&datagram).collect::<Vec<_>>(), [datagram.as_slice()]);
        }
        assert_eq!(segments(&[]).count(), 0);
    }

    #[test]
    fn a_header_in_the_payload_does_not_divide_the_datagram() {
        let mut datagram = packet(7, 100);
        datagram[30..42].copy_from_slice(&packet(8, 12));
        assert_eq!(segments(&datagram).count(), 1);
    }
}
