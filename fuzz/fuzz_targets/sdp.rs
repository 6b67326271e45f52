#![no_main]

use libfuzzer_sys::fuzz_target;
use rushes_proto::sdp::{Crypto, Description, LeftOut, SdpError, WARNINGS_MAX};

fuzz_target!(|octets: &[u8]| {
    let Ok((description, warnings)) = Description::parse_with_warnings(octets) else { return };
    assert!(warnings.len() <= WARNINGS_MAX + 1);
    for media in &description.media {
        let _ = (media.supported(), media.ip(), media.rtcp_port(), media.senders(), media.ssrc());
        for line in &media.crypto {
            let Ok(valid) = line.valid() else { continue };
            let written = Crypto::new(line.tag, &line.suite, &valid.keys, &valid.session);
            let written = written.expect("what is valid can be written");
            let again = written.valid().expect("what is written is valid");
            assert_eq!((&again.keys, &again.session), (&valid.keys, &valid.session));
        }
    }
    match Description::parse_with_warnings(description.write().as_bytes()) {
        // A wildcard feedback is written once for each format, which may grow too long.
        Ok((_, warnings)) if warnings.iter().any(|one| one.left_out == LeftOut::Rest) => {}
        Err(SdpError::TooLong { .. }) => {}
        Ok((read, _)) => assert_eq!(read, description),
        Err(error) => panic!("{error}"),
    }
});
