//! `rushes texture serve --packing on`.

use crate::rig::{json, text};
use crate::texture_rig::{must, serving};

const SIZE: (usize, usize) = (160, 96);
const FRAMES: usize = 20;

/// Lines like those of text, and a square that moves.
fn film(pixel: usize) -> Vec<u8> {
    let frame = |number: usize| {
        let (width, height) = SIZE;
        (0..width * height).flat_map(move |at| {
            let (x, y) = (at % width, at / width);
            let is_text = y % 12 < 7 && (x * x / 7 + y / 12) % 5 < 2;
            let is_square = x.abs_diff(10 * number) < 8 && y.abs_diff(60) < 8;
            std::iter::repeat_n(if is_square { 128 } else { 255 * u8::from(!is_text) }, pixel)
        })
    };
    (0..FRAMES).flat_map(frame).collect()
}

#[test]
fn stripes_are_packed_over_every_transport_and_frames_arrive_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (input, pixel) in [("film.rgba", 4), ("film.rgb", 3)] {
        let film = film(pixel);
        std::fs::write(name(input), &film).unwrap();
        for transport in ["udp", "tcp", "rtp"] {
            let sent = |packing: &str| {
                let options =
                    ["--size", "160x96", "--fps", "25", "--once", "--every-frame", "--json"];
                let more = ["--transport", transport, "--packing", packing];
                let server = serving(&name(input), &[&options[..], &more].concat());
                let copy = name(&format!("copy.{}", &input[5..]));
                let view = ["view", &server.address, "-o", &copy, "-f", "--every-frame", "--json"];
                let viewed = must(&view);
                let (served, log) = server.finish();
                assert!(served.status.success(), "{log}");
                let is_right = std::fs::read(copy).unwrap() == film;
                assert!(is_right, "{input} {transport} {packing}: {}", text(&viewed.stdout));
                json(&served)["octets"].as_u64().unwrap()
            };
            let (off, on) = (sent("off"), sent("on"));
            assert_eq!(off, film.len() as u64, "{input} {transport}");
            assert!(on * 8 < off, "{input} {transport}: {on} of {off}");
        }
    }
}
