//! Frames encoded by the graphics processor equal those that the main processor encodes.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod common;
#[path = "common/content.rs"]
mod content;

use rushes_gpu::{EncodedSource, Gpu, GpuEncoder, GpuError, GpuOptions, Interface};
use rushes_texture::source::{GrowingFrame, RawHint, Source, SourceError, Taker, open};
use rushes_texture::{CodecError, Encoder, Format, Frame, InstructionSet, Layout, Rate};

use content::{CONTENTS, Content, encoded, picture};

/// Formats that the main processor encodes, too.
const FORMATS: [Format; 2] = [Format::Bc1, Format::YCoCgBc3];

/// Formats that the main processor does not encode.
const OWN: [Format; 3] = [Format::Etc1, Format::Etc2Rgb, Format::Astc4x4];

/// Sizes of whole blocks, incomplete blocks, one pixel, and more than a group of blocks.
const SIZES: [(u32, u32); 8] =
    [(64, 32), (1, 1), (5, 7), (37, 23), (3, 130), (130, 66), (258, 5), (1030, 9)];

/// Returns the frame encoded by the main processor.
fn wanted(format: Format, layout: &Layout, picture: &[u8]) -> Vec<u8> {
    let encoder = Encoder::new(Format::Rgba8, format, layout.width(), layout.height()).unwrap();
    let mut frame = vec![0; encoder.output().bytes()];
    encoder.encode(picture, &mut frame).unwrap();
    frame
}

/// Fails at the first block that differs.
fn assert_same(have: &[u8], want: &[u8], context: impl Fn() -> String) {
    assert_eq!(have.len(), want.len(), "{}", context());
    if have != want {
        let blocks = have.as_chunks::<8>().0.iter().zip(want.as_chunks::<8>().0);
        let (at, (have, want)) = blocks.enumerate().find(|(_, (a, b))| a != b).unwrap();
        panic!("{}: octets {}: {have:x?}, not {want:x?}", context(), at * 8);
    }
}

#[test]
fn frames_are_those_of_the_main_processor() {
    for gpu in common::devices() {
        for format in FORMATS {
            for (width, height) in SIZES {
                let mut encoder = GpuEncoder::new(&gpu, format, width, height).unwrap();
                let input = *encoder.input();
                for content in CONTENTS {
                    let picture = picture(content, &input);
                    let have = encoded(&mut encoder, &picture, 3);
                    assert_same(&have, &wanted(format, &input, &picture), || {
                        format!("{}: {format} {width}×{height} {content:?}", gpu.name())
                    });
                }
            }
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

#[test]
fn a_large_frame_is_that_of_the_main_processor() {
    for gpu in common::devices() {
        for format in FORMATS {
            let mut encoder = GpuEncoder::new(&gpu, format, 3840, 2160).unwrap();
            let input = *encoder.input();
            for content in [Content::Pattern, Content::Noise] {
                let picture = picture(content, &input);
                let have = encoded(&mut encoder, &picture, 68);
                assert_same(&have, &wanted(format, &input, &picture), || {
                    format!("{}: {format} {content:?}", gpu.name())
                });
            }
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

#[test]
fn stripes_of_any_height_are_one_frame() {
    for gpu in common::devices() {
        for format in FORMATS {
            let mut encoder = GpuEncoder::new(&gpu, format, 50, 69).unwrap();
            let input = *encoder.input();
            let picture = picture(Content::Noise, &input);
            let want = wanted(format, &input, &picture);
            for stripe_rows in [1, 2, 5, 17, 18, 19, u32::MAX, 0, 7, 7] {
                let have = encoded(&mut encoder, &picture, stripe_rows);
                let context = || format!("{}: {format} by {stripe_rows}", gpu.name());
                assert_same(&have, &want, context);
            }
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

#[test]
fn what_cannot_be_encoded_is_refused() {
    for gpu in common::devices() {
        let mut encoder = GpuEncoder::new(&gpu, Format::Bc1, 8, 8).unwrap();
        for have in [0, 255, 257] {
            let result = encoder.encode(&vec![0; have], 1, |_, _| panic!("no stripe can be ready"));
            let Err(GpuError::Codec(error)) = result else { panic!("{result:?}") };
            assert_eq!(error, CodecError::Input { want: 256, have });
        }
        // The encoder still works.
        assert_eq!(encoded(&mut encoder, &[0; 256], 1).len(), 32);

        let made = [&FORMATS[..], &OWN].concat();
        for format in Format::ALL.into_iter().filter(|format| !made.contains(format)) {
            let result = GpuEncoder::new(&gpu, format, 8, 8);
            assert!(matches!(result, Err(GpuError::Unsupported { .. })), "{format}: {result:?}");
        }
        for (width, height) in [(0, 8), (8, 0), (32_769, 8)] {
            let result = GpuEncoder::new(&gpu, Format::Bc1, width, height);
            assert!(matches!(result, Err(GpuError::Codec(CodecError::Layout(_)))), "{result:?}");
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

#[test]
fn an_encoder_whose_reader_failed_continues() {
    for gpu in common::devices() {
        let mut encoder = GpuEncoder::new(&gpu, Format::Bc1, 64, 64).unwrap();
        let input = *encoder.input();
        let picture = picture(Content::Noise, &input);
        let given_up = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            encoder.encode(&picture, 1, |rows, _| assert!(rows.start < 2)).unwrap();
        }));
        assert!(given_up.is_err());
        let have = encoded(&mut encoder, &picture, 1);
        assert_same(&have, &wanted(Format::Bc1, &input, &picture), || gpu.name());
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

#[test]
fn a_thousand_pictures_need_the_memory_of_one() {
    for gpu in common::devices() {
        let mut encoder = GpuEncoder::new(&gpu, Format::YCoCgBc3, 16, 16).unwrap();
        let picture = vec![90; encoder.input().bytes()];
        assert_eq!(encoder.memory(), 0);
        let first = encoded(&mut encoder, &picture, 2);
        let memory = encoder.memory();
        assert_eq!(memory, 2 * (picture.len() + first.len()) as u64);
        for _ in 1..1000 {
            assert_eq!(encoded(&mut encoder, &picture, 2), first);
            assert_eq!(encoder.memory(), memory);
        }
        assert_eq!(gpu.first_error(), None, "{}", gpu.name());
    }
}

/// Measures milliseconds per frame of 2160p on either processor without asserting anything: `cargo
/// test --release -p rushes-gpu --test encode -- --ignored --nocapture`.
#[test]
#[ignore = "only measures, asserts nothing"]
#[allow(clippy::print_stdout, reason = "it prints measurements")]
fn how_long_a_large_frame_takes() {
    const TIMES: usize = 12;

    let measure = |name: &str, mut once: Box<dyn FnMut() + '_>| {
        once();
        let mut times: Vec<_> = (0..TIMES)
            .map(|_| {
                let begin = std::time::Instant::now();
                once();
                begin.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("{name:60} {:7.2} ms at best, {:7.2} mostly", times[0], times[TIMES / 2]);
    };
    let picture = picture(Content::Pattern, &Layout::new(Format::Rgba8, 3840, 2160).unwrap());
    for format in FORMATS.into_iter().chain(OWN) {
        let mut frame = vec![0; Layout::new(format, 3840, 2160).unwrap().bytes()];
        for set in InstructionSet::ALL.into_iter().filter(|set| set.available()) {
            let Ok(encoder) = Encoder::new(Format::Rgba8, format, 3840, 2160) else { continue };
            let encoder = encoder.with_instruction_set(set);
            let name = format!("{format}, main processor, one thread, {set:?}");
            measure(&name, Box::new(|| encoder.encode(&picture, &mut frame).unwrap()));
        }
        for interface in [Interface::Vulkan, Interface::Gl] {
            let Ok(gpu) = Gpu::open(GpuOptions { interface, validate: false }) else { continue };
            let mut encoder = GpuEncoder::new(&gpu, format, 3840, 2160).unwrap();
            for stripe_rows in [17, 68, 540] {
                let name = format!("{format}, {interface:?}, stripes of {stripe_rows}");
                measure(
                    &name,
                    Box::new(|| {
                        encoder
                            .encode(&picture, stripe_rows, |rows, octets| {
                                let at = rows.start as usize * octets.len() / rows.len();
                                frame[at..at + octets.len()].copy_from_slice(octets);
                            })
                            .unwrap();
                    }),
                );
            }
        }
    }
}

/// Receives frames, and records the size of each whenever it grows.
#[derive(Default)]
struct Stripes {
    frame: Option<GrowingFrame>,
    so_far: Vec<usize>,
}

impl Taker for Stripes {
    fn change(&mut self, layout: &Layout) {
        assert_eq!((layout.width(), layout.height()), (8, 1_200));
    }

    fn take(&mut self, _: Frame) {
        panic!("unexpected whole frame");
    }

    fn begin(&mut self, frame: &GrowingFrame) {
        self.so_far = vec![frame.so_far()];
        self.frame = Some(frame.clone());
    }

    fn grown(&mut self) {
        self.so_far.extend(self.frame.as_ref().map(GrowingFrame::so_far));
    }
}

/// Pictures of 8 by 8, then of 12 by 5, and so on.
struct Turning {
    layouts: [Layout; 2],
    next: u8,
}

impl Source for Turning {
    fn layout(&self) -> &Layout {
        &self.layouts[usize::from(self.next.saturating_sub(1)) / 2 % 2]
    }

    fn rate(&self) -> Rate {
        Rate::DEFAULT
    }

    fn length(&self) -> Option<u64> {
        None
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        self.next += 1;
        Ok(Some(Frame::new(vec![self.next; self.layout().bytes()])))
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        self.next = 0;
        Ok(())
    }
}

#[test]
fn a_source_follows_the_size_of_its_pictures() {
    for gpu in common::devices() {
        let layouts = [(8, 8), (12, 5)].map(|(w, h)| Layout::new(Format::Rgb24, w, h).unwrap());
        let pictures = Turning { layouts, next: 0 };
        let mut source = EncodedSource::new(&gpu, pictures, Format::Bc1).unwrap();
        for number in 0..6_u8 {
            let frame = source.next_frame().unwrap().unwrap();
            let layout = layouts[usize::from(number) / 2 % 2];
            assert_eq!(*source.layout(), layout.in_format(Format::Bc1));
            let picture = vec![number + 1; (layout.width() * layout.height() * 4) as usize];
            let alpha = |(at, octet)| if at % 4 == 3 { 255 } else { octet };
            let picture: Vec<u8> = picture.into_iter().enumerate().map(alpha).collect();
            let rgba = layout.in_format(Format::Rgba8);
            assert_same(&frame, &wanted(Format::Bc1, &rgba, &picture), || gpu.name());
        }
    }
}

#[test]
fn a_source_passes_its_frames_on_stripe_by_stripe() {
    for gpu in common::devices() {
        // The frame has 300 rows of blocks of 16 bytes each.
        let open = || open("pattern:8x1200@60,rgb24,frames=3".as_ref(), &RawHint::default());
        let mut whole = EncodedSource::new(&gpu, open().unwrap(), Format::Bc1).unwrap();
        let mut source = EncodedSource::new(&gpu, open().unwrap(), Format::Bc1).unwrap();
        let mut taker = Stripes::default();
        while let Some(wanted) = whole.next_frame().unwrap() {
            assert!(source.give_frame(&mut taker).unwrap());
            assert_eq!(taker.so_far, [0, 68, 136, 204, 272, 300].map(|rows| rows * 16));
            let frame = taker.frame.take().unwrap();
            assert_same(frame.whole().unwrap(), &wanted, || gpu.name());
        }
        assert!(!source.give_frame(&mut taker).unwrap());
    }
}
