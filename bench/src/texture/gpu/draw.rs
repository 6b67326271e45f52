//! Drawing frames in device memory without scaling, by both paths.

use rushes::texture::Format;
use rushes_gpu::{DeviceFrame, FrameDecoder, Gpu, PICTURE_FORMAT, Path, Picture, Place};

use super::super::Bench;
use super::super::pictures::{Pictures, UHD};
use super::{repeated, timed};
use crate::captions;
use crate::report::{Figure, Table, medians_of, quantile};

const FORMATS: [Format; 6] =
    [Format::Rgba8, Format::Rgb24, Format::Yuv420, Format::Bc1, Format::Bc3, Format::YCoCgBc3];

const PATHS: [(&str, Path); 2] =
    [("octets, by the shader", Path::Octets), ("texture unit", Path::Texture)];

pub(super) fn measure(bench: &Bench<'_>, gpu: &Gpu) -> anyhow::Result<Figure> {
    let mut pictures = Pictures::draw(UHD)?;
    let target = Picture::new(gpu, UHD.width, UHD.height);
    let mut rows = Vec::new();
    for format in FORMATS {
        bench.progress(&format!("gpu: drawing {format}"));
        let octets = pictures.of(format)?;
        let layout = rushes::texture::Layout::new(format, UHD.width, UHD.height)?;
        for (path_name, path) in PATHS {
            if !path.is_supported(gpu, &layout) {
                continue;
            }
            let decoder = FrameDecoder::with_path(gpu, &layout, PICTURE_FORMAT, path)?;
            let frame = DeviceFrame::with_path(gpu, &layout, path)?;
            frame.write(gpu, &octets[0]);
            let place = Place::exact(&layout);
            let times = repeated(bench, || {
                let mut recorder = gpu.recorder();
                decoder.draw(gpu, &mut recorder, &frame, target.target(), &place);
                gpu.wait()?;
                timed(|| {
                    gpu.submit(recorder);
                    Ok(gpu.wait()?)
                })
            })?;
            rows.push((format, path_name, times));
        }
    }
    let table = Table::of(&rows)
        .text("format", |row| row.0.to_string())
        .text("by", |row| row.1)
        .measure("p50 ms", 3, |row| quantile(&row.2, 0.5))
        .measure("min ms", 3, |row| quantile(&row.2, 0.0));
    Ok(table.figure(&captions::GPU_DRAW, medians_of(bench.runs())))
}
