//! Compares the vector code of encoders and converters with the portable code.
//!
//! The pictures are small enough for Miri (`.ci/miri`).
#![allow(clippy::unwrap_used, reason = "a test may")]

use rushes_texture::{Encoder, Format, InstructionSet, Layout};

#[test]
fn every_set_makes_the_same_octets_of_a_small_picture() {
    let mut checked = 0;
    for input in Format::ALL {
        for output in Format::ALL.into_iter().filter(|it| Encoder::supports(input, *it)) {
            // The width exceeds a vector and is not a multiple of one.
            let (width, height) = (36, 4);
            let Ok(encoder) = Encoder::new(input, output, width, height) else { continue };
            let len = Layout::new(input, width, height).unwrap().bytes();
            let picture: Vec<u8> = (0..len).map(|n| (n * 37 + n / 7) as u8).collect();
            let mut made = Vec::new();
            for set in InstructionSet::ALL {
                let encoder = encoder.clone().with_instruction_set(set);
                let mut frame = vec![0; encoder.output().bytes()];
                encoder.encode(&picture, &mut frame).unwrap();
                made.push(frame);
            }
            assert!(made.iter().all(|frame| *frame == made[0]), "{input} to {output}");
            checked += 1;
        }
    }
    assert!(checked > 10, "{checked}");
}
