//! The session description for receivers that read SDP.

use rushes::Codec;

use super::adapter::{HOST, KEY};
use crate::sequence::raw::Video;

/// Returns a description of the stream to `port`, of uncompressed video of the format `video`. The parameter
/// sets of others are in the stream.
pub(super) fn sdp(codec: Codec, video: Option<Video>, port: u16, is_secured: bool) -> String {
    let encoding = codec.encoding.unwrap_or_default();
    let parameters = if codec == Codec::H264 {
        "\r\na=fmtp:96 packetization-mode=1".to_owned()
    } else if let Some(video) = video {
        let (width, height) = video.size();
        format!(
            "\r\na=fmtp:96 sampling=YCbCr-4:2:2; width={width}; height={height}; depth={}; \
             colorimetry=BT709-2",
            video.depth()
        )
    } else {
        String::new()
    };
    // Some programs accept no key with the profile RTP/SAVP, which would be the correct one.
    let crypto = if is_secured {
        format!("a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:{KEY}\r\n")
    } else {
        String::new()
    };
    format!(
        "v=0\r\no=- 1 1 IN IP4 {HOST}\r\ns=-\r\nc=IN IP4 {HOST}\r\nt=0 0\r\n\
         m=video {port} RTP/AVP 96\r\na=rtpmap:96 {encoding}/90000{parameters}\r\n{crypto}"
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;
    use rushes::proto::sdp::Description;

    #[test]
    fn descriptions_are_understood() {
        for (codec, video, name) in [
            (Codec::H264, None, "H264"),
            (Codec::H265, None, "H265"),
            (Codec::Uncompressed, Some(Video::UltraHd), "raw"),
        ] {
            for is_secured in [false, true] {
                let text = sdp(codec, video, 5004, is_secured);
                let again = Description::parse(text.as_bytes()).unwrap().write();
                assert!(again.contains(&format!("a=rtpmap:96 {name}/90000")), "{again}");
                assert_eq!(again.contains(KEY), is_secured, "{again}");
            }
        }
    }
}
