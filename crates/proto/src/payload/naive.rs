//! A naive version of the NAL unit depacketisers, written directly from the RFCs, format by format,
//! with a vector for everything. Tests compare it with the real ones.

/// A NAL unit format.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Codec {
    /// RFC 6184, packetization mode 1.
    Avc,
    /// RFC 7798; `numbered` if `sprop-max-don-diff` is above 0.
    Hevc { numbered: bool },
    /// RFC 9328; `numbered` if `sprop-max-don-diff` is above 0.
    Vvc { numbered: bool },
}

/// The verdict on a payload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    Good,
    Malformed,
}

/// Joins payloads into units.
#[derive(Clone, Debug)]
pub(super) struct Naive {
    codec: Codec,
    /// The unfinished unit and its timestamp.
    unfinished: Option<(u32, Vec<u8>)>,
    pub(super) units: Vec<Vec<u8>>,
}

impl Naive {
    pub(super) fn new(codec: Codec) -> Self {
        Self { codec, unfinished: None, units: Vec::new() }
    }

    pub(super) fn lost(&mut self) {
        self.unfinished = None;
    }

    pub(super) fn push(&mut self, payload: &[u8], timestamp: u32) -> Verdict {
        if payload.is_empty() {
            return Verdict::Good;
        }
        let before = self.unfinished.take();
        let done = match self.codec {
            Codec::Avc => self.avc(payload, timestamp, before),
            Codec::Hevc { numbered } => self.hevc(payload, timestamp, before, numbered),
            Codec::Vvc { numbered } => self.vvc(payload, timestamp, before, numbered),
        };
        if done.is_some() {
            return Verdict::Good;
        }
        self.unfinished = None;
        Verdict::Malformed
    }

    /// Receives a payload of H.264 (RFC 6184 sections 5.6, 5.7.1 and 5.8).
    fn avc(&mut self, p: &[u8], timestamp: u32, before: Option<(u32, Vec<u8>)>) -> Option<()> {
        match p[0] & 31 {
            1..=23 => {
                self.units.push(p.to_vec());
                Some(())
            }
            24 => {
                let mut rest = &p[1..];
                let mut reserved = false;
                loop {
                    let unit;
                    (unit, rest) = sized(rest)?;
                    match unit.first()? & 31 {
                        1..=23 => self.units.push(unit.to_vec()),
                        0 | 30 | 31 => reserved = true,
                        _ => return None,
                    }
                    if rest.is_empty() {
                        return (!reserved).then_some(());
                    }
                }
            }
            28 => {
                let fu_header = *p.get(1)?;
                if !(1..=23).contains(&(fu_header & 31)) {
                    return None;
                }
                let header = vec![p[0] & 0b1110_0000 | fu_header & 31];
                self.fragment(header, fu_header, &p[2..], timestamp, before)
            }
            _ => None,
        }
    }

    /// Receives a payload of H.265 (RFC 7798 sections 4.4.1 to 4.4.4).
    fn hevc(
        &mut self,
        p: &[u8],
        timestamp: u32,
        before: Option<(u32, Vec<u8>)>,
        numbered: bool,
    ) -> Option<()> {
        let header = u16::from_be_bytes([p[0], *p.get(1)?]);
        match header >> 9 & 63 {
            0..=47 => {
                let body = p.get(if numbered { 4 } else { 2 }..)?;
                self.units.push([&p[..2], body].concat());
                Some(())
            }
            48 => {
                let mut rest = p.get(if numbered { 4 } else { 2 }..)?;
                let mut reserved = false;
                loop {
                    let unit;
                    (unit, rest) = sized(rest)?;
                    match unit.get(..2)?[0] >> 1 & 63 {
                        0..=47 => self.units.push(unit.to_vec()),
                        48..=50 => return None,
                        _ => reserved = true,
                    }
                    if rest.is_empty() {
                        return (!reserved).then_some(());
                    }
                    rest = rest.get(usize::from(numbered)..)?;
                }
            }
            49 => {
                let fu_header = *p.get(2)?;
                let (start, fu_type) = (fu_header & 0x80 != 0, u16::from(fu_header & 63));
                let body = p.get(if numbered && start { 5 } else { 3 }..)?;
                if fu_type > 47 || body.is_empty() {
                    return None;
                }
                let header = (header & 0b1000_0001_1111_1111 | fu_type << 9).to_be_bytes();
                self.fragment(header.to_vec(), fu_header, body, timestamp, before)
            }
            50 => {
                let fields = u16::from_be_bytes([*p.get(2)?, *p.get(3)?]);
                let content = p.get(4 + usize::from(fields >> 4 & 31)..)?;
                let (a, content_type) = (fields >> 15, fields >> 9 & 63);
                let inner = (a << 15 | content_type << 9 | header & 0x01ff).to_be_bytes();
                if content_type == 50 {
                    return None;
                }
                self.hevc(&[&inner, content].concat(), timestamp, before, numbered)
            }
            _ => None,
        }
    }

    /// Receives a payload of H.266 (RFC 9328 sections 4.3.1 to 4.3.3). There is no DOND.
    fn vvc(
        &mut self,
        p: &[u8],
        timestamp: u32,
        before: Option<(u32, Vec<u8>)>,
        numbered: bool,
    ) -> Option<()> {
        let header = u16::from_be_bytes([p[0], *p.get(1)?]);
        match header >> 3 & 31 {
            0..=27 => {
                let body = p.get(if numbered { 4 } else { 2 }..)?;
                self.units.push([&p[..2], body].concat());
                Some(())
            }
            28 => {
                let mut rest = p.get(if numbered { 4 } else { 2 }..)?;
                let mut reserved = false;
                loop {
                    let unit;
                    (unit, rest) = sized(rest)?;
                    match unit.get(..2)?[1] >> 3 {
                        0..=27 => self.units.push(unit.to_vec()),
                        28 | 29 => return None,
                        _ => reserved = true,
                    }
                    if rest.is_empty() {
                        return (!reserved).then_some(());
                    }
                }
            }
            29 => {
                let fu_header = *p.get(2)?;
                let (start, fu_type) = (fu_header & 0x80 != 0, u16::from(fu_header & 31));
                let body = p.get(if numbered && start { 5 } else { 3 }..)?;
                if fu_type > 27 || body.is_empty() {
                    return None;
                }
                let header = (header & 0b1111_1111_0000_0111 | fu_type << 3).to_be_bytes();
                self.fragment(header.to_vec(), fu_header, body, timestamp, before)
            }
            _ => None,
        }
    }

    fn fragment(
        &mut self,
        header: Vec<u8>,
        fu_header: u8,
        body: &[u8],
        timestamp: u32,
        before: Option<(u32, Vec<u8>)>,
    ) -> Option<()> {
        let mut unit = match (fu_header & 0x80 != 0, fu_header & 0x40 != 0) {
            (true, true) => return None,
            (true, false) => header,
            (false, _) => {
                let (time, unit) = before?;
                if time != timestamp || !unit.starts_with(&header) {
                    return None;
                }
                unit
            }
        };
        unit.extend_from_slice(body);
        if fu_header & 0x40 == 0 {
            self.unfinished = Some((timestamp, unit));
        } else {
            self.units.push(unit);
        }
        Some(())
    }
}

/// Reads a 16-bit size; returns that number of octets, and the rest.
fn sized(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    let size = u16::from_be_bytes([*octets.first()?, *octets.get(1)?]);
    let rest = &octets[2..];
    (size > 0 && usize::from(size) <= rest.len()).then(|| rest.split_at(usize::from(size)))
}
