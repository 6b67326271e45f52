//! `rushes texture`: frames in texture formats, in files and over the network.

mod args;
mod convert;
mod encodable;
#[cfg(feature = "window")]
mod encoded;
mod files;
mod kind;
mod live;
mod output;
mod security;
mod serve;
mod sink;
mod source;
mod values;
mod view;
mod viewed;
#[cfg(feature = "window")]
mod window;

use clap::{Args, Subcommand};

pub(crate) use self::sink::Frames;
use crate::Outcome;
use crate::args::OutputArgs;

#[derive(Args, Debug)]
#[command(after_help = "\
Formats: rgb24 rgba8 rgb565 yuv420 yuv422 ycocg420 bc1 bc3 ycocg-bc3, and as they are in a file:
etc1 etc2 astc-4x4 astc-5x4 astc-5x5 astc-6x5 astc-6x6 astc-8x5 astc-8x6 astc-8x8
astc-10x5 astc-10x6 astc-10x8 astc-10x10 astc-12x10 astc-12x12

Examples:
  rushes texture serve pattern:1920x1080@60 --listen 7000 --format bc1
  rushes texture view 127.0.0.1:7000 --null --duration 10s
  rushes texture encode film.y4m film.ktx2 --format ycocg-bc3 --psnr
  rushes texture decode film.ktx2 copy.y4m")]
pub(crate) struct TextureArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Encode a file's pictures to a texture format
    Encode(args::EncodeArgs),
    /// Decode a file's frames to pictures
    Decode(args::DecodeArgs),
    /// Send frames to clients that connect
    Serve(args::ServeArgs),
    /// Receive frames from a server, and write, show or measure them
    View(args::ViewArgs),
}

impl TextureArgs {
    /// Returns the output options of the command.
    pub(crate) fn output(&self) -> OutputArgs {
        match &self.what {
            What::Encode(args) => args.files.report,
            What::Decode(args) => args.files.report,
            What::Serve(args) => args.report,
            What::View(args) => args.report,
        }
    }

    /// Returns whether the command opens a window.
    pub(crate) fn has_window(&self) -> bool {
        matches!(&self.what, What::View(args) if args.window.window)
    }

    /// Returns whether the command encodes on the graphics processor.
    pub(crate) fn has_gpu(&self) -> bool {
        matches!(&self.what, What::Serve(args) if args.gpu)
    }
}

pub(crate) fn run(args: &TextureArgs) -> anyhow::Result<Outcome> {
    match &args.what {
        What::Encode(args) => files::encode(args),
        What::Decode(args) => files::decode(args),
        What::Serve(args) => serve::run(args),
        What::View(args) => view::run(args),
    }
}
