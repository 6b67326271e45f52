//! The FEC headers of RFC 8627 (section 4.2.2), its draft 03 (section 4.2) and RFC 5109 (section 7).
//!
//! Masks are aligned to the most significant bit of 128, which stands for the base.

use super::error::FecError;
use super::format::Repair;
use super::parity::Parity;
use super::protected::{MASK_BITS, Protected};
use crate::rtp::HEADER_LEN;
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;

/// The first two bits of an RFC 8627 header: retransmission, and fixed columns and rows.
const RETRANSMISSION: u8 = 0x80;
const FIXED: u8 = 0x40;

/// The k bit before a mask. RFC 8627 sets it when another mask follows, draft 03 when none does.
const K15: u16 = 1 << 15;
const K31: u32 = 1 << 31;

/// A reader of fields that reports which length was needed.
struct Fields<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], FecError> {
        let need = self.at + N;
        let rest = self.all.get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        self.at = need;
        rest.copied().ok_or(FecError::Truncated { need, have: self.all.len() })
    }

    fn u16(&mut self) -> Result<u16, FecError> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, FecError> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, FecError> {
        self.take().map(u64::from_be_bytes)
    }

    fn rest(&self) -> &'a [u8] {
        self.all.get(self.at..).unwrap_or_default()
    }
}

/// Returns `bits`, of which the lowest `len` count, as the part of a mask from bit `from` on.
fn part(bits: u64, from: u16, len: u16) -> u128 {
    u128::from(bits) << (MASK_BITS - from - len)
}

/// Returns `len` bits of `mask` from bit `from` on.
fn bits(mask: u128, from: u16, len: u16) -> u64 {
    (mask << from >> (MASK_BITS - len)) as u64
}

fn one_source<T: Copy>(sources: &[T]) -> Result<T, FecError> {
    match sources {
        [source] => Ok(*source),
        _ => Err(FecError::Sources(sources.len())),
    }
}

fn write_fields(variant: u8, parity: &Parity, out: &mut Vec<u8>) {
    let [first, rest @ ..] = parity.fields;
    out.push(variant | first & 0x3f);
    out.extend(rest);
}

pub(super) fn write_flexible(protected: Protected, parity: &Parity, out: &mut Vec<u8>) {
    let mask = protected.as_mask().unwrap_or_default();
    let (has_second, has_third) = (mask << 15 != 0, mask << 46 != 0);
    let k0 = if has_second { K15 } else { 0 };
    write_fields(0, parity, out);
    out.extend(protected.base().0.to_be_bytes());
    out.extend((k0 | bits(mask, 0, 15) as u16).to_be_bytes());
    if has_second {
        let k1 = if has_third { K31 } else { 0 };
        out.extend((k1 | bits(mask, 15, 31) as u32).to_be_bytes());
    }
    if has_third {
        out.extend(bits(mask, 46, 64).to_be_bytes());
    }
}

pub(super) fn write_fixed(protected: Protected, parity: &Parity, out: &mut Vec<u8>) {
    // A row of L packets has D = 0; a column is every L-th packet, D times.
    let (columns, rows) = match protected.as_fixed() {
        Some((1, count)) => (count, 0),
        Some((step, count)) => (step, count),
        None => return write_flexible(protected, parity, out),
    };
    write_fields(FIXED, parity, out);
    out.extend(protected.base().0.to_be_bytes());
    out.extend([columns, rows]);
}

pub(super) fn parse_rfc_8627<'a>(
    sources: &[Ssrc],
    payload: &'a [u8],
) -> Result<Repair<'a>, FecError> {
    let mut reader = Fields { all: payload, at: 0 };
    let fields: [u8; 8] = reader.take()?;
    match fields[0] & (RETRANSMISSION | FIXED) {
        RETRANSMISSION => return retransmission(payload),
        0 | FIXED => {}
        _ => return Err(FecError::Reserved),
    }
    let source = one_source(sources)?;
    let base = SequenceNumber(reader.u16()?);
    let protected = if fields[0] & FIXED == 0 {
        let first = reader.u16()?;
        let mut mask = part(u64::from(first & !K15), 0, 15);
        if first & K15 != 0 {
            let second = reader.u32()?;
            mask |= part(u64::from(second & !K31), 15, 31);
            if second & K31 != 0 {
                mask |= part(reader.u64()?, 46, 64);
            }
        }
        Protected::mask(base, mask)
    } else {
        match reader.take()? {
            [0, _] => return Err(FecError::Reserved),
            [columns, 0 | 1] => Protected::fixed(base, 1, columns.into()),
            [columns, rows] => Protected::fixed(base, columns, rows.into()),
        }
    };
    Ok(Repair::Parity { source: Some(source), protected, fields, payload: reader.rest() })
}

/// Reads a retransmitted packet, which looks like the source packet (RFC 8627 section 4.2.2.3).
fn retransmission(payload: &[u8]) -> Result<Repair<'_>, FecError> {
    if payload.len() < HEADER_LEN {
        return Err(FecError::Truncated { need: HEADER_LEN, have: payload.len() });
    }
    Ok(Repair::Retransmission(payload))
}

pub(super) fn write_draft_03(
    source: Ssrc,
    protected: Protected,
    parity: &Parity,
    out: &mut Vec<u8>,
) {
    let mask = protected.as_mask().unwrap_or_default();
    let (has_second, has_third) = (mask << 15 != 0, mask << 46 != 0);
    let k0 = if has_second { 0 } else { K15 };
    write_fields(0, parity, out);
    out.extend([1, 0, 0, 0]);
    out.extend(source.0.to_be_bytes());
    out.extend(protected.base().0.to_be_bytes());
    out.extend((k0 | bits(mask, 0, 15) as u16).to_be_bytes());
    if has_second {
        let k1 = if has_third { 0 } else { K31 };
        out.extend((k1 | bits(mask, 15, 31) as u32).to_be_bytes());
    }
    if has_third {
        out.extend((1 << 63 | bits(mask, 46, 63)).to_be_bytes());
    }
}

/// Section 4.2 counts mask bits from the packet after the base, sections 3.2 and 6.3.1.2 from the
/// base itself. The latter is what Chromium and pion send.
pub(super) fn parse_draft_03(payload: &[u8]) -> Result<Repair<'_>, FecError> {
    let mut reader = Fields { all: payload, at: 0 };
    let fields: [u8; 8] = reader.take()?;
    match fields[0] & (RETRANSMISSION | FIXED) {
        0 | FIXED => {}
        RETRANSMISSION => return Err(FecError::Reserved),
        _ => return retransmission(payload),
    }
    let [sources, ..] = reader.take::<4>()?;
    if sources != 1 {
        return Err(FecError::Sources(sources.into()));
    }
    let source = Some(Ssrc(reader.u32()?));
    let base = SequenceNumber(reader.u16()?);
    let protected = if fields[0] & FIXED == 0 {
        let first = reader.u16()?;
        let mut mask = part(u64::from(first & !K15), 0, 15);
        if first & K15 == 0 {
            let second = reader.u32()?;
            mask |= part(u64::from(second & !K31), 15, 31);
            if second & K31 == 0 {
                let third = reader.u64()?;
                if third >> 63 == 0 {
                    return Err(FecError::Reserved);
                }
                mask |= part(third & !(1 << 63), 46, 63);
            }
        }
        Protected::mask(base, mask)
    } else {
        // Figure 14: M and N are the offsets of the last packet.
        match reader.take()? {
            [0, _] => return Err(FecError::Reserved),
            [columns, 0 | 1] => Protected::fixed(base, 1, u16::from(columns) + 1),
            [columns, rows] => Protected::fixed(base, columns, u16::from(rows) + 1),
        }
    };
    Ok(Repair::Parity { source, protected, fields, payload: reader.rest() })
}

/// The L bit: the mask has 48 bits, not 16.
const LONG: u8 = 0x40;

pub(super) fn write_ulp(protected: Protected, parity: &Parity, out: &mut Vec<u8>) {
    let mask = protected.as_mask().unwrap_or_default();
    let is_long = mask << 16 != 0;
    let [first, second, l1, l0, timestamp @ ..] = parity.fields;
    out.extend([first & 0x3f | if is_long { LONG } else { 0 }, second]);
    out.extend(protected.base().0.to_be_bytes());
    out.extend(timestamp);
    out.extend([l1, l0]);
    out.extend((parity.payload.len() as u16).to_be_bytes());
    out.extend((bits(mask, 0, 16) as u16).to_be_bytes());
    if is_long {
        out.extend((bits(mask, 16, 32) as u32).to_be_bytes());
    }
}

/// Reads level 0. Further levels protect the ends of packets that level 0 does not cover; packets
/// that need them are not recovered.
pub(super) fn parse_ulp(payload: &[u8]) -> Result<Repair<'_>, FecError> {
    let mut reader = Fields { all: payload, at: 0 };
    let [first, second] = reader.take()?;
    let base = SequenceNumber(reader.u16()?);
    let [a, b, c, d] = reader.take()?;
    let [l1, l0] = reader.take()?;
    let len = usize::from(reader.u16()?);
    let mut mask = part(u64::from(reader.u16()?), 0, 16);
    if first & LONG != 0 {
        mask |= part(u64::from(reader.u32()?), 16, 32);
    }
    let need = reader.at + len;
    let rest = reader.rest().get(..len);
    let level = rest.ok_or(FecError::Truncated { need, have: payload.len() })?;
    Ok(Repair::Parity {
        source: None,
        protected: Protected::mask(base, mask),
        fields: [first, second, l1, l0, a, b, c, d],
        payload: level,
    })
}
