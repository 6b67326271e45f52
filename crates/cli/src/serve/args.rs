//! The command line of `rushes serve`.

use std::path::PathBuf;

use clap::Args;
use rushes::{Codec, FrameRate};

use crate::args::{OutputArgs, codec_parser};
use crate::endpoint::{Endpoint, parse_http};
use crate::ice::IceArgs;
use crate::key_frames::KeyFrameArgs;
use crate::overwrite::OverwriteArgs;
use crate::token::TokenArgs;
use crate::values::parse_rate;

/// Show a file or a live source to browsers, or what one of them publishes
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// File to show, from its beginning to its end and again; - for the standard input. A pipe or a device is a
    /// live source. Without a file, what a browser or another program publishes is shown
    pub(crate) file: Option<PathBuf>,
    /// Audio file to show with it
    #[arg(long, value_name = "FILE", requires = "file")]
    pub(crate) audio: Option<PathBuf>,
    /// File that what is published goes to as well: a container, such as .mkv, of which each publisher gets one:
    /// copy.mkv, copy-2.mkv. Only video that it holds is taken
    #[arg(long, short, value_name = "FILE", conflicts_with = "file")]
    pub(crate) output_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) overwrite: OverwriteArgs,
    /// Address and port of the page, and of WHIP (/whip) and WHEP (/whep)
    #[arg(long, value_parser = parse_http, value_name = "[BIND:]PORT", default_value = "127.0.0.1:8080")]
    pub(crate) http: Endpoint,
    #[command(flatten)]
    pub(crate) token: TokenArgs,
    /// Certificate chain for HTTPS (PEM). Browsers give a page the camera only over HTTPS or on the machine itself
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Site whose pages may use the server, too, such as `https://studio.example`; may be given several times
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub(crate) origins: Vec<String>,
    #[command(flatten)]
    pub(crate) ice: IceArgs,
    /// Tell clients of the TURN server, too, with its user name and password: those who have the token
    #[arg(long, requires = "turn", help_heading = "WebRTC")]
    pub(crate) share_turn: bool,
    /// Maximum number of viewers and publishers at a time
    #[arg(long, value_name = "NUMBER", default_value_t = 64)]
    pub(crate) sessions: usize,
    /// Times to show the file; 0 until Ctrl-C
    #[arg(long = "loop", value_name = "TIMES", default_value_t = 0)]
    pub(crate) repeat: u64,
    /// Frames per second, for a file that does not say
    #[arg(long, value_parser = parse_rate, value_name = "RATE")]
    pub(crate) fps: Option<FrameRate>,
    /// Codec of the file; guessed from its name if possible
    #[arg(long, value_parser = codec_parser())]
    pub(crate) codec: Option<Codec>,
    #[command(flatten)]
    pub(crate) key_frames: KeyFrameArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
