"""Makes texture video a live source of GStreamer.

    rushes texture serve pattern:1280x720@60 --listen 127.0.0.1:7000      # in another terminal
    python texture_gstreamer.py 127.0.0.1:7000 videoconvert ! autovideosink
    python texture_gstreamer.py --every-frame 127.0.0.1:7000 \\
        videoconvert ! x264enc tune=zerolatency ! mp4mux ! filesink location=copy.mp4

The pipeline after the address is that of gst-launch-1.0, and is given raw video in RGBA, into which
frames of other formats are decoded. Frames have
the times at which their first packets arrived, from 0: these follow the times of capture, later by the
time that the way takes. If the pipeline is too slow, the oldest frames that wait are left out, and the
newest are not late; with `--every-frame` the server waits instead, by TCP, if it was started with
`--every-frame`, too. When the pictures change their size, so do the caps: muxers refuse that, unless
`videoscale ! video/x-raw,width=1280,height=720` comes before the encoder.

At the end of the video, and after Ctrl-C, files are completed; a second Ctrl-C does without. It needs
GStreamer 1.20 or later, which Debian has in python3-gi, gir1.2-gst-plugins-base-1.0 and
gstreamer1.0-plugins-base; the pipelines above take elements of -good and -ugly, too.
"""

import argparse
import sys
from fractions import Fraction

import gi
import rushes

gi.require_version("Gst", "1.0")
gi.require_version("GstApp", "1.0")
gi.require_version("GstVideo", "1.0")
from gi.repository import GLib, Gst, GstApp, GstVideo  # noqa: E402

SOURCE = "appsrc name=rushes is-live=true format=time do-timestamp=false"
DEFAULT = ["videoconvert", "!", "autovideosink"]
#: Frames that may wait in the pipeline's source. Others wait in the client's queue.
WAITING_MAX = 2
#: Octets that are copied at a time: they stay in the processor's cache.
PIECE = 256 * 1024


class PipelineError(Exception):
    """The pipeline cannot be made, or has failed."""


def parse(words: list[str]) -> Gst.Pipeline:
    """The pipeline from words as gst-launch-1.0 takes them, or from a single text."""
    Gst.init(None)
    assert GstApp.AppSrc  # Its methods exist once the module is loaded.
    try:
        if len(words) == 1:
            return Gst.parse_launch(f"{SOURCE} ! {words[0]}")
        return Gst.parse_launchv([*SOURCE.split(), "!", *words])
    except GLib.Error as error:
        raise PipelineError(error.message) from None


def has_ended(bus: Gst.Bus, seconds: float = 0.0) -> bool:
    """Whether everything has arrived at the pipeline's end; waits for it at most that long."""
    kinds = Gst.MessageType.EOS | Gst.MessageType.ERROR
    message = bus.timed_pop_filtered(int(seconds * Gst.SECOND), kinds)
    if message and message.type == Gst.MessageType.ERROR:
        error, details = message.parse_error()
        print(details, file=sys.stderr)
        raise PipelineError(f"{message.src.get_name()}: {error.message}")
    return message is not None


def caps_of(frame: rushes.TextureFrame, rate: Fraction) -> Gst.Caps:
    """What GStreamer calls the frame's format. Those of RGB have full range and no matrix."""
    primaries, transfer, _, _ = frame.colour
    colour = GstVideo.VideoColorimetry()
    colour.range = GstVideo.VideoColorRange(1)  # 0 to 255, whose name is no name in Python
    colour.matrix = GstVideo.VideoColorMatrix.RGB
    colour.transfer = GstVideo.video_transfer_function_from_iso(transfer)
    colour.primaries = GstVideo.video_color_primaries_from_iso(primaries)
    return Gst.Caps.from_string(
        f"video/x-raw,format=RGBA,width={frame.width},height={frame.height},"
        f"framerate={rate.numerator}/{rate.denominator},pixel-aspect-ratio=1/1,"
        f"interlace-mode=progressive,colorimetry={colour.to_string()}"
    )


def copied(frame: rushes.TextureFrame) -> Gst.Buffer:
    """The frame's octets for GStreamer."""
    octets = memoryview(frame).cast("B")
    buffer = Gst.Buffer.new_allocate(None, len(octets), None)
    # PyGObject copies from `bytes` only. Pieces of them take little longer than one copy of all.
    for at in range(0, len(octets), PIECE):
        buffer.fill(at, bytes(octets[at : at + PIECE]))
    return buffer


class Feed:
    """Gives frames to the source of a pipeline."""

    def __init__(self, source: Gst.Element) -> None:
        self.source = source
        self.caps: Gst.Caps | None = None
        self.first_at = 0.0
        self.pts = -1
        self.number = -1
        self.frames = 0

    def has_room(self) -> bool:
        """Whether the pipeline has taken most frames."""
        return int(self.source.get_property("current-level-buffers")) < WAITING_MAX

    def push(self, frame: rushes.TextureFrame, rate: Fraction) -> None:
        """Gives one frame, after caps if they are others than those before."""
        picture = frame if frame.format == "rgba8" else frame.decode("rgba8")
        caps = caps_of(picture, rate)
        if self.caps is None or not caps.is_equal(self.caps):
            self.caps = caps
            self.source.set_caps(caps)
            # Frames may be late by an interval and are still shown evenly.
            self.source.set_property("min-latency", int(Gst.SECOND / rate) if rate else 0)
        buffer = copied(picture)
        first_at = frame.first_at
        if self.frames == 0:
            self.first_at = first_at
        elif frame.number != self.number + 1:
            buffer.set_flags(Gst.BufferFlags.DISCONT)
        if not frame.is_whole:
            buffer.set_flags(Gst.BufferFlags.CORRUPTED)
        # Muxers need times that increase, even if two frames arrive at once.
        since = round((first_at - self.first_at) * Gst.SECOND)
        self.pts = buffer.pts = max(since, self.pts + 1)
        if rate:
            buffer.duration = int(Gst.SECOND / rate)
        self.number = buffer.offset = frame.number
        self.frames += 1
        self.source.push_buffer(buffer)


def play(
    pipeline: Gst.Pipeline, feed: Feed, client: rushes.TextureClient[rushes.TextureFrame]
) -> str | None:
    """Feeds a pipeline until the video ends; returns why, or None if the pipeline has ended."""
    bus, why = pipeline.get_bus(), None
    while not has_ended(bus, 0.0 if feed.has_room() else 0.002):
        if not feed.has_room():
            continue
        frame = client.pull_frame(0.05)
        if frame is None:
            if why:
                return why
            # Frames that came before the end may still wait.
            why = client.wait(0.0)
            continue
        rate = Fraction(client.rate or 0).limit_denominator(1001)
        feed.push(frame, rate)
        if feed.frames == 1:
            # The time of the pipeline begins with the first frame.
            pipeline.set_state(Gst.State.PLAYING)
    return None


def run(address: str, words: list[str], every_frame: bool) -> int:
    """Plays a server's video by a pipeline; returns the exit code."""
    pipeline = parse(words)
    feed, code = Feed(pipeline.get_by_name("rushes")), 0
    try:
        # Windows and files are opened before the first frame. If that fails, the bus has an error.
        pipeline.set_state(Gst.State.PAUSED)
        options: rushes.TextureClientOptions = {"transport": "tcp"} if every_frame else {}
        with rushes.TextureClient(address, every_frame=every_frame, **options) as client:
            why: str | None = "interrupted"
            try:
                why = play(pipeline, feed, client)
                code = 0 if why is None or why.startswith("closed by the peer: ended") else 1
            except KeyboardInterrupt:
                pass
        if why and feed.frames:
            feed.source.end_of_stream()
            while not has_ended(pipeline.get_bus(), 0.1):
                pass
        counts = client.statistics()
        print(
            f"{feed.frames} frames; {client.skipped} left out for a slow pipeline, "
            f"{counts.frames_lost} lost, {counts.frames_dropped} not sent; "
            f"{why or 'the pipeline has ended'}",
            file=sys.stderr,
        )
    finally:
        pipeline.set_state(Gst.State.NULL)
    return code


parser = argparse.ArgumentParser(usage="%(prog)s [--every-frame] ADDRESS:PORT [PIPELINE…]")
parser.add_argument("--every-frame", action="store_true", help="leave no frame out")
parser.add_argument("address")
parser.add_argument("pipeline", nargs=argparse.REMAINDER)
arguments = parser.parse_args()
try:
    sys.exit(run(arguments.address, arguments.pipeline or DEFAULT, arguments.every_frame))
except KeyboardInterrupt:
    sys.exit(130)
except (PipelineError, rushes.Error) as error:
    sys.exit(f"texture_gstreamer: {error}")
