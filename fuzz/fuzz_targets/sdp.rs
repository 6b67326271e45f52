#![no_main]

use libfuzzer_sys::fuzz_target;
use rushes_proto::sdp::{Crypto, Description, SdpError};

fuzz_target!(|octets: &[u8]| {
    let Ok(description) = Description::parse(octets) else { return };
    for media in &description.media {
        let _ = (media.supported(), media.ip(), media.rtcp_port());
        for line in &media.crypto {
            let Ok(valid) = line.valid() else { continue };
            let written = Crypto::new(line.tag, &line.suite, &valid.keys, &valid.session);
            let written = written.expect("what is valid can be written");
            let again = written.valid().expect("what is written is valid");
            assert_eq!((&again.keys, &again.session), (&valid.keys, &valid.session));
        }
    }
    match Description::parse(description.write().as_bytes()) {
        Ok(read) => assert_eq!(read, description),
        // A wildcard feedback is written once for each format, which may grow too long.
        Err(SdpError::TooMany { what: "lines", .. } | SdpError::TooLong { .. }) => {}
        Err(error) => panic!("{error}"),
    }
});
