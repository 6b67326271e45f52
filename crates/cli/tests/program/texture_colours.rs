//! `rushes texture`: options that say what the values of a file stand for.

use std::path::Path;

use crate::rig::text;
use crate::texture_rig::{must, serving, texture};

/// Two by two pixels in the red of a matrix and a range: ITU-R BT.601, BT.709 and BT.2020, limited, and BT.709, full.
const REDS: [([u8; 3], &[&str]); 4] = [
    ([81, 90, 240], &[]),
    ([63, 102, 240], &["--matrix", "bt709"]),
    ([74, 97, 240], &["--matrix", "bt2020"]),
    ([54, 99, 255], &["--matrix", "bt709", "--range", "full"]),
];

#[test]
fn matrix_and_range_are_those_of_the_options() {
    let folder = tempfile::tempdir().unwrap();
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (input, output) = (name("red.yuv"), name("red.rgb"));
    let difference = |options: &[&str]| {
        must(&[&["encode", &input, &output, "--size", "2x2", "-f"], options].concat());
        let pixels = std::fs::read(&output).unwrap();
        let off = pixels.iter().zip([255, 0, 0].repeat(4)).map(|(&a, b)| a.abs_diff(b));
        off.max().unwrap()
    };
    for ([y, u, v], options) in REDS {
        std::fs::write(&input, [y, y, y, y, u, v]).unwrap();
        assert!(difference(options) <= 2, "{options:?}");
        // Without them, a small picture is taken for BT.601, limited.
        assert_eq!(difference(&[]) <= 2, options.is_empty(), "{options:?}");
    }
}

/// Returns the numbers of the chunk cICP.
fn named(png: &str) -> Option<[u8; 4]> {
    let file = std::fs::read(png).unwrap();
    let at = file.windows(4).position(|window| window == b"cICP")?;
    Some(file[at + 4..at + 8].try_into().unwrap())
}

#[test]
fn a_film_of_hdr_is_one_in_every_file_that_is_made_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (raw, film, picture) = (name("film.yuv"), name("film.y4m"), name("picture.png"));
    std::fs::write(&raw, [[150; 32 * 16].as_slice(), &[100; 16 * 8], &[160; 16 * 8]].concat())
        .unwrap();
    // PQ and the primaries of BT.2020, by one option; Y4M has a comment for them.
    let hdr = Some([9, 16, 0, 1]);
    must(&["encode", &raw, &film, "--size", "32x16", "--transfer", "pq"]);
    must(&["decode", &film, &picture]);
    assert_eq!(named(&picture), hdr);
    must(&["encode", &film, &name("blocks.ktx2")]);
    must(&["decode", &name("blocks.ktx2"), &picture, "-f"]);
    assert_eq!(named(&picture), hdr);
    // An option overrides what any file says.
    for file in [&film, &name("blocks.ktx2"), &picture.clone()] {
        let options = ["--transfer", "sdr", "--primaries", "bt709"];
        must(&[&["decode", file, &name("plain.png"), "-f"], &options[..]].concat());
        assert_eq!(named(&name("plain.png")), None, "{file}");
        must(&["decode", &name("plain.png"), &name("again.png"), "-f", "--transfer", "pq"]);
        assert_eq!(named(&name("again.png")), hdr);
    }
}

#[test]
fn a_server_tells_its_clients_that_a_film_is_hdr() {
    let folder = tempfile::tempdir().unwrap();
    let film = folder.path().join("film.yuv");
    std::fs::write(&film, [[150; 32 * 16].as_slice(), &[100; 16 * 8], &[160; 16 * 8]].concat())
        .unwrap();
    let options = ["--size", "32x16", "--transfer", "pq", "--loop", "--once"];
    for transport in ["udp", "tcp", "rtp"] {
        let server = serving(film.to_str().unwrap(), &options);
        let place = folder.path().join(transport);
        std::fs::create_dir(&place).unwrap();
        let output = place.join("viewed.png");
        let view = ["view", &server.address, "-o", output.to_str().unwrap(), "--frames", "1"];
        must(&[&view[..], &["--transport", transport]].concat());
        let (served, log) = server.finish();
        assert!(served.status.success(), "{transport}: {log}");
        // Its name has the number of the frame.
        let files: Vec<_> = std::fs::read_dir(place).unwrap().map(Result::unwrap).collect();
        assert_eq!(files.len(), 1, "{transport}: {files:?}");
        assert_eq!(named(files[0].path().to_str().unwrap()), Some([9, 16, 0, 1]), "{transport}");
    }
}

#[test]
fn a_curve_or_primaries_that_are_not_known_are_named() {
    let unknown = |option: &str, value: &str, words: &str| {
        let input = ["encode", "film.y4m", "film.ktx2", option, value];
        let refused = texture(&input);
        assert_eq!(refused.status.code(), Some(2));
        let errors = text(&refused.stderr);
        assert!(errors.contains(value) && errors.contains(words), "{errors}");
        assert!(!Path::new("film.ktx2").exists());
    };
    unknown("--transfer", "hlg", "sdr or pq");
    unknown("--primaries", "p3", "bt709 or bt2020");
    unknown("--matrix", "bt470", "bt601, bt709 or bt2020");
    unknown("--range", "tv", "limited or full");
    for option in [["--transfer", "pq"], ["--matrix", "bt709"]] {
        let refused =
            texture(&[&["encode", "pattern:64x64@60", "film.ktx2"], &option[..]].concat());
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains("colours of its own"));
    }
}
