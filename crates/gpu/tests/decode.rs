//! Frames drawn by the graphics processor are those that the main processor decodes.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod common;

use rushes_gpu::{DeviceFrame, FrameDecoder, Gpu, PICTURE_FORMAT, Picture, Place};
use rushes_texture::{Decoder, Format, Layout};

/// Whole blocks, cut blocks, one pixel, odd strides.
const SIZES: [(u32, u32); 6] = [(64, 32), (1, 1), (37, 23), (130, 6), (5, 129), (258, 66)];

fn drawn(gpu: &Gpu, layout: &Layout, octets: &[u8]) -> Vec<u8> {
    let decoder = FrameDecoder::new(gpu, layout, PICTURE_FORMAT).unwrap();
    let frame = DeviceFrame::new(gpu, layout);
    frame.write(gpu, octets);
    let picture = Picture::new(gpu, layout.width(), layout.height());
    let mut recorder = gpu.recorder();
    decoder.draw(gpu, &mut recorder, &frame, picture.target(), &Place::exact(layout));
    picture.read(gpu, recorder).unwrap()
}

#[test]
fn every_format_is_decoded_as_by_the_main_processor() {
    for gpu in common::devices() {
        for format in Format::ALL {
            for (width, height) in SIZES {
                let decoder = Decoder::new(format, width, height, Format::Rgba8).unwrap();
                let octets = common::noise(decoder.input());
                let mut want = vec![0; decoder.output().bytes()];
                decoder.decode(&octets, &mut want).unwrap();
                let have = drawn(&gpu, decoder.input(), &octets);
                let (most, worst) = common::worst(&have, &want, width);
                assert!(most <= 1, "{}: {format} {width}×{height}: {worst}", gpu.name());
            }
        }
        assert_eq!(gpu.complaint(), None, "{}", gpu.name());
    }
}

#[test]
fn a_frame_is_fitted_into_a_larger_target_between_black() {
    for gpu in common::devices() {
        let layout = Layout::new(Format::Rgb24, 3, 3).unwrap();
        let frame = DeviceFrame::new(&gpu, &layout);
        frame.write(&gpu, &[200; 27]);
        let decoder = FrameDecoder::new(&gpu, &layout, PICTURE_FORMAT).unwrap();
        let picture = Picture::new(&gpu, 40, 20);
        let mut recorder = gpu.recorder();
        let place = Place::fitted((3, 3), (40, 20));
        decoder.draw(&gpu, &mut recorder, &frame, picture.target(), &place);
        let octets = picture.read(&gpu, recorder).unwrap();
        for (at, pixel) in octets.as_chunks::<4>().0.iter().enumerate() {
            let x = at % 40;
            let want = if (10..30).contains(&x) { [200, 200, 200, 255] } else { [0, 0, 0, 255] };
            assert_eq!(*pixel, want, "{}: {x}, {}", gpu.name(), at / 40);
        }
    }
}
