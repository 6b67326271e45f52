//! A window under a window manager: full screen, minimised and restored.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use rushes::texture::source::read_counter;
use rushes::texture::{Format, Layout};

use crate::rig::{rushes, text};
use crate::texture_rig::serving;
use crate::window::{Display, SIZE, Viewer, exact, expected, have, wait_for};
use crate::window_faults::Faults;

const SOURCE: &str = "pattern:640x360@10";

/// Twice the pattern's size, with black above and below.
const SCREEN: (usize, usize) = (1280, 800);
const BLACK: usize = 40;

/// Starts the window manager of a screen.
fn managed(display: &Display) -> Viewer {
    let mut manager = Command::new("openbox")
        // The manager prints its startup message before it handles requests.
        .args(["--sm-disable", "--startup", "echo ready"])
        // The manager uses the default configuration instead of the user's.
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .env("DISPLAY", &display.name)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(manager.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "ready"), "no window manager");
    Viewer(Some(manager))
}

/// Returns the number of the picture that fills the screen, or `None` if anything else is on it.
fn filled(display: &Display) -> Option<u32> {
    let ((width, height), row) = (SCREEN, SCREEN.0 * 3);
    let screen = display.pixels("root");
    let middle = screen.get(BLACK * row..(height - BLACK) * row)?;
    let outside = screen[..BLACK * row].iter().chain(&screen[(height - BLACK) * row..]);
    if screen.len() != height * row || outside.into_iter().any(|octet| *octet != 0) {
        return None;
    }
    let layout = Layout::new(Format::Rgb24, width as u32, (height - 2 * BLACK) as u32).unwrap();
    let number = read_counter(&layout, middle)?;
    let wanted = expected(SOURCE, number);
    let pairs = middle.iter().enumerate().map(|(at, octet)| {
        let (x, y) = (at % row / 3 / 2, at / row / 2);
        octet.abs_diff(wanted[(y * SIZE.0 as usize + x) * 3 + at % 3])
    });
    // The pixels are blended rather than copied, so they differ at the edges of the pattern.
    let wrong: u64 = pairs.map(u64::from).sum();
    (wrong < 8 * middle.len() as u64).then_some(number)
}

#[test]
fn a_window_fills_the_screen_and_is_restored() {
    if !have(&["Xvfb", "xdotool", "import", "openbox"]) {
        return;
    }
    let display = Display::of_size(&format!("{}x{}", SCREEN.0, SCREEN.1));
    let _manager = managed(&display);
    let server = serving(SOURCE, &["--format", "bc1", "--transport", "tcp"]);
    let view = ["texture", "view", &server.address, "--window", "--full-screen"];
    let (viewer, window) = display.open(rushes(&view));
    let mut number = wait_for("a full screen at first", || filled(&display));

    for key in ["F11", "f"] {
        display.key(&window, key);
        // Waits until the manager no longer gives the window its earlier size.
        wait_for("a window", || (display.pixels("root")[..3] != [0; 3]).then_some(()));
        display.xdotool(&["windowsize", &window, "640", "360"]);
        number = wait_for("a later picture", || {
            Some(exact(&display, &window, SOURCE)?.0).filter(|&later| later > number)
        });
        display.key(&window, key);
        number = wait_for("a full screen", || filled(&display).filter(|&later| later > number));
    }
    display.key(&window, "Escape");
    let output = viewer.finish();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_minimised_window_is_not_drawn_and_comes_back_with_the_last_frame() {
    if !have(&["Xvfb", "xdotool", "import", "openbox", "cc"]) {
        return;
    }
    let (faults, display) = (Faults::new(), Display::new());
    let _manager = managed(&display);
    let server = serving(SOURCE, &["--format", "bc1", "--transport", "tcp", "--units", "1"]);
    let (viewer, window) = display.open(faults.view(&server));
    display.xdotool(&["windowsize", &window, "640", "360"]);
    let mut number = wait_for("a picture", || exact(&display, &window, SOURCE)).0;
    if !faults.are_heard() {
        return;
    }
    for _ in 0..2 {
        display.xdotool(&["windowminimize", &window]);
        // Ten or more frames are received, each copied to the device by at most two calls.
        wait_for("frames that are not drawn", || {
            let calls = faults.calls();
            let since = calls.iter().rev().take_while(|(call, _)| call == "submit");
            (since.count() >= 30).then_some(())
        });
        display.xdotool(&["windowactivate", &window]);
        let later = wait_for("a picture", || exact(&display, &window, SOURCE)).0;
        assert!(later >= number + 10, "{number} and then {later}");
        number = later;
    }
    display.key(&window, "q");
    let output = viewer.finish();
    assert!(output.status.success(), "{}", text(&output.stderr));
}
