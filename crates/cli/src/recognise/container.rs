//! Recognition of containers, which hold streams of several codecs.

use std::path::Path;

/// Returns the kind of a container by the first octets of its file.
pub(super) fn of_octets(octets: &[u8]) -> Option<&'static str> {
    let has = |at: usize, mark: &[u8]| octets.get(at..at + mark.len()) == Some(mark);
    let is_every = |first: usize, step: usize| {
        (0..3).all(|number| octets.get(first + number * step) == Some(&0x47))
    };
    if has(4, b"ftypqt  ") || has(4, b"moov") || has(4, b"mdat") || has(4, b"wide") {
        Some("MOV")
    } else if has(4, b"ftyp") || has(4, b"styp") {
        Some("MP4")
    } else if has(0, &[0x1a, 0x45, 0xdf, 0xa3]) {
        let is_webm = octets.windows(4).take(64).any(|word| word == b"webm");
        Some(if is_webm { "WebM" } else { "MKV" })
    } else if has(0, b"RIFF") && has(8, b"AVI ") {
        Some("AVI")
    } else if has(0, b"FLV\x01") {
        Some("FLV")
    } else if has(0, &[0, 0, 1, 0xba]) {
        Some("MPEG program stream")
    } else if is_every(0, 188) || is_every(4, 192) {
        Some("MPEG-TS")
    } else {
        None
    }
}

/// Returns the kind of a container by the extension of its name.
pub(super) fn of_name(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match extension.as_str() {
        "mp4" | "m4v" | "m4a" => "MP4",
        "mov" | "qt" => "MOV",
        "mkv" | "mka" => "MKV",
        "webm" => "WebM",
        "avi" => "AVI",
        "ts" | "mts" | "m2ts" => "MPEG-TS",
        "flv" => "FLV",
        "mpg" | "mpeg" | "vob" => "MPEG program stream",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_known_by_their_first_octets() {
        let mut ts = vec![0; 600];
        (0..4).for_each(|number| ts[number * 188] = 0x47);
        for (octets, kind) in [
            (&b"\0\0\0\x20ftypisom\0\0\x02\0"[..], "MP4"),
            (b"\0\0\0\x14ftypqt  ", "MOV"),
            (b"\0\0\0\x08wide\0\0\0\0mdat", "MOV"),
            (b"\x1a\x45\xdf\xa3\x9f\x42\x82\x88matroska", "MKV"),
            (b"\x1a\x45\xdf\xa3\x9f\x42\x82\x84webm", "WebM"),
            (b"RIFF\0\0\0\0AVI LIST", "AVI"),
            (b"FLV\x01\x05\0\0\0\x09", "FLV"),
            (&ts, "MPEG-TS"),
        ] {
            assert_eq!(of_octets(octets), Some(kind));
        }
    }

    #[test]
    fn bitstreams_are_no_containers() {
        for octets in
            [&b""[..], b"\0\0\0\x01\x67\x64", b"OggS\0\x02", b"RIFF\0\0\0\0WAVE", b"GGGGG"]
        {
            assert_eq!(of_octets(octets), None);
        }
        assert_eq!(of_name("film.MKV".as_ref()), Some("MKV"));
        assert_eq!(of_name("film.264".as_ref()), None);
        assert_eq!(of_name("film".as_ref()), None);
    }
}
