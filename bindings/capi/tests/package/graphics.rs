//! Frames in memory of a graphics processor, in a program in C: its test, and the example that shows them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rushes::texture::source::{Frame, Source, SourceError};
use rushes::texture::{
    ClientOptions, Decoder, Format, Layout, MemorySink, Rate, ServerOptions, TextureClient,
    TextureFrame, TextureServer, Transport,
};

use crate::display::Display;
use crate::programs::compile;
use crate::rig::{Process, folder, have, home, prefix, run};
use crate::skipped::missing;

/// The window of the example.
const WIDTH: u32 = 640;
const HEIGHT: u32 = 360;

#[test]
fn frames_in_graphics_memory_are_held_exported_and_returned() {
    if !have(&["cc"]) {
        return;
    }
    succeeds(Command::new(compile(("gpu.c", "c11"), &folder("graphics"), &[])));
}

/// Runs a test that says by its code that there is no graphics driver.
fn succeeds(mut program: Command) {
    let output = program.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(77) => missing(text, "mesa-vulkan-drivers libvulkan1"),
        code => assert_eq!(code, Some(0), "{text}"),
    }
}

/// Compiles the program that imports a frame into OpenGL; `None` if that is not possible here.
fn importer(place: &Path) -> Option<PathBuf> {
    let program = place.join("import_frame");
    let mut compiler = Command::new("cc");
    compiler.arg(home().join("../../interop/import_frame.c")).args(["-lEGL", "-lGL", "-o"]);
    let output = compiler.arg(&program).output().unwrap();
    if !output.status.success() {
        missing(String::from_utf8_lossy(&output.stderr), "libegl-dev libgl-dev");
        return None;
    }
    Some(program)
}

#[test]
fn objects_own_frames_in_graphics_memory_which_another_program_has_in_opengl() {
    if !have(&["cc", "c++"]) {
        return;
    }
    let place = folder("graphics_objects");
    let importer = importer(&place);
    for standard in ["c++17", "c++20"] {
        let mut program = Command::new(compile(("gpu.cpp", standard), &place, &[]));
        program.args(&importer);
        succeeds(program);
    }
}

/// Pictures that are red on the left and blue on the right.
struct Halves(Layout);

impl Source for Halves {
    fn layout(&self) -> &Layout {
        &self.0
    }

    fn rate(&self) -> Rate {
        Rate::new(30, 1).unwrap()
    }

    fn length(&self) -> Option<u64> {
        None
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        let half = |colour: [u8; 4]| colour.repeat(WIDTH as usize / 2);
        let row = [half([255, 0, 0, 255]), half([0, 0, 255, 255])].concat();
        Ok(Some(Frame::new(row.repeat(HEIGHT as usize))))
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        Ok(())
    }
}

/// Returns how many pixels of a screen are red, and how many are blue.
fn colours(display: &Display) -> [usize; 2] {
    let pixels = display.pixels("root");
    let count = |at: usize| {
        let is = |pixel: &&[u8; 3]| (0..3).all(|n| pixel[n] == if n == at { 255 } else { 0 });
        pixels.as_chunks::<3>().0.iter().filter(is).count()
    };
    [count(0), count(2)]
}

/// Builds an example; `None` if that is not possible here. It needs `libraries`, by their names in pkg-config, which
/// Debian has in `packages`.
fn built(name: &str, libraries: &[&str], packages: &str) -> Option<PathBuf> {
    if !have(&["cc", "make", "pkg-config", "Xvfb", "import"]) {
        return None;
    }
    if !Command::new("pkg-config").arg("--exists").args(libraries).status().unwrap().success() {
        missing(libraries.join(", "), packages);
        return None;
    }
    let program = folder(name).join(name);
    let mut make = Command::new("make");
    make.env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
    make.arg("-C").arg(home().join("examples"));
    make.arg(format!("OUT={}", program.parent().unwrap().display())).arg(&program);
    run(&mut make);
    Some(program)
}

/// Runs an example until its window shows the frames, then ends the stream, and returns what it printed; `None` if it
/// cannot run here.
fn shows_frames(program: PathBuf, environment: &[(&str, &str)]) -> Option<String> {
    let source = Halves(Layout::new(Format::Rgba8, WIDTH, HEIGHT).unwrap());
    let options = ServerOptions::default();
    let server = TextureServer::serve("127.0.0.1:0".parse().unwrap(), source, options).unwrap();
    let display = Display::of_size("1000x700");
    let mut command = Command::new(program);
    command.arg(server.local_address().to_string()).env("DISPLAY", &display.name);
    command.envs(environment.iter().copied());
    let mut viewer = Process::start(&mut command);
    let all = (WIDTH * HEIGHT / 2) as usize;
    let start = Instant::now();
    let mut seen = [0; 2];
    while seen != [all; 2] && start.elapsed() < Duration::from_secs(60) && !viewer.has_ended() {
        seen = colours(&display);
        sleep(Duration::from_millis(50));
    }
    drop(server);
    let (success, output) = viewer.end();
    if !success && output.contains("no graphics processor") {
        missing(output, "mesa-vulkan-drivers libvulkan1");
        return None;
    }
    assert!(success && output.contains(" frames"), "{output}");
    assert_eq!(seen, [all; 2], "{output}");
    Some(output)
}

#[test]
fn a_program_with_sdl_shows_frames_that_opengl_imports() {
    if let Some(program) = built("texture_sdl", &["sdl2", "gl"], "libsdl2-dev libgl-dev") {
        shows_frames(program, &[]);
    }
}

/// Returns the pixel at a place of a decoded picture of RGBA8.
fn pixel(picture: &[u8], (x, y): (u32, u32), width: u32) -> [u8; 3] {
    let pixels = picture.as_chunks::<4>().0;
    let [red, green, blue, _] = pixels[(y * width + x) as usize];
    [red, green, blue]
}

#[test]
fn a_program_with_sdl_streams_what_opengl_draws() {
    let Some(program) = built("texture_scene", &["sdl2", "gl"], "libsdl2-dev libgl-dev") else {
        return;
    };
    let display = Display::of_size("1000x700");
    let mut command = Command::new(program);
    command.arg("127.0.0.1:0").env("DISPLAY", &display.name);
    let mut scene = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(scene.stdout.take().unwrap()).lines();
    let Some(port) = lines.next() else {
        let errors = scene.wait_with_output().unwrap().stderr;
        let errors = String::from_utf8_lossy(&errors);
        assert!(errors.contains("no graphics processor"), "{errors}");
        return missing(errors, "mesa-vulkan-drivers libvulkan1");
    };
    let address = port.unwrap().replace("listening on port ", "127.0.0.1:");
    let (sender, frames) = std::sync::mpsc::sync_channel(4);
    let sink = MemorySink::new(move |frame: &TextureFrame<'_>| {
        let layout = *frame.shape().layout();
        let mut octets = vec![0; layout.bytes()];
        frame.copy_to(&mut octets);
        let _ = sender.try_send((layout, octets));
    });
    let mut options = ClientOptions::default();
    options.transport = Some(Transport::Tcp);
    let client = TextureClient::connect(address.parse().unwrap(), Arc::new(sink), options).unwrap();
    let (layout, frame) = frames.recv_timeout(Duration::from_secs(60)).unwrap();
    let decoder = Decoder::of(layout, Format::Rgba8).unwrap();
    let mut picture = vec![0; decoder.output().bytes()];
    decoder.decode(&frame, &mut picture).unwrap();
    let (width, height) = (layout.width(), layout.height());
    assert_eq!((layout.format(), width, height), (Format::Bc1, 1280, 720));
    let near = |have: [u8; 3], want: [u8; 3]| (0..3).all(|n| have[n].abs_diff(want[n]) < 8);
    for x in [0, width - 1] {
        let (sky, meadow) =
            (pixel(&picture, (x, 0), width), pixel(&picture, (x, height - 1), width));
        assert!(near(sky, [102, 179, 255]), "the sky is above: {sky:?}");
        assert!(near(meadow, [51, 128, 26]), "the meadow is below: {meadow:?}");
    }
    let middle = pixel(&picture, (width / 2, height / 2), width);
    assert!(
        middle.iter().all(|&value| value.abs_diff(85) < 16),
        "the triangle's middle: {middle:?}"
    );
    client.stop();
    // SDL closes its windows.
    run(Command::new("kill").arg(scene.id().to_string()));
    let last = lines.last().unwrap().unwrap();
    assert!(last.ends_with(" frames"), "{last}");
    assert!(scene.wait().unwrap().success());
}

#[test]
fn a_program_with_sdl_shows_frames_that_its_own_vulkan_device_imports() {
    // Vulkan says which layers it uses: it does not fail without them.
    let environment =
        [("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation"), ("VK_LOADER_DEBUG", "layer")];
    let (libraries, packages) = (["sdl2", "vulkan"], "libsdl2-dev libvulkan-dev");
    let built = built("texture_vulkan", &libraries, packages);
    let Some(output) = built.and_then(|program| shows_frames(program, &environment)) else {
        return;
    };
    for error in ["Validation Error", "VUID-"] {
        assert!(!output.contains(error), "{output}");
    }
    if !output.contains("Insert instance layer \"VK_LAYER_KHRONOS_validation\"") {
        missing("Vulkan's validation layers", "vulkan-validationlayers");
    }
}
