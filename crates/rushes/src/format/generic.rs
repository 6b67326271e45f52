//! Frames of any kind.

use std::sync::Arc;

use rushes_proto::payload::PayloadFormat;
use rushes_proto::payload::generic::Generic;

use super::{FormatOptions, MediaFormat, blocks};

pub(super) static FORMAT: MediaFormat = MediaFormat {
    name: "generic",
    title: "generic",
    files: blocks::files(&["raw", "bin"]),
    ..MediaFormat::UNKNOWN
};

pub(super) fn payload(options: &FormatOptions) -> Arc<dyn PayloadFormat> {
    let generic = Generic::default();
    let clock_rate = options.clock_rate.unwrap_or(generic.clock_rate);
    Arc::new(Generic { clock_rate, ..generic })
}
