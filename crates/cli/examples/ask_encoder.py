#!/usr/bin/env python3
"""Encodes a test picture with GStreamer, and makes a key frame for each line of a pipe.

    mkfifo requests
    ask_encoder.py requests | rushes serve - --codec h264 --key-frame-requests-to requests

A camera takes the place of videotestsrc: v4l2src ! videoconvert. Debian has what it needs in python3-gi,
gir1.2-gst-plugins-base-1.0, gstreamer1.0-plugins-bad and gstreamer1.0-plugins-ugly.
"""

import sys
import threading

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstVideo", "1.0")
from gi.repository import Gst, GstVideo  # noqa: E402

# A key frame every 600 pictures unless one is asked for.
PIPELINE = """
    videotestsrc is-live=true ! video/x-raw,width=640,height=360,framerate=30/1
    ! x264enc tune=zerolatency bitrate=1000 key-int-max=600 name=encoder
    ! h264parse config-interval=-1 ! video/x-h264,stream-format=byte-stream,alignment=au
    ! fdsink fd=1
"""


def follow(encoder, pipe):
    """Asks the encoder for a key frame with each line."""
    source = encoder.get_static_pad("src")
    with open(pipe, encoding="ascii") as lines:
        for _ in lines:
            # With parameter sets before it.
            event = GstVideo.video_event_new_upstream_force_key_unit(Gst.CLOCK_TIME_NONE, True, 0)
            source.send_event(event)
            print("a key frame is made", file=sys.stderr, flush=True)


def main():
    Gst.init(None)
    pipeline = Gst.parse_launch(PIPELINE)
    encoder = pipeline.get_by_name("encoder")
    threading.Thread(target=follow, args=(encoder, sys.argv[1]), daemon=True).start()
    pipeline.set_state(Gst.State.PLAYING)
    ends = Gst.MessageType.EOS | Gst.MessageType.ERROR
    message = pipeline.get_bus().timed_pop_filtered(Gst.CLOCK_TIME_NONE, ends)
    pipeline.set_state(Gst.State.NULL)
    if message.type == Gst.MessageType.ERROR:
        sys.exit(str(message.parse_error()[0]))


if __name__ == "__main__":
    main()
