#![no_main]

use libfuzzer_sys::fuzz_target;
use rushes_proto::payload::h265::H265;
use rushes_proto::payload::h266::H266;

// The first octets say how far units may be interleaved.
fuzz_target!(|octets: &[u8]| {
    let Some((&[format, difference, nalus], octets)) = octets.split_first_chunk() else { return };
    let max_don_diff = 1 + u16::from(difference) * if format & 1 == 0 { 1 } else { 100 };
    if format & 2 == 0 {
        let depack_buf_nalus = nalus.into();
        let format = H265 { max_don_diff, depack_buf_nalus, ..H265::default() };
        rushes_fuzz::depacketise(&format, octets);
    } else {
        let depack_buf_bytes = nalus.into();
        let format = H266 { max_don_diff, depack_buf_bytes, ..H266::default() };
        rushes_fuzz::depacketise(&format, octets);
    }
});
