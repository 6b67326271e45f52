#![no_main]

use libfuzzer_sys::fuzz_target;
use rushes_proto::Ssrc;

fuzz_target!(|octets: &[u8]| {
    rushes_fuzz::read_report(octets);
    // The first octets choose how the rest is cut into datagrams for a participant.
    rushes_fuzz::participate(Ssrc(0x0102_0304), octets);
});
