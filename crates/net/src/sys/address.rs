//! Socket addresses and control messages in the binary layout of Linux.
//!
//! They are written byte by byte, so that no cast between C structures is needed.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::time::Duration;

/// Bytes of `sockaddr_in6`, the longer of the two.
pub(super) const NAME_LEN: usize = 28;
const NAME_V4_LEN: usize = 16;

/// Room for a `sockaddr_in` or `sockaddr_in6`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(super) struct Name(pub(super) [u8; NAME_LEN]);

/// Room for the control messages of one message.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(super) struct Control(pub(super) [u8; CONTROL_LEN]);

/// Bytes for control messages: `UDP_GRO`, the time of arrival and the traffic class of a received
/// message, or an error with an IPv6 address, its time and its traffic class.
pub(super) const CONTROL_LEN: usize = 160;

/// From `linux/errqueue.h`.
const SO_EE_ORIGIN_ICMP: u8 = 2;
const SO_EE_ORIGIN_ICMP6: u8 = 3;

const WORD: usize = size_of::<usize>();
/// Bytes of the kernel's `cmsghdr`: a length of one machine word, the level and the type.
const CONTROL_HEADER: usize = WORD + 8;

/// Writes `address`; returns its length in bytes.
pub(super) fn encode(address: &SocketAddr, name: &mut Name) -> usize {
    let bytes = &mut name.0;
    bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
    match address {
        SocketAddr::V4(v4) => {
            bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
            bytes[4..8].copy_from_slice(&v4.ip().octets());
            bytes[8..NAME_V4_LEN].fill(0);
            NAME_V4_LEN
        }
        SocketAddr::V6(v6) => {
            bytes[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
            bytes[4..8].copy_from_slice(&v6.flowinfo().to_be_bytes());
            bytes[8..24].copy_from_slice(&v6.ip().octets());
            bytes[24..].copy_from_slice(&v6.scope_id().to_ne_bytes());
            NAME_LEN
        }
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

/// Reads an address; `None` if it is neither IPv4 nor IPv6.
pub(super) fn decode(name: &Name) -> Option<SocketAddr> {
    let bytes = &name.0;
    let port = u16::from_be_bytes(array(bytes, 2)?);
    match i32::from(u16::from_ne_bytes(array(bytes, 0)?)) {
        libc::AF_INET => {
            let ip = Ipv4Addr::from(array::<4>(bytes, 4)?);
            Some(SocketAddrV4::new(ip, port).into())
        }
        libc::AF_INET6 => {
            let flow = u32::from_be_bytes(array(bytes, 4)?);
            let ip = Ipv6Addr::from(array::<16>(bytes, 8)?);
            let scope = u32::from_ne_bytes(array(bytes, 24)?);
            Some(SocketAddrV6::new(ip, port, flow, scope).into())
        }
        _ => None,
    }
}

/// Writes a `UDP_SEGMENT` control message and returns `msg_controllen`.
pub(super) fn encode_segment(segment: u16, control: &mut Control) -> usize {
    let bytes = &mut control.0;
    bytes[..WORD].copy_from_slice(&(CONTROL_HEADER + 2).to_ne_bytes());
    bytes[WORD..WORD + 4].copy_from_slice(&libc::SOL_UDP.to_ne_bytes());
    bytes[WORD + 4..CONTROL_HEADER].copy_from_slice(&libc::UDP_SEGMENT.to_ne_bytes());
    bytes[CONTROL_HEADER..CONTROL_HEADER + 2].copy_from_slice(&segment.to_ne_bytes());
    (CONTROL_HEADER + 2).next_multiple_of(WORD)
}

/// Returns the segment size in the `UDP_GRO` message among the first `len` bytes, or 0 if there is
/// none.
pub(super) fn decode_segment(control: &Control, len: usize) -> usize {
    find_segment(&control.0[..len.min(CONTROL_LEN)])
        .and_then(|segment| usize::try_from(segment).ok())
        .unwrap_or(0)
}

fn find_segment(bytes: &[u8]) -> Option<i32> {
    let found = find(bytes, |level, kind| level == libc::SOL_UDP && kind == libc::UDP_GRO)?;
    Some(i32::from_ne_bytes(array(found, 0)?))
}

/// Returns when the message arrived, since 1970, if this is among the first `len` bytes.
pub(super) fn decode_stamp(control: &Control, len: usize) -> Option<Duration> {
    // The option and its control message have the same number. Before Linux 5.1 the seconds and
    // nanoseconds were machine words, and still are under the old number.
    const IS_LONG: bool = WORD == 8 || libc::SO_TIMESTAMPNS == 64;
    let is_stamp = |level, kind| level == libc::SOL_SOCKET && kind == libc::SO_TIMESTAMPNS;
    let found = find(control.0.get(..len.min(CONTROL_LEN))?, is_stamp)?;
    let number = |at: usize| {
        let long = || Some(i64::from_ne_bytes(array(found, 8 * at)?));
        let short = || Some(i32::from_ne_bytes(array(found, 4 * at)?).into());
        if IS_LONG { long() } else { short() }
    };
    let (seconds, nanos) = (u64::try_from(number(0)?).ok()?, u32::try_from(number(1)?).ok()?);
    (nanos < 1_000_000_000).then(|| Duration::new(seconds, nanos))
}

/// Returns the ECN codepoint in the traffic class among the first `len` bytes, or 0 if there is
/// none.
pub(super) fn decode_ecn(control: &Control, len: usize) -> u8 {
    let bytes = &control.0[..len.min(CONTROL_LEN)];
    let is_v4 = |level, kind| level == libc::IPPROTO_IP && kind == libc::IP_TOS;
    let is_v6 = |level, kind| level == libc::IPPROTO_IPV6 && kind == libc::IPV6_TCLASS;
    // An IPv4 class is one byte, an IPv6 class a number of four.
    let v4 = || find(bytes, is_v4)?.first().copied();
    let v6 = || u8::try_from(i32::from_ne_bytes(array(find(bytes, is_v6)?, 0)?)).ok();
    v4().or_else(v6).unwrap_or(0) & 3
}

/// Returns the error number in a `sock_extended_err`, if it came by ICMP.
pub(super) fn decode_icmp(control: &Control) -> Option<i32> {
    let [a, b, c, d, origin, ..] = array::<8>(find_error(control)?, 0)?;
    let is_icmp = matches!(origin, SO_EE_ORIGIN_ICMP | SO_EE_ORIGIN_ICMP6);
    is_icmp.then(|| i32::from_ne_bytes([a, b, c, d]))
}

/// Returns the `sock_extended_err` of a notification, and everything after it.
fn find_error(control: &Control) -> Option<&[u8]> {
    find(&control.0, |level, kind| {
        (level == libc::SOL_IP && kind == libc::IP_RECVERR)
            || (level == libc::SOL_IPV6 && kind == libc::IPV6_RECVERR)
    })
}

/// Returns the content of the first control message that `is_it` accepts, and everything after it.
fn find(mut bytes: &[u8], is_it: impl Fn(i32, i32) -> bool) -> Option<&[u8]> {
    loop {
        let len = usize::from_ne_bytes(array(bytes, 0)?);
        let level = i32::from_ne_bytes(array(bytes, WORD)?);
        let kind = i32::from_ne_bytes(array(bytes, WORD + 4)?);
        if is_it(level, kind) {
            return bytes.get(CONTROL_HEADER..);
        }
        let next = len.max(CONTROL_HEADER).checked_next_multiple_of(WORD)?;
        bytes = bytes.get(next..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_an_address_survives() {
        let scoped = SocketAddrV6::new("fe80::1".parse().unwrap(), 5004, 7, 3);
        for address in ["192.0.2.7:65535".parse().unwrap(), SocketAddr::V6(scoped)] {
            let mut name = Name([0xff; NAME_LEN]);
            encode(&address, &mut name);
            assert_eq!(decode(&name), Some(address));
        }
    }

    #[test]
    fn an_address_of_another_family_is_none() {
        assert_eq!(decode(&Name([0; NAME_LEN])), None);
    }

    #[test]
    fn the_segment_size_is_found_behind_another_control_message() {
        let mut control = Control([0; CONTROL_LEN]);
        let step = (CONTROL_HEADER + 4).next_multiple_of(WORD);
        control.0[..WORD].copy_from_slice(&(CONTROL_HEADER + 4).to_ne_bytes());
        let own = &mut control.0[step..];
        own[..WORD].copy_from_slice(&(CONTROL_HEADER + 4).to_ne_bytes());
        own[WORD..WORD + 4].copy_from_slice(&libc::SOL_UDP.to_ne_bytes());
        own[WORD + 4..WORD + 8].copy_from_slice(&libc::UDP_GRO.to_ne_bytes());
        own[WORD + 8..WORD + 12].copy_from_slice(&1400_i32.to_ne_bytes());
        assert_eq!(decode_segment(&control, 2 * step), 1400);
        assert_eq!(decode_segment(&control, step), 0);
        assert_eq!(decode_segment(&control, 0), 0);
    }

    #[test]
    fn a_control_message_with_a_senseless_length_ends_the_search() {
        for len in [0, 1, usize::MAX] {
            let mut control = Control([0; CONTROL_LEN]);
            control.0[..WORD].copy_from_slice(&len.to_ne_bytes());
            assert_eq!(decode_segment(&control, CONTROL_LEN), 0);
            assert_eq!(decode_ecn(&control, CONTROL_LEN), 0);
            assert_eq!(decode_stamp(&control, CONTROL_LEN), None);
        }
    }

    /// Returns one control message with this content, and its length.
    fn message(level: i32, kind: i32, content: &[u8]) -> (Control, usize) {
        let mut control = Control([0; CONTROL_LEN]);
        let end = CONTROL_HEADER + content.len();
        control.0[..WORD].copy_from_slice(&end.to_ne_bytes());
        control.0[WORD..WORD + 4].copy_from_slice(&level.to_ne_bytes());
        control.0[WORD + 4..CONTROL_HEADER].copy_from_slice(&kind.to_ne_bytes());
        control.0[CONTROL_HEADER..end].copy_from_slice(content);
        (control, end)
    }

    #[test]
    fn the_mark_is_the_lower_two_bits_of_either_traffic_class() {
        let (control, len) = message(libc::IPPROTO_IP, libc::IP_TOS, &[0xb8 | 2]);
        assert_eq!(decode_ecn(&control, len), 2);
        let class = 0xbb_i32.to_ne_bytes();
        let (control, len) = message(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &class);
        assert_eq!(decode_ecn(&control, len), 3);
        assert_eq!(decode_ecn(&control, len - 1), 0, "the number is cut");
    }

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn a_time_of_arrival_is_read_and_an_impossible_one_ignored() {
        let read = |seconds: i64, nanos: i64| {
            let content = [seconds.to_ne_bytes(), nanos.to_ne_bytes()].concat();
            let (control, len) = message(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &content);
            decode_stamp(&control, len)
        };
        assert_eq!(read(1_700_000_000, 7), Some(Duration::new(1_700_000_000, 7)));
        assert_eq!(read(-1, 7), None);
        assert_eq!(read(1, 1_000_000_000), None);
        assert_eq!(read(1, -1), None);
    }

    #[test]
    fn only_errors_that_came_by_icmp_are_its_errors() {
        let error = |origin: u8| {
            let errno = libc::ECONNREFUSED.to_ne_bytes();
            let content = [&errno[..], &[origin, 3, 3, 0], &[0; 8]].concat();
            decode_icmp(&message(libc::SOL_IP, libc::IP_RECVERR, &content).0)
        };
        assert_eq!(error(SO_EE_ORIGIN_ICMP), Some(libc::ECONNREFUSED));
        assert_eq!(error(SO_EE_ORIGIN_ICMP6), Some(libc::ECONNREFUSED));
        // The datagram's own error, of the local system.
        assert_eq!(error(1), None);
        assert_eq!(decode_icmp(&Control([0; CONTROL_LEN])), None);
    }
}
