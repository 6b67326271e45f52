//! Complete frames of the main processor, in device memory.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod common;

use std::time::Instant;

use rushes_gpu::WrittenFrames;
use rushes_texture::{Format, Layout};

#[test]
fn a_frame_that_is_held_stays_as_it_is_while_others_are_written() {
    for gpu in common::devices() {
        let frames = WrittenFrames::new(&gpu);
        // The size changes between frames, as in streams.
        let layouts = [(33, 7), (33, 7), (16, 9), (33, 7)];
        let mut held = Vec::new();
        for (number, (width, height)) in layouts.into_iter().enumerate() {
            let layout = Layout::new(Format::Yuv420, width, height).unwrap();
            let octets = vec![number as u8 + 1; layout.bytes()];
            let began = (number as u64, Instant::now());
            held.push((frames.write(&layout, &octets, began).unwrap(), octets));
        }
        for (number, (received, octets)) in held.iter().enumerate() {
            assert_eq!(received.number, number as u64);
            assert_eq!(received.layout.bytes(), octets.len());
            assert_eq!(&received.frame.read(&gpu).unwrap(), octets, "{}", gpu.name());
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}
