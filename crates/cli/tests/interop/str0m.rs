//! str0m at the other end of WHIP and WHEP, with its own packets of VP8, VP9, AV1 and H.264. Built with
//! cargo from `interop/str0m`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use rushes::Codec;

use crate::media::{assert_same, nal_units, units};
use crate::pion::frames;
use crate::rig::{Process, await_tcp, free_tcp_port, received, rushes};
use crate::skipped;

/// The files of this project, each a second long.
const FILES: [(Codec, &str); 4] = [
    (Codec::Vp8, "vp8_320x180_60f_libvpx.ivf"),
    (Codec::Vp9, "vp9_320x180_60f_libvpx.ivf"),
    (Codec::Av1, "av1_320x180_60f_libaom.obu"),
    (Codec::H264, "avc_cif_60f_baseline.264"),
];

/// Returns the peer, which is built once. Where its crates cannot be fetched, prints a message and
/// returns `None`; if it then cannot be built, the test fails.
fn peer() -> Option<&'static Path> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let build = || {
        cargo(&["fetch", "--target", &host()])?;
        // The workspace's folder already has most of what it depends on.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..");
        let built = cargo(&["build", "--target-dir", target.to_str().unwrap()]);
        built.unwrap_or_else(|why| panic!("{why}"));
        Ok(target.join("debug/str0m-peer"))
    };
    BUILT.get_or_init(build).as_deref().inspect_err(|reason| skipped::not_here(reason)).ok()
}

/// Lets cargo do something with the peer's crates.
fn cargo(arguments: &[&str]) -> Result<(), String> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/str0m/Cargo.toml");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let output = Command::new(cargo)
        .args(arguments)
        .args(["--quiet", "--locked", "--manifest-path"])
        .arg(manifest)
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    let why = || format!("str0m: {}", String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(()) } else { Err(why()) }
}

/// Returns the name of this platform.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().into()
}

/// Starts the peer on a free port, and returns it with the URL of its server.
fn server(way: &str, codec: Codec, file: &Path) -> Option<(Process, String)> {
    let port = free_tcp_port();
    let at = format!("127.0.0.1:{port}");
    let arguments = [way, codec.name, &at, file.to_str().unwrap()];
    let process = Process::start(peer()?.to_str().unwrap(), &arguments);
    await_tcp(port);
    Some((process, format!("http://{at}")))
}

fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/media").join(name)
}

/// Returns the units of a file of frames, each after its length, as [`units`] does.
fn received_units(file: &Path, codec: Codec) -> Vec<Vec<u8>> {
    let (octets, mut at, mut all) = (fs::read(file).unwrap(), 0, Vec::new());
    while let Some(length) = octets.get(at..at + 4) {
        let end = at + 4 + u32::from_be_bytes(length.try_into().unwrap()) as usize;
        let frame = &octets[at + 4..end];
        if codec.has_nal_units() {
            all.extend(nal_units(frame).map(<[u8]>::to_vec));
        } else {
            all.push(frame.to_vec());
        }
        at = end;
    }
    all
}

#[test]
fn str0m_receives_what_is_published_by_whip() {
    let folder = tempfile::tempdir().unwrap();
    for (codec, name) in FILES {
        let (film, copy) = (own(name), folder.path().join(codec.name));
        let Some((process, url)) = server("recv", codec, &copy) else { return };
        let to = format!("{url}/whip");
        let arguments = ["send", film.to_str().unwrap(), "--whip", &to, "--fps", "60", "--json"];
        let (out, err) = rushes(&arguments).finish();
        assert!(out.contains("\"frames\":60"), "{out}{err}");
        let (_, err) = process.finish();
        assert!(err.is_empty(), "{codec:?}: {err}");
        let mut sent = units(&film, codec);
        if codec == Codec::Av1 {
            // Temporal delimiters are not sent.
            sent =
                sent.iter().map(|unit| unit.strip_prefix(&[0x12, 0]).unwrap().to_vec()).collect();
        }
        let received = received_units(&copy, codec);
        let lens = (sent.len(), received.len());
        assert!(sent == received, "{}: other units, {lens:?}", codec.name);
    }
}

#[test]
fn str0m_plays_by_whep() {
    let folder = tempfile::tempdir().unwrap();
    for (codec, name) in FILES {
        let (film, copy) = (own(name), folder.path().join(name));
        let all = folder.path().join("frames");
        fs::write(&all, frames(&film, codec)).unwrap();
        let Some((process, url)) = server("send", codec, &all) else { return };
        let from = format!("{url}/whep");
        let to = ["-o", copy.to_str().unwrap(), "--codec", codec.name];
        let arguments = [&["recv", "--whep", &from], &to[..], &["--json"]].concat();
        let report = received(rushes(&arguments));
        let (_, err) = process.finish();
        assert!(err.is_empty(), "{codec:?}: {err}");
        assert_same(&film, &copy);
        assert_eq!(report["complete"], true, "{report}");
    }
}
