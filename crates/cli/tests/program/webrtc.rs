//! `serve`, `send --whip` and `recv --whep`, against each other.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rushes::Codec;
use rushes::file::{MediaReader, ReadOptions, tracks};

use crate::rig::{RunningProgram, free_port, interrupt, json, media, rushes, text, units};

const FILM: &str = "avc_cif_60f_baseline.264";
const SPEECH: &str = "opus_speech_mono_mixed_durations.opus";

/// Starts a server with `arguments`; returns it and its address when it listens.
fn serving(arguments: &[&str]) -> (RunningProgram, String) {
    serving_input(arguments, Stdio::null())
}

fn serving_input(arguments: &[&str], input: Stdio) -> (RunningProgram, String) {
    let address = format!("127.0.0.1:{}", free_port());
    let mut command = rushes(&["serve", "--http", &address]);
    let mut server = RunningProgram::of(command.args(arguments).stdin(input));
    server.wait_for("in a browser");
    (server, format!("http://{address}"))
}

/// Returns a program that plays from a server into a file.
fn player(url: &str, file: &Path) -> Command {
    let whep = format!("{url}/whep");
    rushes(&["recv", "--whep", &whep, "-o", file.to_str().unwrap(), "--idle-timeout", "10s"])
}

/// Plays from a server into a file for some seconds; returns the program.
fn playing(url: &str, file: &Path, more: &[&str]) -> Child {
    player(url, file).args(["--json", "--duration", "5s"]).args(more).spawn().unwrap()
}

/// Checks that a file has whole passes of the film, or parts of them, without a gap.
fn assert_is_of_the_film(file: &Path) {
    let (film, received) = (units(media(FILM).as_ref()), units(file));
    let begin = film.iter().position(|unit| *unit == received[0]).unwrap();
    let whole = film.iter().cycle().skip(begin);
    let differs = received.iter().zip(whole).position(|(one, other)| one != other);
    assert!(received.len() > 60 && differs.is_none(), "{} units, {differs:?}", received.len());
}

#[test]
fn a_film_is_served_to_two_viewers() {
    let folder = tempfile::tempdir().unwrap();
    let (mut server, url) = serving(&[&media(FILM), "--fps", "30"]);
    let files = ["one.264", "two.264"].map(|name| folder.path().join(name));
    let viewers: Vec<_> = files.iter().map(|file| playing(&url, file, &[])).collect();
    for (viewer, file) in viewers.into_iter().zip(&files) {
        let played = viewer.wait_with_output().unwrap();
        assert!(played.status.success(), "{}", text(&played.stderr));
        assert_eq!(json(&played)["received"]["frames_dropped"], 0);
        assert_is_of_the_film(file);
    }
    server.wait_for("0 watching");
    interrupt(&server.child);
    let (status, shown) = server.end();
    assert!(status.success() && shown.contains("shown: "), "{shown}");
}

#[test]
fn what_one_program_publishes_another_plays() {
    let folder = tempfile::tempdir().unwrap();
    let (server, url) = serving(&["-v"]);
    let nothing = playing(&url, &folder.path().join("early.264"), &[]).wait_with_output().unwrap();
    assert_eq!(nothing.status.code(), Some(1));
    assert!(text(&nothing.stderr).contains("nobody publishes yet"), "{}", text(&nothing.stderr));
    let whip = format!("{url}/whip");
    let film = media(FILM);
    let mut command = rushes(&["send", &film, "--fps", "30", "--loop", "0", "--whip", &whip]);
    let mut publisher = RunningProgram::of(&mut command);
    publisher.wait_for("publishing to");
    let second = rushes(&["send", &film, "--whip", &whip]).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(
        text(&second.stderr).contains("somebody publishes already"),
        "{}",
        text(&second.stderr)
    );
    let file = folder.path().join("played.264");
    let played = playing(&url, &file, &[]).wait_with_output().unwrap();
    assert!(played.status.success(), "{}", text(&played.stderr));
    assert_is_of_the_film(&file);
    interrupt(&publisher.child);
    let (status, said) = publisher.end();
    assert!(!said.contains("the server keeps the session"), "{status} {said}");
    interrupt(&server.child);
    assert!(server.end().0.success());
}

/// Reads the video of a container, as a bare file.
fn video_of(container: &Path) -> std::path::PathBuf {
    let mut reader = MediaReader::open(container, Codec::H264, ReadOptions::default()).unwrap();
    let frames = std::iter::from_fn(|| reader.next_frame().unwrap().map(|it| it.data.clone()));
    let bare = container.with_extension("264");
    std::fs::write(&bare, frames.collect::<Vec<_>>().concat()).unwrap();
    bare
}

#[test]
fn what_is_published_is_recorded_with_its_sound_in_a_file_for_each_publisher() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("published.mkv");
    let (mut server, url) = serving(&["-o", file.to_str().unwrap()]);
    let (film, speech, whip) = (media(FILM), media(SPEECH), format!("{url}/whip"));
    let arguments = ["send", &film, "--fps", "30", "--audio", &speech, "--whip", &whip];
    for name in ["published.mkv", "published-2.mkv"] {
        let sent = rushes(&arguments).args(["--loop", "2"]).output().unwrap();
        assert!(sent.status.success(), "{}", text(&sent.stderr));
        server.wait_for("recorded: ");
        let file = folder.path().join(name);
        let found = tracks(&file).unwrap().unwrap();
        let codecs: Vec<_> = found.iter().map(|track| track.codec).collect();
        assert_eq!(codecs, [Some(Codec::H264), Some(Codec::Opus)]);
        assert_is_of_the_film(&video_of(&file));
    }
    interrupt(&server.child);
    assert!(server.end().0.success());
    let parts = std::fs::read_dir(folder.path()).unwrap();
    let is_part = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().path().extension().is_some_and(|it| it == "part")
    };
    assert!(!parts.into_iter().any(is_part));
}

#[test]
fn a_recording_is_whole_when_the_server_is_stopped_while_somebody_publishes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("published.mkv");
    let (server, url) = serving(&["-o", file.to_str().unwrap()]);
    let (film, whip) = (media(FILM), format!("{url}/whip"));
    let mut command = rushes(&["send", &film, "--fps", "30", "--loop", "0", "--whip", &whip]);
    let mut publisher = RunningProgram::of(&mut command);
    publisher.wait_for("publishing to");
    // A viewer would make the publisher go on at a key frame.
    let start = Instant::now();
    let part = folder.path().join("published.mkv.part");
    while std::fs::metadata(&part).map_or(0, |it| it.len()) < 100_000 {
        assert!(start.elapsed() < Duration::from_secs(120), "nothing is recorded");
        std::thread::sleep(Duration::from_millis(100));
    }
    interrupt(&server.child);
    let (status, said) = server.end();
    assert!(status.success() && said.contains("recorded: "), "{said}");
    assert_is_of_the_film(&video_of(&file));
    assert!(!publisher.end().0.success());
}

#[test]
fn vp8_is_played_into_matroska() {
    let folder = tempfile::tempdir().unwrap();
    let (server, url) = serving(&[&media("vp8_320x180_60f_libvpx.ivf"), "--fps", "30"]);
    let file = folder.path().join("played.mkv");
    let played = playing(&url, &file, &[]).wait_with_output().unwrap();
    assert!(played.status.success(), "{}", text(&played.stderr));
    assert_eq!(json(&played)["received"]["frames_dropped"], 0);
    assert_eq!(tracks(&file).unwrap().unwrap()[0].codec, Some(Codec::Vp8));
    interrupt(&server.child);
    assert!(server.end().0.success());
}

#[test]
fn the_end_of_the_show_reaches_those_who_watch() {
    let folder = tempfile::tempdir().unwrap();
    let film = media(FILM);
    let (server, url) = serving(&[&film, "--fps", "30", "--loop", "4"]);
    let file = folder.path().join("played.264");
    let played = player(&url, &file).args(["--json"]).output().unwrap();
    assert!(played.status.success(), "{}", text(&played.stderr));
    assert_eq!(json(&played)["end"], "bye");
    assert_is_of_the_film(&file);
    assert_eq!(units(&file).last(), units(film.as_ref()).last());
    assert!(server.end().0.success());
}

#[test]
fn nothing_is_awaited_of_a_server_that_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let (server, url) = serving_input(&["-", "--codec", "h264"], Stdio::piped());
    let file = folder.path().join("played.264");
    let mut player = RunningProgram::of(&mut player(&url, &file));
    player.wait_for("playing from");
    interrupt(&server.child);
    let (status, said) = player.end();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("closed the connection; nothing was received"), "{said}");
    assert!(!said.contains("/whep/"), "the session's own URL allows others to end it: {said}");
    assert!(server.end().0.success() && !file.exists());
}

#[test]
fn a_token_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "a-long-secret\n").unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let token = token.to_str().unwrap();
    let (_server, url) = serving(&[&media(FILM), "--fps", "30", "--token-file", token]);
    let file = folder.path().join("played.264");
    for (more, is_let_in) in
        [(&[][..], false), (&["--token", "another"], false), (&["--token-file", token], true)]
    {
        let played = playing(&url, &file, more).wait_with_output().unwrap();
        assert_eq!(played.status.success(), is_let_in, "{more:?} {}", text(&played.stderr));
    }
    assert_is_of_the_film(&file);
}

#[test]
fn mistakes_are_explained() {
    let film = media(FILM);
    let folder = tempfile::tempdir().unwrap();
    let password = folder.path().join("password");
    std::fs::write(&password, "secret\n").unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&password, std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    let password = password.to_str().unwrap();
    let turn = |server: &'static str, more: &[&'static str]| {
        let turn = ["serve", "--http", "0", "--turn", server, "--turn-password-file", password];
        [&turn[..], more].concat()
    };
    let shared = turn("127.0.0.1", &["--turn-user", "a", "--share-turn"]);
    let foreign = turn("127.0.0.1", &["--turn-user", "é", "--share-turn", "--token", "x"]);
    let ipv6 = turn("::1", &["--turn-user", "a"]);
    let other = turn("stun:127.0.0.1", &["--turn-user", "a"]);
    let nobody = format!("http://127.0.0.1:{}/whip", free_port());
    for (arguments, code, reason) in [
        (&["send", &film, "--whip", &nobody][..], 1, "cannot connect to"),
        (&["send", &film, "--whip", "ftp://127.0.0.1/"], 1, "http"),
        (&["send", &film, "--whip", &nobody, "--to", "127.0.0.1:5004"], 2, "cannot be used with"),
        (&["recv", "--whep", &nobody, "-o", "x.264", "--srtp", "AEAD_AES_128_GCM"], 2, "cannot be"),
        (&["serve", "nowhere.264"], 1, "nowhere.264"),
        (&["serve", "--audio", "speech.opus"], 2, "<FILE>"),
        (&["serve", "-o", "x.264"], 2, "name it .mkv"),
        (&["serve", &film, "-o", "x.mkv"], 2, "cannot be used with"),
        (&shared, 2, "--share-turn without a token"),
        (&foreign, 2, "in ASCII only"),
        (&ipv6, 2, "over IPv4 only"),
        (&other, 2, "of the other kind"),
        (&["serve", "--http", "0", "--stun", "turn:127.0.0.1"], 2, "of the other kind"),
        (&["serve", "--http", "0", "--stun", "[::1]:5"], 2, "over IPv4 only"),
        (&["send", &film, "--to", "127.0.0.1:9", "--stun", "a"], 2, "--stun needs --whip"),
        (&["recv", "--from", "0", "-o", "x.264", "--token", "a"], 2, "--token needs --whep"),
    ] {
        let refused = rushes(arguments).output().unwrap();
        let said = text(&refused.stderr);
        assert!(
            refused.status.code() == Some(code) && said.contains(reason),
            "{arguments:?} {said}"
        );
    }
}
