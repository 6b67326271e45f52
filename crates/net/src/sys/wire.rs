//! Addresses and control messages as the Linux kernel lays them out, without pointers.

use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::net::SocketAddr;
use std::net::SocketAddrV6;

/// Octets in the larger of the two socket addresses (`sockaddr_in6`).
pub(super) const NAME_LEN: usize = 28;

/// A socket address as the kernel reads and writes it.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(super) struct Name(pub(super) [u8; NAME_LEN]);

impl Name {
    pub(super) const EMPTY: Self = Self([0; NAME_LEN]);

    /// `address`, and how many octets of the name count.
    pub(super) fn of(address: SocketAddr) -> (Self, usize) {
        let mut name = [0; NAME_LEN];
        name[2..4].copy_from_slice(&address.port().to_be_bytes());
        match address {
            SocketAddr::V4(address) => {
                name[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
                name[4..8].copy_from_slice(&address.ip().octets());
                (Self(name), 16)
            }
            SocketAddr::V6(address) => {
                name[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
                name[4..8].copy_from_slice(&address.flowinfo().to_be_bytes());
                name[8..24].copy_from_slice(&address.ip().octets());
                name[24..28].copy_from_slice(&address.scope_id().to_ne_bytes());
                (Self(name), NAME_LEN)
            }
        }
    }

    /// The address in the name; `None` if it is of neither family.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        let [f0, f1, p1, p0, a, b, c, d, rest @ ..] = self.0;
        let port = u16::from_be_bytes([p1, p0]);
        match i32::from(u16::from_ne_bytes([f0, f1])) {
            libc::AF_INET => Some(SocketAddr::from((Ipv4Addr::new(a, b, c, d), port))),
            libc::AF_INET6 => {
                let (host, scope) = rest.split_first_chunk::<16>()?;
                let scope = u32::from_ne_bytes(*scope.first_chunk()?);
                let flow = u32::from_be_bytes([a, b, c, d]);
                Some(SocketAddrV6::new(Ipv6Addr::from(*host), port, flow, scope).into())
            }
            _ => None,
        }
    }
}

/// Octets before the data of a control message: length, level, type.
const CONTROL_HEADER_LEN: usize = size_of::<usize>() + 8;

/// Octets that one control message with an integer takes, with room to spare.
pub(super) const CONTROL_LEN: usize = 64;

/// Control messages as the kernel reads and writes them.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(super) struct Control(pub(super) [u8; CONTROL_LEN]);

impl Control {
    pub(super) const EMPTY: Self = Self([0; CONTROL_LEN]);

    /// One message that asks for segments of `len` octets, and how many octets it takes.
    pub(super) fn segment(len: u16) -> (Self, usize) {
        let mut control = [0; CONTROL_LEN];
        let (header, data) = control.split_at_mut(CONTROL_HEADER_LEN);
        let (length, kind) = header.split_at_mut(size_of::<usize>());
        length.copy_from_slice(&(CONTROL_HEADER_LEN + 2).to_ne_bytes());
        kind[..4].copy_from_slice(&libc::SOL_UDP.to_ne_bytes());
        kind[4..].copy_from_slice(&libc::UDP_SEGMENT.to_ne_bytes());
        data[..2].copy_from_slice(&len.to_ne_bytes());
        let space = CONTROL_HEADER_LEN + 2_usize.next_multiple_of(size_of::<usize>());
        (Self(control), space)
    }

    /// The segment length in the first `len` octets, if the kernel said one.
    pub(super) fn coalesced(&self, len: usize) -> Option<usize> {
        let mut rest = self.0.get(..len)?;
        while let Some((length, tail)) = rest.split_first_chunk() {
            let length = usize::from_ne_bytes(*length);
            let (level, tail) = tail.split_first_chunk()?;
            let (kind, data) = tail.split_first_chunk()?;
            let level = i32::from_ne_bytes(*level);
            if level == libc::SOL_UDP && i32::from_ne_bytes(*kind) == libc::UDP_GRO {
                return usize::try_from(i32::from_ne_bytes(*data.first_chunk()?)).ok();
            }
            // A length below the header's would never move on.
            let step = length.max(CONTROL_HEADER_LEN).next_multiple_of(size_of::<usize>());
            rest = rest.get(step..)?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_kernels_layout() {
        for address in ["127.0.0.1:5004", "[::1]:65535", "[fe80::1%7]:1"] {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!(Name::of(address).0.address(), Some(address));
        }
        assert_eq!(Name::EMPTY.address(), None);
    }

    #[test]
    fn a_segment_length_is_found_behind_other_messages() {
        let (mut control, len) = Control::segment(0);
        let gro = {
            let (mut gro, len) = Control::segment(1400);
            gro.0[12..16].copy_from_slice(&libc::UDP_GRO.to_ne_bytes());
            gro.0[..len].to_vec()
        };
        control.0[len..len + gro.len()].copy_from_slice(&gro);
        assert_eq!(control.coalesced(len + gro.len()), Some(1400));
        assert_eq!(control.coalesced(len), None);
        assert_eq!(Control::EMPTY.coalesced(0), None);
        assert_eq!(Control::EMPTY.coalesced(CONTROL_LEN), None);
    }
}
