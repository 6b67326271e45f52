//! pion at the other end: the only peer for H.266, and one for AV1, built with Go from `interop/pion`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use rushes::Codec;
use rushes::file::{MediaReader, ReadOptions};

use crate::media::assert_same;
use crate::rig::{Process, ports, receive, received, send};
use crate::skipped;

/// Returns the peer, which is built once. Without Go or its modules, prints a message and returns
/// `None`.
pub(crate) fn pion() -> Option<&'static Path> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    program(&BUILT, "pion")
}

/// Returns the program of a folder of `interop`, as [`pion`] does.
pub(crate) fn program(
    built: &'static OnceLock<Result<PathBuf, String>>,
    name: &str,
) -> Option<&'static Path> {
    let build = || {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop").join(name);
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let built =
            Command::new("go").arg("build").arg("-o").arg(&program).current_dir(source).output();
        match built {
            Ok(output) if output.status.success() => Ok(program),
            Ok(output) => Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr))),
            Err(error) => Err(format!("go: {error}")),
        }
    };
    let built = built.get_or_init(build);
    built.as_deref().inspect_err(|reason| skipped::not_here(reason)).ok()
}

/// Returns the file of this project, and a larger one if it is available.
fn files(codec: Codec) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let own = match codec.name {
        "h266" => "vectors/media/vvc_192x128_64f_vvenc_tiny_nals.266",
        _ => "vectors/media/av1_320x180_60f_libaom.obu",
    };
    let large = "../shared/media/vvc_1080p_10f_vvenc.266";
    let large = Some(large).filter(|_| codec == Codec::H266);
    let paths = [Some(own), large].into_iter().flatten().map(|path| root.join(path));
    paths.filter(|file| file.exists()).collect()
}

/// Returns the extension of the files of a codec.
fn extension(codec: Codec) -> &'static str {
    codec.files.extensions[0]
}

fn to_pion(codec: Codec) {
    let Some(pion) = pion() else { return };
    let folder = tempfile::tempdir().unwrap();
    for (n, file) in files(codec).iter().enumerate() {
        let (port, copy) = (ports(), folder.path().join(format!("{n}.{}", extension(codec))));
        let from = format!("127.0.0.1:{port}");
        let arguments = ["recv", codec.name, &from, copy.to_str().unwrap()];
        let process = Process::start(pion.to_str().unwrap(), &arguments).listening(port);
        send(file, port, &[]);
        let (_, err) = process.finish();
        assert!(err.is_empty(), "{err}");
        assert_same(file, &copy);
    }
}

#[test]
fn pion_receives_h266() {
    to_pion(Codec::H266);
}

#[test]
fn pion_receives_av1() {
    to_pion(Codec::Av1);
}

fn from_pion(codec: Codec) {
    let Some(pion) = pion() else { return };
    let folder = tempfile::tempdir().unwrap();
    for (n, file) in files(codec).iter().enumerate() {
        let (port, copy) = (ports(), folder.path().join(format!("{n}.{}", extension(codec))));
        let units = folder.path().join("units");
        fs::write(&units, frames(file, codec)).unwrap();
        let process = receive(&copy, port, &["--idle-timeout", "1s"]);
        let to = format!("127.0.0.1:{port}");
        let arguments = ["send", codec.name, units.to_str().unwrap(), &to];
        let (_, err) = Process::start(pion.to_str().unwrap(), &arguments).finish();
        assert!(err.is_empty(), "{err}");
        let report = received(process);
        assert_same(file, &copy);
        assert_eq!(report["complete"], true, "{report}");
    }
}

#[test]
fn pion_sends_h266() {
    from_pion(Codec::H266);
}

#[test]
fn pion_sends_av1() {
    from_pion(Codec::Av1);
}

/// Returns the frames of a file, each preceded by its length.
pub(crate) fn frames(file: &Path, codec: Codec) -> Vec<u8> {
    let mut reader = MediaReader::open(file, codec, ReadOptions::default()).unwrap();
    let mut octets = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        octets.extend((frame.data.len() as u32).to_be_bytes());
        octets.extend_from_slice(&frame.data);
    }
    octets
}
