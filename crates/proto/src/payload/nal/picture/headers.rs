//! The headers of a stream: parameter sets, and the first slice of each access unit.

use super::super::header::NalCodec;
use super::super::{LENGTH_LEN, START_CODE_LEN, find_start_codes};
use super::reading::{Declared, Order, Reading};
use super::{h264, h265, h266};
use crate::payload::builder::Framing;

/// The parameter sets of a stream.
#[derive(Clone, Debug)]
pub(super) struct Headers {
    codec: NalCodec,
    stream: Stream,
    /// The declarations of the parameter sets of the last picture.
    declared: Declared,
}

#[derive(Clone, Debug)]
enum Stream {
    H264(Box<h264::Stream>),
    H265(Box<h265::Stream>),
    H266(Box<h266::Stream>),
}

/// The result of reading an access unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Declarations of the parameter sets of this picture or, if unknown, of the last one.
    pub(super) declared: Declared,
    pub(super) is_field: bool,
    /// `None` if no slice could be read, or its parameter sets could not.
    pub(super) order: Option<Order>,
}

impl Headers {
    pub(super) fn new(codec: NalCodec) -> Self {
        let stream = match codec {
            NalCodec::H264 => Stream::H264(Box::new(h264::Stream::new())),
            NalCodec::H265 => Stream::H265(Box::new(h265::Stream::new())),
            NalCodec::H266 => Stream::H266(Box::new(h266::Stream::new())),
        };
        Self { codec, stream, declared: Declared::default() }
    }

    /// Returns the usual difference of the picture order counts of two adjacent frames.
    pub(super) fn usual_step(&self) -> i64 {
        if self.codec == NalCodec::H264 { 2 } else { 1 }
    }

    /// Reads an access unit.
    pub(super) fn read(&mut self, access_unit: &[u8], framing: Framing) -> Entry {
        if let Stream::H266(stream) = &mut self.stream {
            stream.start();
        }
        let mut picture = None;
        match framing {
            Framing::AnnexB => {
                let mut start = None;
                for code in find_start_codes(access_unit).chain([access_unit.len()]) {
                    if let Some(start) = start {
                        self.read_unit(&access_unit[start..code], &mut picture);
                    }
                    start = Some(code + START_CODE_LEN);
                }
            }
            Framing::LengthPrefixed => {
                let mut rest = access_unit;
                while let Some((length, body)) = rest.split_first_chunk::<LENGTH_LEN>() {
                    let len = u32::from_be_bytes(*length) as usize;
                    let (unit, after) = body.split_at(len.min(body.len()));
                    self.read_unit(unit, &mut picture);
                    rest = after;
                }
            }
        }
        if let Some(Reading { declared, .. }) = picture {
            self.declared = declared;
        }
        Entry {
            declared: self.declared,
            is_field: picture.is_some_and(|picture| picture.is_field),
            order: picture.map(|picture| picture.order),
        }
    }

    /// Reads a NAL unit; skips it if it is a slice after the first readable one.
    fn read_unit(&mut self, unit: &[u8], picture: &mut Option<Reading>) {
        let Some(nal) = self.codec.header(unit) else { return };
        if nal.forbidden_zero_bit || picture.is_some() && self.codec.is_vcl(nal.nal_type) {
            return;
        }
        let octets = &unit[self.codec.header_len()..];
        let reading = match &mut self.stream {
            Stream::H264(stream) => stream.push(nal, octets),
            Stream::H265(stream) => stream.push(nal, octets),
            Stream::H266(stream) => stream.push(nal, octets),
        };
        *picture = picture.or(reading);
    }
}
