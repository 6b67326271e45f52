//! Every command of README and the guide is run: in a scene, or by another test, with the reason.
//!
//! A new command of a page needs a row in `scenes.rs`, in a [`Scene`] or in `ELSEWHERE`.

mod files;
#[path = "../../shared/pages.rs"]
mod pages;
mod scenes;
mod stage;
#[path = "../../inspect/wire.rs"]
#[allow(dead_code, reason = "one capture is made")]
mod wire;

use std::collections::BTreeSet;
use std::path::Path;

use self::scenes::{ELSEWHERE, PEERS, SCENES, SCREEN, TEXTURE};
use self::stage::Stage;
use crate::skipped::have;
use crate::texture_gpu::has_device;
use crate::window::Display;

/// A command that is run with a shell in the scene's folder.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// It runs to its end.
    Run(&'static str),
    /// It continues beside the next commands, and ends by itself.
    Beside(&'static str),
    /// It continues beside the next commands: the next one begins when it listens, and it ends by
    /// itself after the last one.
    Start(&'static str),
    /// It continues beside the next commands, and is interrupted after the last one, as by Ctrl-C.
    Serve(&'static str),
}

impl Step {
    fn command(self) -> &'static str {
        match self {
            Self::Run(it) | Self::Beside(it) | Self::Start(it) | Self::Serve(it) => it,
        }
    }
}

/// Commands that are run together. Those of pages stand here as the page has them: addresses, ports
/// and cameras are replaced when they are run (`stage.rs`).
pub(super) struct Scene {
    /// The files that exist before the first command.
    pub(super) files: &'static [&'static str],
    pub(super) steps: &'static [Step],
}

/// A command that is not run here.
pub(super) struct Elsewhere {
    pub(super) command: &'static str,
    pub(super) reason: &'static str,
    /// The test or script that runs what it runs, and a text in it; none if it was tried by hand.
    pub(super) proof: Option<(&'static str, &'static str)>,
}

fn all_scenes() -> impl Iterator<Item = &'static Scene> {
    [SCENES, PEERS, TEXTURE, SCREEN].into_iter().flatten()
}

#[test]
fn every_command_of_the_pages_has_a_row() {
    let of_scenes = all_scenes().flat_map(|scene| scene.steps).map(|step| step.command());
    let rows: BTreeSet<_> = of_scenes.chain(ELSEWHERE.iter().map(|row| row.command)).collect();
    let pages = pages::pages();
    let mut missing = Vec::new();
    let mut commands = BTreeSet::new();
    // Those of the measurements take minutes each.
    for (page, text) in pages.iter().filter(|(page, _)| page != "bench/README.md") {
        for command in pages::commands(text) {
            if !rows.contains(command.as_str()) {
                missing.push(format!("{page}: {command}"));
            }
            commands.insert(command);
        }
    }
    assert!(commands.len() > 50, "only {} commands were found", commands.len());
    assert!(
        missing.is_empty(),
        "a row of crates/cli/tests/program/guide/scenes.rs is missing for\n{}",
        missing.join("\n")
    );
    let is_on_a_page = |step: &Step| commands.contains(step.command());
    for scene in all_scenes() {
        let first = scene.steps.first().map(|step| step.command());
        assert!(scene.steps.iter().any(is_on_a_page), "no page has a command of {first:?}");
    }
    for row in ELSEWHERE {
        assert!(commands.contains(row.command), "no page has {}", row.command);
    }
}

#[test]
fn commands_that_are_not_run_here_are_run_elsewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for Elsewhere { command, reason, proof } in ELSEWHERE {
        let Some((file, text)) = proof else { continue };
        let content = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        assert!(content.contains(text), "{command} ({reason}): {file} has no {text:?}");
    }
}

/// Plays scenes, several at once: most of them wait for media in real time.
fn play(scenes: &'static [Scene], display: Option<&str>) {
    const LANES: usize = 6;
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            scope.spawn(move || {
                for scene in scenes.iter().skip(lane).step_by(LANES) {
                    Stage::new(scene.files, display).play(scene.steps);
                }
            });
        }
    });
}

#[test]
fn commands_of_streams_do_what_the_pages_say() {
    if have(&["ffmpeg", "curl"]) {
        play(SCENES, None);
    }
}

#[test]
fn commands_of_other_programs_do_what_the_pages_say() {
    if have(&["ffmpeg", "ffplay", "gst-launch-1.0"]) {
        play(PEERS, None);
    }
}

#[test]
fn commands_of_texture_video_do_what_the_pages_say() {
    if have(&["ffmpeg", "ffplay"]) {
        play(TEXTURE, None);
    }
}

#[test]
fn commands_of_windows_do_what_the_pages_say() {
    if have(&["Xvfb", "xdotool", "ffmpeg"]) && has_device() {
        let display = Display::new();
        play(SCREEN, Some(&display.name));
    }
}
