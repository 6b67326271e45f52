//! Files written and opened by name, and exchanged with FFmpeg.
#![allow(clippy::unwrap_used, reason = "a test may")]

#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::path::Path;
use std::process::Command;

use rushes_texture::file::{FileError, create};
use rushes_texture::source::{RawHint, SourceError, open};
use rushes_texture::{
    Colour, ColourRange, Decoder, Format, Frame, Layout, Matrix, Rate, Siting, Source,
};

fn pattern(spec: &str) -> Box<dyn Source> {
    open(Path::new(spec), &RawHint::default()).unwrap()
}

/// Writes a pattern's frames, and returns them.
fn write(path: &Path, spec: &str) -> Vec<Frame> {
    let mut source = pattern(spec);
    let mut writer = create(path, *source.layout(), source.rate()).unwrap();
    let frames = frames(&mut *source);
    for frame in &frames {
        writer.write_frame(frame).unwrap();
    }
    writer.finish().unwrap();
    frames
}

fn frames(source: &mut dyn Source) -> Vec<Frame> {
    std::iter::from_fn(|| source.next_frame().unwrap()).collect()
}

fn error(path: &Path, hint: &RawHint) -> SourceError {
    open(path, hint).map(|_| ()).unwrap_err()
}

#[test]
fn frames_of_odd_sizes_are_read_from_every_kind_of_file() {
    let folder = tempfile::tempdir().unwrap();
    let kinds = [
        ("a.y4m", "yuv420"),
        ("b.y4m", "yuv422"),
        ("a.ktx2", "rgb565"),
        ("b.ktx2", "rgb24"),
        ("a_%03d.png", "rgb24"),
        ("b_%03d.png", "rgba8"),
        ("a.rgb", "rgb24"),
        ("a.rgba", "rgba8"),
        ("a.yuv", "yuv420"),
        ("a.raw", "ycocg420"),
    ];
    for (name, format) in kinds {
        for (width, height) in [(1, 1), (30, 26), (191, 107)] {
            let path = folder.path().join(name);
            let spec = format!("pattern:{width}x{height}@30000/1001,{format},frames=5");
            let written = write(&path, &spec);
            let format = format.parse().unwrap();
            let rate = "30000/1001".parse().unwrap();
            let mut hint = RawHint { format: Some(format), rate: Some(rate), ..RawHint::default() };
            (hint.size, hint.colour.matrix) = (Some((width, height)), Some(Matrix::Bt709));
            let mut source = open(&path, &hint).unwrap();
            let layout = Layout::new(format, width, height).unwrap();
            // Nothing says where chroma of such a file is.
            let mut colour = layout.colour();
            if name == "a.yuv" {
                colour.siting = Siting::Left;
            }
            assert_eq!(*source.layout(), layout.with_colour(colour), "{name}");
            assert_eq!((source.rate(), source.length()), (rate, Some(5)), "{name}");
            assert!(frames(&mut *source) == written, "{name}");
            source.rewind().unwrap();
            assert!(frames(&mut *source) == written, "{name}");
        }
    }
}

#[test]
fn a_writer_that_is_not_finished_leaves_nothing() {
    for name in ["a.y4m", "a.ktx2", "a.rgb", "a.png"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let source = pattern(if name == "a.y4m" { "pattern:8x8,yuv420" } else { "pattern:8x8" });
        let mut writer = create(&path, *source.layout(), source.rate()).unwrap();
        assert!(matches!(writer.write_frame(&[0; 3]), Err(FileError::FrameSize { .. })));
        drop(writer);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{name}");
    }
}

#[test]
fn a_failed_finish_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::new(Format::Bc1, 8, 8).unwrap();
    let writer = create(&folder.path().join("a.ktx2"), layout, Rate::DEFAULT).unwrap();
    assert!(matches!(writer.finish(), Err(FileError::NoFrames(_))));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_error_for_a_source_that_cannot_be_opened_has_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let (path, hint) = (|name: &str| folder.path().join(name), RawHint::default());
    for name in ["none.y4m", "none.ktx2", "none.png"] {
        let error = error(&path(name), &hint).to_string();
        assert!(error.contains(name), "{error}");
    }
    assert!(matches!(error(&path("a.mp4"), &hint), SourceError::Kind(_)));
    assert!(matches!(error(&path("a.rgb"), &hint), SourceError::Hint(_)));
    let size = RawHint { size: Some((2, 2)), ..hint };
    assert!(matches!(error(&path("a.raw"), &size), SourceError::Hint(_)));
    assert!(matches!(error(Path::new("pattern:x"), &hint), SourceError::Pattern(_)));
    std::fs::write(path("a.rgb"), [0; 13]).unwrap();
    let error = error(&path("a.rgb"), &size).to_string();
    assert!(error.ends_with("13 bytes are 1 frames of 12 bytes and a remainder of 1"), "{error}");
}

#[test]
fn a_truncated_file_yields_its_whole_frames_and_then_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.y4m");
    let written = write(&path, "pattern:30x26,yuv420,frames=3");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let mut source = open(&path, &RawHint::default()).unwrap();
    assert_eq!(source.length(), None);
    assert_eq!(source.next_frame().unwrap().as_ref(), Some(&written[0]));
    assert_eq!(source.next_frame().unwrap().as_ref(), Some(&written[1]));
    let error = source.next_frame().unwrap_err();
    assert!(matches!(
        error,
        SourceError::File { error: FileError::Truncated { frame: 2, .. }, .. }
    ));
}

/// Returns the output of FFmpeg, or `None` if it is not installed.
fn ffmpeg(arguments: &[&str]) -> Option<(bool, Vec<u8>)> {
    if !skipped::have(&["ffmpeg"]) {
        return None;
    }
    let output = Command::new("ffmpeg").args(["-v", "error"]).args(arguments).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    Some((output.status.success(), output.stdout))
}

#[test]
fn ffmpeg_reads_the_same_samples_from_our_y4m_and_png_files() {
    let folder = tempfile::tempdir().unwrap();
    for (name, format, theirs) in [
        ("a.y4m", "yuv420", "yuv420p"),
        ("b.y4m", "yuv422", "yuv422p"),
        ("a_%05d.png", "rgb24", "rgb24"),
        ("b_%05d.png", "rgba8", "rgba"),
    ] {
        let path = folder.path().join(name);
        let written = write(&path, &format!("pattern:191x107,{format},frames=3"));
        let path = path.to_str().unwrap();
        let read = ffmpeg(&["-i", path, "-pix_fmt", theirs, "-f", "rawvideo", "-"]);
        let Some((success, samples)) = read else { return };
        assert!(
            success && samples == written.iter().flat_map(|it| it.to_vec()).collect::<Vec<_>>()
        );
    }
}

#[test]
fn we_read_the_y4m_files_of_ffmpeg() {
    let folder = tempfile::tempdir().unwrap();
    for (format, ours) in [
        ("yuv420p", Ok(Format::Yuv420)),
        ("yuv422p", Ok(Format::Yuv422)),
        ("yuv420p10le", Ok(Format::Yuv420)),
        ("yuv422p12le", Ok(Format::Yuv422)),
        ("yuv411p", Err("\"411\"")),
    ] {
        let (y4m, raw) = (folder.path().join("a.y4m"), folder.path().join("a.raw"));
        // FFmpeg 5.1 cuts the chroma rows of an odd width in half a sample of more than 8 bits.
        let width = if format.ends_with("le") { 190 } else { 191 };
        let input =
            format!("testsrc2=size=192x108:rate=30000/1001,format=rgb24,crop={width}:107:0:0");
        for path in [&y4m, &raw] {
            let path = path.to_str().unwrap();
            let kind = if path.ends_with("y4m") { "yuv4mpegpipe" } else { "rawvideo" };
            let arguments = [
                "-f",
                "lavfi",
                "-i",
                &input,
                "-frames:v",
                "4",
                "-pix_fmt",
                format,
                "-strict",
                "-1",
                "-f",
                kind,
                "-y",
                path,
            ];
            if ffmpeg(&arguments).is_none() {
                return;
            }
        }
        match ours {
            Ok(ours) => {
                let mut source = open(&y4m, &RawHint::default()).unwrap();
                let layout = Layout::new(ours, width, 107).unwrap();
                let colour = Colour { matrix: Matrix::Bt601, ..source.layout().colour() };
                assert_eq!(*source.layout(), layout.with_colour(colour));
                assert_eq!(source.rate().to_string(), "30000/1001");
                let read = frames(&mut *source);
                assert_eq!(read.len(), 4);
                let all: Vec<_> = read.iter().flat_map(|it| it.to_vec()).collect();
                let mut want = std::fs::read(&raw).unwrap();
                if let Some(more) = ["p10le", "p12le"].iter().position(|it| format.ends_with(it)) {
                    let shift = [2, 4][more];
                    let samples = want.as_chunks().0.iter().map(|it| u16::from_le_bytes(*it));
                    let rounded = samples.map(|it| ((it + (1 << (shift - 1))) >> shift).min(255));
                    want = rounded.map(|it| it as u8).collect();
                }
                assert!(all == want, "{format}");
            }
            Err(text) => {
                let error = error(&y4m, &RawHint::default()).to_string();
                assert!(error.contains(text), "{error}");
            }
        }
    }
}

/// The picture of FFmpeg's filters is shown as FFmpeg shows it, whatever its samples are.
#[test]
fn colours_of_ffmpeg_are_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (y4m, raw) = (folder.path().join("a.y4m"), folder.path().join("a.rgb"));
    for (format, matrix, range) in [
        ("yuv444p", "bt601", "tv"),
        ("yuv444p", "bt601", "pc"),
        ("yuv444p12le", "bt601", "tv"),
        ("yuv444p", "bt709", "tv"),
        ("yuv444p", "bt2020", "pc"),
        ("yuv420p", "bt601", "tv"),
        ("yuv420p", "bt709", "pc"),
        ("gray", "bt601", "pc"),
        ("gray12le", "bt601", "pc"),
    ] {
        // A smooth picture, in which the positions of chroma make no difference.
        let mut picture =
            "gradients=size=192x108:x0=0:y0=0:x1=191:y1=107:c0=red:c1=blue:speed=0.00001"
                .to_owned();
        if format.starts_with("gray") {
            picture += ",format=gray";
        }
        let to =
            format!("{picture},scale=out_color_matrix={matrix}:out_range={range},format={format}");
        let way = ["-f", "lavfi", "-i"];
        let one = |filter: &str, format: &str, path: &Path| {
            let path = path.to_str().unwrap();
            let rest = ["-frames:v", "1", "-strict", "-1", "-pix_fmt", format, "-y", path];
            ffmpeg(&[&way[..], &[filter], &rest].concat())
        };
        if one(&to, format, &y4m).is_none() || one(&picture, "rgb24", &raw).is_none() {
            return;
        }
        let mut hint = RawHint::default();
        hint.colour.matrix = Some(matrix.parse().unwrap());
        let range = if range == "pc" { ColourRange::Full } else { ColourRange::Limited };
        hint.colour.range = Some(range);
        let mut source = open(&y4m, &hint).unwrap();
        let decoder = Decoder::of(*source.layout(), Format::Rgb24).unwrap();
        let mut found = vec![0; decoder.output().bytes()];
        decoder.decode(&source.next_frame().unwrap().unwrap(), &mut found).unwrap();
        let want = std::fs::read(&raw).unwrap();
        let worst = found.iter().zip(&want).map(|(a, b)| a.abs_diff(*b)).max();
        assert!(worst <= Some(4), "{format} {matrix} {range}: {worst:?}");
    }
}
